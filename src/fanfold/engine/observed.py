"""Outcomes of a root's output items, and of its effects', one by one, for tests: what the engine holds, before
rules for records.
"""

from __future__ import annotations

from dataclasses import dataclass

from fanfold.columns import Column
from fanfold.engine.bits import bit_positions
from fanfold.engine.chunks import Chunk
from fanfold.engine.machine import Machine
from fanfold.failures import Failure
from fanfold.outcomes import Outcome


@dataclass(frozen=True, slots=True)
class ObservedItem:
    """One item at one port; ``column`` holds its value if it is done at an output."""

    ordinals: tuple[int, ...]
    outcome: Outcome
    failure: Failure | None = None
    column: Column | None = None


def observe(machine: Machine, root: int) -> dict[int, list[ObservedItem]]:
    """By port of outputs and effects, a root's items in ordinal order. Call it before the root is committed."""
    chunk = machine.roots.chunk(root)
    bit = 1 << root - chunk.base
    result: dict[int, list[ObservedItem]] = {}
    plan = machine.plan
    outputs = [output.port for output in plan.outputs]
    effects = [port for call in plan.effects for port in plan.call(call).outputs]
    for port in (*outputs, *effects):
        level = plan.ports[port].level
        if level == 0:
            entries = [(chunk, bit)]
        else:
            entries = machine.roots.items_below(chunk, bit, level)
        result[port] = [
            _item(machine, port, child, offset, read=port in outputs)
            for child, bits in entries
            for offset in bit_positions(bits)
        ]
    return result


def _item(machine: Machine, port: int, chunk: Chunk, offset: int, *, read: bool) -> ObservedItem:
    slot, bit = machine.program.port[port], 1 << offset
    ordinals = machine.roots.ordinals(chunk, offset)
    if chunk.done[slot] & bit:
        column = machine.resolvers[port](((chunk, bit),), set()) if read else None
        return ObservedItem(ordinals, Outcome.DONE, None, column)
    lost = chunk.lost_at(slot)
    assert lost is not None and chunk.terminal(slot) & bit, f"port {port} of {ordinals} is open"
    for outcome, bits in (
        (Outcome.DROPPED, lost.dropped),
        (Outcome.FAILED, lost.failed),
        (Outcome.SUPPRESSED, lost.suppressed),
    ):
        if bits & bit:
            return ObservedItem(ordinals, outcome, lost.cause(bit))
    raise AssertionError("unreachable: a terminal item has one of four outcomes")
