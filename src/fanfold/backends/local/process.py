"""What a forked process does: run a stage, or write records, until its channel closes.

Owns the loop that connects a channel with a :class:`~fanfold.backends.worker.StageRunner` or a
:class:`~fanfold.backends.base.RecordWriter`.
"""

from __future__ import annotations

import os
import pickle
import signal
import socket
import time
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from fanfold.backends.base import (
    BackendEvent,
    RecordsWritten,
    RecordWriter,
    WriterClosed,
    output_values,
    write_failed,
)
from fanfold.backends.local.channel import WorkerChannel
from fanfold.backends.local.store import ArenaValues, BlockRef
from fanfold.backends.worker import RELEASE_S, StageRunner
from fanfold.failures import Failure
from fanfold.plan import Plan
from fanfold.protocol import (
    BatchEvent,
    BatchFinished,
    BatchRaised,
    Event,
    RootResult,
    RunBatch,
    WorkerFailed,
    WorkerStarted,
)

_THREAD_VARIABLES: Final = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "BLIS_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "RAYON_NUM_THREADS",
)


class Setup(NamedTuple):
    """The first message: what the process is to be."""

    worker: int
    name: str
    stage: int | None
    """None: the writer."""
    payload: bytes
    """By cloudpickle: the plan, or the record writer."""
    arenas: dict[int, int]
    """By number: descriptors, inherited."""
    own_arena: int | None
    used: tuple[BlockRef, ...]
    serials_from: int
    limit_bytes: int


class Work(NamedTuple):
    """To a worker: a batch (or nothing) and the blocks of its arena that are free again."""

    batch: RunBatch | None
    freed: tuple[BlockRef, ...] = ()


class Write(NamedTuple):
    """To the writer: roots to commit, in order."""

    results: tuple[RootResult, ...]


class CloseWriter(NamedTuple):
    """To the writer: close the sinks, there is no more."""


Report = Sequence[Event | BackendEvent]


def main(channel_fd: int, threads: int) -> int:
    """Serve the channel until it closes; the exit code."""
    for variable in _THREAD_VARIABLES:
        os.environ[variable] = str(threads)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    channel = WorkerChannel(socket.socket(fileno=channel_fd))
    setup = channel.receive()
    if setup is None:
        return 0
    try:
        if setup.stage is None:
            _serve_writer(setup, channel)
        else:
            _serve_stage(setup, channel)
    except (BrokenPipeError, ConnectionResetError):
        return 0  # the driver is gone; so are we
    return 0


def _values(setup: Setup) -> ArenaValues:
    return ArenaValues(
        setup.arenas,
        setup.own_arena,
        setup.used,
        serials_from=setup.serials_from,
        limit_bytes=setup.limit_bytes,
    )


def _serve_stage(setup: Setup, channel: WorkerChannel) -> None:
    values = _values(setup)
    reporter = _Reporter(channel)
    try:
        plan: Plan = pickle.loads(setup.payload)
        assert setup.stage is not None
        runner = StageRunner(plan, setup.stage, values, reporter.emit, worker=setup.name)
        runner.construct()
    except BaseException as error:
        channel.send(
            [WorkerFailed(setup.worker, Failure.from_exception(error, worker=setup.name))]
        )
        return
    channel.send([WorkerStarted(setup.worker, pid=os.getpid())])
    while True:
        started = time.perf_counter()
        work: Work | None = channel.receive()
        if work is None:
            return
        if work.freed:
            values.free(work.freed)
        if work.batch is not None:
            reporter.begin()
            runner.run(work.batch, wait_s=time.perf_counter() - started)


class _Reporter:
    """Sends events together where they come together, and at once where a batch takes long."""

    def __init__(self, channel: WorkerChannel) -> None:
        self._channel = channel
        self._events: list[BatchEvent] = []
        self._sent_s = 0.0

    def begin(self) -> None:
        self._sent_s = time.perf_counter()

    def emit(self, event: BatchEvent) -> None:
        self._events.append(event)
        now = time.perf_counter()
        if isinstance(event, (BatchFinished, BatchRaised)) or now - self._sent_s >= RELEASE_S:
            self._channel.send(self._events)
            self._events = []
            self._sent_s = now


def _serve_writer(setup: Setup, channel: WorkerChannel) -> None:
    values = _values(setup)
    try:
        writer: RecordWriter = pickle.loads(setup.payload)
        writer.open()
    except BaseException as error:
        channel.send([write_failed(-1, error)])
        return
    while True:
        message: Write | CloseWriter | None = channel.receive()
        if message is None:
            return  # the driver is gone; what is committed stays as it is
        if isinstance(message, CloseWriter):
            try:
                writer.close()
            except BaseException as error:
                channel.send([write_failed(-1, error)])
            else:
                channel.send([WriterClosed()])
            return
        written: list[int] = []
        report: list[Any] = []
        for result in message.results:
            try:
                writer.write(result, output_values(result, values.read))
            except BaseException as error:
                report.append(write_failed(result.root, error))
                break
            written.append(result.root)
        channel.send([RecordsWritten(tuple(written)), *report])
