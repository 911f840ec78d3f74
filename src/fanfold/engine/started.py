"""What may be given to workers, checked from scratch: no dead work, no more of a parent than the probe lets.

Slow on purpose, item by item, as :mod:`fanfold.engine.invariants` is, and for the same tests; asked right after
a dispatch, when nothing has happened since the batches were made. Owns a second reading of M15 to M17: that
of the engine goes backwards from losses, this one forwards from an item to whatever still depends on it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from fanfold.engine.bits import bit_positions
from fanfold.engine.chunks import Chunk
from fanfold.engine.machine import Machine
from fanfold.engine.probe import TRUST
from fanfold.plan import (
    BroadcastNode,
    ExpandNode,
    GatherNode,
    MergeNode,
    Node,
    Plan,
    ports_made,
    ports_read,
)


def dead_work(machine: Machine, batches: Iterable[int]) -> Iterator[str]:
    """Items in batches made just now that should never have been started, with the reason.

    Args:
        machine: The engine.
        batches: The numbers of the batches that the last dispatch made.
    """
    needs = _Needs(machine)
    for number in batches:
        batch = machine.batches[number]
        name, output = machine.counts[batch.call].name, machine.program.call_outputs[batch.call][0]
        made = ports_made(machine.plan.nodes[batch.call])
        for chunk, bits in batch.entries:
            for offset in bit_positions(bits):
                bit = 1 << offset
                place = f"call {name}: item {machine.roots.ordinals(chunk, offset)}"
                if (chunk.terminal(output) | chunk.ended) & bit:
                    yield f"{place} was started after its end"
                elif _is_condemned(chunk, bit, output):
                    yield f"{place} was started after a sibling's parent failure"
                elif not any(needs.of(port, chunk, bit) for port in made):
                    yield f"{place} was started, and nothing that is open depends on it"


def beyond_the_probe(machine: Machine, batches: Iterable[int]) -> Iterator[str]:
    """Parents of which more items are at workers than the probe lets, while items of others wait.

    Calls that may be trusted by now are not looked at. A parent without a result has a crowd if more than
    ``probe`` of its items were given out; one more of them may go only if all that waits at the call
    belongs to such parents as well, or to parents of which some items are out already.

    Args:
        machine: The engine.
        batches: The numbers of the batches that the last dispatch made.
    """
    by_call: dict[int, list[tuple[Chunk, int]]] = {}
    for number in batches:
        batch = machine.batches[number]
        if not batch.alone and machine.counts[batch.call].executed < TRUST:
            by_call.setdefault(batch.call, []).extend(batch.entries)
    for call, entries in by_call.items():
        limit = machine.plan.stages[machine.plan.call(call).stage].probe
        crowds = [
            (parent, out)
            for parent in _parents(entries)
            if (out := _out(machine, call, *parent)) is not None and out > limit
        ]
        if not crowds:
            continue
        queue, name = machine.queues[call], machine.counts[call].name
        waiting = [(chunk, bits & ~queue.dead(chunk)) for _, chunk, bits in queue.runs()]
        for parent in _parents(waiting):
            if not _out(machine, call, *parent):  # it has a result, or nothing of it is out
                (chunk, bit), out = crowds[0]
                crowd, other = (
                    machine.roots.ordinals(one, two.bit_length() - 1)
                    for one, two in ((chunk, bit), parent)
                )
                yield f"call {name}: {out} items of {crowd} are out, while some of {other} wait"
                break


def _parents(entries: Iterable[tuple[Chunk, int]]) -> list[tuple[Chunk, int]]:
    """The parents of some items, one by one."""
    found: dict[tuple[Chunk, int], None] = {}
    for chunk, bits in entries:
        if chunk.parent is not None:
            for offset in bit_positions(bits):
                found[chunk.parent, chunk.parents_of(1 << offset)] = None
    return list(found)


def _out(machine: Machine, call: int, parent: Chunk, bit: int) -> int | None:
    """How many of a parent's items are at workers, or may be soon; None if it has a result at the call."""
    output, taken = machine.program.call_outputs[call][0], machine.program.taken[call]
    out = 0
    for chunk, members in parent.children[machine.plan.nodes[call].level].runs(bit):
        lost = chunk.lost_at(output)
        if members & (chunk.done[output] | (0 if lost is None else lost.failed)):
            return None
        out += (members & chunk.done[taken] & ~chunk.terminal(output)).bit_count()
    return out


