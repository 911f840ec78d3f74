"""Levels: where each port of a traced graph lives, and which operations fit together.

Owns the level tree and every check that compares levels: expansions, gathers, joins, masks. Reads the
traced graph only. A port whose operation has a problem gets no level, and what is made of it is not
reported again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from fanfold.errors import Problem
from fanfold.model.graph import (
    BroadcastOp,
    CallOp,
    ExpandOp,
    FieldOp,
    FilterOp,
    GatherOp,
    Graph,
    MergeOp,
    RecordOp,
    SplitOp,
)
from fanfold.plan import Where

ROOT: Final = 0


@dataclass(frozen=True, slots=True)
class GraphLevel:
    """A level of the traced graph; ``op`` is the expand that makes it (None for the root)."""

    index: int
    name: str
    parent: int | None
    depth: int
    op: int | None


class Levels:
    """The level of each port of a graph, found on construction, with the problems met on the way."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.levels: list[GraphLevel] = [GraphLevel(ROOT, graph.level, None, 0, None)]
        self.of: list[int | None] = [None] * len(graph.ports)
        """By port; None where a problem keeps it from having a level."""
        self.problems: list[Problem] = []
        self._expanded: dict[int, ExpandOp] = {}
        for port in graph.sources:
            self.of[port] = ROOT
        for index, op in enumerate(graph.ops):
            level = self._level_of(index)
            for port in op.outputs:
                self.of[port] = level

    def chain(self, level: int) -> list[int]:
        """A level and its ancestors, the deepest first."""
        chain = [level]
        while (parent := self.levels[chain[-1]].parent) is not None:
            chain.append(parent)
        return chain

    def at(self, port: int) -> int:
        """The level of a port of a graph without problems."""
        level = self.of[port]
        assert level is not None, "ports of a graph without problems have levels"
        return level

    def name(self, level: int) -> str:
        return self.levels[level].name

    # --------------------------------------------------------------------------- one rule per operation

    def _level_of(self, index: int) -> int | None:
        op = self.graph.ops[index]
        match op:
            case ExpandOp():
                return self._expand(index, op)
            case GatherOp():
                return self._gather(op)
            case CallOp():
                return self._join(f"call {op.name!r}", op.reads(), op.where)
            case RecordOp():
                return self._join("record", op.reads(), op.where)
            case FilterOp():
                return self._same("filter", "mask", op.input, op.mask, op.where)
            case SplitOp():
                return self._same("split", "label", op.input, op.by, op.where)
            case MergeOp():
                return self._merge(op)
            case BroadcastOp():
                return self._broadcast(op)
            case FieldOp():
                return self.of[op.input]
            case _:
                return None

    def _expand(self, index: int, op: ExpandOp) -> int | None:
        calls = {self._opened_call(port, op) for port in op.inputs}
        good = None not in calls
        if good and len(calls) > 1:
            good = False
            names = " and ".join(self._quoted(op.inputs))
            self._problem(
                "FF204",
                op.where,
                f"expand to {op.name!r} aligns {names}, which are not outputs of one call.",
                "Give one stage several outputs (outputs=2) to make aligned children, or expand each "
                "port to a level of its own.",
            )
        for port in op.inputs:
            before = self._expanded.setdefault(port, op)
            if before is not op:
                good = False
                self._problem(
                    "FF212",
                    op.where,
                    f"port {self._name(port)!r} is expanded to {op.name!r} and, at "
                    f"{before.where.short()}, differently to {before.name!r}.",
                    "Expand it once and use that port twice.",
                )
        for level in self.levels:
            if level.name == op.name:
                good = False
                other = "the root" if level.op is None else self.graph.ops[level.op].where.short()
                self._problem(
                    "FF211",
                    op.where,
                    f"expand gives the name {op.name!r} to a second level (the first: {other}).",
                    "Give each level a name of its own; in a pipeline that is called twice, make the "
                    "name a setting.",
                )
                break
        parents = {self.of[port] for port in op.inputs}
        parent = parents.pop() if len(parents) == 1 else None
        if not good or parent is None:
            return None
        depth = self.levels[parent].depth + 1
        self.levels.append(GraphLevel(len(self.levels), op.name, parent, depth, index))
        return len(self.levels) - 1

    def _opened_call(self, port: int, op: ExpandOp) -> str | None:
        """The name of the call whose output (or a field of it) is expanded, or None with a problem noted."""
        inner = port
        producer = self.graph.producer(inner)
        while isinstance(producer, FieldOp):
            inner = producer.input
            producer = self.graph.producer(inner)
        if isinstance(producer, CallOp):
            return producer.name
        if self.of[inner] is None and producer is not None:
            return None  # what makes the port has a problem of its own
        what = "a source" if producer is None else f"made by {kind_of(producer)}"
        self._problem(
            "FF202",
            op.where,
            f"expand to {op.name!r} opens port {self._name(port)!r}, which is {what}, not by a call."
            if producer is not None
            else f"expand to {op.name!r} opens port {self._name(port)!r}, which is {what}.",
            "Only what a call returns can be opened to children: pass it through a stage first.",
        )
        return None

    def _gather(self, op: GatherOp) -> int | None:
        levels = [self.of[port] for port in op.inputs]
        known = [level for level in levels if level is not None]
        if len(known) < len(levels):
            return None
        if len(set(known)) > 1:
            self._problem(
                "FF204",
                op.where,
                f"gather aligns {self._described(op.inputs)}, which are ports of different levels.",
                "Gather each level by itself.",
            )
            return None
        if op.members is not None and (chosen := self.of[op.members]) != known[0]:
            if chosen is not None:
                self._problem(
                    "FF214",
                    op.where,
                    f"gather of {self._described(op.inputs)} takes its members from "
                    f"{self._described([op.members])}.",
                    f"Give members= a port of the level {self.name(known[0])!r}; ff.broadcast brings an "
                    "ancestor's outcomes down.",
                )
            return None
        parent = self.levels[known[0]].parent
        if parent is None:
            self._problem(
                "FF201",
                op.where,
                f"gather of {', '.join(self._quoted(op.inputs))} stands at the root level "
                f"{self.name(ROOT)!r}, which has no parent to gather to.",
                "Gather only what was expanded before; remove this gather.",
            )
        return parent

    def _join(self, what: str, ports: Sequence[int], where: Where) -> int | None:
        """The deepest level of ports that must all lie on one chain of ancestors."""
        known = [level for port in ports if (level := self.of[port]) is not None]
        if len(known) < len(ports):
            return None
        deepest = max(known, key=lambda level: self.levels[level].depth)
        chain = self.chain(deepest)
        for port, level in zip(ports, known, strict=True):
            if level not in chain:
                self._siblings(what, port, level, deepest, where)
                return None
        return deepest

    def _siblings(self, what: str, port: int, level: int, deepest: int, where: Where) -> None:
        chain = self.chain(deepest)
        above = self.chain(level)
        common = next(candidate for candidate in above if candidate in chain)
        steps = [self.name(ancestor) for ancestor in above[1 : above.index(common) + 1]]
        relation = (
            "which are siblings"
            if self.levels[level].parent == self.levels[deepest].parent
            else f"which have only {self.name(common)!r} in common"
        )
        self._problem(
            "FF203",
            where,
            f"{what} joins levels {self.name(deepest)!r} and {self.name(level)!r}, {relation}.",
            f"Gather port {self._name(port)!r} to {' and then to '.join(map(repr, steps))} first.",
        )

    def _same(self, what: str, role: str, port: int, other: int, where: Where) -> int | None:
        level, second = self.of[port], self.of[other]
        if level is None or second is None:
            return None
        if level != second:
            self._problem(
                "FF214",
                where,
                f"{what} of {self._described([port])} has the {role} {self._described([other])}.",
                f"Make the {role} at the level {self.name(level)!r}; ff.broadcast brings an ancestor's "
                "value down.",
            )
            return None
        return level

    def _merge(self, op: MergeOp) -> int | None:
        levels = {self.of[port] for port in op.inputs}
        if len(levels) > 1 and None not in levels:
            self._problem(
                "FF214",
                op.where,
                f"merge joins {self._described(op.inputs)}, which are ports of different levels.",
                "Gather the deeper ones or ff.broadcast the others: a merge does neither by itself.",
            )
        return levels.pop() if len(levels) == 1 else None

    def _broadcast(self, op: BroadcastOp) -> int | None:
        level, target = self.of[op.input], self.of[op.like]
        if level is None or target is None:
            return None
        if level not in self.chain(target):
            self._problem(
                "FF214",
                op.where,
                f"broadcast of {self._described([op.input])} is to be like "
                f"{self._described([op.like])}, but {self.name(level)!r} is no ancestor of "
                f"{self.name(target)!r}.",
                "Broadcast goes down to descendants only; gather the port first.",
            )
            return None
        return target

    # ---------------------------------------------------------------------------------------- words

    def _name(self, port: int) -> str:
        return self.graph.ports[port].name

    def _quoted(self, ports: Iterable[int]) -> list[str]:
        return [repr(self._name(port)) for port in ports]

    def _described(self, ports: Iterable[int]) -> str:
        described = []
        for port in ports:
            level = self.of[port]
            suffix = "" if level is None else f" (level {self.name(level)!r})"
            described.append(f"port {self._name(port)!r}{suffix}")
        return " and ".join(described)

    def _problem(self, code: str, where: Where, message: str, hint: str) -> None:
        self.problems.append(Problem(code, where, message, hint))


def kind_of(op: object) -> str:
    """An operation's name as users write it: ``gather``."""
    return type(op).__name__.removesuffix("Op").lower()
