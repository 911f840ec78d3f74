"""Advice: what is legal in a plan and yet probably not meant.

Owns the warnings that ``explain`` prints; one of them is also given when the pipeline is compiled.
"""

from __future__ import annotations

from itertools import combinations

from fanfold.compiler.routes import dead_ends, root_needs_two_routes_of, routes_of
from fanfold.plan import CallNode, ExpandNode, GatherNode, Node, Plan, StageSpec


def advice(plan: Plan) -> tuple[str, ...]:
    """All warnings of a plan, in words."""
    return (
        *pinned_children(plan),
        *unread_sources(plan),
        *idle_shares(plan),
        *crossed_routes(plan),
        *twin_stages(plan),
    )


def pinned_children(plan: Plan) -> list[str]:
    """Values that are expanded and read whole as well, or are a generator's unexpanded children."""
    expanded = {
        port: plan.levels[node.level].name
        for node in plan.nodes
        if isinstance(node, ExpandNode)
        for port in node.inputs
    }
    found = []
    for call in plan.calls():
        stored = {stream.port for stream in plan.streams[call.index].items if stream.stored}
        for port in call.outputs:
            if port not in stored:
                continue
            name = plan.ports[port].name
            if port in expanded:
                found.append(
                    f"port {name!r} is read unexpanded beside its level {expanded[port]!r}: every "
                    "child is kept until its parent is done"
                )
            elif plan.stages[call.stage].generator:
                found.append(
                    f"port {name!r} is a generator's and is read unexpanded: its readers wait for the "
                    "whole list of children"
                )
    return found


def unread_sources(plan: Plan) -> list[str]:
    """Sources of which nothing is ever looked at."""
    return [
        f"source {source.name!r} is never read"
        for source in plan.sources
        if not (source.stream.stored or source.stream.controls or source.stream.checks)
    ]


def idle_shares(plan: Plan) -> list[str]:
    """Gathers whose share of done members is asked for where the first failed one decides already."""
    return [
        f"gather of {', '.join(plan.ports[port].name for port in node.inputs)} ({node.where.short()}) has "
        f'at_least={node.at_least} with failed="fail", where one failed member suppresses the list '
        'before its share can matter; failed="drop" or "mark" makes it count'
        for node in plan.nodes
        if isinstance(node, GatherNode)
        and node.failed == "fail"
        and node.at_least is not None
        and node.at_least.share is not None
    ]


def crossed_routes(plan: Plan) -> list[str]:
    """Splits of which something needs two routes at once, which no item takes."""
    at_port = routes_of(plan)
    found = [
        f"{_node(plan, node)} reads two routes of one split ({split.where.short()}): an item takes one of "
        "them, so it never runs; merge the routes first, or give each a call of its own"
        for node, split in dead_ends(plan, at_port)
    ]
    if (split := root_needs_two_routes_of(plan, at_port)) is not None:
        root = plan.levels[0].name
        found.append(
            f"the pipeline returns two routes of one split ({split.where.short()}) at its root level: every "
            f"{root} is dropped at one of them, and a {root} that is dropped at one output has no record at "
            "all; merge the routes, or split below the root level"
        )
    return found


def _node(plan: Plan, node: Node) -> str:
    if isinstance(node, CallNode):
        return f"call {node.name!r}"
    return f"{type(node).__name__.removesuffix('Node').lower()} ({node.where.short()})"


def twin_stages(plan: Plan) -> list[str]:
    """Pairs of stages that hold the same class constructed with equal arguments."""
    return [
        f"FF108 stages {_called(plan, a)} and {_called(plan, b)} are two pools of "
        f"{a.target.__qualname__} with equal constructor arguments; one stage object used twice would "
        "share its workers"
        for a, b in combinations(plan.stages, 2)
        if _are_twins(a, b)
    ]


def _called(plan: Plan, stage: StageSpec) -> str:
    """A stage's name with the place of its first call, since two stages may have one name."""
    first = next(call for call in plan.calls() if call.stage == stage.index)
    return f"{stage.name!r} ({first.where.short()})"


def _are_twins(a: StageSpec, b: StageSpec) -> bool:
    if not (a.is_class and b.is_class and a.target is b.target and a.method == b.method):
        return False
    try:
        return bool((a.args, dict(a.kwargs)) == (b.args, dict(b.kwargs)))
    except Exception:  # arguments such as arrays have no truth value of equality
        return False
