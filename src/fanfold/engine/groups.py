"""Which group (``batch_by``) each ready item of a call is of, as the producers of its first input told.

Owns the way from the call's first port back to what was told, through structural operations. Groups travel as
plain values with the sets of their rows, so what is asked costs something for each group, not for each item.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Final, NamedTuple, TypeAlias

from fanfold.engine.bits import bit_positions
from fanfold.engine.chunks import Chunk
from fanfold.engine.program import Program
from fanfold.plan import (
    BroadcastNode,
    CallNode,
    ExpandNode,
    FieldNode,
    FilterNode,
    MergeNode,
    Path,
    SplitNode,
)
from fanfold.protocol import NO_GROUP

ReadGroups: TypeAlias = Callable[[Chunk, int], list[tuple[Hashable, int]]]
"""Gives the groups of some items of a chunk that are done at a port, each with its items."""
UNTOLD: Final = object()
"""The group of items of which nobody told any."""


class _Default(NamedTuple):
    """The group of the items whose value is a merge's default: it is the same for all of them."""

    merge: int


class _Alone(NamedTuple):
    """The group of an item that runs alone."""

    chunk: Chunk
    offset: int


def groups_reader(program: Program, call: int) -> ReadGroups:
    """How to find the groups of a call's items."""
    return _reader(program, call, program.plan.call(call).inputs[0].port, ())


def _reader(program: Program, call: int, port: int, path: Path) -> ReadGroups:
    index = program.plan.ports[port].node
    node = None if index is None else program.plan.nodes[index]
    match node:
        case None | CallNode() | ExpandNode():
            return _told(port, call, path)
        case FilterNode() | SplitNode():
            return _reader(program, call, node.input, path)
        case FieldNode():
            return _reader(program, call, node.input, (node.name, *path))
        case BroadcastNode():
            return _of_parents(_reader(program, call, node.input, path))
        case MergeNode():
            inner = [(program.port[p], _reader(program, call, p, path)) for p in node.inputs]
            return _of_the_first_done(inner, _Default(node.index))
        case _:
            raise AssertionError(f"port {port} is on no control path")


def _told(port: int, call: int, path: Path) -> ReadGroups:
    def read(chunk: Chunk, items: int) -> list[tuple[Hashable, int]]:
        told = {} if chunk.groups is None else chunk.groups.get((port, call, path), {})
        found: list[tuple[Hashable, int]] = []
        for group, members in told.items():
            if here := members & items:
                if group is NO_GROUP:
                    found += _each_alone(chunk, here)
                else:
                    found.append((group, here))
                items ^= here
                if not items:
                    return found
        return [*found, (UNTOLD, items)] if items else found

    return read


def _of_parents(inner: ReadGroups) -> ReadGroups:
    def read(chunk: Chunk, items: int) -> list[tuple[Hashable, int]]:
        assert chunk.parent is not None
        found: list[tuple[Hashable, int]] = []
        for group, parents in inner(chunk.parent, chunk.parents_of(items)):
            here = chunk.items_of(parents) & items
            if isinstance(group, _Alone):
                found += _each_alone(chunk, here)
            else:
                found.append((group, here))
        return found

    return read


def _each_alone(chunk: Chunk, items: int) -> list[tuple[Hashable, int]]:
    return [(_Alone(chunk, offset), 1 << offset) for offset in bit_positions(items)]


def _of_the_first_done(parts: list[tuple[int, ReadGroups]], default: _Default) -> ReadGroups:
    def read(chunk: Chunk, items: int) -> list[tuple[Hashable, int]]:
        found: dict[Hashable, int] = {}
        for slot, inner in parts:
            here = items & chunk.done[slot]
            items &= ~here
            for group, members in inner(chunk, here) if here else ():
                found[group] = found.get(group, 0) | members
        if items:
            found[default] = items
        return list(found.items())

    return read
