"""Dispatch within a memory budget, driven by hand: what begins, what waits, what goes on without credit."""

from __future__ import annotations

import dataclasses

from fanfold.engine.commands import TrimBatch
from fanfold.protocol import BatchPaused, RunBatch, WorkerDied, WorkerStarted
from tests.plans import fan_out_plan
from tests.scripted import Script

ROW = 4096
PAGES, READ, JOIN = 0, 2, 4
PAGES_WORKER, READ_WORKER = 0, 1


def script(rows: int, *, documents: int = 2, last: bool = True, failed: str = "fail") -> Script:
    """Documents whose pages a generator gives, with memory for so many rows; each document takes one."""
    plan = fan_out_plan(batch_size=None, failed=failed)
    stages = (dataclasses.replace(plan.stages[0], generator=True), *plan.stages[1:])
    made = Script(dataclasses.replace(plan, stages=stages), budget_bytes=rows * ROW, row_bytes=ROW)
    made.admit(documents, last=last)
    return made


def room_of(one: Script, batch: RunBatch) -> int:
    """What a batch was granted in all."""
    assert batch.room is not None
    return batch.room + sum(grant.room for grant in one.grants if grant.batch == batch.batch)


def pause(one: Script, batch: RunBatch) -> None:
    one.event(BatchPaused(batch.batch, 1, room_of(one, batch), attempt=batch.attempt))


def full(rows: int = 6, *, failed: str = "fail") -> tuple[Script, RunBatch, RunBatch]:
    """The pages of the first document take all the memory there is; the second waits behind it."""
    one = script(rows, failed=failed)
    first, second = one.dispatch()
    one.release(first, {0: rows - 2})
    return one, first, second


def test_a_generator_is_sent_with_room_and_others_without() -> None:
    one = script(100)
    pages, _ = one.dispatch()
    assert pages.room is not None and 0 < pages.room <= 100 * ROW // 16
    one.release(pages, {0: 1})
    (read,) = one.dispatch()
    assert (read.call, read.room) == (READ, None)


def test_a_generator_gets_more_room_before_it_has_used_up_what_it_has() -> None:
    one = script(100)
    pages, _ = one.dispatch()
    one.release(pages, {0: 1})
    one.dispatch()
    (grant,) = one.grants
    assert (grant.worker, grant.batch) == (PAGES_WORKER, pages.batch)
    assert 100 * ROW // 10 < room_of(one, pages) - ROW <= 100 * ROW // 8, "two share a quarter"
    one.dispatch()
    assert len(one.grants) == 1


def test_a_generator_that_is_alone_has_half_of_the_memory_ahead_of_it() -> None:
    one = script(100, documents=1)
    (pages,) = one.dispatch()
    ahead, paid = 0, 0
    for _ in range(20):
        one.release(pages, {0: 1})
        paid += ROW
        for read in one.dispatch():
            one.finish(read, failures=dict.fromkeys(range(read.count), "bad"))  # which lets it go
        ahead = max(ahead, room_of(one, pages) - paid)
    assert 40 * ROW < ahead <= 50 * ROW


def test_a_generator_that_has_not_begun_gets_no_room_ahead_of_its_turn() -> None:
    one = script(1000, documents=1, last=False)
    (first,) = one.dispatch()
    one.expand_all(first, [300])  # so it is known that all that it gets will be used up
    one.admit(2)
    running, next_one = (batch for batch in one.dispatch() if batch.call == PAGES)
    one.dispatch()
    assert {grant.batch for grant in one.grants} == {running.batch}
    one.expand_all(running, [1])
    one.dispatch()
    assert {grant.batch for grant in one.grants} == {running.batch, next_one.batch}


def test_nothing_begins_where_values_take_it_all_but_an_item_of_the_oldest_root() -> None:
    one, _, _ = full()
    (read,) = one.dispatch()
    assert (read.call, read.count) == (READ, 1)
    assert one.core.machine.works_for(0, [read.batch])
    assert one.dispatch() == []
    assert one.grants == []


def test_calls_farther_from_the_end_leave_memory_to_those_behind_them() -> None:
    one = script(64, documents=60, last=False)
    assert one.core.room() == 0, (
        "four rows are free, and one is kept: that leaves four for what is behind"
    )
    (pages, _) = one.dispatch()
    one.release(pages, {0: 2})
    one.expand_all(pages, [0] * pages.count)
    assert [batch.call for batch in one.dispatch()] == [READ]


def test_of_little_credit_work_nearer_to_the_end_gets_it_first() -> None:
    one, first, _ = full(failed="drop")
    pause(one, first)
    (read,) = one.dispatch()
    one.finish(read)  # now it is known how much this makes
    (read,) = one.dispatch()
    one.finish(read, failures={0: "bad"})  # which leaves credit for one more
    (read,) = one.dispatch()
    assert read.call == READ
    assert one.grants == [], "the generator has waited for longer"


def test_the_oldest_root_goes_on_without_credit_one_item_at_a_time_its_deepest_first() -> None:
    one, first, _ = full()
    pause(one, first)
    (read,) = one.dispatch()
    assert (read.call, read.count) == (READ, 1)
    assert one.dispatch() == [], "that is the one, and the generator waits for it"
    one.finish(read)
    (read,) = one.dispatch()
    assert (read.call, read.count) == (READ, 1)
    assert one.grants == []


