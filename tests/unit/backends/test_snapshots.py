"""What is copied of a value that may be written to again."""

from __future__ import annotations

from array import array
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from fanfold.backends.snapshots import snapshot

BOTH = pytest.mark.parametrize("deep", [False, True])


@BOTH
@pytest.mark.parametrize("value", ["text", b"bytes", 3, 2.5, True, None, (), (1, "a"), (None,)])
def test_what_nobody_can_change_is_not_copied(value: object, deep: bool) -> None:
    assert snapshot(value, deep=deep) is value


@BOTH
def test_containers_are_copied_with_the_arrays_in_them(deep: bool) -> None:
    pixels, body = np.zeros(3), bytearray(b"a")
    value = {"image": pixels, "rest": [1, (pixels, body)]}
    copied = snapshot(value, deep=deep)
    pixels[:], body[:] = 1, b"b"
    value["rest"][0] = 2  # type: ignore[index]
    assert copied["image"].tolist() == [0, 0, 0]
    assert copied["rest"][0] == 1
    assert copied["rest"][1][0] is copied["image"]  # what occurs twice is copied once
    assert copied["rest"][1][1] == b"a"


@BOTH
@pytest.mark.parametrize("value", [{"page": 1}, [1, 2], bytearray(b"a")])
def test_small_containers_are_copied(value: Any, deep: bool) -> None:
    copied = snapshot(value, deep=deep)
    assert copied == value and copied is not value


@BOTH
def test_a_container_that_holds_itself(deep: bool) -> None:
    value: list[Any] = [bytearray(b"a")]
    value.append(value)
    copied = snapshot(value, deep=deep)
    assert copied is not value and copied[1] is copied and copied[0] is not value[0]


@BOTH
def test_what_is_nested_too_deep_stays(deep: bool) -> None:
    value: list[Any] = [bytearray(b"a")]
    for _ in range(100_000):
        value = [value]
    assert snapshot(value, deep=deep) is value


@dataclass
class Frame:
    pixels: Any
    number: int


class Handle:
    """Cannot be copied, nor pickled."""

    def __reduce__(self) -> str:
        raise TypeError("it is open")


def test_objects_are_copied_where_they_are_pickled_anyway() -> None:
    frame = Frame(array("b", [1, 2]), 0)
    copied = snapshot([frame], deep=True)[0]
    frame.pixels[0], frame.number = 5, 5
    assert (copied.pixels.tolist(), copied.number) == ([1, 2], 0)


def test_objects_stay_the_same_where_values_stay_in_the_process() -> None:
    frame = Frame(array("b", [1, 2]), 0)
    assert snapshot([frame], deep=False)[0] is frame


def test_what_cannot_be_copied_stays_beside_what_can() -> None:
    handle, pixels = Handle(), np.zeros(2)
    copied = snapshot((handle, pixels), deep=True)
    assert copied[0] is handle and copied[1] is not pixels
