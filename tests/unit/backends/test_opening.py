"""Tiny children are taken several at a time: which of them, and what ends that."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from fanfold.backends.opening import NOTHING, take_alike
from fanfold.protocol import ChildrenReleased
from tests.backends import Rig, call_plan

CHILDREN = [[(0, ())]]


@pytest.mark.parametrize(
    ("children", "kind", "taken", "left"),
    [
        ([1, 2, 3], int, [1, 2, 3], NOTHING),
        ([1, 2, 3, 4, 5], int, [1, 2, 3, 4], NOTHING),
        ([1, True, 3], int, [1], True),
        ([1, 2.0], int, [1], 2.0),
        (["a", "bcd", "e"], str, ["a"], "bcd"),
        (["a", "bc", b"d"], str, ["a", "bc"], b"d"),
        ([], int, [], NOTHING),
    ],
)
def test_children_are_taken_while_they_are_alike(
    children: list[Any], kind: type[Any], taken: list[Any], left: Any
) -> None:
    rows: list[Any] = []
    source = iter(children)
    assert take_alike(source, kind, rows, 4, 2) is left
    assert rows == taken
    assert list(source) == children[len(taken) + (left is not NOTHING) :]


def test_what_came_before_an_exception_is_there() -> None:
    def failing() -> Iterator[int]:
        yield from range(3)
        raise ValueError("page 4 is damaged")

    rows: list[Any] = []
    with pytest.raises(ValueError, match="damaged"):
        take_alike(failing(), int, rows, 100, 0)
    assert rows == [0, 1, 2]


def mixed(count: int) -> Iterator[Any]:
    """Numbers, which come fast, and now and then a list that is filled again."""
    counted = [0]
    for number in range(count):
        counted[0] = number
        yield counted if number % 100 == 99 else number


def children(rig: Rig, count: int) -> list[Any]:
    told = rig.run([count])
    released = told.of(ChildrenReleased)
    assert sum(sum(event.counts) for event in released) == count
    return list(told.children_of(0))


def test_children_that_can_change_are_copied_among_those_that_cannot() -> None:
    rig = Rig(call_plan(mixed, expand=CHILDREN, items=False), step_s=1e-7)
    assert children(rig, 1_000) == [[n] if n % 100 == 99 else n for n in range(1_000)]


def test_slow_children_are_looked_at_one_by_one() -> None:
    """Between any two of them it may be time to tell of what is there."""
    rig = Rig(call_plan(mixed, expand=CHILDREN, items=False), step_s=0.001)
    assert len(children(rig, 50)) == 50
    assert len(rig.flushes) >= 50 * 0.001 / 0.005
