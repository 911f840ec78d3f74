"""Origins: which calls and sources make the values of a port, seen through the structural operations.

Owns the control path: a mask, a label or a field that the plan reads is followed back to every producer,
so that whoever makes the values can report on them. Checks masks, labels and fields on the way. Reads the
traced graph only.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

from fanfold.columns import get_field
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
from fanfold.plan import Path, Where


@dataclass(frozen=True, slots=True)
class Made:
    """Rows of a source, a call's output or an expand's output, and the path into them."""

    port: int
    path: Path
    in_record: bool = False
    """Whether the way to it leads out of a record."""


@dataclass(frozen=True, slots=True)
class Fixed:
    """A constant: a merge's default or a record's field."""

    value: Any
    what: str
    in_record: bool = False


@dataclass(frozen=True, slots=True)
class Opaque:
    """A value that no producer has: a gathered list, a generator's list of children, a record."""

    what: str


@dataclass(frozen=True, slots=True)
class Lacking:
    """A field that is certain not to be there."""

    what: str


Origin: TypeAlias = Made | Fixed | Opaque | Lacking


def origins(graph: Graph, port: int, path: Path = ()) -> list[Origin]:
    """Where the values of ``port`` (or of the field ``path`` of them) come from, each place once."""
    found: list[Origin] = []
    todo = [(port, path, False)]
    seen = set(todo)
    while todo:
        place = todo.pop()
        port, path, in_record = place
        for part in _step(graph, port, path, in_record):
            if not isinstance(part, tuple):
                found.append(part)
            elif part not in seen:
                seen.add(part)
                todo.append(part)
    return found


_Place: TypeAlias = tuple[int, Path, bool]


def _step(graph: Graph, port: int, path: Path, in_record: bool) -> Iterator[_Place | Origin]:
    """One operation back: places to look at next, or origins."""
    op = graph.producer(port)
    match op:
        case None | ExpandOp():
            yield Made(port, path, in_record)
        case CallOp():
            if op.stage.generator:
                yield Opaque(f"the whole list of children of generator {op.name!r}")
            else:
                yield Made(port, path, in_record)
        case FieldOp():
            yield op.input, (op.name, *path), in_record
        case FilterOp() | SplitOp() | BroadcastOp():
            yield op.input, path, in_record
        case MergeOp():
            yield from ((part, path, in_record) for part in op.inputs)
            if op.default is not None:
                yield _fixed(op.default.value, path, "merge's default", op.where, in_record)
        case GatherOp():
            yield Opaque(f"the gathered list {graph.ports[port].name!r}")
        case RecordOp() if not path:
            yield Opaque("a record")
        case RecordOp():
            yield from _in_record(op, path)
        case _:
            return


def _in_record(op: RecordOp, path: Path) -> Iterator[_Place | Origin]:
    fields = dict(op.fields)
    if path[0] not in fields:
        yield Lacking(f"the record of {op.where.short()} with the fields {', '.join(fields)}")
        return
    part = fields[path[0]]
    if isinstance(part, int):
        yield part, path[1:], True
    else:
        yield _fixed(part.value, path[1:], f"the record's field {path[0]!r}", op.where, True)


def _fixed(value: Any, path: Path, what: str, where: Where, in_record: bool) -> Origin:
    for name in path:
        try:
            value = get_field(value, name)
        except LookupError:
            return Lacking(f"{what} {value!r} of {where.short()}")
    return Fixed(value, what, in_record)


def check_origins(graph: Graph) -> list[Problem]:
    """What is wrong with the masks, labels and fields of a graph; nothing twice along one chain."""
    problems: list[Problem] = []
    bad: set[int] = set()
    for op in graph.ops:
        found: list[Problem] = []
        if isinstance(op, FieldOp):
            if op.input not in bad:
                found = list(_check_field(graph, op))
            if found or op.input in bad:
                bad.update(op.outputs)
        elif isinstance(op, FilterOp) and op.mask not in bad:
            found = list(_check_control(graph, op, "filter", "mask", op.mask))
        elif isinstance(op, SplitOp) and op.by not in bad:
            found = list(_check_control(graph, op, "split", "label", op.by))
        elif isinstance(op, CallOp):
            options = op.stage.options
            if options.batch_by is not None or options.batch_cost is not None:
                found = list(_check_judged(graph, op, op.inputs[0].port))
        problems += found
    return problems


def _check_field(graph: Graph, op: FieldOp) -> Iterator[Problem]:
    port = graph.ports[op.input].name
    for origin in origins(graph, op.input, (op.name,)):
        if isinstance(origin, Opaque):
            yield Problem(
                "FF215",
                op.where,
                f"field {op.name!r} is read of port {port!r}, but that is {origin.what}.",
                "Read the field of each child instead, or take the list apart in a stage.",
            )
            return
        if isinstance(origin, Lacking):
            yield Problem(
                "FF215",
                op.where,
                f"field {op.name!r} is read of port {port!r}, but {origin.what} lacks it.",
                "Read a field that is there.",
            )
            return


def _check_control(
    graph: Graph, op: FilterOp | SplitOp, what: str, role: str, port: int
) -> Iterator[Problem]:
    name = graph.ports[port].name
    hint = (
        f"Take the {role} from a call or a source, or from a field of what one made, also through "
        "expand, filter, split, merge or broadcast."
    )
    for origin in origins(graph, port):
        match origin:
            case Opaque(what=reason):
                message = f"{what}: the {role} {name!r} is {reason}."
            case Made(in_record=True) | Fixed(in_record=True):
                message = f"{what}: the {role} {name!r} is read out of a record."
                hint = "Use the port that the record was made of."
            case Fixed(value=value, what=reason) if not _is_legal(op, value):
                message = f"{what}: {reason} {value!r} is no legal {role}."
                hint = "A mask is a bool; a label is one of those in into."
            case _:
                continue
        yield Problem("FF213", op.where, message, hint)
        return


def _check_judged(graph: Graph, op: CallOp, port: int) -> Iterator[Problem]:
    """The first input of a call with ``batch_by`` or ``batch_cost`` is one that its producers can judge."""
    name = graph.ports[port].name
    for origin in origins(graph, port):
        if isinstance(origin, Opaque):
            reason = f"is {origin.what}, of which no single worker makes the values"
        elif isinstance(origin, Made | Fixed) and origin.in_record:
            reason = "is read out of a record"
        else:
            continue
        yield Problem(
            "FF216",
            op.where,
            f"call {op.name!r} batches by its first input, but {name!r} {reason}.",
            "Put a port first that a call or a source makes, or a field of one, also through expand, filter, "
            "split, merge or broadcast; or leave batch_by and batch_cost out.",
        )
        return


def _is_legal(op: FilterOp | SplitOp, value: Any) -> bool:
    if isinstance(op, FilterOp):
        return isinstance(value, bool)
    try:
        return op.rest or value in op.labels
    except TypeError:  # a label that is not hashable or comparable
        return False
