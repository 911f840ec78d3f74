"""The reference interpreter: what a pipeline means, without any of the machinery that runs it.

Owns the meaning of a plan: for each port, each item's outcome, its value and the causes that a run may
name. Every backend, under every completion order, has to agree with it. It must not know of engine,
dispatch or backends (an import contract sees to it). It works on demand and recursively, one item at a
time; it neither schedules nor batches, nor leaves out work that has become pointless.

Only deterministic stages whose results do not depend on their batch-mates have one meaning; others
cannot be compared.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, TypeAlias

from fanfold.columns import get_field
from fanfold.failures import Failure
from fanfold.outcomes import Outcome
from fanfold.plan import (
    BroadcastNode,
    CallNode,
    Constant,
    ExpandNode,
    FieldNode,
    FilterNode,
    GatherNode,
    MergeNode,
    Node,
    Plan,
    RecordNode,
    SplitNode,
)
from fanfold.testing.usercode import Made, Stages, is_bool

Ordinals: TypeAlias = tuple[int, ...]
"""An item: the root's position in the source first, then one ordinal per level below."""

LOST = (Outcome.FAILED, Outcome.SUPPRESSED)


@dataclass(frozen=True, slots=True)
class Item:
    """What became of one item at one port.

    ``causes`` are all the failures that a run may name for it: where several inputs or members failed,
    the first to arrive becomes the cause, and any may be first.
    """

    outcome: Outcome
    value: Any = None
    causes: frozenset[Failure] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkedFailure(Failure):
    """A failed member in its place in a gathered list, with all the failures that may stand there."""

    alternatives: frozenset[Failure] = frozenset()


@dataclass(frozen=True, slots=True)
class Interpretation:
    """The items of every port of a plan, in the order of their ordinals."""

    ports: Mapping[int, Mapping[Ordinals, Item]]


DROPPED = Item(Outcome.DROPPED)


def interpret(
    plan: Plan, roots: Sequence[tuple[Any, ...]], keys: Sequence[str] | None = None
) -> Interpretation:
    """Compute every item of every port of ``plan``.

    Args:
        plan: The compiled pipeline.
        roots: For each root item, one value per source of the plan.
        keys: The roots' keys; without them, their positions as text.

    Raises:
        Exception: Whatever a stage's constructor raises. What its calls raise becomes failed items.
    """
    names = [str(position) for position in range(len(roots))] if keys is None else keys
    meaning = _Meaning(plan, roots, names)
    return Interpretation(
        {
            port.index: {at: meaning.item(port.index, at) for at in meaning.items_of(port.level)}
            for port in plan.ports
        }
    )


