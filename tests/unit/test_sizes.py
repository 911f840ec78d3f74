"""What values seem to take, and how people write a size."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy
import pytest

from fanfold.sizes import DEPTH, SAMPLE, as_bytes, row_sizes


@dataclasses.dataclass
class Page:
    image: bytes
    number: int


class Slotted:
    __slots__ = ("image",)

    def __init__(self, image: bytes) -> None:
        self.image = image


class Picture:
    size = (30, 20)

    def getbands(self) -> tuple[str, ...]:
        return ("R", "G", "B")


class Hostile:
    @property
    def nbytes(self) -> int:
        raise RuntimeError("mine")


class Text(str):
    pass


@pytest.mark.parametrize(
    ("value", "size"),
    [
        (None, 8),
        (3.5, 8),
        ("four", 4),
        (b"", 0),
        (Text("abc"), 3),
        (memoryview(b"abcdef"), 6),
        (numpy.zeros((10, 10), dtype="uint8"), 100),
        (numpy.float32(1), 4),
        ([1, 2, 3], 24),
        ([], 8),
        (("ab", 1), 10),
        ({"a", "b", "cdefghij"}, 10),
        ({"image": b"12345678", "page": 3}, 25),
        (Page(b"x" * 50, 3), 58),
        (Slotted(b"x" * 50), 50),
        (Picture(), 1800),
        (Hostile(), 8),
        (object(), 8),
        ([{"t": "x" * 9}] * (3 * SAMPLE), 30 * SAMPLE),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_value_is_as_large_as_what_is_in_it(value: Any, size: int) -> None:
    assert row_sizes([value]) == (size,)
    assert row_sizes([value, "x" * (size + 1)]) == (size, size + 1)


def test_rows_alike_are_one_number_and_others_one_each() -> None:
    assert row_sizes([b"ab", b"cd", b"ef"]) == (2,)
    assert row_sizes([b"ab", b"c", b"ef"]) == (2, 1, 2)
    assert row_sizes([]) == ()


def test_a_value_that_holds_itself_has_a_size() -> None:
    loop: list[Any] = [b"x" * 10]
    loop.append(loop)
    assert row_sizes([loop]) == (10 * (DEPTH + 1) + 8,)


@pytest.mark.parametrize(
    ("written", "size"),
    [
        (1, 1),
        ("17", 17),
        ("17 B", 17),
        ("128MB", 128_000_000),
        ("128 mb", 128_000_000),
        ("1.5kB", 1_500),
        ("2GiB", 2 << 30),
        (" 1 TB ", 10**12),
    ],
)
def test_sizes_are_read_as_people_write_them(written: Any, size: int) -> None:
    assert as_bytes(written) == size


@pytest.mark.parametrize(
    "written", [0, -1, True, 1.5, None, "", "0", "0.1B", "MB", "3 apples", "-1MB", "1e9", "nan"]
)
def test_what_is_no_size_is_refused(written: Any) -> None:
    with pytest.raises(ValueError, match="is not a size in bytes"):
        as_bytes(written)
