"""Which routes of splits an item can have taken to be at a port, and where none is left for it.

Owns that question; :mod:`fanfold.compiler.advice` puts it in words. A split sends each item one way, so what
needs two of its ways at once never happens, though each of its parts does.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TypeAlias

from fanfold.plan import (
    CallNode,
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

Routes: TypeAlias = dict[int, frozenset[int]]
"""By split: the positions of the outputs by which an item can have come. A split that is left out does not
matter: any of them."""


def routes_of(plan: Plan) -> list[Routes]:
    """By port: how an item can have come there. What can have come in no way counts as any."""
    at_port: list[Routes] = [{} for _ in plan.ports]
    for node in plan.nodes:
        read = [at_port[port] for port in ports_read(node)]
        match node:
            case MergeNode():
                routes = _any_of(read) if node.default is None else {}
            case GatherNode():  # whatever became of its members, the list is there where the expansion is
                routes = _all_of(at_port[port] for port in _expanded(plan, node.child_level))
            case _:
                routes = _all_of(read)
        for position, port in enumerate(ports_made(node)):
            at_port[port] = {split: ways for split, ways in routes.items() if ways}
            if isinstance(node, SplitNode):
                at_port[port] |= {node.index: frozenset({position})}
    return at_port


def dead_ends(plan: Plan, at_port: Sequence[Routes]) -> Iterator[tuple[Node, SplitNode]]:
    """What no item ever passes, each with a split of which it needs two routes at once. What comes after it is
    not told."""
    for node in plan.nodes:
        if isinstance(node, CallNode | RecordNode | FilterNode | SplitNode):
            split = _impossible(plan, _all_of(at_port[port] for port in ports_read(node)))
            if split is not None:
                yield node, split


def root_needs_two_routes_of(plan: Plan, at_port: Sequence[Routes]) -> SplitNode | None:
    """A split of which the pipeline's outputs at the root level need two routes at once, if there is one: then
    every root is dropped (a root that is dropped at one output has no records at all)."""
    outputs = [output.port for output in plan.outputs if plan.ports[output.port].level == 0]
    return _impossible(plan, _all_of(at_port[port] for port in outputs))


def _expanded(plan: Plan, level: int) -> tuple[int, ...]:
    """The ports that are expanded into a level."""
    expand = plan.levels[level].expand
    assert expand is not None, "nothing expands into the root level"
    return ports_read(plan.nodes[expand])


def _all_of(parts: Iterable[Routes]) -> Routes:
    """What has come by all of these."""
    found: dict[int, frozenset[int]] = {}
    for part in parts:
        for split, routes in part.items():
            found[split] = found.get(split, routes) & routes
    return found


def _any_of(parts: Iterable[Routes]) -> Routes:
    """What has come by one of these: where a split does not matter to one, it does not matter."""
    first, *others = parts
    return {
        split: routes.union(*(other[split] for other in others))
        for split, routes in first.items()
        if all(split in other for other in others)
    }


def _impossible(plan: Plan, routes: Routes) -> SplitNode | None:
    for split, left in routes.items():
        node = plan.nodes[split]
        if not left and isinstance(node, SplitNode):
            return node
    return None