def test_its_generator_goes_on_by_one_child_when_nothing_else_of_it_can() -> None:
    one, first, _ = full()
    pause(one, first)
    for _ in range(4):
        (read,) = one.dispatch()
        one.finish(read)
    assert one.dispatch() == []
    (grant,) = one.grants
    assert (grant.worker, grant.batch) == (PAGES_WORKER, first.batch)
    assert 0 < room_of(one, first) - 4 * ROW < ROW, "one more child goes beyond that"
    assert one.dispatch() == [] and len(one.grants) == 1, "it has not paused again"


def test_it_waits_for_the_worker_of_its_deeper_work() -> None:
    one, first, _ = full()
    one.event(WorkerDied(READ_WORKER, "killed"))
    pause(one, first)
    assert one.dispatch() == [] and one.grants == []
    one.event(WorkerStarted(READ_WORKER))
    assert [batch.call for batch in one.dispatch()] == [READ]


def test_other_roots_wait() -> None:
    one, first, second = full(7)
    pause(one, first)
    one.release(second, {0: 1})
    pause(one, second)
    for _ in range(5):
        (read,) = one.dispatch()
        assert one.core.machine.works_for(0, [read.batch])
        one.finish(read)
    assert one.dispatch() == []
    assert [grant.batch for grant in one.grants] == [first.batch]


def test_no_more_roots_come_in_until_there_is_room_or_none_is_open() -> None:
    one = script(5, documents=2, last=False)
    assert one.core.room() > 1
    first, _ = one.dispatch()
    one.release(first, {0: 3})
    assert one.core.room() == 0
    empty = script(2, documents=2, last=False)
    assert empty.core.room() == 0, "documents alone take it all"


def test_one_root_comes_in_where_none_is_open_whatever_is_held() -> None:
    one = script(2, documents=1, last=False)
    (pages,) = one.dispatch()
    one.release(pages, {0: 1})
    one.seal(pages, [0])
    one.finish(pages)
    while not one.results:
        for batch in one.dispatch():
            one.finish(batch)
    one.core.machine.held.size_bytes = 5 * ROW  # as if its record waited for its turn
    assert one.core.room() == 1


def test_a_worker_whose_generator_waits_is_free() -> None:
    one = script(4, documents=1)
    (pages,) = one.dispatch()
    one.release(pages, {0: 4})
    assert one.core.statistics(0.0).workers[PAGES_WORKER].state == "busy"
    pause(one, pages)
    assert one.core.statistics(0.0).workers[PAGES_WORKER].state == "no input"
    assert one.core.statistics(0.0).pauses == 1


def test_a_pause_that_crossed_more_room_does_not_count() -> None:
    one = script(100)
    pages, _ = one.dispatch()
    one.release(pages, {0: 1})
    one.dispatch()
    one.event(BatchPaused(pages.batch, 1, pages.room or 0))
    assert one.core.statistics(0.0).pauses == 0
    one.event(BatchPaused(pages.batch, 1, room_of(one, pages)))
    assert one.core.statistics(0.0).pauses == 1
    one.event(BatchPaused(pages.batch, 1, room_of(one, pages)))
    assert one.core.statistics(0.0).pauses == 1, "it is waiting already"


def test_a_pause_of_a_batch_that_nobody_awaits_is_no_news() -> None:
    one, _, _ = full()
    one.event(BatchPaused(99, 1, 0))
    assert one.core.statistics(0.0).pauses == 0


def test_a_generator_that_waits_and_is_not_needed_any_more_is_told_so_without_credit() -> None:
    one, first, _ = full()
    trims: list[TrimBatch] = []
    one.on_trim = trims.append
    pause(one, first)
    (read,) = one.dispatch()
    one.finish(read, failures={0: "bad"})  # no list of this document any more
    assert [(trim.worker, trim.batch, trim.tasks) for trim in trims] == [
        (PAGES_WORKER, first.batch, 1)
    ]
    one.finish(first, failures={0: "left out"})
    assert [result.status for result in one.results] == ["failed"]


def test_a_generator_of_a_root_that_has_ended_is_told_so_when_it_comes_to_wait() -> None:
    one, first, _ = full()
    trims: list[TrimBatch] = []
    pause(one, first)
    (read,) = one.dispatch()
    one.event(WorkerDied(PAGES_WORKER, "killed"))
    one.event(WorkerStarted(PAGES_WORKER))
    one.running = [(worker, batch) for worker, batch in one.running if batch is read]
    (again,) = one.dispatch()
    one.on_trim = lambda _: None
    one.finish(read, failures={0: "bad"})
    one.on_trim = trims.append
    pause(one, again)
    assert [(trim.batch, trim.tasks) for trim in trims] == [(again.batch, 1)]


def test_a_generator_that_waited_at_a_worker_that_died_goes_on_from_where_it_was() -> None:
    one, first, _ = full(20)
    one.dispatch()
    pause(one, first)
    one.event(WorkerDied(PAGES_WORKER, "killed"))
    one.event(WorkerDied(READ_WORKER, "killed"))
    assert one.core.promised_bytes == 0
    one.event(WorkerStarted(PAGES_WORKER))
    (again,) = one.dispatch()
    assert (again.call, again.count, again.attempt, again.skip) == (PAGES, 1, 2, (18,))


def test_without_a_budget_no_batch_has_a_bound() -> None:
    plan = fan_out_plan(batch_size=None)
    stages = (dataclasses.replace(plan.stages[0], generator=True), *plan.stages[1:])
    one = Script(dataclasses.replace(plan, stages=stages), row_bytes=ROW)
    one.admit(1)
    (pages,) = one.dispatch()
    assert pages.room is None
    one.release(pages, {0: 5})
    stats = one.core.statistics(0.0)
    assert (stats.budget_bytes, stats.peak_bytes, one.core.promised_bytes) == (None, 6 * ROW, 0)
