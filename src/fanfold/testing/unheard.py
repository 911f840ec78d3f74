"""Which parent failures may come too late, or never: those of tasks whose results nothing waits for.

Owns one question: does any way lead from what a call gives for an item to a list, or to any output, on which
every reader looks at it? If none leads to a list, the list may be done before the parent failure comes; if none
leads anywhere, the task is dead work (M16), which a run does not start, but may have started before. The
interpreter itself has neither order nor dead work; it is asked what other items are.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, Protocol

from fanfold.failures import Failure
from fanfold.outcomes import Outcome
from fanfold.plan import (
    BroadcastNode,
    CallNode,
    ExpandNode,
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
from fanfold.testing.cases import BLIND, LOST, Case, Item, Ordinals, Row


class Rules(Protocol):
    """The interpreter, as it is asked here."""

    def item(self, port: int, at: Ordinals, case: Case) -> Item:
        """One item of a port in one case."""
        ...

    def expansion(self, level: int, at: Ordinals, case: Case) -> tuple[Item, list[Row]]:
        """The expansion of an item: its outcome, and a row of values per child."""
        ...


class _Walk(NamedTuple):
    """One way from a task through everything that reads of it."""

    case: Case
    target: GatherNode | None
    """Where the walk ends; None: at whatever is returned."""
    own: frozenset[Failure]
    """The task's own failures, which do not count."""


class Unheard:
    """Answers for one plan."""

    def __init__(self, plan: Plan, rules: Rules) -> None:
        self._plan, self._rules = plan, rules
        self._readers: dict[int, list[Node]] = {}
        for node in plan.nodes:
            for port in dict.fromkeys(ports_read(node)):
                self._readers.setdefault(port, []).append(node)
        self._opened = {node.call for node in plan.nodes if isinstance(node, ExpandNode)}
        self._returned = {output.port for output in plan.outputs}
        for call in plan.effects:
            self._returned.update(plan.call(call).outputs)

    def by_all(self, call: int, at: Ordinals, case: Case) -> bool:
        """Whether a task can be dead whatever it would give, or become so by what it has given already."""
        return self._by(None, call, at, case) or self._stopped(call, at, case)

    def by_list(self, gather: GatherNode, call: int, at: Ordinals, case: Case) -> bool:
        """Whether a list can be done without waiting for a task below it."""
        return self._by(gather, call, at, case)

    def _by(self, target: GatherNode | None, call: int, at: Ordinals, case: Case) -> bool:
        # Without its own end and its siblings' parent failures, or they would seem to be what made it dead.
        blind = case | {(~call, at[:-1]), (call, at)}
        return self._leads_nowhere(call, at, _Walk(blind, target, frozenset({BLIND})))

    def _stopped(self, call: int, at: Ordinals, case: Case) -> bool:
        """Whether the first children of a generator may make sure that nobody needs more of it."""
        if call not in self._opened:
            return False
        case = case | {(~call, at[:-1])}
        outputs = self._plan.call(call).outputs
        own = (self._rules.item(port, at, case).causes for port in outputs)
        return self._leads_nowhere(call, at, _Walk(case, None, frozenset[Failure]().union(*own)))

    def _leads_nowhere(self, call: int, at: Ordinals, walk: _Walk) -> bool:
        return all(self._ignored(port, at, walk) for port in self._plan.call(call).outputs)

    def _ignored(self, port: int, at: Ordinals, walk: _Walk) -> bool:
        """Whether no way leads on from an item of a port."""
        if walk.target is None and port in self._returned:
            return False
        readers = self._readers.get(port, ())
        return all(self._ignores(node, port, at, walk) for node in readers)

    def _ignores(self, node: Node, port: int, at: Ordinals, walk: _Walk) -> bool:
        """Whether a reader of ``port`` gives the same whatever is there, or no way leads on from it."""
        match node:
            case ExpandNode():
                if walk.target is None and self._carries_output(node.level):
                    return False
                return all(
                    gather is not walk.target
                    and (self._lost(made, at, walk) or self._ignored(made, at, walk))
                    for gather in self._plan.nodes
                    if isinstance(gather, GatherNode) and gather.child_level == node.level
                    for made in gather.outputs
                )
            case BroadcastNode():
                _, children = self._rules.expansion(node.level, at, walk.case)
                return all(
                    self._ignored(node.output, (*at, ordinal), walk)
                    for ordinal in range(len(children))
                )
            case GatherNode():
                if self._others_lost(node.inputs, port, at, walk) or (
                    node.members not in (None, port) and self._is_not_done(node.members, at, walk)
                ):
                    return True
                if node is walk.target:
                    return False
                if all(self._lost(made, at[:-1], walk) for made in node.outputs):
                    return True
                at = at[:-1]
            case MergeNode():
                earlier = node.inputs[: node.inputs.index(port)]
                if any(self._outcome(other, at, walk) is Outcome.DONE for other in earlier) or (
                    node.failed == "stop" and any(self._lost(other, at, walk) for other in earlier)
                ):
                    return True
            case FilterNode() | SplitNode():
                if port != node.input and self._is_not_done(node.input, at, walk):
                    return True
            case CallNode() | RecordNode():
                if self._others_lost(ports_read(node), port, at, walk):
                    return True
            case _:
                pass
        return all(self._ignored(made, at, walk) for made in ports_made(node))

    def _others_lost(self, ports: tuple[int, ...], port: int, at: Ordinals, walk: _Walk) -> bool:
        return any(self._lost(other, at, walk) for other in ports if other != port)

    def _lost(self, port: int, at: Ordinals, walk: _Walk) -> bool:
        """Whether an item is lost, and not only because of the task in question."""
        item = self._rules.item(port, at, walk.case)
        return item.outcome in LOST and bool(item.causes - walk.own)

    def _is_not_done(self, port: int | None, at: Ordinals, walk: _Walk) -> bool:
        assert port is not None
        dropped = self._outcome(port, at, walk) is Outcome.DROPPED
        return dropped or self._lost(port, at, walk)

    def _outcome(self, port: int, at: Ordinals, walk: _Walk) -> Outcome:
        return self._rules.item(port, at, walk.case).outcome

    def _carries_output(self, level: int) -> bool:
        return any(level in self._above(self._plan.ports[port].level) for port in self._returned)

    def _above(self, level: int) -> Iterator[int]:
        """A level and those above it."""
        while True:
            yield level
            parent = self._plan.levels[level].parent
            if parent is None:
                return
            level = parent
