"""Lowering: a checked graph becomes a plan.

Owns which operations survive (those that an output or a call depends on), which calls are effects, the
broadcasts that calls and records with ports of several levels need, and the numbering of levels, stages,
ports, nodes and controls. What the producers must deliver for it is worked out in
:mod:`fanfold.compiler.streams`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from fanfold.compiler.levels import Levels
from fanfold.compiler.streams import build_streams
from fanfold.model.definition import MAX_IN_FLIGHT, StageDefinition
from fanfold.model.graph import (
    BroadcastOp,
    CallOp,
    ExpandOp,
    FieldOp,
    FilterOp,
    GatherOp,
    Graph,
    MergeOp,
    Op,
    RecordOp,
    SplitOp,
)
from fanfold.model.mentions import mentions
from fanfold.plan import (
    BroadcastNode,
    CallNode,
    Constant,
    Control,
    ExpandNode,
    FieldCheck,
    FieldNode,
    FilterNode,
    GatherNode,
    Level,
    MergeNode,
    Node,
    Output,
    Plan,
    PortSpec,
    RecordNode,
    Source,
    SplitNode,
    StageSpec,
    Stream,
    Where,
)


def needed_ops(graph: Graph, levels: Levels, ports: Iterable[int]) -> frozenset[int]:
    """The operations on which some ports depend.

    What a broadcast is to be like matters for its level alone, so only the level's expand is needed.
    """
    needed: set[int] = set()
    todo = list(ports)
    while todo:
        node = graph.ports[todo.pop()].node
        if node is not None and node not in needed:
            needed.add(node)
            todo += _depends_on(graph, levels, graph.ops[node])
    return frozenset(needed)


def _depends_on(graph: Graph, levels: Levels, op: Op) -> tuple[int, ...]:
    if not isinstance(op, BroadcastOp) or (level := levels.of[op.outputs[0]]) is None:
        return op.reads()
    expand = levels.levels[level].op
    return (op.input,) if expand is None else (op.input, *graph.ops[expand].outputs)


def lower(graph: Graph, levels: Levels) -> Plan:
    """The plan of a graph without problems."""
    return _Lowering(graph, levels).plan()


class _Lowering:
    def __init__(self, graph: Graph, levels: Levels) -> None:
        self.graph = graph
        self.tree = levels
        self.levels: list[Level] = [Level(0, graph.level, 0)]
        self.stages: list[StageSpec] = []
        self.ports: list[PortSpec] = []
        self.nodes: list[Node] = []
        self.controls: list[Control] = []
        self.control_ports: list[int] = []
        self.group_ports: dict[int, int] = {}
        """By call whose stage has ``batch_by``: the graph port of its first input."""
        self.cost_ports: dict[int, int] = {}
        """The same by call whose stage has ``batch_cost``."""
        self.effects: list[int] = []
        self.checks: list[FieldCheck] = []
        self.check_ports: list[int] = []
        self.port_of: dict[int, int] = {}
        """Plan port by graph port."""
        self.level_of: dict[int, int] = {0: 0}
        """Plan level by graph level."""
        self.call_of: dict[int, int] = {}
        """Plan node of a call by graph port of its outputs."""
        self.stage_of: dict[StageDefinition, int] = {}
        self.copies: dict[tuple[int, int], int] = {}
        """Broadcasts made so far: plan port by (plan port, plan level)."""

    def plan(self) -> Plan:
        graph = self.graph
        for port in graph.sources:
            self._add_port(port, 0, None)
        returned = [port for _, port in graph.outputs]
        called = [port for op in graph.ops if isinstance(op, CallOp) for port in op.outputs]
        reached = needed_ops(graph, self.tree, returned)
        needed = needed_ops(graph, self.tree, [*returned, *called])
        for index, op in enumerate(graph.ops):
            if index not in needed:
                continue
            match op:
                case CallOp():
                    self._call(op, effect=index not in reached)
                case ExpandOp():
                    self._expand(op)
                case GatherOp():
                    self._gather(op)
                case FilterOp():
                    self._filter(op)
                case SplitOp():
                    self._split(op)
                case MergeOp():
                    self._merge(op)
                case BroadcastOp():
                    self._broadcast(op)
                case FieldOp():
                    self._field(op)
                case RecordOp():
                    self._record(op)
                case _:
                    raise AssertionError("a graph with broken operations is not lowered")
        plan = Plan(
            name=graph.name,
            levels=tuple(self.levels),
            stages=tuple(self.stages),
            ports=tuple(self.ports),
            nodes=tuple(self.nodes),
            sources=tuple(
                Source(graph.ports[port].name, Stream(self.port_of[port], 0, position))
                for position, port in enumerate(graph.sources)
            ),
            outputs=tuple(Output(name, self.port_of[port]) for name, port in graph.outputs),
            structure=graph.structure,
            streams={},
            effects=tuple(self.effects),
            controls=tuple(self.controls),
            checks=tuple(self.checks),
        )
        streams = build_streams(
            plan,
            graph,
            self.port_of,
            dict(enumerate(self.control_ports)),
            dict(enumerate(self.check_ports)),
            self.group_ports,
            self.cost_ports,
        )
        return replace(plan, sources=streams.sources, streams=streams.calls)

    # --------------------------------------------------------------------------- one per operation

    def _call(self, op: CallOp, *, effect: bool) -> None:
        level = self._deepest(op.reads())
        inputs = tuple(
            replace(item, port=self._lowered(item.port, level, op.where)) for item in op.inputs
        )
        index = len(self.nodes)  # after the broadcasts that the inputs need
        if effect:
            self.effects.append(index)
        if op.stage.options.batch_by is not None:
            self.group_ports[index] = op.inputs[0].port
        if op.stage.options.batch_cost is not None:
            self.cost_ports[index] = op.inputs[0].port
        for port in op.outputs:
            self.call_of[port] = index
        self.nodes.append(
            CallNode(
                index=index,
                name=op.name,
                stage=self._stage(op.stage),
                level=level,
                inputs=inputs,
                outputs=self._outputs(op.outputs, level),
                static=dict(op.static),
                where=op.where,
            )
        )

    def _expand(self, op: ExpandOp) -> None:
        inner = op.inputs[0]
        while isinstance(producer := self.graph.producer(inner), FieldOp):
            inner = producer.input
        parent = self.ports[self.port_of[op.inputs[0]]].level
        level = len(self.levels)
        self.level_of[self.tree.at(op.outputs[0])] = level
        index = len(self.nodes)
        depth = self.levels[parent].depth + 1
        self.levels.append(Level(level, op.name, depth, parent, index))
        self.nodes.append(
            ExpandNode(
                index=index,
                call=self.call_of[inner],
                level=level,
                inputs=tuple(self.port_of[port] for port in op.inputs),
                outputs=self._outputs(op.outputs, level),
                where=op.where,
            )
        )

    def _gather(self, op: GatherOp) -> None:
        inputs = tuple(self.port_of[port] for port in op.inputs)
        child_level = self.ports[inputs[0]].level
        level = self.levels[child_level].parent
        assert level is not None, "a gather at the root is a problem"
        self.nodes.append(
            GatherNode(
                index=len(self.nodes),
                level=level,
                child_level=child_level,
                inputs=inputs,
                outputs=self._outputs(op.outputs, level),
                failed=op.failed,
                at_least=op.at_least,
                members=None if op.members is None else self.port_of[op.members],
                where=op.where,
            )
        )

    def _filter(self, op: FilterOp) -> None:
        source, mask = self.port_of[op.input], self.port_of[op.mask]
        index, level = len(self.nodes), self.ports[source].level
        control = self._control(Control(len(self.controls), index, "mask", (True,)), op.mask)
        (output,) = self._outputs(op.outputs, level)
        self.nodes.append(FilterNode(index, level, source, mask, control, output, op.where))

    def _split(self, op: SplitOp) -> None:
        source, by = self.port_of[op.input], self.port_of[op.by]
        index, level = len(self.nodes), self.ports[source].level
        control = self._control(
            Control(len(self.controls), index, "label", op.labels, op.rest), op.by
        )
        self.nodes.append(
            SplitNode(
                index=index,
                level=level,
                input=source,
                by=by,
                control=control,
                labels=op.labels,
                rest=op.rest,
                outputs=self._outputs(op.outputs, level),
                where=op.where,
            )
        )

    def _merge(self, op: MergeOp) -> None:
        inputs = tuple(self.port_of[port] for port in op.inputs)
        level = self.ports[inputs[0]].level
        (output,) = self._outputs(op.outputs, level)
        self.nodes.append(
            MergeNode(len(self.nodes), level, inputs, output, op.default, op.failed, op.where)
        )

    def _broadcast(self, op: BroadcastOp) -> None:
        level = self.level_of[self.tree.at(op.outputs[0])]
        self.port_of[op.outputs[0]] = self._lowered(op.input, level, op.where)

    def _field(self, op: FieldOp) -> None:
        source = self.port_of[op.input]
        index, level = len(self.nodes), self.ports[source].level
        check = FieldCheck(len(self.checks), index, op.name)
        self.checks.append(check)
        self.check_ports.append(op.input)
        (output,) = self._outputs(op.outputs, level)
        self.nodes.append(FieldNode(index, level, source, op.name, check.index, output, op.where))

    def _record(self, op: RecordOp) -> None:
        level = self._deepest(op.reads())
        fields: tuple[tuple[str, int | Constant], ...] = tuple(
            (name, self._lowered(part, level, op.where) if isinstance(part, int) else part)
            for name, part in op.fields
        )
        (output,) = self._outputs(op.outputs, level)
        self.nodes.append(RecordNode(len(self.nodes), level, fields, output, op.where))

    # ------------------------------------------------------------------------------------- helpers

    def _deepest(self, ports: Sequence[int]) -> int:
        levels = [self.ports[self.port_of[port]].level for port in ports]
        return max(levels, key=lambda level: self.levels[level].depth)

    def _lowered(self, graph_port: int, level: int, where: Where) -> int:
        """A port brought down to ``level``, one level at a time; what was made for another is used again."""
        port = self.port_of[graph_port]
        path: list[int] = []
        step: int | None = level
        while step is not None and step != self.ports[port].level:
            path.append(step)
            step = self.levels[step].parent
        for below in reversed(path):
            if (port, below) not in self.copies:
                name = f"{self.ports[port].name}@{self.levels[below].name}"
                copy = len(self.ports)
                self.ports.append(PortSpec(copy, name, below, len(self.nodes)))
                self.nodes.append(BroadcastNode(len(self.nodes), below, port, copy, where))
                self.copies[port, below] = copy
            port = self.copies[port, below]
        return port

    def _outputs(self, graph_ports: Sequence[int], level: int) -> tuple[int, ...]:
        return tuple(self._add_port(port, level, len(self.nodes)) for port in graph_ports)

    def _add_port(self, graph_port: int, level: int, node: int | None) -> int:
        index = len(self.ports)
        self.ports.append(PortSpec(index, self.graph.ports[graph_port].name, level, node))
        self.port_of[graph_port] = index
        return index

    def _control(self, control: Control, graph_port: int) -> int:
        self.controls.append(control)
        self.control_ports.append(graph_port)
        return control.index

    def _stage(self, stage: StageDefinition) -> int:
        if stage not in self.stage_of:
            self.stage_of[stage] = len(self.stages)
            self.stages.append(
                StageSpec(
                    index=len(self.stages),
                    name=stage.name,
                    target=stage.target,
                    args=stage.args,
                    kwargs=dict(stage.kwargs),
                    is_class=stage.is_class,
                    method=stage.options.method,
                    batch_size=stage.options.batch_size,
                    batch_bytes=stage.options.batch_bytes,
                    batch_cost=stage.options.batch_cost,
                    max_batch_cost=stage.options.max_batch_cost,
                    batch_by=stage.options.batch_by,
                    linger_s=stage.options.linger_s,
                    rate_limit=stage.options.rate_limit,
                    replicas=stage.options.replicas,
                    cpus=stage.options.cpus,
                    gpus=stage.options.gpus,
                    memory=stage.options.memory,
                    recycle_after=stage.options.recycle_after,
                    recycle_above=stage.options.recycle_above,
                    generator=stage.generator,
                    asynchronous=stage.asynchronous,
                    max_in_flight=_max_in_flight(stage),
                    retries=stage.options.retries,
                    on_error=stage.options.on_error,
                    probe=stage.options.probe,
                    schedule=stage.options.schedule,
                    workers=stage.options.workers,
                    identities=_wants_identities(stage),
                )
            )
        return self.stage_of[stage]


def _max_in_flight(stage: StageDefinition) -> int:
    return (stage.options.max_in_flight or MAX_IN_FLIGHT) if stage.asynchronous else 1


def _wants_identities(stage: StageDefinition) -> bool:
    wanted = stage.options.identities
    return mentions(stage.target, "context") if wanted is None else wanted
