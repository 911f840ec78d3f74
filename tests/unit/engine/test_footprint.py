"""The engine's memory goes by runs, not by children."""

from __future__ import annotations

import gc

from tests.plans import fan_out_plan
from tests.scripted import Script


def live_objects() -> int:
    gc.collect()
    return len(gc.get_objects())


def test_children_in_flight_are_not_objects() -> None:
    """100,000 children in flight, 50 per parent: a handful of objects per parent, none per child."""
    script = Script(fan_out_plan(batch_size=256), replicas=1, checked=False)
    before = live_objects()
    script.admit(2_000)
    while started := script.core.machine.take(0, 256):  # past dispatch, which would pause here
        script.expand_all(started, [50] * started.count)
    children = script.core.machine.items_per_level[1]
    assert children == 100_000
    assert (live_objects() - before) / children < 0.25


def test_children_of_one_giant_are_not_objects() -> None:
    script = Script(fan_out_plan(batch_size=256), checked=False)
    script.admit(1)
    (pages,) = script.dispatch()
    before = live_objects()
    script.expand_all(pages, [100_000])
    assert script.core.machine.items_per_level[1] == 100_000
    assert live_objects() - before < 2_000
