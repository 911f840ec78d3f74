"""What must hold of the engine's state between any two events, checked from scratch.

Slow on purpose (it walks everything), so it runs in tests, after every event. Owns the list of invariants;
each is a generator of complaints, so that all that is wrong is told at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import reduce
from operator import or_
from typing import TypeAlias

from fanfold.columns import Ref
from fanfold.engine.bits import below, bit_positions
from fanfold.engine.chunks import Chunk, descend
from fanfold.engine.machine import Machine
from fanfold.errors import InternalError
from fanfold.plan import CallNode, GatherNode


def check(machine: Machine) -> None:
    """Raise if any invariant is broken.

    Raises:
        InternalError: ``FF901`` with every complaint, one a line.
    """
    everything = list(known(machine))
    complaints = [
        f"{invariant.__name__}: {complaint}"
        for invariant in INVARIANTS
        for complaint in invariant(machine, everything)
    ]
    if complaints:
        raise InternalError(
            "FF901", "the engine's state is broken:\n" + "\n".join(complaints[:20]), ""
        )


def known(machine: Machine) -> Iterator[tuple[Chunk, int]]:
    """All chunks with those of their items whose roots are not committed."""
    for chunk in machine.roots.known_chunks():
        items = below(chunk.size) & ~machine.roots.gone(chunk)
        yield chunk, items
        yield from descend(chunk, items)


Known: TypeAlias = Sequence[tuple[Chunk, int]]
"""What :func:`known` gives."""


def outcomes_are_exclusive(machine: Machine, everything: Known) -> Iterator[str]:
    """Each item of each port ends at most once, and only items that exist end."""
    for chunk, _ in everything:
        ended = reduce(or_, chunk.done, 0)
        for slot, lost in (chunk.lost or {}).items():
            sets = (chunk.done[slot], lost.dropped, lost.failed, lost.suppressed)
            if sum(s.bit_count() for s in sets) != chunk.terminal(slot).bit_count():
                yield f"{_place(chunk, slot)} has items with two outcomes"
            ended |= chunk.terminal(slot)
        if ended >> chunk.size:
            yield f"{_place(chunk)} has outcomes of items that do not exist"


def losses_have_causes(machine: Machine, everything: Known) -> Iterator[str]:
    """A failed or suppressed item has exactly one cause."""
    for chunk, _ in everything:
        for slot, lost in (chunk.lost or {}).items():
            explained = 0
            for bits, _ in lost.causes:
                if explained & bits:
                    yield f"{_place(chunk, slot)} has an item with two causes"
                explained |= bits
            if explained != lost.failed | lost.suppressed:
                yield f"{_place(chunk, slot)} has items without a cause"


def membership_is_whole(machine: Machine, everything: Known) -> Iterator[str]:
    """Each family is whole and in order, told the same way from parents to children and back."""
    for parent, items in everything:
        for level, children in parent.children.items():
            counted = 0
            for offset in bit_positions(items & children.begun):
                bit, count = 1 << offset, 0
                for chunk, members in children.runs(bit):
                    if not members or chunk.parents_of(members) != bit:
                        yield f"level {level}: a chunk of parent {offset} has others' children"
                    for member in bit_positions(members):
                        if chunk.place(member) != (offset, count):
                            yield f"level {level}: {chunk.place(member)} at ({offset}, {count})"
                        count += 1
                if count != children.count(offset):
                    yield f"level {level}: {count} children held, {children.count(offset)} counted"
                counted += count
            held = sum(m.bit_count() for _, m in children.runs(items))
            if held != counted:
                yield f"level {level}: {held} children held together, {counted} one by one"
            for chunk in children.chunks(items):
                if chunk.size > machine.span:
                    yield f"level {level}: a chunk of {chunk.size} items"


def ready_items_are_ready(machine: Machine, everything: Known) -> Iterator[str]:
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
            bits &= ~queue.dead(chunk)
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


def gathers_are_complete(machine: Machine, everything: Known) -> Iterator[str]:
    """A gathered item is done only if its expansion is sealed and all its members are terminal, and is
    done as soon as they are."""
    for node in machine.plan.nodes:
        if not isinstance(node, GatherNode):
            continue
        program = machine.program
        row, slot = program.row[node.index], program.port[node.outputs[0]]
        for chunk, items in everything:
            if chunk.level != node.level:
                continue
            sealed = chunk.done[program.expansion[node.child_level]]
            children = chunk.children.get(node.child_level)
            for offset in bit_positions(items & ~chunk.ended):
                bit = 1 << offset
                runs = [] if children is None else children.runs(bit)
                whole = sealed & bit and not any(m & ~c.terminal(row) for c, m in runs)
                if chunk.done[slot] & bit and not whole:
                    yield f"gather {node.where}: item {offset} is done before its members"
                if whole and not chunk.terminal(slot) & bit:
                    yield f"gather {node.where}: item {offset} is open, its members are not"


def values_are_held(machine: Machine, everything: Known) -> Iterator[str]:
    """A done item of a stored port has exactly one row, unless it was released; blocks count right."""
    rows: dict[Ref, int] = {}
    for chunk, known_items in everything:
        for slot in machine.program.stored[chunk.level]:
            held = 0
            freed = (chunk.freed or {}).get(slot, 0)
            for items, ref, _ in chunk.segments.get(slot, ()):
                if held & items:
                    yield f"{_place(chunk, slot)} has an item with two values"
                held |= items
                live = items & known_items & ~freed
                if live:
                    rows[ref] = rows.get(ref, 0) + live.bit_count()
            if chunk.done[slot] & ~held & ~freed:
                yield f"{_place(chunk, slot)} has done items without a value"
    for batch in machine.batches.values():
        for ref in batch.refs:
            rows[ref] = rows.get(ref, 0) + 1
    if rows != machine.held.rows:
        yield f"blocks are counted as {machine.held.rows}, used as {rows}"


def roots_end_whole(machine: Machine, everything: Known) -> Iterator[str]:
    """A root that has ended has nothing open among what it returns."""
    for chunk, _ in everything:
        if chunk.level == 0:
            for slot in machine.program.root_slots:
                for offset in bit_positions(
                    chunk.ended & ~chunk.terminal(slot) & below(chunk.size)
                ):
                    yield f"root {chunk.base + offset} has ended with slot {slot} open"


INVARIANTS: tuple[Callable[[Machine, Known], Iterator[str]], ...] = (
    outcomes_are_exclusive,
    losses_have_causes,
    membership_is_whole,
    ready_items_are_ready,
    gathers_are_complete,
    values_are_held,
    roots_end_whole,
)


def _place(chunk: Chunk, slot: int | None = None) -> str:
    return f"level {chunk.level}, slot {'any' if slot is None else slot}, chunk {id(chunk):#x}"
