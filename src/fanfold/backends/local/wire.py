"""The frequent messages as plain tuples, because these pickle ten times as fast as named ones.

Owns that translation: batches on their way to workers, events on their way back. Every field travels; events
get the time at which they arrive.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple, TypeAlias

from fanfold.backends.base import (
    BackendEvent,
    RecordRefused,
    RecordsWritten,
    WriteFailed,
    WriterClosed,
)
from fanfold.backends.local.store import BlockRef
from fanfold.protocol import (
    BatchFinished,
    BatchPaused,
    BatchRaised,
    ChildrenReleased,
    ControlRows,
    Event,
    ExpansionSealed,
    ItemRun,
    Rows,
    RunBatch,
    StreamRows,
    TasksFinished,
    WorkerFailed,
    WorkerStarted,
)

Packed: TypeAlias = tuple[Any, ...]

_KINDS: Final[tuple[type[Any], ...]] = (
    ChildrenReleased,
    ExpansionSealed,
    TasksFinished,
    BatchFinished,
    BatchRaised,
    WorkerStarted,
    WorkerFailed,
    RecordsWritten,
    RecordRefused,
    WriteFailed,
    WriterClosed,
    BatchPaused,
)
_CODES: Final[dict[type[Any], int]] = {kind: code for code, kind in enumerate(_KINDS)}
_PLACES: Final = tuple(
    (
        kind,
        kind._fields.index("time_s"),
        kind._fields.index("streams") if "streams" in kind._fields else None,
    )
    for kind in _KINDS
)
"""By code: the kind, where its time is, where its streams are."""


def pack_events(events: Sequence[Event | BackendEvent]) -> list[Packed]:
    """Events as plain tuples."""
    packed: list[Packed] = []
    for event in events:
        code = _CODES[type(event)]
        streams_at = _PLACES[code][2]
        if streams_at is None:
            packed.append((code, *event))
        else:
            fields: list[Any] = [code, *event]
            fields[streams_at + 1] = [
                (
                    stream.port,
                    None if stream.rows is None else tuple(stream.rows),
                    [tuple(control) for control in stream.controls],
                    stream.missing,
                    stream.sizes,
                    stream.groups,
                    stream.costs,
                    stream.untold,
                )
                for stream in fields[streams_at + 1]
            ]
            packed.append(tuple(fields))
    return packed


def unpack_events(packed: Sequence[Packed], time_s: float) -> list[Event | BackendEvent]:
    """What :func:`pack_events` was given, with the time at which it arrived."""
    events: list[Event | BackendEvent] = []
    for code, *fields in packed:
        kind, time_at, streams_at = _PLACES[code]
        fields[time_at] = time_s
        if streams_at is not None:
            fields[streams_at] = tuple(
                StreamRows(
                    port,
                    None if rows is None else Rows._make(rows),
                    tuple(map(ControlRows._make, controls)),
                    missing,
                    *told,
                )
                for port, rows, controls, missing, *told in fields[streams_at]
            )
        events.append(kind._make(fields))
    return events


class Work(NamedTuple):
    """What a worker is sent."""

    batch: RunBatch | None = None
    freed: tuple[BlockRef, ...] = ()
    """Blocks of its arena that are free again."""
    trim: tuple[int, int] | None = None
    """A batch that was sent before, and which of its tasks need not run any more: a bit for each."""
    grant: tuple[int, int] | None = None
    """A batch that was sent before, and how many more bytes of children it may release."""


def pack_grant(batch: int, room: int) -> Packed:
    """To a worker: a batch may release so many more bytes of children."""
    return None, (), None, (batch, room)


def pack_trim(batch: int, tasks: int) -> Packed:
    """To a worker: some tasks of a batch need not run any more."""
    return None, (), (batch, tasks)


def pack_work(batch: RunBatch | None, freed: tuple[BlockRef, ...]) -> Packed:
    """To a worker: a batch (or nothing) and the blocks of its arena that are free again."""
    if batch is None:
        return None, freed
    if not batch.identity:
        return tuple(batch), freed
    return tuple(batch._replace(identity=tuple(map(tuple, batch.identity)))), freed  # type: ignore[arg-type]


def unpack_work(packed: Packed) -> Work:
    """What :func:`pack_work`, :func:`pack_trim` or :func:`pack_grant` was given."""
    fields, freed, *others = packed
    if fields is None:
        return Work(None, freed, *others)
    batch = RunBatch._make(fields)
    if batch.identity:
        batch = batch._replace(identity=tuple(map(ItemRun._make, batch.identity)))
    return Work(batch, freed)
