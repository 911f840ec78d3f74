"""Dispatch driven by hand: who gets what, what is sent ahead, what pauses, what the report says."""

from __future__ import annotations

import dataclasses

from fanfold.dispatch.stopping import StopRules
from fanfold.engine.commands import FinishRoots, StopRun
from fanfold.failures import Failure
from fanfold.plan import CallNode, Plan
from fanfold.protocol import (
    BatchFinished,
    BatchRaised,
    RootRefused,
    TasksFinished,
    WorkerDied,
    WorkerFailed,
    WorkerStarted,
)
from tests.plans import fan_out_plan
from tests.scripted import Script


def per_item_script(replicas: int = 1) -> Script:
    return Script(fan_out_plan(batch_size=None), replicas=replicas)


def test_a_busy_worker_gets_only_full_batches_ahead_while_more_can_come() -> None:
    script = Script(fan_out_plan(batch_size=4))
    script.admit(2)
    (pages,) = script.dispatch()
    script.release(pages, {0: 6})
    (first,) = script.dispatch()
    assert first.count == 4  # two are left: too few to send ahead
    script.release(pages, {1: 2})
    (second,) = script.dispatch()
    assert second.count == 4


def test_what_is_left_goes_ahead_when_nothing_more_can_come() -> None:
    script = Script(fan_out_plan(batch_size=4))
    script.admit(1)
    (pages,) = script.dispatch()
    script.expand_all(pages, [6])
    assert [b.count for b in script.dispatch()] == [4, 2]


def test_an_idle_worker_takes_what_is_there() -> None:
    script = Script(fan_out_plan(batch_size=32))
    script.admit(1)
    (pages,) = script.dispatch()
    script.release(pages, {0: 1})
    (read,) = script.dispatch()
    assert read.count == 1


def test_short_items_travel_together_and_long_ones_alone() -> None:
    script = per_item_script()
    script.admit(60)
    first, second = script.dispatch()
    assert (first.count, second.count) == (1, 1)  # nothing is known of their length yet

    def finish(batch: object, busy_s: float) -> None:
        script.release(batch, {0: 0})  # type: ignore[arg-type]
        script.seal(batch, [0])  # type: ignore[arg-type]
        number, count = batch.batch, batch.count  # type: ignore[attr-defined]
        script.event(TasksFinished(number, 0, count, ()))
        script.event(BatchFinished(number, busy_s=busy_s))

    finish(first, 0.001)
    (third,) = [b for b in script.dispatch() if b.call == 0]
    assert third.count == 10  # ten of a millisecond make a message's worth
    finish(second, 1.0)
    (fourth,) = [b for b in script.dispatch() if b.call == 0]
    assert fourth.count == 1


def test_a_producer_pauses_while_its_consumer_is_behind() -> None:
    script = Script(fan_out_plan(batch_size=2))
    script.admit(20)
    first, second = script.dispatch()
    script.expand_all(first, [40, 40])
    assert not [b for b in script.dispatch() if b.call == 0]
    assert second.call == 0  # what was sent before goes on
    while reads := [b for _, b in script.running if b.call == 2]:
        for batch in reads:
            script.finish(batch)
        script.dispatch()
        if [b for _, b in script.running if b.call == 0 and b is not second]:
            return
    raise AssertionError("the producer never went on")


def states(script: Script) -> dict[str, str]:
    return {worker.name: worker.state for worker in script.core.statistics(1.0).workers}


def test_an_idle_worker_says_what_it_waits_for() -> None:
    script = Script(fan_out_plan(batch_size=2))
    script.admit(20)
    for batch in script.dispatch():
        script.expand_all(batch, [40, 40])
    script.dispatch()
    assert states(script) == {
        "pages[0]": "downstream full",
        "read[0]": "busy",
        "join[0]": "no input",
    }


def test_workers_of_a_run_without_anything_left_are_finished() -> None:
    script = Script(fan_out_plan(batch_size=2))
    script.admit(1)
    while started := script.dispatch():
        for batch in started:
            if batch.call == 0:
                script.expand_all(batch, [1])
            else:
                script.finish(batch)
    assert set(states(script).values()) == {"finished"}


def test_a_constructor_that_fails_stops_the_run() -> None:
    script = per_item_script()
    failure = Failure(kind="raised", message="no weights")
    (stop,) = script.core.handle(WorkerFailed(0, failure))
    assert stop == StopRun(failure, "a worker cannot be made: no weights.")


def test_calls_of_one_stage_share_its_workers_oldest_item_first() -> None:
    plan = fan_out_plan(batch_size=4)
    one_stage = dataclasses.replace(
        plan,
        stages=plan.stages[:1],
        nodes=tuple(
            dataclasses.replace(n, stage=0) if isinstance(n, CallNode) else n for n in plan.nodes
        ),
    )
    script = Script(one_stage)
    script.admit(5)
    first, _one_more = script.dispatch()
    script.expand_all(first, [1, 1, 1, 1])
    # The page calls and the join are behind the document that is at the worker already.
    assert [(b.call, b.count) for b in script.dispatch()] == [(2, 4)]


