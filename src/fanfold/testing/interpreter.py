"""The reference interpreter: what a pipeline means, without any of the machinery that runs it.

Owns the meaning of a plan: for each port, each item's outcome, its value and the causes that a run may
name. Every backend, under every completion order, has to agree with it. It must not know of engine,
dispatch or backends (an import contract sees to it). It works on demand and recursively, one item at a
time; it neither schedules nor batches, nor leaves out work that has become pointless.

Only deterministic stages whose results do not depend on their batch-mates have one meaning; others
cannot be compared.

After a parent failure it depends on the order of things which siblings had ended before. What an item means
is therefore told *case* by case; :mod:`fanfold.testing.cases` says which cases there are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from fanfold.columns import get_field
from fanfold.failures import Failure
from fanfold.outcomes import Outcome
from fanfold.plan import (
    AtLeast,
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
    ports_read,
)
from fanfold.protocol import ItemRun
from fanfold.testing.cases import (
    BLIND,
    DROPPED,
    LOST,
    Case,
    Cases,
    Causes,
    Item,
    Ordinals,
    Row,
    expand_to,
)
from fanfold.testing.unheard import Unheard
from fanfold.testing.usercode import Made, Stages, is_bool


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkedFailure(Failure):
    """A failed member in its place in a gathered list, with all the failures that may stand there."""

    alternatives: frozenset[Failure] = frozenset()


@dataclass(frozen=True, slots=True)
class Interpretation:
    """The items of every port of a plan, in the order of their ordinals."""

    ports: Mapping[int, Mapping[Ordinals, Item]]
    missing: frozenset[Failure] = frozenset()
    """Members of lists without a value of their own: failures at no port."""
    whole: bool = True
    """False: some items may be more than is told, for their cases are too many; nothing can be compared."""


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
    ports = {port.index: dict(meaning.items(port.index)) for port in plan.ports}
    return Interpretation(ports, frozenset(meaning.missing), meaning.whole)


class _Meaning:
    """The recursive definition, remembered where it has been computed."""

    def __init__(self, plan: Plan, roots: Sequence[tuple[Any, ...]], keys: Sequence[str]) -> None:
        self._plan, self._roots, self._keys = plan, roots, keys
        self._stages = Stages(plan)
        self._sources = {source.stream.port: i for i, source in enumerate(plan.sources)}
        self._cases = Cases(plan, self, Unheard(plan, self))
        self._items: dict[tuple[int, Ordinals, Case], Item] = {}
        self._made: dict[tuple[int, Ordinals, Case], Made] = {}
        self._expansions: dict[tuple[int, Ordinals, Case], tuple[Item, list[Row]]] = {}
        self.missing: set[Failure] = set()

    def items(self, port: int) -> Iterator[tuple[Ordinals, Item]]:
        """All items of a port, in order, each with all that it may be."""
        for at, cases, optional in self._cases.places(port):
            first, *others = _distinct([self.item(port, at, case) for case in cases])
            exact = not others and not optional
            yield at, first if exact else replace(first, otherwise=(*others,), optional=optional)

    @property
    def whole(self) -> bool:
        """Whether all cases were looked through."""
        return not self._cases.too_many

    def roots(self) -> Iterable[int]:
        """The positions of the roots."""
        return range(len(self._roots))

    def item(self, port: int, at: Ordinals, case: Case) -> Item:
        """One item of a port in one case: its producer's rule, applied once."""
        case = self._cases.seen_by(port, at, case)
        if (port, at, case) not in self._items:
            index = self._plan.ports[port].node
            if index is None:
                item = Item(Outcome.DONE, self._roots[at[0]][self._sources[port]])
            else:
                item = self._apply(self._plan.nodes[index], port, at, case)
            self._items[port, at, case] = item
        return self._items[port, at, case]

    # ----------------------------------------------------------------------------- one rule per node

    def _apply(self, node: Node, port: int, at: Ordinals, case: Case) -> Item:
        match node:
            case CallNode():
                return self._call(node, node.outputs.index(port), at, case)
            case ExpandNode():
                _, children = self.expansion(node.level, at[:-1], case)
                return Item(Outcome.DONE, children[at[-1]][node.outputs.index(port)])
            case GatherNode():
                return self._gather(node, node.outputs.index(port), at, case)
            case FilterNode():
                return self._filter(node, at, case)
            case SplitNode():
                return self._split(node, node.outputs.index(port), at, case)
            case MergeNode():
                return self._merge(node, at, case)
            case BroadcastNode():
                return self.item(node.input, at[:-1], case)
            case FieldNode():
                return self._field(node, at, case)
            case RecordNode():
                return self._record(node, at, case)

    def _row(self, ports: Sequence[int], at: Ordinals, case: Case) -> Item:
        """The outcome of a task over ``ports``, and of a row of aligned members; its value is a tuple.

        Failure beats drop, whichever came first.
        """
        items = [self.item(port, at, case) for port in ports]
        lost = [item.causes for item in items if item.outcome in LOST]
        if lost:
            return Item(Outcome.SUPPRESSED, causes=frozenset().union(*lost))
        if any(item.outcome is Outcome.DROPPED for item in items):
            return DROPPED
        return Item(Outcome.DONE, tuple(item.value for item in items))

    def _call(self, node: CallNode, position: int, at: Ordinals, case: Case) -> Item:
        row = self._row(ports_read(node), at, case)
        if (node.index, at) in case:
            causes = row.causes | self._cases.cutters(node.index, at, case)
            return Item(Outcome.SUPPRESSED, causes=causes or frozenset({BLIND}))
        if row.outcome is not Outcome.DONE:
            return row
        made = self._ran(node, at, case)
        if made.failure is not None:
            failure = self._placed(made.failure, node.level, at, node.name)
            return Item(Outcome.FAILED, causes=frozenset({failure}))
        return Item(Outcome.DONE, made.outputs[position])

    def _ran(self, node: CallNode, at: Ordinals, case: Case) -> Made:
        """What the call's stage makes of an item, if it gets that far; the user's code runs once."""
        own = {(node.index, at), (~node.index, at[:-1])}  # which its inputs do not depend on
        case = self._cases.seen_by(node.outputs[0], at, case) - own
        if (node.index, at, case) not in self._made:
            row = self._row(ports_read(node), at, case)
            ready = row.outcome is Outcome.DONE
            self._made[node.index, at, case] = self._tried(node, row.value, at) if ready else Made()
        return self._made[node.index, at, case]

    def _tried(self, node: CallNode, values: Sequence[Any], at: Ordinals) -> Made:
        """What the stage makes of an item in the end: after an exception it has as many tries as it says."""
        who = ItemRun(self._keys[at[0]], at[:-1], at[-1], 1)
        for _ in range(self._plan.stages[node.stage].retries):
            made = self._stages.run(node, values, who)
            if made.failure is None or made.failure.kind != "raised":
                return made
        return self._stages.run(node, values, who)

    def expansion(self, level: int, at: Ordinals, case: Case) -> tuple[Item, list[Row]]:
        """The expansion of item ``at`` into ``level``: its outcome, and a row of values per child.

        What was released before a generator failed, or a task was cut, stays.
        """
        node = expand_to(self._plan, level)
        case = self._cases.seen_by_children(level, at, case)
        if (level, at, case) not in self._expansions:
            call = self._plan.call(node.call)
            row = self._row(node.inputs, at, case)
            released = self._ran(call, at, case).released
            if released is not None:
                positions = [call.outputs.index(port) for port in node.inputs]
                children = [tuple(child[position] for position in positions) for child in released]
            else:
                whole = self._row(node.inputs, at, case - {(call.index, at)})
                children = (
                    list(zip(*whole.value, strict=True)) if whole.outcome is Outcome.DONE else []
                )
            self._expansions[level, at, case] = row, children
        return self._expansions[level, at, case]

    def _gather(self, node: GatherNode, position: int, at: Ordinals, case: Case) -> Item:
        expansion, children = self.expansion(node.child_level, at, case)
        if expansion.outcome is Outcome.DROPPED:
            return DROPPED
        rows = [self._member(node, (*at, ordinal), case) for ordinal in range(len(children))]
        members = [row for row in rows if row.outcome is not Outcome.DROPPED]
        done = [row for row in members if row.outcome is Outcome.DONE]
        failed = frozenset().union(*(row.causes for row in members))
        causes = expansion.causes | self._cases.condemning(node, at, case)
        if node.failed == "fail":
            causes |= failed
        sealed = expansion.outcome is Outcome.DONE
        if sealed and node.at_least and not _are_enough(len(done), len(members), node.at_least):
            few = Failure(kind="too_few", message=f"{len(done)} of {len(members)} are done")
            causes |= failed | {self._placed(few, node.level, at)}
        if causes:
            return Item(Outcome.SUPPRESSED, causes=causes)
        kept = members if node.failed == "mark" else done
        values = [_marked(row.causes) if row.causes else row.value[position] for row in kept]
        return Item(Outcome.DONE, values)

    def _member(self, node: GatherNode, at: Ordinals, case: Case) -> Item:
        """The row of a child in a gathered list: dropped where it is no member."""
        if node.members is None:
            return self._row(node.inputs, at, case)
        chosen = self.item(node.members, at, case)
        if chosen.outcome is not Outcome.DONE:
            return chosen
        row = self._row(node.inputs, at, case)
        if row.outcome is not Outcome.DROPPED:
            return row
        missing = Failure(kind="missing", message="a member has no value")
        placed = self._placed(missing, node.child_level, at)
        self.missing.add(placed)
        return Item(Outcome.FAILED, causes=frozenset({placed}))

    def _filter(self, node: FilterNode, at: Ordinals, case: Case) -> Item:
        source, mask = self.item(node.input, at, case), self.item(node.mask, at, case)
        for decider in (source, mask):
            if decider.outcome is not Outcome.DONE:
                return decider
        if not is_bool(mask.value):
            return self._broken("a mask is true or false", node, at)
        return source if mask.value else DROPPED

    def _split(self, node: SplitNode, position: int, at: Ordinals, case: Case) -> Item:
        source, by = self.item(node.input, at, case), self.item(node.by, at, case)
        for decider in (source, by):
            if decider.outcome is not Outcome.DONE:
                return decider
        route = next((i for i, label in enumerate(node.labels) if by.value == label), None)
        if route is None and not node.rest:
            return self._broken("there is no such label", node, at)
        return source if position == (len(node.labels) if route is None else route) else DROPPED

    def _merge(self, node: MergeNode, at: Ordinals, case: Case) -> Item:
        passed: Causes = frozenset()
        for port in node.inputs:
            item = self.item(port, at, case)
            if item.outcome is Outcome.DONE:
                return item
            if item.outcome in LOST and node.failed == "stop":
                return item
            passed |= item.causes
        if node.default is not None:
            return Item(Outcome.DONE, node.default.value)
        return Item(Outcome.SUPPRESSED, causes=passed) if passed else DROPPED

    def _field(self, node: FieldNode, at: Ordinals, case: Case) -> Item:
        row = self._row([node.input], at, case)
        if row.outcome is not Outcome.DONE:
            return row
        try:
            return Item(Outcome.DONE, get_field(row.value[0], node.name))
        except LookupError:
            return self._broken("there is no such field", node, at)

    def _record(self, node: RecordNode, at: Ordinals, case: Case) -> Item:
        row = self._row(ports_read(node), at, case)
        if row.outcome is not Outcome.DONE:
            return row
        values = iter(row.value)
        return Item(
            Outcome.DONE,
            {
                name: part.value if isinstance(part, Constant) else next(values)
                for name, part in node.fields
            },
        )

    # --------------------------------------------------------------------------------------- helpers

    def _broken(self, message: str, node: Node, at: Ordinals) -> Item:
        """An item of a structural operation that failed here."""
        failure = Failure(kind="contract", message=message)
        return Item(Outcome.FAILED, causes=frozenset({self._placed(failure, node.level, at)}))

    def _placed(self, failure: Failure, level: int, at: Ordinals, call: str = "") -> Failure:
        """A failure with its place, and without the traceback, which tells of the machinery as well."""
        levels: list[str] = []
        above: int | None = level
        while above is not None:
            levels.insert(0, self._plan.levels[above].name)
            above = self._plan.levels[above].parent
        key = self._keys[at[0]]
        return replace(failure, traceback="", call=call, key=key, levels=tuple(levels), ordinals=at)


def _distinct(items: Sequence[Item]) -> list[Item]:
    """The items without repetition; those that are lost in the same way are one, with the causes of all."""
    found: list[Item] = []
    for item in {id(item): item for item in items}.values():
        for index, other in enumerate(found):
            if item.outcome is other.outcome and item.outcome in LOST:
                found[index] = replace(other, causes=other.causes | item.causes)
                break
        else:
            found.append(item)
    return found


def _are_enough(done: int, members: int, at_least: AtLeast) -> bool:
    """Whether so many of so many members are enough; counted here, since the engine's way is on trial."""
    least = at_least.count if at_least.share is None else at_least.share * members
    return least is None or done >= least


def _marked(causes: frozenset[Failure]) -> MarkedFailure:
    """One of the causes, always the same one, as a value that knows them all."""
    first = min(causes, key=lambda failure: (failure.ordinals, failure.call, failure.message))
    known = {part.name: getattr(first, part.name) for part in fields(Failure)}
    return MarkedFailure(**known, alternatives=causes)
