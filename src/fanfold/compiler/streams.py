"""Streams: what the producers of a plan must deliver for it.

Owns, for each call and source, which outputs are stored and which masks, labels and fields of them are
reported. A value is stored if a call, a gathered list, a record or an output gets to see it; whatever only
routes items needs reports instead.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from fanfold.compiler.origins import Made, origins
from fanfold.model.graph import Graph
from fanfold.plan import (
    BroadcastNode,
    CallNode,
    CallStreams,
    ExpandNode,
    Expansion,
    FieldNode,
    FilterNode,
    GatherNode,
    MergeNode,
    Node,
    Path,
    Plan,
    RecordNode,
    Source,
    SplitNode,
    Stream,
)

Reports = Mapping[int, Sequence[tuple[int, Path]]]
"""By producing port: pairs (control, check or call, path from the row)."""


@dataclass(frozen=True, slots=True)
class Streams:
    """The sources with their streams, and those of the calls."""

    sources: tuple[Source, ...]
    calls: Mapping[int, CallStreams]


def build_streams(
    plan: Plan,
    graph: Graph,
    port_of: Mapping[int, int],
    control_ports: Mapping[int, int],
    check_ports: Mapping[int, int],
    group_ports: Mapping[int, int],
    cost_ports: Mapping[int, int],
) -> Streams:
    """Work out the streams of a plan that has everything else.

    Args:
        plan: The plan without streams.
        graph: What it was lowered from.
        port_of: Plan port by graph port.
        control_ports: By control, the graph port of the mask or label.
        check_ports: By field check, the graph port that is read.
        group_ports: By call that groups its items, the graph port of its first input.
        cost_ports: By call whose items have a cost, the same.
    """
    read, sized = values_read(plan), sizes_read(plan)
    controls = _reports(graph, port_of, control_ports)
    checks = _reports(graph, port_of, check_ports)
    groups = _reports(graph, port_of, group_ports)
    costs = _reports(graph, port_of, cost_ports)

    def stream(port: int, position: int, path: Path = ()) -> Stream:
        return Stream(
            port=port,
            level=plan.ports[port].level,
            position=position,
            path=path,
            stored=port in read,
            sized=port in sized,
            groups=tuple(groups.get(port, ())),
            costs=tuple(costs.get(port, ())),
            controls=tuple(controls.get(port, ())),
            checks=tuple(checks.get(port, ())),
        )

    sources = tuple(
        replace(source, stream=stream(source.stream.port, source.stream.position))
        for source in plan.sources
    )
    calls: dict[int, CallStreams] = {}
    for call in plan.calls():
        items = (stream(port, position) for position, port in enumerate(call.outputs))
        expansions = [
            Expansion(
                node.index,
                node.level,
                tuple(
                    stream(child, *_position(plan, call, parent))
                    for parent, child in zip(node.inputs, node.outputs, strict=True)
                ),
            )
            for node in plan.nodes
            if isinstance(node, ExpandNode) and node.call == call.index
        ]
        wanted = tuple(item for item in items if item.stored or item.controls or item.checks)
        calls[call.index] = CallStreams(call.index, wanted, tuple(expansions))
    return Streams(sources, calls)


def values_read(plan: Plan) -> frozenset[int]:
    """The ports whose values somebody gets to see, found from the readers back."""
    read = {output.port for output in plan.outputs}
    for node in reversed(plan.nodes):
        read.update(_values_read_by(node, read))
    return frozenset(read)


def sizes_read(plan: Plan) -> frozenset[int]:
    """The ports on whose values' sizes it depends which items share a batch."""
    read = {
        item.port
        for call in plan.calls()
        if plan.stages[call.stage].batch_bytes is not None
        for item in call.inputs
    }
    for node in reversed(plan.nodes):
        if not isinstance(node, CallNode):
            read.update(_values_read_by(node, read))
    return frozenset(read)


def _values_read_by(node: Node, read: set[int]) -> list[int]:
    match node:
        case CallNode():
            return [item.port for item in node.inputs]
        case ExpandNode():
            return []  # the call that makes the value opens it where it is made
        case GatherNode():  # of members= only the outcomes matter
            pairs = zip(node.inputs, node.outputs, strict=True)
            return [port for port, output in pairs if output in read]
        case SplitNode():
            return [node.input] if read.intersection(node.outputs) else []
        case FilterNode() | BroadcastNode() | FieldNode():
            return [node.input] if node.output in read else []
        case MergeNode():
            return list(node.inputs) if node.output in read else []
        case RecordNode():
            parts = [part for _, part in node.fields if isinstance(part, int)]
            return parts if node.output in read else []


def _reports(graph: Graph, port_of: Mapping[int, int], ports: Mapping[int, int]) -> Reports:
    """For each producing port what it must report, by following each of ``ports`` back."""
    reports: dict[int, list[tuple[int, Path]]] = defaultdict(list)
    for index, port in ports.items():
        for origin in origins(graph, port):
            if isinstance(origin, Made):
                reports[port_of[origin.port]].append((index, origin.path))
    return reports


def _position(plan: Plan, call: CallNode, port: int) -> tuple[int, Path]:
    """Which output of the call, and which field of it, is expanded as ``port``."""
    path: Path = ()
    while port not in call.outputs:
        node = plan.nodes[plan.ports[port].node or 0]
        assert isinstance(node, FieldNode), "an expand opens a call's output or a field of one"
        path = (node.name, *path)
        port = node.input
    return call.outputs.index(port), path
