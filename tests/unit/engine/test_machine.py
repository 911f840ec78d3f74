"""The engine driven by hand: membership, order, outcomes, isolation, deaths, late results, freeing."""

from __future__ import annotations

import random

import pytest

from fanfold.errors import InternalError
from fanfold.failures import Failure
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


def columns(script: Script) -> dict[str, object]:
    return {r.key: r.columns[0] for r in script.results}


def started(script: Script, call: int) -> list[RunBatch]:
    return [batch for batch in script.dispatch() if batch.call == call]


def test_children_of_many_parents_share_a_batch() -> None:
    script = Script(fan_out_plan(batch_size=4))
    script.admit(3)
    (pages,) = script.dispatch()
    script.expand_all(pages, [3, 2, 1])
    first, second = started(script, 2)
    assert (first.count, second.count) == (4, 2)


def test_gather_lists_follow_ordinals_whatever_the_batches_and_their_completion() -> None:
    script = Script(fan_out_plan(batch_size=2), replicas=3)
    script.admit(2)
    (pages,) = script.dispatch()
    script.expand_all(pages, [3, 3])
    reads = started(script, 2)
    assert [b.count for b in reads] == [2, 2, 2]
    for batch in reversed(reads):
        script.finish(batch)
    joins = started(script, 4)
    (join,) = joins
    # Blocks 3, 4, 5 were made in the order of completion: the batch with the first children is the last.
    assert join.columns == (
        ("lists", ("cat", (("rows", 5, 0, 2), ("rows", 4, 0, 2), ("rows", 3, 0, 2))), (3, 3)),
    )


def test_a_parent_advances_while_others_wait() -> None:
    script = Script(fan_out_plan(batch_size=1), replicas=2)
    script.admit(2)
    first, second = script.dispatch()
    script.expand_all(second, [1])
    (read,) = started(script, 2)
    script.finish(read)
    (join,) = started(script, 4)
    script.finish(join)
    assert [r.key for r in script.results] == ["doc1"]
    assert first in [b for _, b in script.running]


def test_zero_children_gather_to_an_empty_list() -> None:
    script = Script(fan_out_plan())
    script.admit(1)
    (pages,) = script.dispatch()
    script.release(pages, {0: 0})
    script.seal(pages, [0])
    script.finish(pages)
    (join,) = started(script, 4)
    assert join.columns == (("lists", ("cat", ()), (0,)),)


def test_an_open_expansion_holds_its_gather_back() -> None:
    script = Script(fan_out_plan())
    script.admit(1)
    (pages,) = script.dispatch()
    script.release(pages, {0: 2})
    (read,) = started(script, 2)
    script.finish(read)
    assert started(script, 4) == []
    script.release(pages, {0: 1})
    script.seal(pages, [0])
    script.finish(pages)
    (late,) = started(script, 2)
    script.finish(late)
    (join,) = started(script, 4)
    assert join.columns[0][2] == (3,)


@pytest.mark.parametrize("when", ["before sealing", "after sealing"])
def test_a_failed_child_suppresses_its_parents_gather_and_no_other(when: str) -> None:
    script = Script(fan_out_plan())
    script.admit(2)
    (pages,) = script.dispatch()
    script.release(pages, {0: 2, 1: 2})
    if when == "after sealing":
        script.seal(pages, [0, 1])
        script.finish(pages)
    (read,) = started(script, 2)
    script.finish(read, failures={1: "bad page"})
    if when == "before sealing":
        script.seal(pages, [0, 1])
        script.finish(pages)
    (join,) = started(script, 4)
    script.finish(join)
    by_key = {r.key: r for r in script.results}
    assert by_key["doc0"].status == "failed" and by_key["doc1"].status == "done"
    (failure,) = by_key["doc0"].failures
    assert (failure.where(), failure.ordinals, failure.call) == (
        "document doc0, page 1",
        (0, 1),
        "read",
    )


@pytest.mark.parametrize(("failed", "length"), [("drop", 2), ("mark", 3)])
def test_failed_members_are_left_out_or_marked(failed: str, length: int) -> None:
    script = Script(fan_out_plan(failed=failed))
    script.admit(1)
    (pages,) = script.dispatch()
    script.expand_all(pages, [3])
    (read,) = started(script, 2)
    script.finish(read, failures={1: "bad"})
    (join,) = started(script, 4)
    tag, column, lengths = join.columns[0]
    assert (tag, lengths) == ("lists", (length,))
    if failed == "mark":
        assert column[:2] == ("weave", 0b010)
        assert column[2][1][0].message == "bad"


