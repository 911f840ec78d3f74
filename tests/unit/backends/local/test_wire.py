"""Every field of every message survives the journey; only the time is that of the arrival."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from fanfold.backends.base import (
    BackendEvent,
    RecordRefused,
    RecordsWritten,
    WriteFailed,
    WriterClosed,
)
from fanfold.backends.local import wire
from fanfold.failures import Failure
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

REF = (1, 64, 900, 1 << 41)
FAILURE = Failure(kind="raised", message="m", worker="w")
STREAMS = (
    StreamRows(
        3,
        Rows(REF, 2, 900),
        (ControlRows(1, (1, 2), ((0, "x"),), ("b", "c")),),
        ((4, 1, "none", ("a",)),),
        (9,),
        ((5, ("a",), (("b", 3),)),),
        ((6, (), (0.5, 1.5)),),
        ((6, "batch_cost", 1, "'x' (str): ValueError"),),
    ),
    StreamRows(4),
)
EVENTS: list[Event | BackendEvent] = [
    ChildrenReleased(1, 2, 0, (3, 0, 1), STREAMS, 4, 5, 6.0),
    ExpansionSealed(1, 2, (0, 2), 4, 5, 6.0),
    TasksFinished(1, 2, 3, STREAMS, ((2, FAILURE),), 4, 5, 6.0),
    BatchFinished(1, 2.0, 3, 4.0, 5.0, (("Ocr", "words", 7),)),
    BatchRaised(1, FAILURE, 2.0, 3, 4.0, (("Ocr", "words", 7),)),
    WorkerStarted(1, 2.0, 3),
    WorkerFailed(1, FAILURE, 2.0),
    RecordsWritten((1, 2), 3.0),
    RecordRefused(1, Failure(kind="contract", message="m"), 2.0),
    WriteFailed(1, "m", "t", 2.0),
    WriterClosed(1.0),
    BatchPaused(1, 2, 3, 4, 5.0),
]


def without_names(thing: Any) -> bool:
    """Whether there is no named tuple in what is sent, for these are slow."""
    if isinstance(thing, (tuple, list)):
        return type(thing) in (tuple, list) and all(map(without_names, thing))
    return True


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: type(event).__name__)
def test_events_survive_the_journey(event):
    packed = wire.pack_events([event, event])
    assert without_names(packed)
    arrived = wire.unpack_events(pickle.loads(pickle.dumps(packed)), 77.0)
    assert arrived == [event._replace(time_s=77.0)] * 2
    assert type(arrived[0]) is type(event)
    for stream in getattr(arrived[0], "streams", ()):
        assert type(stream) is StreamRows and type(stream.rows) in (Rows, type(None))
        assert all(type(control) is ControlRows for control in stream.controls)


def test_every_event_that_a_process_tells_has_a_code():
    assert {type(event) for event in EVENTS} == set(wire._KINDS)


WHO = (ItemRun("a", (1,), 0, 3), ItemRun("b", (2,), 0, 1))
BATCH = RunBatch(1, 2, 3, (("rows", REF, 0, 3),), 4, 5, (6,))


@pytest.mark.parametrize("batch", [None, BATCH, BATCH._replace(identity=WHO)])
def test_work_survives_the_journey(batch):
    packed = wire.pack_work(batch, (REF,))
    assert without_names(packed)
    arrived, freed, trim, _ = wire.unpack_work(pickle.loads(pickle.dumps(packed)))
    assert (arrived, freed, trim) == (batch, (REF,), None) and type(arrived) is type(batch)
    assert arrived is None or all(type(run) is ItemRun for run in arrived.identity)


def test_granting_survives_the_journey():
    packed = wire.pack_grant(7, 4096)
    assert without_names(packed)
    assert wire.unpack_work(pickle.loads(pickle.dumps(packed))) == wire.Work(grant=(7, 4096))


def test_trimming_survives_the_journey():
    packed = wire.pack_trim(7, 0b101)
    assert without_names(packed)
    assert wire.unpack_work(pickle.loads(pickle.dumps(packed))) == wire.Work(trim=(7, 0b101))
