"""Each invariant, broken once: the checker must see red, or it proves nothing."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from fanfold.engine import invariants
from fanfold.engine.chunks import Chunk, Lost
from fanfold.engine.machine import Machine
from fanfold.errors import InternalError
from tests.plans import fan_out_plan
from tests.scripted import Script


def midway() -> Script:
    """Two documents of three pages: one page batch read, one running, the rest waiting."""
    script = Script(fan_out_plan(batch_size=2))
    script.admit(2)
    (pages,) = script.dispatch()
    script.expand_all(pages, [3, 3])
    read, *_ = script.dispatch()
    script.finish(read)
    invariants.check(script.core.machine)
    return script


def page_chunk(machine: Machine) -> Chunk:
    return next(chunk for chunk, _ in invariants.known(machine) if chunk.level == 1)


def two_outcomes(machine: Machine) -> None:
    chunk = page_chunk(machine)
    chunk.lost = {machine.program.port[3]: Lost(dropped=1)}


def no_cause(machine: Machine) -> None:
    chunk = page_chunk(machine)
    chunk.lost = {machine.program.port[3]: Lost(failed=0b100)}


def taken_parent(machine: Machine) -> None:
    page_chunk(machine).parents = 0b101  # the second document's pages are said to be another's


def lost_child(machine: Machine) -> None:
    page_chunk(machine).continued = {0: 1}  # the first page is said to lie elsewhere


def run_twice(machine: Machine) -> None:
    batch = next(b for b in machine.batches.values() if b.call == 2)
    for chunk, bits in batch.entries:
        machine.queues[2].push(chunk, bits)


def miscounted_queue(machine: Machine) -> None:
    machine.queues[2].count += 1


def early_gather(machine: Machine) -> None:
    parent = page_chunk(machine).parent
    assert parent is not None
    parent.done[machine.program.port[4]] |= 1


def doubled_value(machine: Machine) -> None:
    chunk = page_chunk(machine)
    segments = chunk.segments[machine.program.port[3]]
    segments.append(segments[0])


def leaked_block(machine: Machine) -> None:
    machine.held.rows[12345] = 1


def early_root(machine: Machine) -> None:
    parent = page_chunk(machine).parent
    assert parent is not None
    parent.ended |= 1


@pytest.mark.parametrize(
    ("damage", "invariant"),
    [
        (two_outcomes, "outcomes_are_exclusive"),
        (no_cause, "losses_have_causes"),
        (lost_child, "membership_is_whole"),
        (taken_parent, "membership_is_whole"),
        (run_twice, "ready_items_are_ready"),
        (miscounted_queue, "ready_items_are_ready"),
        (early_gather, "gathers_are_complete"),
        (doubled_value, "values_are_held"),
        (leaked_block, "values_are_held"),
        (early_root, "roots_end_whole"),
    ],
)
def test_a_broken_state_is_seen(damage: Callable[[Machine], None], invariant: str) -> None:
    script = midway()
    damage(script.core.machine)
    with pytest.raises(InternalError, match=invariant):
        invariants.check(script.core.machine)


def test_every_invariant_is_broken_above() -> None:
    broken = {"outcomes_are_exclusive", "losses_have_causes", "membership_is_whole"}
    broken |= {
        "ready_items_are_ready",
        "gathers_are_complete",
        "values_are_held",
        "roots_end_whole",
    }
    assert {i.__name__ for i in invariants.INVARIANTS} == broken