def test_statistics_count_outcomes_batches_and_time() -> None:
    script = Script(fan_out_plan(batch_size=4, failed="drop"))
    script.admit(1)
    (pages,) = script.dispatch()
    script.expand_all(pages, [3])
    (read,) = script.dispatch()
    script.finish(read, failures={0: "bad"})
    stats = script.core.statistics(2.0)
    counts = {c.name: c for c in stats.calls}
    assert (counts["read"].done, counts["read"].failed) == (2, 1)
    assert (counts["read"].executed, counts["read"].capacity) == (3, 4)
    assert stats.levels == {"document": 1, "page": 3}
    assert (stats.admitted, stats.open_roots) == (1, 1)


def test_room_opens_in_fair_portions() -> None:
    script = Script(fan_out_plan(batch_size=4))
    room = script.core.room()
    assert room > 4
    script.admit(room, last=False)
    assert script.core.room() == 0


def test_items_that_must_run_alone_do_not_wait_behind_a_full_supply() -> None:
    script = Script(fan_out_plan(batch_size=2, failed="drop"))
    script.admit(1)
    (pages,) = script.dispatch()
    script.expand_all(pages, [12])
    guilty, _ahead = script.dispatch()
    script.running = [(w, b) for w, b in script.running if b is not guilty]
    script.event(BatchRaised(guilty.batch, Failure(kind="raised", message="boom")))
    script.dispatch()
    order = []
    while script.running:
        batch = script.running[0][1]
        order.append(batch.count)
        script.finish(batch)
        script.dispatch()
    assert order[:3] == [
        2,
        1,
        1,
    ]  # the batch that was at the worker already, then the two by themselves


def test_items_of_ended_roots_do_not_hide_the_work_of_another_call() -> None:
    plan = fan_out_plan(batch_size=1)
    shared = dataclasses.replace(
        plan,
        stages=plan.stages[:1],
        nodes=tuple(
            dataclasses.replace(n, stage=0) if isinstance(n, CallNode) else n for n in plan.nodes
        ),
    )
    script = Script(shared)
    script.admit(1, last=False)
    (pages,) = script.dispatch()
    script.expand_all(pages, [4])
    first, second = script.dispatch()  # two pages wait behind these
    script.admit(1)
    script.finish(first, failures={0: "bad"})  # their document has ended
    script.finish(second)
    assert [batch.call for batch in script.dispatch()] == [0]


def in_flight(batch_size: int | None, most: int, retries: int = 0) -> Script:
    plan = fan_out_plan(batch_size=batch_size, failed="drop")
    stages = tuple(
        dataclasses.replace(stage, asynchronous=True, max_in_flight=most, retries=retries)
        if stage.index == read_stage(plan)
        else stage
        for stage in plan.stages
    )
    return Script(dataclasses.replace(plan, stages=stages))


def read_stage(plan: Plan) -> int:
    """The stage of the call at the child level."""
    (call,) = [call for call in plan.calls() if call.level]
    return call.stage


def test_an_asynchronous_worker_gets_items_by_themselves_and_as_many_as_it_runs() -> None:
    script = in_flight(None, 3)
    script.admit(1)
    (pages,) = script.dispatch()
    script.release(pages, {0: 10})
    first, *others = script.dispatch()
    assert [b.count for b in (first, *others)] == [1, 1, 1]
    script.finish(first)
    assert [b.count for b in script.dispatch()] == [1], "none lies behind a slow one"


def test_an_item_that_raised_alone_is_tried_again_beside_others() -> None:
    script = in_flight(None, 3, retries=1)
    script.admit(1)
    (pages,) = script.dispatch()
    script.release(pages, {0: 5})
    first, second, _ = script.dispatch()
    script.finish(first, {0: "boom"}, "raised")
    (again,) = script.dispatch()
    assert (again.attempt, again.columns) == (2, first.columns)
    script.finish(again, {0: "boom"}, "raised")
    script.finish(second)
    assert [b.attempt for b in script.dispatch()] == [1, 1], "no attempt is left, and others go on"


def test_of_batches_those_that_it_runs_need_not_be_full_but_the_one_more() -> None:
    script = in_flight(4, 2)
    script.admit(1)
    (pages,) = script.dispatch()
    script.release(pages, {0: 6})
    assert [b.count for b in script.dispatch()] == [4, 2]
    script.release(pages, {0: 3})
    assert script.dispatch() == [], "too few to send ahead"
    script.release(pages, {0: 1})
    assert [b.count for b in script.dispatch()] == [4]


# ------------------------------------------------------------------------------------------ stopping

SOON = StopRules(first_tasks=4, first_roots=2)


def reading(rules: StopRules, *counts: int, failed: str = "drop") -> Script:
    """Documents of so many pages, which are ready to be read one at a time."""
    script = Script(fan_out_plan(batch_size=1, failed=failed), rules=rules)
    script.admit(len(counts))
    for count in counts:
        script.dispatch()
        (batch,) = [b for _, b in script.running if b.call == 0][:1]
        script.expand_all(batch, [count])
    script.dispatch()
    return script


