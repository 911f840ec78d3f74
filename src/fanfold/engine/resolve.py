"""From items to columns: which stored rows make up a port's values, for whoever reads them.

A resolver is made once per port and asked once per batch, with all the batch's runs, so that what it costs
depends on runs and blocks, not on items. Owns the reading of segments; changes no state. The blocks that a
column refers to are added to ``refs``, for the reader's protection.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from fanfold.columns import Column, Ref, constant_blob
from fanfold.engine.bits import bit_positions, extract
from fanfold.engine.chunks import Chunk
from fanfold.engine.program import Program
from fanfold.engine.ready import Entry
from fanfold.engine.stored import in_turns, parts, rows, woven
from fanfold.failures import Failure
from fanfold.plan import (
    BroadcastNode,
    CallNode,
    Constant,
    ExpandNode,
    FieldNode,
    FilterNode,
    GatherNode,
    MergeNode,
    RecordNode,
    SplitNode,
)

Resolver = Callable[[Sequence[Entry], set[Ref]], Column]
"""Entries must name items that are done at the port."""


class Resolvers:
    """The resolvers of a program's ports, made as they are asked for."""

    def each(self, port: int, chunk: Chunk, bits: int) -> list[Column]:
        """A column of its own for each of some items, in ordinal order."""
        if self._is_stored(port):
            stored = parts(chunk.segments[self._program.port[port]], bits)
            return [("rows", ref, row, 1) for ref, row in rows(stored)]
        resolve, refs = self[port], set[Ref]()
        return [resolve(((chunk, 1 << offset),), refs) for offset in bit_positions(bits)]

    def _is_stored(self, port: int) -> bool:
        index = self._program.plan.ports[port].node
        return index is None or isinstance(self._program.plan.nodes[index], CallNode | ExpandNode)

    def __init__(self, program: Program) -> None:
        self._program = program
        self._made: dict[int, Resolver] = {}

    def __getitem__(self, port: int) -> Resolver:
        if port not in self._made:
            self._made[port] = self._make(port)
        return self._made[port]

    def _make(self, port: int) -> Resolver:
        plan = self._program.plan
        index = plan.ports[port].node
        node = None if index is None else plan.nodes[index]
        match node:
            case None | CallNode() | ExpandNode():
                return _stored(self._program.port[port])
            case FilterNode() | SplitNode():
                return self[node.input]
            case BroadcastNode():
                return _broadcast(self[node.input])
            case FieldNode():
                return _field(self[node.input], node.name)
            case RecordNode():
                names = tuple(name for name, _ in node.fields)
                return _record(names, [self._value(value) for _, value in node.fields])
            case MergeNode():
                return self._merge(node)
            case GatherNode():
                return self._gather(node, node.outputs.index(port))

    def _value(self, value: int | Constant) -> Resolver:
        return self[value] if isinstance(value, int) else _constant(value)

    def _merge(self, node: MergeNode) -> Resolver:
        slots = [self._program.port[p] for p in node.inputs]
        inner = [self[p] for p in node.inputs]
        if node.default is not None:
            inner.append(_constant(node.default))
        return _merge(slots, inner)

    def _gather(self, node: GatherNode, position: int) -> Resolver:
        row = self._program.row[node.index]
        return _gather(
            node.child_level, row, self[node.inputs[position]], mark=node.failed == "mark"
        )


def _count(entries: Sequence[Entry]) -> int:
    return sum(bits.bit_count() for _, bits in entries)


def _stored(slot: int) -> Resolver:
    def resolve(entries: Sequence[Entry], refs: set[Ref]) -> Column:
        columns: list[Column] = []
        block: Ref = None
        first = stop = 0  # the stretch of rows of ``block`` that is being collected
        for chunk, bits in entries:
            found = parts(chunk.segments[slot], bits)
            if in_turns(found):
                if stop > first:
                    columns.append(("rows", block, first, stop - first))
                    first = stop = 0
                refs.update([part.ref for part in found])
                columns.append(woven(found, bits))
                continue
            for items, ref, row, mask in found:
                if row == stop and ref == block and not mask:  # goes on where the last one ended
                    stop += items.bit_count()
                    continue
                if stop > first:
                    columns.append(("rows", block, first, stop - first))
                refs.add(ref)
                if mask:
                    columns.append(("pick", ref, row, mask))
                    first = stop = 0
                else:
                    block, first, stop = ref, row, row + items.bit_count()
        if stop > first:
            columns.append(("rows", block, first, stop - first))
        return columns[0] if len(columns) == 1 else ("cat", tuple(columns))

    return resolve


