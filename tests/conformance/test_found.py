"""Results that were wrong once, each on the smallest pipeline that shows it."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import fanfold as ff
from tests.conformance.backends import BACKENDS

REAL = ["inline", "local", "threads"]


def pages(documents: list[list[str]]) -> list[list[str]]:
    return documents


def is_good(pages: list[str]) -> list[bool | ff.ItemFailure]:
    return [ff.ItemFailure("bad page") if page == "bad" else page == "good" for page in pages]


@pytest.mark.parametrize("backend", REAL)
def test_too_few_members_beside_another_parents_failure(backend: str) -> None:
    @ff.pipeline(level="document")
    def good(document: ff.Port[list[str]]) -> ff.Port[Any]:
        page = ff.expand(ff.stage(pages, batch_size=8)(document), "page")
        mask = ff.stage(is_good, batch_size=8)(page)
        return ff.gather(ff.filter(page, mask), at_least=1)

    documents = [["bad"], ["good", "cover"], ["cover", "cover"], []]
    results = list(good.stream(documents, backend=BACKENDS[backend]()))
    assert [result.value for result in results] == [None, ["good"], None, None]
    kinds = [[failure.kind for failure in result.failures] for result in results]
    assert kinds == [["declared"], [], ["too_few"], ["too_few"]]


def frames(count: int, *, pixels: int) -> Iterator[Any]:
    """What video decoders do: one buffer for all frames."""
    buffer = np.zeros(pixels, dtype=np.int64)
    for number in range(count):
        buffer[:] = number
        yield buffer


def first_pixel(pixels: Any) -> int:
    return int(pixels[0])


@pytest.mark.parametrize("pixels", [4, 1 << 20])
@pytest.mark.parametrize("backend", REAL)
def test_a_generator_may_fill_one_buffer_again_and_again(backend: str, pixels: int) -> None:
    """Small frames are released many at a time, large ones as they come."""

    @ff.pipeline(level="video")
    def first(count: ff.Port[int]) -> ff.Port[Any]:
        frame = ff.expand(ff.stage(frames)(count, pixels=pixels), "frame")
        return ff.gather(ff.stage(first_pixel)(frame))

    (result,) = first.stream([6], backend=BACKENDS[backend]())
    assert result.value == list(range(6))


@dataclass
class Frame:
    pixels: Any


WRAPPED: dict[str, Callable[[Any], Any]] = {
    "dict": lambda pixels: {"image": pixels, "number": 1},
    "list": lambda pixels: [pixels],
    "tuple": lambda pixels: (pixels, "frame"),
    "nested": lambda pixels: {"images": [{"image": pixels}]},
    "object": Frame,
}


def inner(frame: Any) -> int:
    while not isinstance(frame, np.ndarray | memoryview | array):
        if isinstance(frame, dict):
            frame = next(iter(frame.values()))
        else:
            frame = frame.pixels if isinstance(frame, Frame) else frame[0]
    return int(frame[0])


def wrapped_frames(count: int, *, wrapped: str) -> Iterator[Any]:
    """One buffer for all frames, within something that is new each time."""
    buffer = array("q", [0]) if wrapped == "array" else np.zeros(4, dtype=np.int64)
    for number in range(count):
        buffer[0] = number
        yield buffer if wrapped == "array" else WRAPPED[wrapped](buffer)


@pytest.mark.parametrize(
    ("backend", "wrapped"),
    [
        *(
            (backend, wrapped)
            for backend in REAL
            for wrapped in ("dict", "list", "tuple", "nested")
        ),
        ("local", "object"),
        ("local", "array"),
    ],
)
def test_a_generator_may_fill_a_buffer_within_what_it_yields(backend: str, wrapped: str) -> None:
    """Objects are copied where they go to another process; in one process they are shared."""

    @ff.pipeline(level="video")
    def first(count: ff.Port[int]) -> ff.Port[Any]:
        frame = ff.expand(ff.stage(wrapped_frames)(count, wrapped=wrapped), "frame")
        return ff.gather(ff.stage(inner)(frame))

    (result,) = first.stream([6], backend=BACKENDS[backend]())
    assert result.value == list(range(6))


def shots(count: int) -> Iterator[dict[str, Any]]:
    for number in range(count):
        yield {"number": number, "even": number % 2 == 0, "yes": True, "no": False}


@pytest.mark.parametrize("backend", REAL)
def test_a_mask_that_comes_from_two_fields_of_one_value(backend: str) -> None:
    @ff.pipeline(level="video")
    def kept(count: ff.Port[int]) -> ff.Port[Any]:
        shot = ff.expand(ff.stage(shots)(count), "shot")
        mask = ff.merge(ff.filter(shot["yes"], shot["even"]), shot["no"])
        return ff.gather(ff.filter(shot["number"], mask))

    (result,) = kept.stream([4], backend=BACKENDS[backend]())
    assert result.value == [0, 2]


def halves(count: int) -> Iterator[dict[str, Any]]:
    for number in range(count):
        yield {"first": number % 2 == 0, "a": {"name": number}, "b": {}}


@pytest.mark.parametrize("backend", REAL)
def test_a_field_that_is_missing_at_one_of_two_places(backend: str) -> None:
    @ff.pipeline(level="video")
    def names(count: ff.Port[int]) -> ff.Port[Any]:
        half = ff.expand(ff.stage(halves)(count), "half")
        either = ff.merge(ff.filter(half["a"], half["first"]), half["b"])
        return ff.gather(either["name"], failed="drop")

    (result,) = names.stream([4], backend=BACKENDS[backend]())
    assert result.value == [0, 2]
    assert [failure.ordinals for failure in result.failures] == [(0, 1), (0, 3)]
