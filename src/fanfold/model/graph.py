"""The traced graph: what a pipeline's function did, in order, before anything of it was checked.

Owns the frozen nodes that the trace writes and the compiler reads. Ports are numbers; a node's inputs
were made before it. Levels do not occur here: finding them is the compiler's work.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from fanfold.errors import Problem
from fanfold.model.definition import StageDefinition
from fanfold.parts import Constant, Input, Where


@dataclass(frozen=True, slots=True)
class GraphPort:
    """A port; ``node`` is None for a source."""

    index: int
    name: str
    node: int | None


@dataclass(frozen=True, slots=True)
class CallOp:
    """``stage(a, b, key=c, k=3)``."""

    name: str
    stage: StageDefinition
    inputs: tuple[Input, ...]
    static: Mapping[str, Any]
    outputs: tuple[int, ...]
    where: Where

    def reads(self) -> tuple[int, ...]:
        return tuple(item.port for item in self.inputs)


@dataclass(frozen=True, slots=True)
class ExpandOp:
    """``expand(a, b, name)``."""

    name: str
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    where: Where

    def reads(self) -> tuple[int, ...]:
        return self.inputs


@dataclass(frozen=True, slots=True)
class GatherOp:
    """``gather(a, b, failed=…)``."""

    inputs: tuple[int, ...]
    failed: Literal["fail", "drop", "mark"]
    outputs: tuple[int, ...]
    where: Where

    def reads(self) -> tuple[int, ...]:
        return self.inputs


@dataclass(frozen=True, slots=True)
class FilterOp:
    """``filter(input, mask)``."""

    input: int
    mask: int
    outputs: tuple[int, ...]
    where: Where

    def reads(self) -> tuple[int, ...]:
        return (self.input, self.mask)


@dataclass(frozen=True, slots=True)
class SplitOp:
    """``split(input, by, into=(…))``."""

    input: int
    by: int
    labels: tuple[Any, ...]
    rest: bool
    outputs: tuple[int, ...]
    where: Where

    def reads(self) -> tuple[int, ...]:
        return (self.input, self.by)


@dataclass(frozen=True, slots=True)
class MergeOp:
    """``merge(a, b, default=…, failed=…)``."""

    inputs: tuple[int, ...]
    default: Constant | None
    failed: Literal["stop", "next"]
    outputs: tuple[int, ...]
    where: Where

    def reads(self) -> tuple[int, ...]:
        return self.inputs


@dataclass(frozen=True, slots=True)
class BroadcastOp:
    """``broadcast(input, like=port)``."""

    input: int
    like: int
    outputs: tuple[int, ...]
    where: Where

    def reads(self) -> tuple[int, ...]:
        return (self.input, self.like)


@dataclass(frozen=True, slots=True)
class FieldOp:
    """``input[name]``."""

    input: int
    name: str
    outputs: tuple[int, ...]
    where: Where

    def reads(self) -> tuple[int, ...]:
        return (self.input,)


@dataclass(frozen=True, slots=True)
class RecordOp:
    """``record(a=port, b=constant)``."""

    fields: tuple[tuple[str, int | Constant], ...]
    outputs: tuple[int, ...]
    where: Where

    def reads(self) -> tuple[int, ...]:
        return tuple(part for _, part in self.fields if isinstance(part, int))


@dataclass(frozen=True, slots=True)
class BrokenOp:
    """Stands for a use of ports that the trace already reported as a problem.

    It keeps what follows from being reported again: its outputs have no level, its inputs count as used.
    """

    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    where: Where

    def reads(self) -> tuple[int, ...]:
        return self.inputs


Op: TypeAlias = (
    CallOp
    | ExpandOp
    | GatherOp
    | FilterOp
    | SplitOp
    | MergeOp
    | BroadcastOp
    | FieldOp
    | RecordOp
    | BrokenOp
)


@dataclass(frozen=True, slots=True)
class Graph:
    """A pipeline as traced. ``problems`` are those that only the trace could see."""

    name: str
    level: str
    ports: tuple[GraphPort, ...]
    sources: tuple[int, ...]
    ops: tuple[Op, ...]
    outputs: tuple[tuple[str | None, int], ...]
    structure: Literal["single", "tuple", "dict"]
    problems: tuple[Problem, ...] = ()
    complete: bool = True
    """False if the pipeline's function raised, so that it may lack calls and outputs."""

    def producer(self, port: int) -> Op | None:
        """The operation that makes a port, or None for a source."""
        node = self.ports[port].node
        return None if node is None else self.ops[node]