def test_an_exception_in_a_batch_is_isolated_to_the_guilty_item() -> None:
    script = Script(fan_out_plan(failed="drop"))
    script.admit(1)
    (pages,) = script.dispatch()
    script.expand_all(pages, [3])
    (read,) = started(script, 2)
    boom = Failure(kind="raised", message="boom")
    script.running.clear()
    script.event(BatchRaised(read.batch, boom))
    counts = []
    for guilty in (False, True, False):
        (alone,) = started(script, 2)
        counts.append(alone.count)
        assert alone.attempt == 2
        if guilty:
            script.running.clear()
            script.event(BatchRaised(alone.batch, boom, attempt=2))
        else:
            script.finish(alone)
    assert counts == [1, 1, 1]
    (join,) = started(script, 4)
    assert join.columns[0][2] == (2,)
    script.finish(join)
    (result,) = script.results
    assert [(f.ordinals, f.attempts) for f in result.failures] == [((0, 1), 2)]


def test_a_death_costs_the_item_that_dies_twice_and_nobody_else() -> None:
    script = Script(fan_out_plan(batch_size=2, failed="drop"))
    script.admit(1)
    (pages,) = script.dispatch()
    script.expand_all(pages, [4])
    running, ahead = started(script, 2)
    worker = script.worker_of(running)
    script.running.clear()
    script.event(WorkerDied(worker, "killed by SIGSEGV", running=running.batch))
    assert script.restarted == [worker]
    assert script.dispatch() == []  # nobody is there to work
    script.event(WorkerStarted(worker))
    seen = []
    while batches := started(script, 2):
        batch = batches[0]
        seen.append((batch.count, batch.attempt))
        if batch.attempt == 2 and len(seen) == 1:
            script.running.clear()
            script.event(WorkerDied(worker, "killed by SIGSEGV", running=batch.batch))
            script.event(WorkerStarted(worker))
        else:
            script.finish(batch)
    assert (1, 2) in seen and (2, 1) in seen
    (join,) = [b for _, b in script.running if b.call == 4]
    script.finish(join)
    (result,) = script.results
    assert result.status == "done"
    (failure,) = result.failures
    assert failure.kind == "worker_died" and "SIGSEGV" in failure.message
    assert failure.ordinals == (0, 0)
    assert ahead.count == 2


def test_late_and_doubled_results_are_ignored_and_their_blocks_released() -> None:
    script = Script(fan_out_plan())
    script.admit(1)
    (pages,) = script.dispatch()
    script.expand_all(pages, [2])
    (read,) = started(script, 2)
    script.finish(read)
    before = len(script.released)
    stream = script.rows(3, 2)
    script.event(TasksFinished(read.batch, 0, 2, (stream,)))
    assert stream.rows is not None
    assert script.released[before:] == [stream.rows.ref]


def test_dead_work_of_a_failed_root_is_not_started() -> None:
    script = Script(fan_out_plan(batch_size=1))
    script.admit(1)
    (pages,) = script.dispatch()
    script.expand_all(pages, [5])
    first, _ahead = started(script, 2)
    script.finish(first, failures={0: "bad"})
    assert [r.status for r in script.results] == ["failed"]
    assert started(script, 2) == []


def test_everything_is_released_in_the_end() -> None:
    rng = random.Random(7)
    script = Script(fan_out_plan(batch_size=7), replicas=2)
    script.admit(40)
    made = 0
    while script.running or not script.core.finished:
        script.dispatch()
        if script.running:
            _, batch = script.running[rng.randrange(len(script.running))]
            if batch.call == 0:
                script.expand_all(batch, [rng.choice((0, 1, 3, 20)) for _ in range(batch.count)])
            else:
                bad = {0: "bad"} if rng.random() < 0.1 else {}
                script.finish(batch, failures=bad)
        made += 1
        if script.results:
            script.commit()
        script.results.clear()
    assert script.core.machine.held.rows == {}
    assert sum(script.core.statistics(0).roots.values()) == 40
    assert made > 40


def test_a_batch_that_ends_with_tasks_untold_is_an_internal_error() -> None:
    script = Script(fan_out_plan())
    script.admit(2)
    (pages,) = script.dispatch()
    with pytest.raises(InternalError, match=r"FF903 .*'pages'.*2 tasks, of which 0"):
        script.event(BatchFinished(pages.batch))


@pytest.mark.parametrize(("first", "count"), [(0, 3), (1, 2)])
def test_tasks_that_a_batch_does_not_have_are_an_internal_error(first: int, count: int) -> None:
    script = Script(fan_out_plan())
    script.admit(2)
    (pages,) = script.dispatch()
    with pytest.raises(InternalError, match="FF902"):
        script.event(TasksFinished(pages.batch, first, count, ()))


def test_a_task_told_twice_is_an_internal_error() -> None:
    script = Script(fan_out_plan(), checked=False)
    script.admit(2)
    (pages,) = script.dispatch()
    script.event(TasksFinished(pages.batch, 0, 1, ()))
    with pytest.raises(InternalError, match="FF902"):
        script.event(TasksFinished(pages.batch, 0, 2, ()))


def test_a_root_committed_twice_is_an_internal_error() -> None:
    script = Script(fan_out_plan())
    script.admit(1)
    (pages,) = script.dispatch()
    script.finish(pages, failures={0: "bad"})
    script.commit()
    with pytest.raises(InternalError, match="FF904"):
        script.commit()