def _broadcast(inner: Resolver) -> Resolver:
    def resolve(entries: Sequence[Entry], refs: set[Ref]) -> Column:
        parents: list[Entry] = []
        counts: list[int] = []
        for chunk, bits in entries:
            assert chunk.parent is not None
            here = chunk.parents_of(bits)
            sizes = chunk.sizes(here, bits)
            if parents and parents[-1][0] is chunk.parent:  # may go on with the last one's children
                before = parents[-1][1]
                if here & -here == 1 << before.bit_length() - 1:
                    counts[-1] += sizes.pop(0)
                    here &= here - 1
            if here:
                parents.append((chunk.parent, here))
                counts += sizes
        return ("spread", inner(parents, refs), tuple(counts))

    return resolve


def _field(inner: Resolver, name: str) -> Resolver:
    return lambda entries, refs: ("field", inner(entries, refs), name)


def _record(names: tuple[str, ...], inner: Sequence[Resolver]) -> Resolver:
    def resolve(entries: Sequence[Entry], refs: set[Ref]) -> Column:
        columns = tuple(part(entries, refs) for part in inner)
        return ("record", names, columns, _count(entries))

    return resolve


def _constant(constant: Constant) -> Resolver:
    blob = constant_blob(constant.value)
    return lambda entries, refs: ("const", blob, _count(entries))


def _merge(slots: Sequence[int], inner: Sequence[Resolver]) -> Resolver:
    """Each item from the first of ``slots`` where it is done; one more resolver is the default."""

    def resolve(entries: Sequence[Entry], refs: set[Ref]) -> Column:
        return choose(0, entries, refs)

    def choose(index: int, entries: Sequence[Entry], refs: set[Ref]) -> Column:
        if index == len(inner) - 1:
            return inner[index](entries, refs)
        here: list[Entry] = []
        other: list[Entry] = []
        mask = offset = 0
        for chunk, bits in entries:
            taken = bits & chunk.done[slots[index]]
            if taken:
                here.append((chunk, taken))
                mask |= extract(taken, bits) << offset
            if taken != bits:
                other.append((chunk, bits & ~taken))
            offset += bits.bit_count()
        if not other:
            return inner[index](here, refs)
        if not here:
            return choose(index + 1, other, refs)
        return ("weave", mask, inner[index](here, refs), choose(index + 1, other, refs))

    return resolve


def _gather(child_level: int, row: int, inner: Resolver, *, mark: bool) -> Resolver:
    def resolve(entries: Sequence[Entry], refs: set[Ref]) -> Column:
        members: list[Entry] = []
        lengths: list[int] = []
        marks: list[Failure] = []
        mask = total = 0
        for chunk, bits in entries:
            listed = _Lengths(bits)
            children = chunk.children.get(child_level)
            for child, items in () if children is None else children.runs(bits):
                done = child.done[row] & items
                shown = done
                if mark and (lost := child.lost_at(row)) is not None:
                    bad = (lost.failed | lost.suppressed) & items
                    shown |= bad
                    mask |= extract(bad, shown) << total
                    marks += [cause for b in bit_positions(bad) if (cause := lost.cause(1 << b))]
                if done:
                    members.append((child, done))
                total += shown.bit_count()
                parents = child.parents_of(items)
                listed.add(parents, child.sizes(parents, shown))
            lengths += listed.all()
        column: Column = inner(members, refs) if members else ("cat", ())
        if mask:
            column = ("weave", mask, ("failures", tuple(marks)), column)
        return ("lists", column, tuple(lengths))

    return resolve


class _Lengths:
    """How long the lists of some parents are, put together from chunk to chunk."""

    def __init__(self, parents: int) -> None:
        self._parents = parents
        self._seen = 0
        self._sizes: list[int] = []
        """Of the parents seen, in order."""

    def add(self, parents: int, sizes: list[int]) -> None:
        """Next come ``sizes`` more members of each of ``parents``."""
        if parents & self._seen:  # the last one's family goes on
            self._sizes[-1] += sizes.pop(0)
        self._seen |= parents
        self._sizes += sizes

    def all(self) -> list[int]:
        """The lengths of all the parents, zero for those that have no members."""
        if self._seen == self._parents:
            return self._sizes
        sizes = iter(self._sizes)
        return [next(sizes) if self._seen >> p & 1 else 0 for p in bit_positions(self._parents)]
