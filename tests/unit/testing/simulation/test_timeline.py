"""Virtual time goes forward, and what happens at one moment has no order to rely on."""

from __future__ import annotations

from random import Random

import pytest

from fanfold.testing.simulation.timeline import Timeline


def popped(timeline: Timeline[int]) -> list[int]:
    things = []
    while timeline.next_s is not None:
        things.append(timeline.pop())
    return things


def test_things_happen_by_time() -> None:
    timeline = Timeline[int](Random(0))
    for time_s in (3, 1, 2):
        timeline.add(time_s, time_s)
    assert popped(timeline) == [1, 2, 3]
    assert timeline.now_s == 3


def test_the_order_at_one_moment_is_drawn() -> None:
    orders = set()
    for seed in range(20):
        timeline = Timeline[int](Random(seed))
        for thing in range(3):
            timeline.add(1.0, thing)
        orders.add(tuple(popped(timeline)))
    assert len(orders) > 3


def test_things_with_one_tie_keep_their_order() -> None:
    for seed in range(20):
        timeline = Timeline[int](Random(seed))
        tie = 0.5
        for thing in range(6):
            timeline.add(1.0, thing, tie)
        assert popped(timeline) == list(range(6))


def test_nothing_happens_in_the_past() -> None:
    timeline = Timeline[int](Random(0))
    timeline.add(2.0, 1)
    timeline.pop()
    with pytest.raises(AssertionError, match="past"):
        timeline.add(1.0, 2)