class _Meaning:
    """The recursive definition, remembered where it has been computed."""

    def __init__(self, plan: Plan, roots: Sequence[tuple[Any, ...]], keys: Sequence[str]) -> None:
        self._plan, self._roots, self._keys = plan, roots, keys
        self._stages = Stages(plan)
        self._items: dict[tuple[int, Ordinals], Item] = {}
        self._made: dict[tuple[int, Ordinals], Made] = {}
        self._sources = {source.stream.port: i for i, source in enumerate(plan.sources)}

    def items_of(self, level: int) -> Iterator[Ordinals]:
        """All items of a level, in order."""
        parent = self._plan.levels[level].parent
        if parent is None:
            yield from ((position,) for position in range(len(self._roots)))
            return
        for at in self.items_of(parent):
            yield from ((*at, ordinal) for ordinal in range(len(self._expansion(level, at)[1])))

    def item(self, port: int, at: Ordinals) -> Item:
        """One item of a port: its producer's rule, applied once."""
        if (port, at) not in self._items:
            index = self._plan.ports[port].node
            if index is None:
                item = Item(Outcome.DONE, self._roots[at[0]][self._sources[port]])
            else:
                item = self._apply(self._plan.nodes[index], port, at)
            self._items[port, at] = item
        return self._items[port, at]

    def _apply(self, node: Node, port: int, at: Ordinals) -> Item:
        match node:
            case CallNode():
                return self._call(node, node.outputs.index(port), at)
            case ExpandNode():
                children = self._expansion(node.level, at[:-1])[1]
                return Item(Outcome.DONE, children[at[-1]][node.outputs.index(port)])
            case GatherNode():
                return self._gather(node, node.outputs.index(port), at)
            case FilterNode():
                return self._filter(node, at)
            case SplitNode():
                return self._split(node, node.outputs.index(port), at)
            case MergeNode():
                return self._merge(node, at)
            case BroadcastNode():
                return self.item(node.input, at[:-1])
            case FieldNode():
                return self._field(node, at)
            case RecordNode():
                return self._record(node, at)

    def _row(self, ports: Sequence[int], at: Ordinals) -> Item:
        """The outcome of a task over ``ports``, and of a row of aligned members; its value is a tuple.

        Failure beats drop, whichever came first.
        """
        items = [self.item(port, at) for port in ports]
        lost = [item.causes for item in items if item.outcome in LOST]
        if lost:
            return Item(Outcome.SUPPRESSED, causes=frozenset().union(*lost))
        if any(item.outcome is Outcome.DROPPED for item in items):
            return DROPPED
        return Item(Outcome.DONE, tuple(item.value for item in items))

    def _call(self, node: CallNode, position: int, at: Ordinals) -> Item:
        row = self._row([part.port for part in node.inputs], at)
        if row.outcome is not Outcome.DONE:
            return row
        made = self._ran(node, at)
        if made.failure is not None:
            return self._failed(made.failure, node, at)
        return Item(Outcome.DONE, made.outputs[position])

    def _ran(self, node: CallNode, at: Ordinals) -> Made:
        """What the call's stage makes of an item, if it gets that far; the user's code runs once."""
        if (node.index, at) not in self._made:
            row = self._row([part.port for part in node.inputs], at)
            ready = row.outcome is Outcome.DONE
            self._made[node.index, at] = self._stages.run(node, row.value) if ready else Made()
        return self._made[node.index, at]

    def _expansion(self, level: int, at: Ordinals) -> tuple[Item, list[tuple[Any, ...]]]:
        """The expansion of item ``at`` into ``level``: its outcome, and a row of values per child.

        What a generator released before it failed stays.
        """
        expand = self._plan.levels[level].expand
        assert expand is not None, "nothing expands into the root level"
        node = self._plan.nodes[expand]
        assert isinstance(node, ExpandNode)
        call = self._plan.nodes[node.call]
        assert isinstance(call, CallNode)
        row = self._row(node.inputs, at)
        released = self._ran(call, at).released
        if released is not None:
            positions = [call.outputs.index(port) for port in node.inputs]
            children = [tuple(child[position] for position in positions) for child in released]
        else:
            children = list(zip(*row.value, strict=True)) if row.outcome is Outcome.DONE else []
        return row, children

    def _gather(self, node: GatherNode, position: int, at: Ordinals) -> Item:
        expansion, children = self._expansion(node.child_level, at)
        if expansion.outcome is Outcome.DROPPED:
            return DROPPED
        members = [self._row(node.inputs, (*at, ordinal)) for ordinal in range(len(children))]
        causes = expansion.causes
        if node.failed == "fail":
            causes = causes.union(*(member.causes for member in members))
        if causes:
            return Item(Outcome.SUPPRESSED, causes=causes)
        values: list[Any] = []
        for member in members:
            if member.outcome is Outcome.DONE:
                values.append(member.value[position])
            elif member.outcome in LOST and node.failed == "mark":
                values.append(_marked(member.causes))
        return Item(Outcome.DONE, values)

    def _filter(self, node: FilterNode, at: Ordinals) -> Item:
        source, mask = self.item(node.input, at), self.item(node.mask, at)
        for decider in (source, mask):
            if decider.outcome is not Outcome.DONE:
                return decider
        if not is_bool(mask.value):
            return self._failed(_contract("a mask is true or false"), node, at)
        return source if mask.value else DROPPED

    def _split(self, node: SplitNode, position: int, at: Ordinals) -> Item:
        source, by = self.item(node.input, at), self.item(node.by, at)
        for decider in (source, by):
            if decider.outcome is not Outcome.DONE:
                return decider
        route = next((i for i, label in enumerate(node.labels) if by.value == label), None)
        if route is None and not node.rest:
            return self._failed(_contract("there is no such label"), node, at)
        return source if position == (len(node.labels) if route is None else route) else DROPPED

    def _merge(self, node: MergeNode, at: Ordinals) -> Item:
        passed: frozenset[Failure] = frozenset()
        for port in node.inputs:
            item = self.item(port, at)
            if item.outcome is Outcome.DONE:
                return item
            if item.outcome in LOST and node.failed == "stop":
                return item
            passed |= item.causes
        if node.default is not None:
            return Item(Outcome.DONE, node.default.value)
        return Item(Outcome.SUPPRESSED, causes=passed) if passed else DROPPED

    def _field(self, node: FieldNode, at: Ordinals) -> Item:
        row = self._row([node.input], at)
        if row.outcome is not Outcome.DONE:
            return row
        try:
            return Item(Outcome.DONE, get_field(row.value[0], node.name))
        except LookupError:
            return self._failed(_contract("there is no such field"), node, at)

    def _record(self, node: RecordNode, at: Ordinals) -> Item:
        ports = {name: part for name, part in node.fields if not isinstance(part, Constant)}
        row = self._row(list(ports.values()), at)
        if row.outcome is not Outcome.DONE:
            return row
        values = dict(zip(ports, row.value, strict=True))
        for name, part in node.fields:
            if isinstance(part, Constant):
                values[name] = part.value
        return Item(Outcome.DONE, {name: values[name] for name, _ in node.fields})

    def _failed(self, failure: Failure, node: Node, at: Ordinals) -> Item:
        """An item that failed here: the failure gets its place."""
        levels: list[str] = []
        level: int | None = node.level
        while level is not None:
            levels.insert(0, self._plan.levels[level].name)
            level = self._plan.levels[level].parent
        call = node.name if isinstance(node, CallNode) else ""
        placed = replace(
            failure, call=call, key=self._keys[at[0]], levels=tuple(levels), ordinals=at
        )
        return Item(Outcome.FAILED, causes=frozenset({placed}))


def _contract(message: str) -> Failure:
    return Failure(kind="contract", message=message)


def _marked(causes: frozenset[Failure]) -> MarkedFailure:
    """One of the causes, always the same one, as a value that knows them all."""
    first = min(causes, key=lambda failure: (failure.ordinals, failure.call, failure.message))
    known = {part.name: getattr(first, part.name) for part in fields(Failure)}
    return MarkedFailure(**known, alternatives=causes)
