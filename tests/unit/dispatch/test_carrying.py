"""What goes on without credit: how much of the oldest root, at which workers, and what waits for it."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

from fanfold.engine.commands import Command, SpillBlocks
from fanfold.protocol import BatchPaused, BlocksSpilled, RunBatch, WorkerDied, WorkerStarted
from tests.plans import fan_out_plan
from tests.scripted import Script

DOCUMENT, PAGE, TEXT = 0, 2, 3
"""Ports."""
PAGES, READ = 0, 2
"""Calls."""
ROW = 4096


class Tight(Script):
    """Documents whose pages a generator gives, with memory for so many pages; nothing can leave it."""

    def __init__(self, pages: int, *, text: int = ROW, replicas: int = 3, batch: int = 16) -> None:
        plan = fan_out_plan(batch_size=batch, failed="drop")
        generator = dataclasses.replace(plan.stages[0], generator=True, batch_size=None)
        super().__init__(
            dataclasses.replace(plan, stages=(generator, *plan.stages[1:])),
            replicas=replicas,
            budget_bytes=pages * ROW,
            row_bytes={DOCUMENT: 1, PAGE: ROW, TEXT: text, 5: 1},
        )

    def _carry_out(self, commands: Iterable[Command]) -> None:
        asked = list(commands)
        super()._carry_out(asked)
        for command in asked:
            if isinstance(command, SpillBlocks):
                self.event(BlocksSpilled(command.refs, ()))

    def fill(self, first: RunBatch, pages: int) -> None:
        """A document has so many pages, and its generator waits for room."""
        self.release(first, {0: pages})
        self.pause(first)

    def pause(self, batch: RunBatch) -> None:
        """A generator has used up all that it was granted."""
        granted = sum(grant.room for grant in self.grants if grant.batch == batch.batch)
        self.event(BatchPaused(batch.batch, 1, (batch.room or 0) + granted))


def reading(batches: list[RunBatch]) -> list[int]:
    """How many pages are read together, batch by batch."""
    return [batch.count for batch in batches if batch.call == READ]


def test_each_idle_worker_of_its_deepest_stage_gets_an_item_of_the_oldest_root() -> None:
    one = Tight(10)
    one.admit(2)
    first, second = one.dispatch()
    one.release(second, {0: 3})
    one.fill(first, 7)
    started = one.dispatch()
    assert reading(started) == [1, 1, 1]
    assert all(one.core.machine.works_for(0, [batch.batch]) for batch in started)
    assert one.dispatch() == [], "each has its one"
    one.finish(started[1])
    assert reading(one.dispatch()) == [1]


def test_what_makes_little_goes_in_full_batches() -> None:
    one = Tight(20, text=10, replicas=2)
    one.admit(1)
    (first,) = one.dispatch()
    one.release(first, {0: 1})
    (read,) = one.dispatch()
    one.finish(read)
    one.fill(first, 60)
    assert reading(one.dispatch()) == [16, 16]


def test_of_what_is_known_to_make_much_one_goes_though_it_usually_makes_little() -> None:
    one = Tight(20, text=ROW, replicas=2)
    one.admit(1)
    (first,) = one.dispatch()
    one.release(first, {0: 2})
    for failures in ({0: "bad"}, {}, {0: "bad"}):
        for read in one.dispatch():
            one.finish(read, failures)
        one.release(first, {0: 1})
    one.fill(first, 60)
    assert reading(one.dispatch()) == [1, 1]


def test_what_is_less_deep_waits_while_something_deeper_is_ready() -> None:
    one = Tight(10)
    one.admit(1)
    (first,) = one.dispatch()
    one.fill(first, 10)
    one.dispatch()
    for _ in range(6):
        one.finish(one.running[-1][1])
        assert reading(one.dispatch()) == [1]
        assert one.grants == []
    one.finish(one.running[-1][1])
    assert reading(one.dispatch()) == [1]
    one.dispatch()
    (grant,) = one.grants
    assert grant.batch == first.batch, "all its pages are at workers: one more may be made"


def test_what_is_less_deep_waits_though_no_worker_is_there_for_what_is_deeper() -> None:
    one = Tight(10, replicas=1)
    one.admit(1)
    (first,) = one.dispatch()
    one.event(WorkerDied(1, "killed"))
    one.fill(first, 10)
    assert one.dispatch() == [] and one.grants == []
    one.event(WorkerStarted(1))
    assert reading(one.dispatch()) == [1]


def test_what_is_deeper_does_not_wait_for_what_is_less_deep() -> None:
    one = Tight(10)
    one.admit(1)
    (first,) = one.dispatch()
    one.release(first, {0: 10})  # its generator has room left, as far as it knows
    assert reading(one.dispatch()) == [1, 1, 1]


def test_a_giant_beyond_its_memory_needs_few_turns() -> None:
    """Five thousand pages through memory for 1,280 of them; their texts alone take nearly twice as much."""
    one = Tight(1280, text=ROW // 2, replicas=1, batch=64)
    one.checked = False  # for time's sake
    one.admit(1)
    (first,) = one.dispatch()
    left, granted, released, turns = 5000, first.room or 0, 0, 0
    held, unread = one.core.machine.held, 0
    while left or len(one.running) > 1:
        turns += 1
        for _, batch in list(one.running):
            if batch.call == READ:
                one.finish(batch)
                unread -= batch.count
        more = min(left, -(-(granted - released) // ROW))
        if more > 0:
            one.release(first, {0: more})
            left, released, unread = left - more, released + more * ROW, unread + more
            assert held.size_bytes < 1280 * ROW or unread <= 1280 // 64 + 1
        elif left:
            one.pause(first)
        one.dispatch()
        granted = (first.room or 0) + sum(grant.room for grant in one.grants)
    assert held.size_bytes > 1.9 * 1280 * ROW
    assert turns < 5000 // 8
