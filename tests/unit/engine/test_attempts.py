"""New attempts: retries, deaths that blame nobody, and who the items of a batch are."""

from __future__ import annotations

from dataclasses import replace

from fanfold.failures import Failure
from fanfold.plan import Plan
from fanfold.protocol import (
    BatchRaised,
    ItemRun,
    RunBatch,
    TasksFinished,
    WorkerDied,
    WorkerStarted,
)
from tests.plans import fan_out_plan
from tests.scripted import Script

BOOM = Failure(kind="raised", message="boom")


def changed(plan: Plan, stage: int, **options: object) -> Plan:
    stages = [replace(s, **options) if s.index == stage else s for s in plan.stages]  # type: ignore[arg-type]
    return replace(plan, stages=tuple(stages))


def reading(plan: Plan, pages: list[int]) -> Script:
    """Documents with so many pages, none of them read."""
    script = Script(plan)
    script.admit(len(pages))
    (batch,) = script.dispatch()
    script.expand_all(batch, pages)
    return script


def reads(script: Script) -> list[RunBatch]:
    return [batch for batch in script.dispatch() if batch.call == 2]


def test_an_exception_is_tried_again_as_often_as_the_stage_says() -> None:
    script = reading(changed(fan_out_plan(batch_size=None), 1, retries=2), [1])
    for attempt in (1, 2):
        (read,) = reads(script)
        assert read.attempt == attempt
        script.event(TasksFinished(read.batch, 0, 1, (), ((0, BOOM),), attempt=attempt))
        script.end(read)
        assert not script.results
    (read,) = reads(script)
    script.event(TasksFinished(read.batch, 0, 1, (), ((0, BOOM),), attempt=3))
    (result,) = script.results
    assert [(f.message, f.attempts) for f in result.failures] == [("boom", 3)]


def test_a_batch_that_raised_is_taken_apart_before_anything_is_tried_again() -> None:
    script = reading(changed(fan_out_plan(batch_size=4), 1, retries=1), [2])
    (read,) = reads(script)
    script.running.clear()
    script.event(BatchRaised(read.batch, BOOM))
    attempts = []
    for _ in range(3):
        (alone,) = reads(script)
        attempts.append((alone.count, alone.attempt))
        script.running.clear()
        if len(attempts) == 1:
            script.finish(alone)  # the innocent one
        else:
            script.event(BatchRaised(alone.batch, BOOM, attempt=alone.attempt))
    assert attempts == [(1, 2), (1, 2), (1, 3)]
    (result,) = script.results
    assert [f.attempts for f in result.failures] == [3]


def test_declared_failures_are_final() -> None:
    script = reading(changed(fan_out_plan(batch_size=None), 1, retries=5), [1])
    (read,) = reads(script)
    script.finish(read, failures={0: "bad"})
    assert [r.status for r in script.results] == ["failed"]


def test_a_death_that_may_be_anothers_fault_isolates_and_does_not_count() -> None:
    script = reading(fan_out_plan(batch_size=4), [2])
    counts = []
    for _ in range(3):
        (read,) = reads(script)
        counts.append(read.count)
        worker = script.worker_of(read)
        script.running.clear()
        script.event(WorkerDied(worker, "gone", running=read.batch, alone=False))
        script.event(WorkerStarted(worker))
    assert counts == [2, 1, 1], "its items run alone"
    assert not script.results, "nobody was blamed"


def test_stages_that_ask_are_told_who_their_items_are() -> None:
    plan = fan_out_plan(batch_size=4)
    for stage in range(3):
        plan = changed(plan, stage, identities=True)
    script = Script(plan)
    script.admit(2)
    (pages,) = script.dispatch()
    assert pages.identity == (ItemRun("doc0", (), 0, 1), ItemRun("doc1", (), 1, 1))
    script.expand_all(pages, [3, 3])
    first, second = reads(script)
    assert first.identity == (ItemRun("doc0", (0,), 0, 0b111), ItemRun("doc1", (1,), 0, 0b1))
    assert second.identity == (ItemRun("doc1", (1,), 1, 0b11),)
    script.finish(first)
    script.finish(second)
    joins = [batch for batch in script.dispatch() if batch.call == 4]
    assert [run for join in joins for run in join.identity] == [
        ItemRun("doc0", (), 0, 1),
        ItemRun("doc1", (), 1, 1),
    ]


def test_other_stages_are_told_nothing() -> None:
    script = reading(fan_out_plan(batch_size=4), [2])
    assert [batch.identity for batch in reads(script)] == [()]
