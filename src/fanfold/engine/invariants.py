"""What must hold of the engine's state between any two events, checked from scratch.

Slow on purpose (it walks everything), so it runs in tests, after every event. Owns the list of invariants;
each is a generator of complaints, so that all that is wrong is told at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from fanfold.columns import Ref
from fanfold.engine.bits import below, bit_positions
from fanfold.engine.groups import SPAN, Chunk, Group
from fanfold.engine.machine import Machine
from fanfold.errors import InternalError
from fanfold.plan import CallNode, GatherNode


def check(machine: Machine) -> None:
    """Raise if any invariant is broken.

    Raises:
        InternalError: ``FF901`` with every complaint, one a line.
    """
    complaints = [
        f"{invariant.__name__}: {complaint}"
        for invariant in INVARIANTS
        for complaint in invariant(machine)
    ]
    if complaints:
        raise InternalError(
            "FF901", "the engine's state is broken:\n" + "\n".join(complaints[:20]), ""
        )


def chunks(machine: Machine) -> Iterator[Chunk]:
    """All chunks of roots that are not committed."""
    for chunk in machine.roots.known_chunks():
        yield from _below(chunk)


def _below(chunk: Chunk) -> Iterator[Chunk]:
    yield chunk
    for groups in chunk.groups.values():
        for group in groups:
            if group is not None:
                for child in group.chunks:
                    yield from _below(child)


def outcomes_are_exclusive(machine: Machine) -> Iterator[str]:
    """Each item of each port ends at most once, and only items that exist end."""
    for chunk in chunks(machine):
        for slot, done in enumerate(chunk.done):
            lost = chunk.lost_at(slot)
            sets = [done] if lost is None else [done, lost.dropped, lost.failed, lost.suppressed]
            if sum(s.bit_count() for s in sets) != chunk.terminal(slot).bit_count():
                yield f"{_place(chunk, slot)} has items with two outcomes"
            if chunk.terminal(slot) >> chunk.size:
                yield f"{_place(chunk, slot)} has outcomes of items that do not exist"


def losses_have_causes(machine: Machine) -> Iterator[str]:
    """A failed or suppressed item has exactly one cause."""
    for chunk in chunks(machine):
        for slot, lost in (chunk.lost or {}).items():
            explained = 0
            for bits, _ in lost.causes:
                if explained & bits:
                    yield f"{_place(chunk, slot)} has an item with two causes"
                explained |= bits
            if explained != lost.failed | lost.suppressed:
                yield f"{_place(chunk, slot)} has items without a cause"


def membership_is_whole(machine: Machine) -> Iterator[str]:
    """A group's chunks follow each other without gap and hold as many items as it counts."""
    groups: dict[int, Group] = {id(c.group): c.group for c in chunks(machine)}
    for group in groups.values():
        if group.level == 0:
            continue
        base = 0
        for chunk in group.chunks:
            if chunk.base != base or chunk.size > SPAN:
                yield f"level {group.level}: a chunk at {chunk.base} where {base} comes next"
            base += chunk.size
        if base != group.count:
            yield f"level {group.level}: {group.count} children counted, {base} held"
        parent = group.chunk
        if parent is not None and group.sealed:
            slot = machine.program.expansion[group.level]
            if not parent.terminal(slot) & group.bit:
                yield f"level {group.level}: a sealed expansion is open at its parent"


def ready_items_are_ready(machine: Machine) -> Iterator[str]:
    """An item waits or runs at a call only once, with all inputs done and no outcome yet."""
    seen: dict[tuple[int, int], int] = {}
    for node in machine.plan.calls():
        queue = machine.queues[node.index]
        entries = [(chunk, bits) for _, chunk, bits in queue.runs()]
        entries += [(retry.chunk, retry.bit) for retry in queue.alone]
        counted = sum(bits.bit_count() for _, chunk, bits in queue.runs())
        if counted != queue.count:
            yield f"call {node.name}: {queue.count} ready items counted, {counted} held"
        for batch in machine.batches.values():
            if batch.call == node.index:
                entries += batch.unfinished()
        for chunk, bits in entries:
            bits &= ~chunk.ended
            key = (node.index, id(chunk))
            if seen.get(key, 0) & bits:
                yield f"call {node.name}: an item waits or runs twice"
            seen[key] = seen.get(key, 0) | bits
            yield from _readiness(machine, node, chunk, bits)


