"""The probe: who is held back, until when, and that nobody waits for nothing."""

from __future__ import annotations

import pytest

from fanfold.engine import probe
from fanfold.engine.machine import Machine
from fanfold.protocol import RunBatch, TasksFinished
from tests.plans import fan_out_plan
from tests.scripted import Script
from tests.unit.engine.test_attempts import changed
from tests.unit.engine.test_parent_failures import RUIN

READ = 2


def documents(*pages: int) -> Script:
    """Documents with so many pages, all ready to be read in that order."""
    plan = changed(fan_out_plan(batch_size=64, failed="drop"), 1, schedule="fifo")
    script = Script(plan)
    script.admit(len(pages))
    (batch,) = script.dispatch()  # what is read is taken by hand below
    script.expand_all(batch, list(pages))
    return script


def taken(machine: Machine, limit: int) -> tuple[dict[int, int], RunBatch]:
    """A batch of pages: how many of each document."""
    found: dict[int, int] = {}
    started = machine.take(READ, limit)
    assert started is not None
    for chunk, bits in machine.batches[started.batch].entries:
        for offset in range(bits.bit_length()):
            if bits >> offset & 1:
                root = machine.roots.ordinals(chunk, offset)[0]
                found[root] = found.get(root, 0) + 1
    return found, started


def test_of_each_document_the_first_pages_go_while_others_wait() -> None:
    machine = documents(100, 100, 100).core.machine
    assert taken(machine, 20)[0] == {0: 8, 1: 8, 2: 4}
    assert taken(machine, 4)[0] == {2: 4}


def test_nobody_is_held_back_if_nothing_else_waits() -> None:
    machine = documents(100, 3).core.machine
    assert taken(machine, 11)[0] == {0: 8, 1: 3}
    assert taken(machine, 50)[0] == {0: 50}


def test_the_first_result_lets_the_others_through() -> None:
    script = documents(100, 100)
    machine = script.core.machine
    _, first = taken(machine, 8)
    assert taken(machine, 8)[0] == {1: 8}
    script.event(TasksFinished(first.batch, 0, 1, (script.rows(3, 1),)))
    assert taken(machine, 30)[0] == {0: 30}


def test_small_families_are_let_through_whole() -> None:
    machine = documents(*[8] * 10).core.machine
    assert taken(machine, 80)[0] == dict.fromkeys(range(10), 8)


def test_a_call_that_is_trusted_holds_nobody_back_until_a_parent_fails(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(probe, "TRUST", 5)
    script = documents(20, 20, 20, 20)
    machine = script.core.machine
    _, batch = taken(machine, 8)
    script.event(TasksFinished(batch.batch, 0, 5, (script.rows(3, 5),)))
    counts, batch = taken(machine, 30)
    assert counts == {0: 12, 1: 18}, "trusted"
    script.event(TasksFinished(batch.batch, 12, 1, (), ((12, RUIN),)))
    assert taken(machine, 16)[0] == {2: 8, 3: 8}


def test_a_giant_over_several_chunks_is_proven_once() -> None:
    script = documents(3000, 100)
    machine = script.core.machine
    _, batch = taken(machine, 8)
    script.event(TasksFinished(batch.batch, 0, 1, (script.rows(3, 1),)))
    assert taken(machine, 2500)[0] == {0: 2500}


def test_pages_that_are_dropped_do_not_hold_a_document_back() -> None:
    """What was taken and died gives no result: others go in its place."""
    script = documents(100, 100)
    machine = script.core.machine
    taken(machine, 8)
    chunk = next(chunk for chunk in machine.roots.known_chunks()).children[1].chunks(1)[0]
    machine.settling.settle_lost(chunk, machine.program.port[3], dropped=0xFF)
    machine.queues[READ].results(chunk, 0)
    assert taken(machine, 8)[0] == {0: 8}


def test_the_stage_says_how_many() -> None:
    plan = changed(fan_out_plan(batch_size=64), 1, probe=3)
    script = Script(plan)
    script.admit(2)
    (batch,) = script.dispatch()
    script.expand_all(batch, [20, 20])
    assert taken(script.core.machine, 6)[0] == {0: 3, 1: 3}
