"""Batches that are not full and wait for more, driven by hand: until when, and what ends the waiting."""

from __future__ import annotations

import dataclasses
from typing import Any

import fanfold as ff
from fanfold.protocol import BatchFinished, RunBatch, TasksFinished, WorkerDied, WorkerStarted
from tests.pipelines import compiled, pages
from tests.plans import fan_out_plan
from tests.scripted import Script

LINGER_S = 5.0


def lingering(batch_size: int = 8, replicas: int = 1) -> Script:
    """The pages' call, whose index is 2, lingers; the others do not."""
    plan = fan_out_plan(batch_size=batch_size)
    pages, read, join = plan.stages
    stages = (pages, dataclasses.replace(read, linger_s=LINGER_S), join)
    return Script(dataclasses.replace(plan, stages=stages), replicas=replicas)


def reads(batches: list[RunBatch]) -> list[int]:
    return [batch.count for batch in batches if batch.call == 2]


def test_a_trickle_goes_when_its_oldest_item_has_waited_long_enough() -> None:
    script = lingering()
    script.admit(1)
    (opened,) = script.dispatch(0.0)
    script.release(opened, {0: 1})
    assert script.dispatch(1.0) == []
    script.release(opened, {0: 2})
    assert script.dispatch(4.0) == []
    assert script.core.due_s == 1.0 + LINGER_S
    assert reads(script.dispatch(5.9)) == []
    assert reads(script.dispatch(6.0)) == [3]
    assert script.core.due_s is None


def test_a_full_batch_waits_for_nothing() -> None:
    script = lingering()
    script.admit(1)
    (opened,) = script.dispatch(0.0)
    script.release(opened, {0: 11})
    assert reads(script.dispatch(0.0)) == [8]
    assert script.core.due_s is None  # the worker is busy, so nobody need wake up for the three


def test_what_a_batch_left_has_waited_since_it_came_and_no_longer() -> None:
    script = lingering()
    script.admit(1)
    (opened,) = script.dispatch(0.0)
    script.release(opened, {0: 5})
    script.dispatch(0.0)
    script.release(opened, {0: 5})
    (read,) = script.dispatch(3.0)
    assert read.count == 8
    script.finish(read)
    assert script.dispatch(6.0) == []  # the two that are left came at 3.0
    assert script.core.due_s == 3.0 + LINGER_S
    assert reads(script.dispatch(8.0)) == [2]


def test_nothing_lingers_when_nothing_can_come() -> None:
    script = lingering()
    script.admit(1)
    (opened,) = script.dispatch(0.0)
    script.expand_all(opened, [3])
    assert reads(script.dispatch(0.0)) == [3]


def test_a_source_that_may_give_more_is_waited_for() -> None:
    script = lingering()
    script.admit(1, last=False)
    (opened,) = script.dispatch(0.0)
    script.expand_all(opened, [3])
    assert reads(script.dispatch(0.0)) == []
    script.admit(0, last=True)
    assert reads(script.dispatch(1.0)) == [3]


def test_a_source_without_room_counts_as_nothing() -> None:
    script = lingering()
    read = dataclasses.replace(script.plan.stages[1], batch_size=1000)
    stages = (script.plan.stages[0], read, script.plan.stages[2])
    script = Script(dataclasses.replace(script.plan, stages=stages))
    room = script.core.room()
    script.admit(room, last=False)
    while batches := [b for b in script.dispatch() if b.call == 0]:
        for batch in batches:
            script.expand_all(batch, [1] * batch.count)
    assert script.core.room() == 0
    assert reads([batch for _, batch in script.running]) == [room]


def test_a_producer_that_is_paused_counts_as_nothing() -> None:
    look = ff.stage(lambda page: page, name="look")
    read = ff.stage(lambda pages: pages, name="read", batch_size=1000, linger_s=LINGER_S)

    def pipeline(document: ff.Port[Any]) -> Any:
        page = ff.expand(pages(document), "page")
        return ff.gather(look(page)), ff.gather(read(page))

    plan = compiled(pipeline)
    opened, looked, lingers = plan.calls()
    script = Script(plan)
    script.admit(30)
    for batch in script.dispatch():
        script.release(batch, {0: 100}, node=opened.index + 1)
        script.seal(batch, [0], node=opened.index + 1)
        script.event(TasksFinished(batch.batch, 0, 1, ()))
        script.event(BatchFinished(batch.batch, busy_s=1.0))
    started = (
        script.dispatch()
    )  # two are done, and so much waits to be looked at that no third is begun
    assert sorted({batch.call for batch in started}) == [looked.index, lingers.index]
    assert sum(batch.count for batch in started if batch.call == lingers.index) == 200


def test_a_second_batch_is_not_sent_ahead_before_it_is_full() -> None:
    script = lingering(batch_size=4)
    script.admit(2)
    (opened,) = script.dispatch(0.0)
    script.release(opened, {0: 6})
    assert reads(script.dispatch(0.0)) == [4]
    assert script.dispatch(100.0) == []
    script.release(opened, {1: 2})
    assert reads(script.dispatch(100.0)) == [4]


def test_items_that_come_back_from_a_dead_worker_have_waited_already() -> None:
    script = lingering(batch_size=4)
    script.admit(1)
    (opened,) = script.dispatch(0.0)
    script.release(opened, {0: 3})
    script.dispatch(0.0)
    (read,) = script.dispatch(LINGER_S)
    worker = script.worker_of(read)
    script.event(WorkerDied(worker, "was killed"))  # before it began
    script.event(WorkerStarted(worker))
    script.running = [(w, b) for w, b in script.running if b is not read]
    assert reads(script.dispatch(LINGER_S + 1)) == [3]
