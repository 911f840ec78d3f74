"""Batches whose generators wait for room: what is given back of them, what is lost with their worker."""

from __future__ import annotations

import dataclasses

from fanfold.engine.machine import Machine
from fanfold.protocol import BatchPaused, RunBatch
from tests.plans import fan_out_plan
from tests.scripted import Script

PAGES, READ = 0, 2


def generating(documents: int) -> tuple[Script, Machine, RunBatch]:
    """All documents are at one worker, in one batch."""
    plan = fan_out_plan(batch_size=None)
    stages = (dataclasses.replace(plan.stages[0], generator=True), *plan.stages[1:])
    script = Script(dataclasses.replace(plan, stages=stages))
    script.admit(documents)
    batch = script.core.machine.take(PAGES, documents)
    assert batch is not None
    return script, script.core.machine, batch


def roots_of(machine: Machine, call: int) -> list[int]:
    """The roots of what waits at a call, in order."""
    return [
        machine.roots.ordinals(chunk, offset)[0]
        for _, chunk, bits in machine.queues[call].runs()
        for offset in range(bits.bit_length())
        if bits >> offset & 1
    ]


def test_tasks_that_were_not_begun_are_ready_again() -> None:
    script, machine, batch = generating(4)
    script.release(batch, {0: 2})
    script.seal(batch, [0])
    script.release(batch, {1: 3})
    script.event(BatchPaused(batch.batch, 2, 0))
    assert roots_of(machine, PAGES) == [2, 3]
    counts = machine.counts[PAGES]
    assert (counts.running, counts.executed) == (2, 2)


def test_the_batch_ends_with_the_tasks_that_were_begun() -> None:
    script, machine, batch = generating(3)
    script.release(batch, {0: 1})
    script.event(BatchPaused(batch.batch, 1, 0))
    script.seal(batch, [0])
    script.running.append((0, batch))
    script.finish(batch._replace(count=1))
    assert batch.batch not in machine.batches
    assert machine.counts[PAGES].running == 0
    again = machine.take(PAGES, 5)
    assert again is not None and (again.count, again.attempt) == (2, 1)


def test_a_second_pause_gives_nothing_back_twice() -> None:
    script, machine, batch = generating(3)
    script.release(batch, {0: 1})
    script.event(BatchPaused(batch.batch, 1, 0))
    script.event(BatchPaused(batch.batch, 1, 10))
    assert roots_of(machine, PAGES) == [1, 2]


def test_a_pause_of_an_earlier_attempt_or_of_nobody_is_ignored() -> None:
    script, machine, batch = generating(3)
    script.event(BatchPaused(batch.batch, 1, 0, attempt=7))
    script.event(BatchPaused(batch.batch + 5, 1, 0))
    assert roots_of(machine, PAGES) == []
    assert machine.counts[PAGES].running == 3


def test_what_was_begun_goes_on_by_itself_after_its_worker_died() -> None:
    script, machine, batch = generating(3)
    script.release(batch, {0: 5})
    script.event(BatchPaused(batch.batch, 1, 0))
    machine.lose_batch(batch.batch, running=False, reason="killed")
    again = machine.take_alone(PAGES)
    assert again is not None
    assert (again.count, again.attempt, again.skip) == (1, 2, (5,))
    assert roots_of(machine, PAGES) == [1, 2]


def test_of_a_batch_that_was_lost_before_it_began_all_goes_back() -> None:
    _, machine, batch = generating(3)
    machine.lose_batch(batch.batch, running=False, reason="killed")
    assert machine.take_alone(PAGES) is None
    assert roots_of(machine, PAGES) == [0, 1, 2]


def test_one_that_began_and_one_that_did_not_part_ways_when_their_worker_dies() -> None:
    script, machine, batch = generating(3)
    script.release(batch, {1: 2})
    machine.lose_batch(batch.batch, running=False, reason="killed")
    again = machine.take_alone(PAGES)
    assert again is not None and again.skip == (2,)
    assert machine.take_alone(PAGES) is None
    assert roots_of(machine, PAGES) == [0, 2]


def test_the_root_of_a_batch_is_that_of_its_first_task_that_goes_on() -> None:
    script, machine, batch = generating(3)
    assert machine.root_of(batch.batch) == 0
    script.release(batch, {0: 1})
    script.event(BatchPaused(batch.batch, 1, 0))
    assert machine.root_of(batch.batch) == 0
    rest = machine.take(PAGES, 5)
    assert rest is not None and machine.root_of(rest.batch) == 1


def test_a_batch_works_for_the_roots_of_what_it_has_not_finished() -> None:
    script, machine, batch = generating(3)
    assert [machine.works_for(root, [batch.batch]) for root in range(3)] == [True] * 3
    script.release(batch, {1: 1})
    script.event(BatchPaused(batch.batch, 2, 0))
    assert [machine.works_for(root, [batch.batch]) for root in range(3)] == [True, True, False]
    assert not machine.works_for(0, []) and not machine.works_for(0, [77])
    read = machine.take(READ, 1)
    assert read is not None
    assert [machine.works_for(root, [read.batch]) for root in range(3)] == [False, True, False]


def test_ready_items_of_a_root_are_taken_wherever_they_stand() -> None:
    script, machine, batch = generating(3)
    for task, pages in ((0, 3), (2, 4)):
        script.release(batch, {task: pages})
    assert not machine.is_ready(READ, 1)
    assert machine.take_of(READ, 1, 9, probed=False) is None
    assert machine.is_ready(READ, 2)
    for limit, count, left in ((1, 1, 6), (2, 2, 4), (9, 1, 3)):
        taken = machine.take_of(READ, 2, limit, probed=False)
        assert taken is not None and taken.count == count
        assert machine.works_for(2, [taken.batch])
        assert machine.queues[READ].count == left
    assert machine.take_of(READ, 2, 9, probed=False) is None
    rest = machine.take(READ, 9)
    assert rest is not None and rest.count == 3


def test_the_probe_holds_back_items_of_a_root_unless_there_is_nothing_else() -> None:
    script, machine, batch = generating(1)
    script.release(batch, {0: 20})
    taken = machine.take_of(READ, 0, 20, probed=True)
    assert taken is not None and taken.count == 8
    assert machine.take_of(READ, 0, 20, probed=True) is None
    one = machine.take_of(READ, 0, 20, probed=False)
    assert one is not None and one.count == 1
