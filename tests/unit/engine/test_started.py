"""What should not have been started is told, each kind once; and what should have been is not."""

from __future__ import annotations

import pytest

from fanfold.engine.chunks import Chunk
from fanfold.engine.machine import Machine
from fanfold.engine.probe import Probe
from fanfold.engine.started import beyond_the_probe, dead_work
from fanfold.failures import Failure
from fanfold.plan import GatherNode
from fanfold.protocol import RunBatch, TasksFinished
from tests.plans import fan_out_plan
from tests.scripted import Script

READ = 2
LOST = Failure(kind="declared", message="lost")
RUIN = Failure(kind="declared", message="ruin", scope="parent")


def reading(*pages: int, failed: str = "drop") -> tuple[Script, Machine]:
    """Documents with so many pages, all ready to be read."""
    script = Script(fan_out_plan(batch_size=64, failed=failed))
    script.admit(len(pages))
    (batch,) = script.dispatch()
    script.expand_all(batch, list(pages))
    return script, script.core.machine


def taken(machine: Machine, limit: int) -> RunBatch:
    started = machine.take(READ, limit)
    assert started is not None
    return started


def chunk_of(machine: Machine, batch: RunBatch) -> Chunk:
    ((chunk, _),) = machine.batches[batch.batch].entries
    return chunk


def test_work_that_somebody_needs_is_fine() -> None:
    _, machine = reading(3, 3)
    assert list(dead_work(machine, [taken(machine, 6).batch])) == []


def test_an_item_that_has_ended_is_told() -> None:
    _, machine = reading(3)
    batch = taken(machine, 3)
    (output,) = machine.program.call_outputs[READ]
    chunk = chunk_of(machine, batch)
    machine.settling.settle_lost(chunk, output, suppressed=0b10, causes=((0b10, LOST),))
    (told,) = dead_work(machine, [batch.batch])
    assert told.endswith("item (0, 1) was started after its end")


def test_an_item_whose_root_has_ended_is_told() -> None:
    _, machine = reading(3)
    batch = taken(machine, 3)
    chunk_of(machine, batch).ended = 0b100
    (told,) = dead_work(machine, [batch.batch])
    assert told.endswith("item (0, 2) was started after its end")


def test_siblings_of_a_parent_failure_are_told() -> None:
    _, machine = reading(3, 2)
    batch = taken(machine, 5)
    (output,) = machine.program.call_outputs[READ]
    chunk = chunk_of(machine, batch)
    machine.settling.settle_lost(chunk, output, failed=0b001, causes=((0b001, RUIN),))
    told = list(dead_work(machine, [batch.batch]))
    assert [text.partition("was started ")[2] for text in told] == [
        "after its end",
        "after a sibling's parent failure",
        "after a sibling's parent failure",
    ]


def test_members_of_a_list_that_is_lost_are_told() -> None:
    _, machine = reading(3)
    batch = taken(machine, 3)
    chunk = chunk_of(machine, batch)
    (gathered,) = [node for node in machine.plan.nodes if isinstance(node, GatherNode)]
    assert chunk.parent is not None
    for port in gathered.outputs:
        slot = machine.program.port[port]
        machine.settling.settle_lost(chunk.parent, slot, suppressed=1, causes=((1, LOST),))
    told = list(dead_work(machine, [batch.batch]))
    assert len(told) == 3
    assert all(text.endswith("nothing that is open depends on it") for text in told)


def test_more_of_a_parent_than_the_probe_lets_is_told_while_others_wait(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Probe, "held_back", lambda probe, chunk, ready: 0)
    _, machine = reading(20, 20)
    batch = taken(machine, 12)
    (told,) = beyond_the_probe(machine, [batch.batch])
    assert told.endswith("12 items of (0,) are out, while some of (1,) wait")


def test_as_many_as_the_probe_lets_are_fine_and_more_if_nothing_else_waits() -> None:
    _, machine = reading(20, 3)
    first, second = taken(machine, 11), taken(machine, 12)
    assert list(beyond_the_probe(machine, [first.batch, second.batch])) == []


def test_a_parent_with_a_result_may_have_any_number() -> None:
    script, machine = reading(20, 20)
    first = taken(machine, 8)
    script.event(TasksFinished(first.batch, 0, 1, (script.rows(3, 1),)))
    assert list(beyond_the_probe(machine, [taken(machine, 12).batch])) == []