def _readiness(machine: Machine, node: CallNode, chunk: Chunk, bits: int) -> Iterator[str]:
    program = machine.program
    if bits & ~chunk.done[program.queued[node.index]]:
        yield f"call {node.name}: an item waits that was never ready"
    if bits & chunk.terminal(program.call_outputs[node.index][0]):
        yield f"call {node.name}: an item waits or runs that has ended"
    for item in node.inputs:
        if bits & ~chunk.done[program.port[item.port]]:
            yield f"call {node.name}: an item waits or runs without its input"


def gathers_are_complete(machine: Machine) -> Iterator[str]:
    """A gathered item is done only if its expansion is sealed and all its members are terminal, and is
    done as soon as they are."""
    for node in machine.plan.nodes:
        if not isinstance(node, GatherNode):
            continue
        program = machine.program
        row, slot = program.row[node.index], program.port[node.outputs[0]]
        for chunk in chunks(machine):
            if chunk.group.level != node.level:
                continue
            for offset in range(chunk.size):
                bit = 1 << offset
                if chunk.ended & bit:
                    continue
                group = chunk.group_of(node.child_level, offset)
                whole = (
                    group is not None
                    and group.sealed
                    and all(c.terminal(row) == below(c.size) for c in group.chunks)
                )
                if chunk.done[slot] & bit and not whole:
                    yield f"gather {node.where}: item {offset} is done before its members"
                if whole and not chunk.terminal(slot) & bit:
                    yield f"gather {node.where}: item {offset} is open, its members are not"


def values_are_held(machine: Machine) -> Iterator[str]:
    """A done item of a stored port has exactly one row, unless it was released; blocks count right."""
    rows: dict[Ref, int] = {}
    for chunk in chunks(machine):
        ended_root = chunk.group.level == 0
        for slot in machine.program.stored[chunk.group.level]:
            held = 0
            freed = (chunk.freed or {}).get(slot, 0)
            gone = machine.roots.gone(chunk) if ended_root else 0
            for items, ref, _ in chunk.segments.get(slot, ()):
                if held & items:
                    yield f"{_place(chunk, slot)} has an item with two values"
                held |= items
                live = items & ~freed & ~gone
                if live:
                    rows[ref] = rows.get(ref, 0) + live.bit_count()
            if chunk.done[slot] & ~held & ~freed:
                yield f"{_place(chunk, slot)} has done items without a value"
    for batch in machine.batches.values():
        for ref in batch.refs:
            rows[ref] = rows.get(ref, 0) + 1
    if rows != machine.live_rows:
        yield f"blocks are counted as {machine.live_rows}, used as {rows}"


def roots_end_whole(machine: Machine) -> Iterator[str]:
    """A root that has ended has nothing open among what it returns."""
    for chunk in chunks(machine):
        if chunk.group.level == 0:
            for slot in machine.program.root_slots:
                for offset in bit_positions(
                    chunk.ended & ~chunk.terminal(slot) & below(chunk.size)
                ):
                    yield f"root {chunk.base + offset} has ended with slot {slot} open"


INVARIANTS: tuple[Callable[[Machine], Iterator[str]], ...] = (
    outcomes_are_exclusive,
    losses_have_causes,
    membership_is_whole,
    ready_items_are_ready,
    gathers_are_complete,
    values_are_held,
    roots_end_whole,
)


def _place(chunk: Chunk, slot: int) -> str:
    return f"level {chunk.group.level}, slot {slot}, items from {chunk.base}"
