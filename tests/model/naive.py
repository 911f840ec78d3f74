"""The smallest executor: one step at a time in an order that is drawn, with outcomes as they come.

Owns a second reading of what a parent failure does while a run goes on (M15): it condemns, and whoever had not
ended at the call by then is suppressed. The interpreter gives all that may come of that, without any order;
each run of this one has to be among it. It shares nothing with the engine, and with the interpreter only how
single stages are called. Steps are found by trying, so it is slow, and for small inputs only.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from random import Random
from typing import Any

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
    ports_made,
    ports_read,
)
from fanfold.testing.comparison import Seen
from fanfold.testing.usercode import Made, Stages, is_bool

At = tuple[int, ...]
LOST = (Outcome.FAILED, Outcome.SUPPRESSED)
DROPPED = Seen(Outcome.DROPPED)


def lost(cause: Failure | None) -> Seen:
    return Seen(Outcome.SUPPRESSED, failure=cause)


class Naive:
    """One run."""

    def __init__(self, plan: Plan, roots: Sequence[tuple[Any, ...]], random: Random) -> None:
        self._plan, self._roots, self._random = plan, roots, random
        self._stages = Stages(plan)
        self.seen: dict[int, dict[At, Seen]] = {port.index: {} for port in plan.ports}
        self.failures: dict[int, list[Failure]] = {n: [] for n in range(len(roots))}
        self._made: dict[tuple[int, At], Made] = {}
        self._told: dict[tuple[int, At], int] = {}
        """How many children of a generator's task were released."""
        self._count: dict[tuple[int, At], int] = {}
        """By level and parent: how many children there are so far."""
        self._ended: dict[tuple[int, At], Seen] = {}
        """By level and parent: the expansion, once it is sealed, dropped or failed."""
        self._condemned: dict[tuple[int, At], Failure] = {}
        self._reaches = {call.index: self._reached(call) for call in plan.calls()}
        for position, source in enumerate(plan.sources):
            for root, values in enumerate(roots):
                self.seen[source.stream.port][root,] = Seen(Outcome.DONE, values[position])

    def run(self) -> None:
        """To the end, where no step is left."""
        moved = True
        while moved:
            steps = [(node, at) for node in self._plan.nodes for at in self._places(node)]
            self._random.shuffle(steps)
            some = steps[: len(steps) // 2 + 1]  # then all are looked at anew, in another order
            moved = sum(self._step(node, at) for node, at in some) > 0
            moved = moved or sum(self._step(node, at) for node, at in steps) > 0

    def _items(self, level: int) -> Iterator[At]:
        parent = self._plan.levels[level].parent
        if parent is None:
            yield from ((root,) for root in range(len(self._roots)))
            return
        for at in list(self._items(parent)):
            yield from ((*at, n) for n in range(self._count.get((level, at), 0)))

    def _places(self, node: Node) -> Iterator[At]:
        """Where a node has something to decide: an expansion decides at the parents."""
        if not isinstance(node, ExpandNode):
            return self._items(node.level)
        parent = self._plan.levels[node.level].parent
        assert parent is not None
        return self._items(parent)

    def _step(self, node: Node, at: At) -> bool:
        """Let one node decide about one item, if it can; whether anything happened."""
        if isinstance(node, ExpandNode):
            return self._expand(node, at)
        if all(at in self.seen[port] for port in ports_made(node)):
            return False
        if isinstance(node, CallNode):
            return self._call(node, at)
        if isinstance(node, GatherNode):
            found = self._gather(node, at)
        elif isinstance(node, SplitNode):
            found = self._split(node, at)
        else:
            one = self._simple(node, at)
            found = None if one is None else [one]
        return found is not None and self._end(node, at, found)

    def _end(self, node: Node, at: At, found: Sequence[Seen]) -> bool:
        for port, one in zip(ports_made(node), found, strict=True):
            self.seen[port][at] = one
        return True

    def _row(self, ports: Sequence[int], at: At) -> Seen | None:
        known = [self.seen[port].get(at) for port in ports]
        bad = [one for one in known if one is not None and one.outcome in LOST]
        if bad:
            return lost(self._random.choice(bad).failure)
        there = [one for one in known if one is not None]
        if len(there) < len(known):
            return None
        if any(one.outcome is Outcome.DROPPED for one in there):
            return DROPPED
        return Seen(Outcome.DONE, [one.value for one in there])

    def _fails(self, failure: Failure, level: int, at: At, call: str = "") -> Failure:
        names: list[str] = []
        above: int | None = level
        while above is not None:
            names.insert(0, self._plan.levels[above].name)
            above = self._plan.levels[above].parent
        key = str(at[0])
        placed = replace(failure, call=call, key=key, levels=tuple(names), ordinals=at)
        self.failures[at[0]].append(placed)
        return placed

    def _breaks(self, node: Node, at: At) -> Seen:
        failure = self._fails(Failure(kind="contract", message="broken"), node.level, at)
        return Seen(Outcome.FAILED, failure=failure)

    # ------------------------------------------------------------------------- calls and expansions

    def _call(self, node: CallNode, at: At) -> bool:
        outputs = len(node.outputs)
        cause = self._condemned.get((node.index, at[:-1])) if at[1:] else None
        if cause is not None:
            return self._end(node, at, [lost(cause)] * outputs)
        row = self._row(ports_read(node), at)
        if row is None or row.outcome is not Outcome.DONE:
            return row is not None and self._end(node, at, [row] * outputs)
        task = node.index, at
        if task not in self._made:
            self._made[task] = self._stages.run(node, row.value)
            return True  # it is at a worker now
        made = self._made[task]
        if self._release(node, at, made):
            return True
        if made.failure is None:
            return self._end(node, at, [Seen(Outcome.DONE, value) for value in made.outputs])
        failure = self._fails(made.failure, node.level, at, node.name)
        if failure.scope == "parent" and at[1:]:
            self._condemned.setdefault((node.index, at[:-1]), failure)
        return self._end(node, at, [Seen(Outcome.FAILED, failure=failure)] * outputs)

    def _release(self, node: CallNode, at: At, made: Made) -> bool:
        """A generator's next child, if there is one."""
        told = self._told.get((node.index, at), 0)
        if made.released is None or told == len(made.released):
            return False
        self._told[node.index, at] = told + 1
        for expand in self._plan.nodes:
            if isinstance(expand, ExpandNode) and expand.call == node.index:
                child = made.released[told]
                self._add(expand, at, [child[node.outputs.index(p)] for p in expand.inputs])
        return True

    def _add(self, node: ExpandNode, at: At, values: Sequence[Any]) -> None:
        ordinal = self._count.get((node.level, at), 0)
        self._count[node.level, at] = ordinal + 1
        self._end(node, (*at, ordinal), [Seen(Outcome.DONE, value) for value in values])

    def _expand(self, node: ExpandNode, at: At) -> bool:
        if (node.level, at) in self._ended or (row := self._row(node.inputs, at)) is None:
            return False
        self._ended[node.level, at] = row
        if row.outcome is Outcome.DONE and self._made[node.call, at].released is None:
            for child in zip(*row.value, strict=True):
                self._add(node, at, child)
        return True

    # ------------------------------------------------------------------------ structural operations

    def _reached(self, call: CallNode) -> frozenset[int]:
        """The gathers that depend on a call, followed forwards."""
        ports, levels, gathers = set(call.outputs), set[int](), set[int]()
        for node in self._plan.nodes:
            hit = bool(ports & set(ports_read(node)))
            if isinstance(node, ExpandNode) and hit:
                levels.add(node.level)
            elif isinstance(node, BroadcastNode):
                hit = hit or node.level in levels
            elif isinstance(node, GatherNode):
                hit = hit or node.child_level in levels
                gathers |= {node.index} if hit else set()
            if hit:
                ports |= set(ports_made(node))
        return frozenset(gathers)

    def _gather(self, node: GatherNode, at: At) -> list[Seen] | None:
        ended = self._ended.get((node.child_level, at))
        count = len(node.outputs)
        if ended is not None and ended.outcome is Outcome.DROPPED:
            return [DROPPED] * count
        if ended is not None and ended.outcome in LOST:
            return [lost(ended.failure)] * count
        for (call, parent), cause in self._condemned.items():
            above = self._plan.levels[self._plan.nodes[call].level].parent
            if parent == at and above == node.level and node.index in self._reaches[call]:
                return [lost(cause)] * count
        rows = [
            self._member(node, (*at, n)) for n in range(self._count.get((node.child_level, at), 0))
        ]
        bad = [row for row in rows if row is not None and row.outcome in LOST]
        if bad and node.failed == "fail":
            return [lost(self._random.choice(bad).failure)] * count
        there = [row for row in rows if row is not None and row.outcome is not Outcome.DROPPED]
        if ended is None or None in rows:
            return None
        done = [row for row in there if row.outcome is Outcome.DONE]
        if node.at_least is not None and len(done) < node.at_least.needed(len(there)):
            if bad and self._random.random() < 0.5:
                return [lost(self._random.choice(bad).failure)] * count
            few = self._fails(Failure(kind="too_few", message="few"), node.level, at)
            return [lost(few)] * count
        kept = there if node.failed == "mark" else done
        lists = [
            [row.value[n] if row.outcome is Outcome.DONE else row.failure for row in kept]
            for n in range(count)
        ]
        return [Seen(Outcome.DONE, values) for values in lists]

    def _member(self, node: GatherNode, at: At) -> Seen | None:
        chosen = None if node.members is None else self.seen[node.members].get(at)
        if node.members is not None and (chosen is None or chosen.outcome is not Outcome.DONE):
            return chosen
        row = self._row(node.inputs, at)
        if node.members is None or row is None or row.outcome is not Outcome.DROPPED:
            return row
        missing = self._fails(Failure(kind="missing", message="none"), node.child_level, at)
        return Seen(Outcome.FAILED, failure=missing)

    def _decided(self, source: Seen | None, control: Seen | None) -> Seen | None:
        """What decides for a filter or a split before the control's value does."""
        if source is None or source.outcome is not Outcome.DONE:
            return source
        return control if control is not None and control.outcome is not Outcome.DONE else None

    def _split(self, node: SplitNode, at: At) -> list[Seen] | None:
        source, by = self.seen[node.input].get(at), self.seen[node.by].get(at)
        if (decided := self._decided(source, by)) is not None:
            return [decided] * len(node.outputs)
        if source is None or by is None:
            return None
        route = next((n for n, label in enumerate(node.labels) if by.value == label), None)
        if route is None and not node.rest:
            return [self._breaks(node, at)] * len(node.outputs)
        goes = len(node.labels) if route is None else route
        return [source if n == goes else DROPPED for n in range(len(node.outputs))]

    def _simple(self, node: Node, at: At) -> Seen | None:
        match node:
            case FilterNode():
                source, mask = self.seen[node.input].get(at), self.seen[node.mask].get(at)
                if (decided := self._decided(source, mask)) is not None:
                    return decided
                if source is None or mask is None:
                    return None
                if not is_bool(mask.value):
                    return self._breaks(node, at)
                return source if mask.value else DROPPED
            case MergeNode():
                return self._merge(node, at)
            case BroadcastNode():
                return self.seen[node.input].get(at[:-1])
        row = self._row(ports_read(node), at)
        if row is None or row.outcome is not Outcome.DONE:
            return row
        if isinstance(node, FieldNode):
            try:
                return Seen(Outcome.DONE, get_field(row.value[0], node.name))
            except LookupError:
                return self._breaks(node, at)
        assert isinstance(node, RecordNode)
        values = iter(row.value)
        made = {n: p.value if isinstance(p, Constant) else next(values) for n, p in node.fields}
        return Seen(Outcome.DONE, made)

    def _merge(self, node: MergeNode, at: At) -> Seen | None:
        passed: list[Failure | None] = []
        for port in node.inputs:
            item = self.seen[port].get(at)
            if item is None or item.outcome is Outcome.DONE:
                return item
            if item.outcome in LOST:
                if node.failed == "stop":
                    return item
                passed.append(item.failure)
        if node.default is not None:
            return Seen(Outcome.DONE, node.default.value)
        return lost(self._random.choice(passed)) if passed else DROPPED
