"""When calls of a pool with a gate begin, driven by hand: rates, pauses, and what waits meanwhile."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from fanfold.dispatch.rates import LATE_S, Gate, asked
from fanfold.engine.patience import PATIENCE_S, PATIENCE_TIMES
from fanfold.failures import LONGEST_WAIT_S, Failure
from fanfold.protocol import (
    BatchFinished,
    BatchRaised,
    RunBatch,
    TasksFinished,
    WorkerDied,
    WorkerStarted,
)
from tests.plans import fan_out_plan
from tests.scripted import Script

READ = 2
"""The pages' call."""
ANY = 1e9
"""A rate that holds nobody up; a worker gets one call at a time."""


def script_of(batch_size: int | None = None, replicas: int = 2, **options: Any) -> Script:
    """The pages' call has options; ten pages are ready."""
    plan = fan_out_plan(batch_size=batch_size or 1, failed="drop")
    pages, read, join = plan.stages
    read = dataclasses.replace(read, batch_size=batch_size, **options)
    script = Script(dataclasses.replace(plan, stages=(pages, read, join)), replicas=replicas)
    script.admit(1)
    (opened,) = script.dispatch()
    script.expand_all(opened, [10])
    return script


def put_off(
    script: Script, batch: RunBatch, after_s: float, time_s: float, *, begun: bool = True
) -> None:
    """The first task of a batch is to be tried again later; the others, if any, are not begun."""
    failures = tuple(
        (
            task,
            Failure(
                kind="put_off", message="busy", attempts=int(begun and not task), after_s=after_s
            ),
        )
        for task in range(batch.count)
    )
    finished = TasksFinished(batch.batch, 0, batch.count, (), failures, attempt=batch.attempt)
    script.event(finished._replace(time_s=time_s))
    script.event(BatchFinished(batch.batch, attempt=batch.attempt, time_s=time_s))


def of(batches: list[RunBatch]) -> list[int]:
    return [batch.count for batch in batches if batch.call == READ]


# ----------------------------------------------------------------------------------------- the gate


def begun(gate: Gate, looks: list[float]) -> list[float]:
    """When calls begin, if somebody looks at these times and there is always one more."""
    times = []
    for time_s in looks:
        while time_s >= gate.opens_s:
            gate.begin(time_s)
            times.append(time_s)
    return times


def test_calls_begin_a_full_spacing_apart():
    looks = [step * 0.25 for step in range(13)]
    assert begun(Gate(2.0), looks) == [0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0]


def test_who_looks_a_little_late_does_not_lose_pace_and_who_was_idle_saves_nothing_up():
    late = [n * 0.125 + LATE_S / 2 * (n % 2) for n in range(100)]
    assert begun(Gate(8.0), late) == late
    gate = Gate(8.0)
    assert begun(gate, [0.0, 50.0, 50.1]) == [0.0, 50.0]
    assert gate.opens_s == 50.125


@pytest.mark.parametrize("rate", [3.0, 70.0, 1_000.0])
@pytest.mark.parametrize("step_s", [0.001, 0.007, 0.3])
def test_no_window_holds_more_than_the_rate_allows(rate, step_s):
    times = begun(Gate(rate), [step * step_s for step in range(400)])
    for first, start_s in enumerate(times):
        for last in range(first, len(times)):
            window_s = times[last] - start_s
            assert last - first + 1 <= rate * (window_s + LATE_S) + 1 + 1e-9


def test_a_pause_holds_though_a_shorter_one_comes_after_it():
    gate = Gate(None)
    gate.put_off(5.0)
    gate.put_off(3.0)
    assert gate.opens_s == 5.0


def test_an_event_tells_until_when_and_of_how_many_tasks():
    failures = [
        Failure(kind="put_off", message="", after_s=s) for s in (2.0, 7.0, LONGEST_WAIT_S + 1)
    ]
    other = Failure(kind="raised", message="")
    finished = TasksFinished(0, 0, 4, (), tuple(enumerate([*failures, other])), time_s=10.0)
    assert asked(finished) == (2, 17.0)
    assert asked(BatchRaised(0, failures[0], time_s=1.0)) == (0, 3.0)
    assert asked(BatchRaised(0, other)) is None


# --------------------------------------------------------------------------------------------- rates


@pytest.mark.parametrize("options", [{}, {"asynchronous": True, "max_in_flight": 4}], ids=str)
def test_all_replicas_share_a_rate_and_what_waits_is_at_none(options):
    script = script_of(rate_limit=1.0, replicas=3, **options)
    assert of(script.dispatch(0.0)) == [1]
    assert of(script.dispatch(0.9)) == [] and script.core.due_s == 1.0
    assert of(script.dispatch(1.0)) == [1]
    assert of(script.dispatch(2.0)) == [1]
    assert len({script.worker_of(b) for _, b in script.running if b.call == READ}) == 3
    statistics = script.core.statistics(2.0)
    (read,) = [call for call in statistics.calls if call.name == "read"]
    assert (read.running, read.ready) == (3, 7)


def test_who_waits_for_the_rate_is_not_busy():
    script = script_of(rate_limit=0.1, replicas=1)
    (batch,) = script.dispatch(0.0)
    script.finish(batch)
    script.dispatch(0.0)
    times = next(w for w in script.core.statistics(5.0).workers if w.name == "read[0]")
    assert (times.busy_s, times.idle_s["rate limit"]) == (0.0, 5.0)


