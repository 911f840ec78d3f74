"""Who is replaced, when, and that nobody with work in hand is."""

from __future__ import annotations

import dataclasses

from fanfold.dispatch.pool import Pool, Worker
from fanfold.dispatch.recycling import Recycling
from fanfold.failures import Failure
from fanfold.protocol import (
    BatchPaused,
    BatchRaised,
    RunBatch,
    TasksFinished,
    WorkerDied,
    WorkerStarted,
)
from tests.plans import fan_out_plan
from tests.scripted import Script

PAGES, READ, JOIN = 0, 1, 2
"""Workers of a script with one replica of each stage."""


def script(*, batch_size: int | None = None, replicas: int = 1, **options: int) -> Script:
    """Documents, expanded into pages that ``read`` takes, whose workers are replaced."""
    plan = fan_out_plan(batch_size=batch_size)
    pages, read, join = plan.stages
    read = dataclasses.replace(read, **options)  # type: ignore[arg-type]  # all of them are numbers
    return Script(dataclasses.replace(plan, stages=(pages, read, join)), replicas=replicas)


def with_pages(count: int, **options: int) -> tuple[Script, list[RunBatch]]:
    """The same, with so many pages ready, and what was sent of them."""
    made = script(**options)
    made.admit(1)
    (pages,) = made.dispatch()
    made.release(pages, {0: count})
    return made, made.dispatch()


def end(made: Script, batch: RunBatch, *, own_bytes: int = 0) -> None:
    rows = made.rows(3, batch.count)
    made.event(TasksFinished(batch.batch, 0, batch.count, (rows,), attempt=batch.attempt))
    made.end(batch, own_bytes=own_bytes)


def test_a_worker_is_sent_so_many_items_and_replaced_when_it_has_ended_them() -> None:
    made, sent = with_pages(9, recycle_after=2)
    assert [batch.count for batch in sent] == [1, 1]
    end(made, sent[0])
    assert made.dispatch() == [] and made.recycled == []  # it has another yet
    end(made, sent[1])
    assert made.dispatch() == [] and made.recycled == [READ]
    made.event(WorkerStarted(READ))
    assert sum(batch.count for batch in made.dispatch()) == 2
    worker = made.core.statistics(0.0).workers[READ]
    assert (worker.recycled, worker.restarts, made.restarted) == (1, 0, [])


def test_a_batch_is_sent_whole() -> None:
    made, sent = with_pages(12, batch_size=4, recycle_after=5)
    assert [batch.count for batch in sent] == [4, 4]
    for batch in sent:
        end(made, batch)
    assert made.dispatch() == []
    assert made.recycled == [READ]


def test_replicas_take_turns() -> None:
    made, sent = with_pages(40, batch_size=1, replicas=2, recycle_after=4)
    workers = [made.worker_of(batch) for batch in sent]
    first, second = sorted(set(workers))
    ended = dict.fromkeys((first, second), 0)
    while len(made.recycled) < 2:
        batch = next(batch for worker, batch in made.running if worker in ended)
        ended[made.worker_of(batch)] += 1
        end(made, batch)
        made.dispatch()
    assert made.recycled == [second, first]
    assert (ended[first], ended[second]) == (4, 2)


def test_other_replicas_go_on_while_one_is_replaced() -> None:
    made, _ = with_pages(40, batch_size=1, replicas=2, recycle_after=4)
    while not made.recycled:
        end(made, made.running[-1][1])
        made.dispatch()
    (gone,) = made.recycled
    at = {worker for worker, _ in made.running}
    assert gone not in at and len(at) == 2  # the other replica, and the one of pages


def test_a_worker_above_its_size_is_replaced_after_what_was_sent_ahead() -> None:
    made, (first, second) = with_pages(5, batch_size=1, recycle_above=100)
    end(made, first, own_bytes=101)
    assert made.dispatch() == [] and made.recycled == []
    end(made, second, own_bytes=101)
    assert made.dispatch() == [] and made.recycled == [READ]
    made.event(WorkerStarted(READ))
    first, second = made.dispatch()
    end(made, first, own_bytes=100)  # which is not above
    assert len(made.dispatch()) == 1 and made.recycled == [READ]


def test_a_death_is_no_replacement_and_begins_the_count_anew() -> None:
    made, (first, _) = with_pages(9, recycle_after=2)
    made.event(WorkerDied(READ, "killed", running=first.batch))
    assert (made.restarted, made.recycled) == ([READ], [])
    made.running = []
    made.event(WorkerStarted(READ))
    (alone,) = made.dispatch()  # it runs by itself after the death
    end(made, alone)
    (second,) = made.dispatch()
    end(made, second)
    made.dispatch()
    assert made.recycled == [READ]


def test_items_that_were_given_back_were_not_had() -> None:
    """A generator that waits gives back those behind it in its message."""
    plan = fan_out_plan(batch_size=None)
    pages = dataclasses.replace(plan.stages[0], recycle_after=4)
    worker = Worker(0, 0, "pages[0]", ready=True)
    recycling = Recycling(
        dataclasses.replace(plan, stages=(pages, *plan.stages[1:])),
        {0: Pool(0, (0,), None, workers=[worker])},
    )
    recycling.sent(worker, 4)
    assert worker.leaving
    recycling.sent(worker, -3)
    assert (worker.open, recycling.limit(worker, 100)) == (True, 3)


def test_a_worker_at_which_a_generator_waits_is_not_replaced_but_helps_the_oldest_root() -> None:
    plan = fan_out_plan(batch_size=None)
    pages = dataclasses.replace(plan.stages[0], recycle_after=1)
    made = Script(
        dataclasses.replace(plan, stages=(pages, *plan.stages[1:])), budget_bytes=1, row_bytes=64
    )
    made.admit(1)
    (carried,) = made.dispatch()
    made.release(carried, {0: 1})
    made.event(BatchPaused(carried.batch, 1, carried.room or 0))
    (read,) = made.dispatch()
    assert made.worker_of(read) == READ and made.recycled == []
    end(made, read)
    made.dispatch()
    assert made.grants and made.recycled == []  # it goes on, and ends what it has
    made.seal(carried, [0])
    made.finish(carried)
    made.dispatch()
    assert made.recycled == []  # no other document is to come


def test_nobody_is_replaced_for_nothing() -> None:
    made, sent = with_pages(2, recycle_after=2)
    for batch in sent:
        end(made, batch)
    made.seal(pages := made.running[0][1], [0])
    made.finish(pages)
    (join,) = made.dispatch()
    assert made.recycled == []
    made.finish(join)
    assert made.dispatch() == [] and made.recycled == [] and len(made.results) == 1


def test_the_last_one_is_replaced_when_there_is_work_after_all() -> None:
    made = script(batch_size=2, recycle_after=2)
    made.admit(1)
    (pages,) = made.dispatch()
    made.expand_all(pages, [2])
    (read,) = made.dispatch()
    made.event(BatchRaised(read.batch, Failure(kind="raised", message="x")))
    made.dispatch()
    assert made.recycled == [READ]  # its items run again, one by one
