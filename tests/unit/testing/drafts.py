"""Plans made by hand, without the compiler, for tests of what reads plans."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

from fanfold.plan import (
    AtLeast,
    BroadcastNode,
    CallNode,
    Constant,
    ExpandNode,
    FieldNode,
    FilterNode,
    GatherNode,
    Input,
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
)


class Draft:
    """A plan under construction. Ports are their indices; streams are left out."""

    def __init__(self) -> None:
        self.levels = [Level(0, "root", 0)]
        self.stages: list[StageSpec] = []
        self.ports: list[PortSpec] = []
        self.nodes: list[Node] = []
        self.sources: list[Source] = []

    def source(self, name: str) -> int:
        port = self._port(0, None)
        self.sources.append(Source(name, Stream(port, 0)))
        return port

    def call(
        self,
        target: Callable[..., Any],
        *inputs: int,
        batch: int | None = None,
        outputs: int = 1,
        named: dict[str, int] | None = None,
        args: tuple[Any, ...] | None = None,
        method: str | None = None,
        **static: Any,
    ) -> Any:
        """One port, or a tuple of ports where ``outputs`` says so. ``args`` makes it a class stage."""
        self.stages.append(
            StageSpec(
                len(self.stages),
                target.__name__,
                target,
                args=args or (),
                is_class=args is not None,
                method=method,
                batch_size=batch,
            )
        )
        parts = [Input(port) for port in inputs]
        parts += [Input(port, keyword) for keyword, port in (named or {}).items()]
        level = self.ports[parts[0].port].level
        made = tuple(self._port(level, len(self.nodes)) for _ in range(outputs))
        self.nodes.append(
            CallNode(
                len(self.nodes),
                target.__name__,
                len(self.stages) - 1,
                level,
                tuple(parts),
                made,
                static,
            )
        )
        return made[0] if outputs == 1 else made

    def expand(self, *inputs: int, name: str = "child") -> Any:
        parent = self.levels[self.ports[inputs[0]].level]
        level = Level(len(self.levels), name, parent.depth + 1, parent.index, len(self.nodes))
        self.levels.append(level)
        producer = self.nodes[self.ports[inputs[0]].node or 0]
        while isinstance(producer, FieldNode):
            producer = self.nodes[self.ports[producer.input].node or 0]
        made = tuple(self._port(level.index, len(self.nodes)) for _ in inputs)
        self.nodes.append(ExpandNode(len(self.nodes), producer.index, level.index, inputs, made))
        return made[0] if len(made) == 1 else made

    def gather(
        self,
        *inputs: int,
        failed: Any = "fail",
        at_least: float | None = None,
        members: int | None = None,
    ) -> Any:
        child = self.levels[self.ports[inputs[0]].level]
        assert child.parent is not None
        parent = child.parent
        made = tuple(self._port(parent, len(self.nodes)) for _ in inputs)
        least = None
        if at_least is not None:
            share = Fraction(str(at_least)) if isinstance(at_least, float) else None
            least = AtLeast(None, share) if share is not None else AtLeast(int(at_least))
        self.nodes.append(
            GatherNode(len(self.nodes), parent, child.index, inputs, made, failed, least, members)
        )
        return made[0] if len(made) == 1 else made

    def filter(self, port: int, mask: int) -> int:
        made = self._port(self.ports[port].level, len(self.nodes))
        self.nodes.append(FilterNode(len(self.nodes), self._level(port), port, mask, 0, made))
        return made

    def split(self, port: int, by: int, into: tuple[Any, ...], rest: bool = False) -> Any:
        level = self._level(port)
        made = tuple(self._port(level, len(self.nodes)) for _ in range(len(into) + rest))
        self.nodes.append(SplitNode(len(self.nodes), level, port, by, 0, into, rest, made))
        return made

    def merge(self, *inputs: int, default: Any = ..., failed: Any = "stop") -> int:
        level = self._level(inputs[0])
        made = self._port(level, len(self.nodes))
        constant = None if default is ... else Constant(default)
        self.nodes.append(MergeNode(len(self.nodes), level, inputs, made, constant, failed))
        return made

    def broadcast(self, port: int, like: int) -> int:
        made = self._port(self._level(like), len(self.nodes))
        self.nodes.append(BroadcastNode(len(self.nodes), self._level(like), port, made))
        return made

    def field(self, port: int, name: str) -> int:
        made = self._port(self._level(port), len(self.nodes))
        self.nodes.append(FieldNode(len(self.nodes), self._level(port), port, name, 0, made))
        return made

    def record(self, **parts: Any) -> int:
        level = next(self._level(part) for part in parts.values() if isinstance(part, int))
        made = self._port(level, len(self.nodes))
        self.nodes.append(RecordNode(len(self.nodes), level, tuple(parts.items()), made))
        return made

    def plan(self, *outputs: int) -> Plan:
        return Plan(
            "draft",
            tuple(self.levels),
            tuple(self.stages),
            tuple(self.ports),
            tuple(self.nodes),
            tuple(self.sources),
            tuple(Output(None, port) for port in outputs),
            "tuple",
            {},
        )

    def _level(self, port: int) -> int:
        return self.ports[port].level

    def _port(self, level: int, node: int | None) -> int:
        self.ports.append(PortSpec(len(self.ports), f"p{len(self.ports)}", level, node))
        return len(self.ports) - 1