def read_one(script: Script, kind: str | None = None) -> None:
    batch = next(b for _, b in script.running if b.call == 2)
    script.finish(batch, {} if kind is None else {0: "bad"}, kind or "")
    script.dispatch()


def test_a_call_that_only_fails_stops_the_run_and_later_failures_are_no_news() -> None:
    script = reading(SOON, 2, 4)
    for _ in range(3):
        read_one(script, "raised")
    assert script.stops == []
    read_one(script, "contract")
    (stop,) = script.stops
    assert stop.message.startswith("the first 4 tasks of call 'read'")
    assert (stop.failure.key, stop.failure.ordinals) == ("doc0", (0, 0))
    read_one(script, "raised")
    assert len(script.stops) == 1


def test_one_page_that_is_read_clears_the_call() -> None:
    script = reading(SOON, 2, 6)
    read_one(script)
    for _ in range(7):
        read_one(script, "raised")
    assert script.stops == []


def test_tasks_that_end_together_are_looked_at_together() -> None:
    script = Script(fan_out_plan(batch_size=8, failed="drop"), rules=SOON)
    script.admit(2)
    (pages,) = script.dispatch()
    script.expand_all(pages, [4, 4])
    (read,) = script.dispatch()
    script.finish(read, dict.fromkeys(range(7), "bad"), "raised")
    assert script.stops == []


def test_a_task_that_works_clears_its_call_even_if_nobody_needs_its_result() -> None:
    script = reading(SOON, 2, 1, 1, 1, 1, failed="fail")
    read_one(script, "raised")
    assert len(script.results) == 1, "the other page of this document is dead, and at the worker"
    read_one(script)
    for _ in range(4):
        read_one(script, "raised")
    assert script.stops == []


def test_failures_of_dead_tasks_do_not_count() -> None:
    script = reading(StopRules(first_tasks=3, first_roots=1), 2, 1, 1, failed="fail")
    for _ in range(3):
        read_one(script, "raised")
        assert script.stops == []
    read_one(script, "raised")
    assert len(script.stops) == 1


def test_a_batch_that_raises_says_nothing_before_its_items_failed_alone() -> None:
    script = Script(
        fan_out_plan(batch_size=4, failed="drop"), rules=StopRules(first_tasks=1, first_roots=1)
    )
    script.admit(1)
    (pages,) = script.dispatch()
    script.expand_all(pages, [4])
    (read,) = script.dispatch()
    script.event(BatchRaised(read.batch, Failure(kind="raised", message="boom")))
    assert script.stops == []
    (alone,) = script.dispatch()
    script.event(BatchRaised(alone.batch, Failure(kind="raised", message="boom"), attempt=2))
    assert [stop.failure.message for stop in script.stops] == ["boom"]


def test_items_whose_workers_die_count() -> None:
    script = Script(
        fan_out_plan(batch_size=1, failed="drop"), rules=StopRules(first_tasks=1, first_roots=1)
    )
    script.admit(1)
    for _ in range(2):
        assert script.stops == []
        (batch,) = script.dispatch()
        script.event(WorkerDied(0, "killed", running=batch.batch))
        script.event(WorkerStarted(0))
    assert [stop.failure.kind for stop in script.stops] == ["worker_died"]


def test_roots_are_counted_as_they_end_and_the_results_come_first() -> None:
    script = reading(StopRules(max_failed=1), 1, 1, 1, failed="fail")
    read_one(script, "declared")
    assert script.stops == []
    batch = next(b for _, b in script.running if b.call == 2)
    failed = ((0, Failure(kind="declared", message="bad")),)
    *_, finish, stop = script.core.handle(TasksFinished(batch.batch, 0, 1, (), failed))
    assert isinstance(finish, FinishRoots) and isinstance(stop, StopRun)
    assert "2 of 2 roots failed, which is more than max_failed=1" in stop.message
    assert [result.status for result in finish.results] == ["failed"]


def test_a_root_that_a_sink_refuses_has_failed() -> None:
    script = reading(StopRules(max_failed=0), 0)
    (join,) = [b for _, b in script.running if b.call == 4]
    script.finish(join)
    assert [result.status for result in script.results] == ["done"]
    refused = Failure(
        kind="contract", message="bytes", key="doc0", levels=("document",), ordinals=(0,)
    )
    script.event(RootRefused(0, refused))
    assert [stop.failure for stop in script.stops] == [refused]


def test_what_failed_under_open_roots_is_known() -> None:
    script = reading(StopRules(), 2, 1, failed="drop")
    read_one(script, "declared")
    read_one(script)
    read_one(script, "declared")
    (join,) = [b for _, b in script.running if b.call == 4][:1]
    assert [f.key for f in script.core.open_failures()] == ["doc0", "doc1"]
    script.finish(join)
    assert [f.key for f in script.core.open_failures()] == ["doc1"]
