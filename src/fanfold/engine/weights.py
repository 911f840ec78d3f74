"""How many bytes an item of a call brings into a batch: those of the stored rows that its inputs are read from.

Owns the way from a call's ports back to what producers told of sizes, through structural operations. A row that
several inputs share (fields of one value) counts once; a value that was broadcast counts once for all siblings
that are asked about together.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from itertools import islice
from typing import TypeAlias

from fanfold.engine.bits import bit_positions, extract, is_run, low_offset
from fanfold.engine.chunks import Chunk
from fanfold.engine.program import Program
from fanfold.plan import (
    BroadcastNode,
    CallNode,
    ExpandNode,
    FieldNode,
    FilterNode,
    GatherNode,
    MergeNode,
    RecordNode,
    SplitNode,
)

Weigh: TypeAlias = Callable[[Chunk, int], list[float]]
"""Gives a weight for each of some items of a chunk that are done, in their order."""
Leaves: TypeAlias = Mapping[Hashable, Weigh]
"""What adds up to a port's weights, by what it stands for: equal keys are the same rows."""


def weigher(program: Program, call: int) -> Weigh:
    """How to weigh a call's items."""
    return _summed(_all_leaves(program, (item.port for item in program.plan.call(call).inputs)))


def _all_leaves(program: Program, ports: Iterable[int]) -> Leaves:
    leaves: dict[Hashable, Weigh] = {}
    for port in ports:
        leaves.update(_leaves(program, port))
    return leaves


def _leaves(program: Program, port: int) -> Leaves:
    plan = program.plan
    index = plan.ports[port].node
    node = None if index is None else plan.nodes[index]
    match node:
        case None | CallNode() | ExpandNode():
            return {port: _told(port)}
        case FilterNode() | SplitNode() | FieldNode():
            return _leaves(program, node.input)
        case RecordNode():
            return _all_leaves(program, (v for _, v in node.fields if isinstance(v, int)))
        case BroadcastNode():
            inner = _leaves(program, node.input)
            return {("down", node.level, key): _first_child(weigh) for key, weigh in inner.items()}
        case MergeNode():
            parts = [(program.port[p], _summed(_leaves(program, p))) for p in node.inputs]
            return {("merge", port): first_done(parts)}
        case GatherNode():
            source = node.inputs[node.outputs.index(port)]
            weigh = _summed(_leaves(program, source))
            return {("gather", port): _members(node.child_level, program.row[node.index], weigh)}


def _summed(leaves: Leaves) -> Weigh:
    if len(leaves) == 1:
        (only,) = leaves.values()
        return only
    parts = tuple(leaves.values())

    def weigh(chunk: Chunk, items: int) -> list[float]:
        if not parts:
            return [0] * items.bit_count()
        return list(map(sum, zip(*(part(chunk, items) for part in parts), strict=True)))

    return weigh


def _told(port: int) -> Weigh:
    def weigh(chunk: Chunk, items: int) -> list[float]:
        found: list[tuple[int, list[float]]] = []
        for members, sizes, row in () if chunk.row_sizes is None else chunk.row_sizes.get(port, ()):
            here = members & items
            if here:
                found.append((here, rows_of(here, members, sizes, row)))
                if here == items:
                    break
        return in_order(items, found)

    return weigh


def rows_of(here: int, members: int, told: Sequence[float], row: int) -> list[float]:
    """What was told of some items of a report.

    Args:
        here: Which.
        members: All items of the report.
        told: A number for each row, or a single one for all.
        row: The first item's row.
    """
    count = here.bit_count()
    if len(told) == 1:
        return [told[0]] * count
    ranks = extract(here, members)
    if is_run(ranks):
        first = row + low_offset(ranks)
        return list(told[first : first + count])
    return [told[row + rank] for rank in bit_positions(ranks)]


def in_order(items: int, found: Sequence[tuple[int, list[float]]]) -> list[float]:
    """Weights of several sets as those of all items; what nothing was told of weighs nothing."""
    if found and found[-1][0] == items:
        return found[-1][1]
    known: dict[int, float] = {}
    for here, weights in found:
        known.update(zip(bit_positions(here), weights, strict=True))
    return [known.get(offset, 0) for offset in bit_positions(items)]


def _first_child(inner: Weigh) -> Weigh:
    """The parent's weight, on the first of its children that are asked about."""

    def weigh(chunk: Chunk, items: int) -> list[float]:
        assert chunk.parent is not None
        parents = chunk.parents_of(items)
        counts = chunk.sizes(parents, items)
        weights: list[float] = []
        for weight, count in zip(inner(chunk.parent, parents), counts, strict=True):
            weights += (weight, *(0,) * (count - 1))
        return weights

    return weigh


def first_done(parts: Sequence[tuple[int, Weigh]]) -> Weigh:
    """Each item by the first port where it is done; a default weighs nothing."""

    def weigh(chunk: Chunk, items: int) -> list[float]:
        found: list[tuple[int, list[float]]] = []
        left = items
        for slot, inner in parts:
            here = left & chunk.done[slot]
            if here:
                found.append((here, inner(chunk, here)))
                left &= ~here
        return in_order(items, found)

    return weigh


def _members(child_level: int, row: int, inner: Weigh) -> Weigh:
    """The weights of the children in each parent's list."""

    def weigh(chunk: Chunk, items: int) -> list[float]:
        known: dict[int, float] = dict.fromkeys(bit_positions(items), 0)
        children = chunk.children.get(child_level)
        for child, members in () if children is None else children.runs(items):
            done = members & child.done[row]
            if not done:
                continue
            parents = child.parents_of(done)
            weights = iter(inner(child, done))
            counts = child.sizes(parents, done)
            for offset, count in zip(bit_positions(parents), counts, strict=True):
                known[offset] += sum(islice(weights, count))
        return list(known.values())

    return weigh
