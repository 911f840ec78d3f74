"""What generators give that lies in memory of their own: when it is copied, and how often."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.backends import Rig, call_plan

CHILDREN = [[(0, ())]]


class Image:
    """An array as far as anyone looks: it counts how often it was copied."""

    copied = 0

    def __init__(self, nbytes: int) -> None:
        self.nbytes = nbytes

    def __array__(self) -> Any:
        raise AssertionError("nobody needs its numbers")

    def copy(self) -> Image:
        type(self).copied += 1
        return self


class Page:
    """No array: whoever shares a process may share it."""


@pytest.mark.parametrize("expand", [[], CHILDREN])
@pytest.mark.parametrize("copies", [True, False])
def test_objects_are_copied_only_where_they_leave_the_process(
    expand: Any, copies: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = Page()

    def pages(count: int) -> Iterator[Page]:
        for _ in range(count):
            yield made

    rig = Rig(call_plan(pages, expand=expand, items=True))
    monkeypatch.setattr(rig.values, "copies", lambda port: copies)
    (whole,) = rig.run([2]).values.values()
    assert [page is made for page in whole] == [not copies] * 2


@pytest.mark.parametrize(
    ("megabytes", "copies", "items", "copied"),
    [(1, True, False, 4), (8, True, False, 0), (8, False, False, 5), (8, True, True, 5)],
)
def test_what_is_released_as_it_comes_is_copied_once(
    megabytes: int, copies: bool, items: bool, copied: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the store, unless that keeps the objects themselves, or they are wanted as a list later."""

    def images(count: int) -> Iterator[Image]:
        for _ in range(count):
            yield Image(megabytes << 20)

    monkeypatch.setattr(Image, "copied", 0)
    rig = Rig(call_plan(images, expand=CHILDREN, items=items))
    monkeypatch.setattr(rig.values, "copies", lambda port: copies)
    assert len(rig.run([5]).children_of(0)) == 5
    assert Image.copied == copied