def test_nobody_looks_again_when_nothing_waits():
    script = script_of(rate_limit=1.0, replicas=1)
    for time_s in range(10):
        (batch,) = script.dispatch(float(time_s))
        script.finish(batch)
    script.dispatch(9.5)
    assert script.core.due_s is None


def test_a_batch_is_one_call():
    script = script_of(batch_size=4, rate_limit=1.0)
    assert of(script.dispatch(0.0)) == [4]
    assert of(script.dispatch(1.0)) == [4]


def test_what_a_dead_worker_had_begun_counts_and_is_taken_again_in_its_turn():
    script = script_of(rate_limit=1.0, replicas=1)
    (batch,) = script.dispatch(0.0)
    worker = script.worker_of(batch)
    script.event(WorkerDied(worker, "was killed", running=batch.batch))
    script.event(WorkerStarted(worker))
    assert script.dispatch(0.5) == [] and script.core.due_s == 1.0
    (again,) = script.dispatch(1.0)
    assert (again.attempt, again.columns) == (2, batch.columns)


# -------------------------------------------------------------------------------------------- pauses


def test_a_pool_that_is_put_off_begins_nothing_before_then_and_loses_nothing():
    script = script_of(asynchronous=True, max_in_flight=2, replicas=2)
    first, second, third, fourth = script.dispatch(0.0)
    put_off(script, second, 3.0, 1.0)
    script.finish(first)
    assert script.dispatch(1.0) == [] and script.core.due_s == 4.0
    again, other = script.dispatch(4.0)
    assert (again.columns, again.attempt) == (second.columns, 1), "the oldest comes first"
    assert other.columns not in [b.columns for b in (first, second, third, fourth)]
    while script.running:
        for _, batch in list(script.running):
            script.finish(batch)
        script.dispatch(5.0)
    assert [result.status for result in script.results] == ["done"]


def test_items_that_were_put_off_come_again_in_their_order():
    script = script_of(asynchronous=True, max_in_flight=3, replicas=1)
    batches = script.dispatch(0.0)
    for batch in reversed(batches):
        put_off(script, batch, 1.0, 0.0)
    assert [b.columns for b in script.dispatch(1.0)] == [b.columns for b in batches]


def test_a_batch_that_raised_is_tried_again_whole():
    script = script_of(batch_size=4, replicas=1)
    first, ahead = script.dispatch(0.0)
    busy = Failure(kind="put_off", message="busy", after_s=2.0)
    script.event(BatchRaised(first.batch, busy))
    script.running.remove((script.worker_of(first), first))
    script.finish(ahead)
    assert script.dispatch(1.0) == []
    (again,) = script.dispatch(2.0)
    assert (again.columns, again.attempt) == (first.columns, 1)


def test_no_attempt_is_used_up():
    script = script_of(rate_limit=ANY, replicas=1, retries=2)
    (batch,) = script.dispatch(0.0)
    for again in range(3):
        put_off(script, batch, 1.0, float(again))
        (batch,) = script.dispatch(again + 1.0)
    for time_s in (10.0, 20.0):
        script.finish(batch, {0: "boom"}, "raised")
        (batch,) = script.dispatch(time_s)
        put_off(script, batch, 1.0, time_s)
        (batch,) = script.dispatch(time_s + 1.0)
    assert failed_kinds(script) == []
    script.finish(batch, {0: "boom"}, "raised")
    assert failed_kinds(script) == ["raised"]


def failed_kinds(script: Script) -> list[str]:
    return [failure.kind for failure in script.core.open_failures()]


@pytest.mark.parametrize("span_s", [PATIENCE_S / (PATIENCE_TIMES - 1), PATIENCE_S])
def test_an_item_fails_when_it_was_put_off_often_and_for_long(span_s):
    script = script_of(rate_limit=ANY, replicas=1)
    times = 0
    while not failed_kinds(script) and times < 3 * PATIENCE_TIMES:
        (batch,) = script.dispatch(times * span_s)
        put_off(script, batch, span_s / 2, times * span_s)
        times += 1
    assert failed_kinds(script) == ["put_off"] and times == PATIENCE_TIMES


def test_to_be_put_off_often_is_not_enough_and_what_was_not_begun_does_not_count():
    script = script_of(rate_limit=ANY, replicas=1)
    for again in range(3 * PATIENCE_TIMES):
        (batch,) = script.dispatch(float(again))
        put_off(script, batch, 1.0, float(again))
    for again in range(3 * PATIENCE_TIMES):
        time_s = 10 * PATIENCE_S * (again + 1)
        (batch,) = script.dispatch(time_s)
        put_off(script, batch, 1.0, time_s, begun=False)
    assert failed_kinds(script) == []


def test_a_wait_that_is_too_long_fails_the_item_at_once_and_holds_nobody_up():
    script = script_of(rate_limit=ANY, replicas=1)
    (batch,) = script.dispatch(0.0)
    put_off(script, batch, LONGEST_WAIT_S + 1, 0.0)
    assert failed_kinds(script) == ["put_off"]
    assert len(script.dispatch(1.0)) == 1
