"""Results that were wrong once, each on the smallest pipeline that shows it."""

from __future__ import annotations

from collections.abc import Iterator
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


def frames(count: int) -> Iterator[Any]:
    """What video decoders do: one buffer for all frames."""
    buffer = np.zeros(4, dtype=np.int64)
    for number in range(count):
        buffer[:] = number
        yield buffer


def first_pixel(pixels: Any) -> int:
    return int(pixels[0])


@pytest.mark.parametrize("backend", REAL)
def test_a_generator_may_fill_one_buffer_again_and_again(backend: str) -> None:
    @ff.pipeline(level="video")
    def first(count: ff.Port[int]) -> ff.Port[Any]:
        frame = ff.expand(ff.stage(frames)(count), "frame")
        return ff.gather(ff.stage(first_pixel)(frame))

    (result,) = first.stream([6], backend=BACKENDS[backend]())
    assert result.value == list(range(6))
