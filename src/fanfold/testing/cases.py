"""Which siblings a parent failure may get ahead of: the cases in which the interpreter gives meanings.

Owns the meaning of parent failures (M15, M33), and what an item is to the interpreter. Knows no rule of any
operation: it asks the interpreter what an item is in a case.

Below the root level a parent failure at a call C condemns (C, parent). Which siblings had ended at C by then
depends on the order of things, and that alone does. A sibling that had not is *cut*: suppressed at C by one
of the parent failures of its siblings. A *case* says which tasks are cut, and in each case everything has one
meaning. An item is given its meaning in the case without cuts, and ``otherwise`` those in all other cases that
can be. These are few, since what an item is depends on no cuts but those at itself and its ancestors, and
parent failures that may go unheard are rare:

* A gather to the parent is suppressed, without any choice, if its values or members depend on C's output: if a
  way leads from C's outputs to one of its ports (``members=`` too), through calls, structural operations,
  masks and labels, deeper levels and their gathers, broadcasts, or the expansion that makes its children.
  So siblings' cuts are seen by nobody beside and above them, and results above are exact.
* It does not matter whether a value of C arrived there: a merge that chose another port depends on C all the
  same. But where nothing on the way waits for what a task gives (a merge took an earlier port, another input
  failed), the list may be done before the task's parent failure comes: then it is *early*. And if nothing at
  all waits for it, the task is dead work, whose parent failure may go *unheard*. Such a list has two meanings,
  and so has what reads it, at any level. :mod:`fanfold.testing.unheard` says which they are.
* A gather to the parent to which no such way leads depends neither on C nor on its cuts. Nor do other ports of
  the children.
* The children that a task had released before it was cut stay, so a run may lack some of those that there are
  in the case without cuts (``optional``).
* A sibling that would be dropped at C, or fail there, may be cut as well. One whose inputs are lost is
  suppressed either way.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol, TypeAlias

from fanfold.failures import Failure
from fanfold.outcomes import Outcome
from fanfold.plan import (
    BroadcastNode,
    CallNode,
    ExpandNode,
    GatherNode,
    Plan,
    ports_made,
    ports_read,
)

Ordinals: TypeAlias = tuple[int, ...]
"""An item: the root's position in the source first, then one ordinal per level below."""
Case: TypeAlias = frozenset[tuple[int, Ordinals]]
"""What is assumed, as pairs of a node and an item. A call with one of its own items: the task is cut. A call
with a parent: those of its parent failures there that may go unheard do. A gather with one of its items: the
list is early. ``~call`` with a parent: none of the call's parent failures there is heard (only asked about)."""
Causes: TypeAlias = frozenset[Failure]
Row: TypeAlias = tuple[Any, ...]
"""A child's values, one for each port that is expanded."""

BLIND: Final = Failure(kind="unneeded", message="only asked about")
"""The cause of a cut that is only assumed."""
LOST: Final = (Outcome.FAILED, Outcome.SUPPRESSED)
UNCUT: Final[Case] = frozenset()
Reach: TypeAlias = Mapping[int, int]
"""Calls and gathers, each with how many ordinals an item of it shares at least with one that depends on it:
fewer than it has where a list is on the way."""
WAYS: Final = 64
"""More cases of one item are not looked through (see :attr:`Cases.too_many`)."""
TURNS: Final = 3
"""A question may lead back to itself, each time with more that goes unheard; further it is not followed."""
QUESTIONS: Final = 2_000
"""More questions for parent failures are not answered in all. Where many siblings may fail so at several calls
that depend on each other, the cases to ask about would double with every one of them."""


@dataclass(frozen=True, slots=True)
class Item:
    """What became of one item at one port.

    ``causes`` are all the failures that a run may name for it: where several inputs or members failed,
    the first to arrive becomes the cause, and any may be first.
    """

    outcome: Outcome
    value: Any = None
    causes: Causes = frozenset()
    otherwise: tuple[Item, ...] = ()
    """What it may be instead, where a parent failure can get ahead of it."""
    optional: bool = False
    """Whether a run may lack it, since a parent failure can keep its parent from releasing it."""


DROPPED: Final = Item(Outcome.DROPPED)


class Rules(Protocol):
    """The interpreter, as the cases ask it."""

    def roots(self) -> Iterable[int]:
        """The positions of the roots."""
        ...

    def item(self, port: int, at: Ordinals, case: Case) -> Item:
        """One item of a port in one case."""
        ...

    def expansion(self, level: int, at: Ordinals, case: Case) -> tuple[Item, list[Row]]:
        """The expansion of an item: its outcome, and a row of values per child."""
        ...