def _is_condemned(chunk: Chunk, bit: int, output: int) -> bool:
    """Whether a sibling failed at a call in a way that reaches their parent."""
    if chunk.parent is None:
        return False
    for part, members in chunk.parent.children[chunk.level].runs(chunk.parents_of(bit)):
        lost = part.lost_at(output)
        if lost is not None:
            for bits, cause in lost.causes:
                if bits & members & lost.failed and cause.scope == "parent":
                    return True
    return False


class _Needs:
    """Whether something that is still open depends on an item.

    What a drop decided is left out of account: it kills no work.
    """

    def __init__(self, machine: Machine) -> None:
        self._program, self._plan = machine.program, machine.plan
        self._readers: dict[int, list[Node]] = {}
        for node in self._plan.nodes:
            for port in dict.fromkeys(ports_read(node)):
                self._readers.setdefault(port, []).append(node)
        self._last = returned(self._plan)
        self._known: dict[tuple[int, Chunk, int], bool] = {}

    def of(self, port: int, chunk: Chunk, bit: int) -> bool:
        """Whether anything depends on one item of a port."""
        key = (port, chunk, bit)
        if key not in self._known:
            self._known[key] = port in self._last or any(
                self._reader(node, port, chunk, bit) for node in self._readers.get(port, ())
            )
        return self._known[key]

    def _reader(self, node: Node, port: int, chunk: Chunk, bit: int) -> bool:
        match node:
            case ExpandNode():
                return self._children(node, chunk, bit)
            case BroadcastNode():
                expansion = self._program.expansion[node.level]
                lost = chunk.lost_at(expansion)
                if not (chunk.done[expansion] | (0 if lost is None else lost.failed)) & bit:
                    return True  # children may come that need it
                children = chunk.children.get(node.level)
                return children is not None and any(
                    self._open(node.output, child, 1 << offset)
                    for child, members in children.runs(bit)
                    for offset in bit_positions(members)
                )
            case GatherNode():
                row = self._program.row[node.index]
                lost = chunk.lost_at(row)
                if lost is not None and bit & lost.dropped:
                    return True
                if lost is not None and bit & (lost.failed | lost.suppressed):
                    return False
                assert chunk.parent is not None
                parent = chunk.parents_of(bit)
                return any(self._open(made, chunk.parent, parent) for made in node.outputs)
            case MergeNode():
                slot = self._program.port[node.output]
                return not chunk.terminal(slot) & bit and self.of(node.output, chunk, bit)
            case _:
                return any(self._open(made, chunk, bit) for made in ports_made(node))

    def _open(self, port: int, chunk: Chunk, bit: int) -> bool:
        """Whether an item is not lost, and something depends on it; or it was dropped."""
        lost = chunk.lost_at(self._program.port[port])
        if lost is not None:
            if bit & lost.dropped:
                return True
            if bit & (lost.failed | lost.suppressed):
                return False
        return self.of(port, chunk, bit)

    def _children(self, node: ExpandNode, chunk: Chunk, bit: int) -> bool:
        """Whether anything depends on an expansion."""
        lost = chunk.lost_at(self._program.expansion[node.level])
        if lost is not None and bit & lost.failed:
            return False
        levels = self._plan.levels
        for port in self._last:
            above: int | None = self._plan.ports[port].level
            while above is not None:
                if above == node.level:
                    return True
                above = levels[above].parent
        return any(
            self._open(made, chunk, bit)
            for gather in self._plan.nodes
            if isinstance(gather, GatherNode) and gather.child_level == node.level
            for made in gather.outputs
        )


def returned(plan: Plan) -> frozenset[int]:
    """The ports that are needed for themselves: what the pipeline returns, and effects."""
    effects = (port for call in plan.effects for port in ports_made(plan.nodes[call]))
    return frozenset((*(output.port for output in plan.outputs), *effects))
