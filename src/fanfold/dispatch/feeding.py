"""Which calls feed which: what a plan says of it, worked out once. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from fanfold.plan import CallNode, Plan, ports_made, ports_read


def level(plan: Plan, call: int) -> int:
    """The level at which a call's items are."""
    node = plan.nodes[call]
    assert isinstance(node, CallNode)
    return node.level


def consuming_calls(plan: Plan) -> dict[int, tuple[int, ...]]:
    """For each call the calls that read its output, directly or through structural operations."""
    readers: dict[int, set[int]] = {}

    def calls_below(ports: Iterable[int]) -> set[int]:
        return set().union(*(readers.get(port, set()) for port in ports))

    result: dict[int, tuple[int, ...]] = {}
    for node in reversed(plan.nodes):
        if isinstance(node, CallNode):
            result[node.index] = tuple(sorted(calls_below(node.outputs)))
            found = {node.index}
        else:
            found = calls_below(ports_made(node))
        for port in ports_read(node):
            readers.setdefault(port, set()).update(found)
    return result


def producing_calls(plan: Plan) -> dict[int, tuple[int, ...]]:
    """For each call all calls on whose outcomes its readiness depends, however far above."""
    above: dict[int, set[int]] = {}
    result: dict[int, tuple[int, ...]] = {}
    for node in plan.nodes:
        found = set().union(*(above.get(port, set()) for port in ports_read(node)))
        if isinstance(node, CallNode):
            result[node.index] = tuple(sorted(found))
            found = found | {node.index}
        for port in ports_made(node):
            above[port] = found
    return result