class Unheard(Protocol):
    """Which tasks may be dead before they run."""

    def by_all(self, call: int, at: Ordinals, case: Case) -> bool:
        """Whether a task can be dead whatever it would give."""
        ...

    def by_list(self, gather: GatherNode, call: int, at: Ordinals, case: Case) -> bool:
        """Whether a list can be done without waiting for a task below it."""
        ...


class Cases:
    """The cases of a plan's items."""

    def __init__(self, plan: Plan, rules: Rules, unheard: Unheard) -> None:
        self._plan, self._rules, self._unheard = plan, rules, unheard
        self._depends: list[Reach] = [{}] * len(plan.ports)
        """By port: the calls and gathers on whose outputs its values depend."""
        self._made_by: list[Reach] = [{}] * len(plan.levels)
        """By level: the calls on whose outputs it depends which children there are."""
        self._found: dict[tuple[int, Ordinals, Case], Mapping[Ordinals, Causes]] = {}
        self._asked: list[tuple[int, Ordinals]] = []
        """The questions for parent failures that are being answered, each within the one before."""
        self.too_many: bool = False
        """Some item has more cases than were looked through."""
        for node in plan.nodes:
            calls = _nearest(self._depends[port] for port in ports_read(node))
            shared = plan.levels[node.level].depth + 1
            if isinstance(node, GatherNode):
                calls = {call: min(depth, shared) for call, depth in calls.items()}
            if isinstance(node, CallNode | GatherNode):
                calls = _nearest([calls, {node.index: shared}])
            elif isinstance(node, ExpandNode):
                self._made_by[node.level] = calls
            elif isinstance(node, BroadcastNode):
                calls = _nearest([calls, self._made_by[node.level]])
            for port in ports_made(node):
                self._depends[port] = calls

    def seen_by(self, port: int, at: Ordinals, case: Case) -> Case:
        """What of a case matters to an item of a port."""
        return self._relevant(case, self._depends[port], at)

    def seen_by_children(self, level: int, at: Ordinals, case: Case) -> Case:
        """What of a case matters to which children an item has at a level."""
        return self._relevant(case, self._made_by[level], at)

    def places(self, port: int) -> Iterator[tuple[Ordinals, list[Case], bool]]:
        """The items of a port in order: each with its cases, and whether a run may lack it."""
        return self._places(self._plan.ports[port].level, self._depends[port])

    def _places(self, level: int, calls: Reach) -> Iterator[tuple[Ordinals, list[Case], bool]]:
        parent = self._plan.levels[level].parent
        if parent is None:
            for position in self._rules.roots():
                yield (position,), self._at((position,), level, calls, UNCUT), False
            return
        maker = expand_to(self._plan, level).call
        for at, cases, optional in self._places(parent, calls):
            counts = [len(self._rules.expansion(level, at, case)[1]) for case in cases]
            cut = any((maker, at) in case for case in cases)
            for ordinal in range(max(counts)):
                there = [case for case, n in zip(cases, counts, strict=True) if ordinal < n]
                child = (*at, ordinal)
                found = [one for case in there for one in self._at(child, level, calls, case)]
                yield child, found, optional or cut or len(there) < len(cases)

    def _at(self, at: Ordinals, level: int, calls: Collection[int], case: Case) -> list[Case]:
        """``case``, and every way to cut tasks of ``calls`` at this very item besides, and not to hear parent
        failures below it.
        """
        found = [case]
        for index in sorted(calls):
            # What may be one way or the other at a node can depend on what was so at those before it.
            found = [way for one in found for way in self._each_way(index, at, level, one)]
            if len(found) > WAYS:
                self.too_many = True
                del found[WAYS:]
        return found

    def _each_way(self, index: int, at: Ordinals, level: int, case: Case) -> list[Case]:
        found = [case]
        for place in self._ways(index, at, level, case):
            if len(found) >= WAYS:
                self.too_many = True
                break
            found += [one | {(index, place)} for one in found]
        return found

    def _ways(self, index: int, at: Ordinals, level: int, case: Case) -> list[Ordinals]:
        """The places at an item, and below it, where something may be one way or the other at a node."""
        node = self._plan.nodes[index]
        if isinstance(node, GatherNode):
            places = self._below(at, level, node.level, case)
            return [place for place in places if self._may_be_early(node, place, case)]
        if node.level == level:
            return [at] if self.cutters(index, at, case) else []
        parents = self._below(at, level, self._plan.levels[node.level].parent, case)
        return [place for place in parents if self._may_go_unheard(index, place, case)]

    def _may_be_early(self, node: GatherNode, at: Ordinals, case: Case) -> bool:
        return self.condemning(node, at, case) != self.condemning(
            node, at, case | {(node.index, at)}
        )

    def _below(
        self, at: Ordinals, level: int, wanted: int | None, case: Case
    ) -> Iterator[Ordinals]:
        """The items of a level under an item, itself included; none if the level is elsewhere."""
        path: list[int] = []
        while wanted is not None and wanted != level:
            path.insert(0, wanted)
            wanted = self._plan.levels[wanted].parent
        found = [] if wanted is None else [at]
        for step in path:
            found = [
                (*place, ordinal)
                for place in found
                for ordinal in range(len(self._rules.expansion(step, place, case)[1]))
            ]
        return iter(found)

    def _relevant(self, case: Case, calls: Reach, at: Ordinals) -> Case:
        """What of a case an item can see: cuts of those calls at the item itself or above it; what goes unheard
        at any item that a list on the way to it holds as well."""
        if not case:
            return case
        return frozenset(
            (call, place)
            for call, place in case
            if (depth := calls.get(max(call, ~call))) is not None
            and (
                at[: len(place)] == place
                or (_share(at, place, depth) and not self._is_cut(call, place))
            )
        )

    def _is_cut(self, index: int, place: Ordinals) -> bool:
        node = self._plan.nodes[max(index, ~index)]
        depth = self._plan.levels[node.level].depth
        return index >= 0 and isinstance(node, CallNode) and len(place) == depth + 1

    def _may_go_unheard(self, call: int, at: Ordinals, case: Case) -> bool:
        failures = self._parent_failures(call, at, case)
        return any(
            causes and self._unheard.by_all(call, at, case) for at, causes in failures.items()
        )

    def cutters(self, call: int, at: Ordinals, case: Case) -> Causes:
        """The parent failures that can get ahead of a task: those of its siblings."""
        failures = self._parent_failures(call, at[:-1], case)
        return frozenset().union(*(found for child, found in failures.items() if child != at))

    def condemning(self, node: GatherNode, at: Ordinals, case: Case) -> Causes:
        """The parent failures that suppress a gathered list."""
        causes: Causes = frozenset()
        early = (node.index, at) in case
        for call in self._depends[node.outputs[0]]:
            below = self._plan.nodes[call]
            if isinstance(below, CallNode) and self._plan.levels[below.level].parent == node.level:
                for child, failures in self._parent_failures(call, at, case).items():
                    if failures and not (early and self._unheard.by_list(node, call, child, case)):
                        causes |= failures
        return causes

    def _parent_failures(self, call: int, at: Ordinals, case: Case) -> Mapping[Ordinals, Causes]:
        """By child of an item: the parent failures with which the call can end there."""
        node = self._plan.call(call)
        if self._plan.levels[node.level].parent is None:
            return {}  # at the root level a parent failure is like an item failure
        port = node.outputs[0]
        case = self.seen_by(port, at, case)
        if (~call, at) in case:
            return {}
        if (call, at, case) not in self._found:
            if self._asked.count((call, at)) == TURNS or len(self._found) >= QUESTIONS:
                self.too_many = True
                return {}
            self._asked.append((call, at))
            found: dict[Ordinals, Causes] = {}
            for ordinal in range(len(self._rules.expansion(node.level, at, case)[1])):
                child = (*at, ordinal)
                if (call, at) in case and self._unheard.by_all(call, child, case):
                    continue
                for one in self._at(child, node.level, self._depends[port].keys() - {call}, case):
                    item = self._rules.item(port, child, one)
                    if item.outcome is Outcome.FAILED:
                        wide = {cause for cause in item.causes if cause.scope == "parent"}
                        found[child] = found.get(child, frozenset()) | wide
            self._asked.pop()
            self._found[call, at, case] = found
        return self._found[call, at, case]


def expand_to(plan: Plan, level: int) -> ExpandNode:
    """What makes a level below the root's."""
    expand = plan.levels[level].expand
    assert expand is not None, "nothing expands into the root level"
    node = plan.nodes[expand]
    assert isinstance(node, ExpandNode)
    return node


def _nearest(reaches: Iterable[Reach]) -> dict[int, int]:
    """All of them, each by the way on which the fewest ordinals are shared."""
    found: dict[int, int] = {}
    for reach in reaches:
        for call, depth in reach.items():
            found[call] = min(depth, found.get(call, depth))
    return found


def _share(at: Ordinals, place: Ordinals, depth: int) -> bool:
    """Whether two places share so many ordinals, as far as both have them."""
    shared = min(depth, len(at), len(place))
    return at[:shared] == place[:shared]
