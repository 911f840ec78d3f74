"""What a forked process does: run a stage, or write records, until its channel closes.

Owns the loop that connects a channel with a :class:`~fanfold.backends.worker.StageRunner` or a
:class:`~fanfold.backends.base.RecordWriter`.
"""

from __future__ import annotations

import atexit
import faulthandler
import os
import pickle
import signal
import socket
import sys
from collections.abc import Callable, Sequence
from typing import Final

from fanfold.backends.ahead import Ahead
from fanfold.backends.base import (
    BackendEvent,
    RecordsWritten,
    RecordWriter,
    WriterClosed,
    worker_failed,
    write_failed,
    write_root,
)
from fanfold.backends.local.board import Board
from fanfold.backends.local.channel import WorkerChannel
from fanfold.backends.local.companion import Companion
from fanfold.backends.local.inbox import Inbox
from fanfold.backends.local.messages import CloseWriter, Setup, Write
from fanfold.backends.local.node import Node
from fanfold.backends.local.store import ArenaValues
from fanfold.backends.local.wire import pack_events, unpack_work
from fanfold.backends.own_memory import refuse_grown
from fanfold.backends.stage_plan import StagePlan
from fanfold.backends.worker import Once, StageRunner
from fanfold.protocol import Event, WorkerStarted

THREAD_VARIABLES: Final = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "BLIS_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "NUMEXPR_MAX_THREADS",
    "RAYON_NUM_THREADS",
)


def main(channel_fd: int, threads: int, gpus: tuple[str, ...] | None = None) -> int:
    """Serve the channel until it closes; the exit code.

    Args:
        channel_fd: Descriptor of the socket to the driver.
        threads: What libraries should size their thread pools to; set before any of them is imported.
        gpus: GPUs that this process is to see; None: as it is. Users' code is imported later.
    """
    for variable in THREAD_VARIABLES:
        os.environ[variable] = str(threads)
    if gpus is not None:
        os.environ["CUDA_VISIBLE_DEVICES"] = ",".join(gpus)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    faulthandler.enable()  # where native code died is the best of a log's last words
    for stream in (sys.stdout, sys.stderr):
        # The log is a file: without it, what a worker printed last would be lost with the worker.
        stream.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    os.set_inheritable(channel_fd, False)  # it came over a socket, which leaves that out
    channel = WorkerChannel(socket.socket(fileno=channel_fd))
    try:
        setup = channel.receive()
        if setup is not None:
            (_serve_writer if setup.writes else _serve_stage)(setup, channel)
    except (BrokenPipeError, ConnectionResetError):
        return 0  # the driver is gone; so are we
    atexit._run_exitfuncs()  # what users' libraries have registered
    return 0


def _values(setup: Setup) -> ArenaValues:
    return ArenaValues(
        setup.arenas,
        None if setup.writes else setup.worker,
        setup.used,
        serials_from=setup.serials_from,
        limit_bytes=setup.limit_bytes,
        keep_bytes=setup.keep_bytes,
    )


def _serve_stage(setup: Setup, channel: WorkerChannel) -> None:
    values, board, number = _values(setup), Board(setup.board), setup.worker
    pid = os.getpid()

    def emit(events: Sequence[Event | BackendEvent]) -> None:
        if os.getpid() != pid:  # users' code forked, and its child came back out of it
            os._exit(0)
        channel.send(pack_events(events))

    try:
        plan: StagePlan = pickle.loads(setup.payload)
    except BaseException as error:
        emit([worker_failed(number, error, setup.name)])
        return
    once = Node(setup.node).once
    if plan.stage.asynchronous:
        _serve_asynchronous(setup, channel, plan, values, emit, board, once)
        return
    inbox = Inbox(
        lambda: None if (packed := channel.receive()) is None else unpack_work(packed),
        lambda: map(unpack_work, channel.arrived()),
        values.free,
    )
    ahead = Ahead(
        values.read, values.read_ahead, inbox.following, lambda batch: runner.prepare(batch)
    )
    companion = Companion(emit, inbox.fetch, ahead.prepare)
    runner = StageRunner(
        plan,
        values,
        companion.emit,
        worker=setup.name,
        run=setup.run,
        once=once,
        later=companion.later,
        read=ahead.read,
    )
    try:
        runner.construct()
        refuse_grown(plan.stage)
    except BaseException as error:
        emit([worker_failed(number, error, setup.name)])
        return
    try:
        emit([WorkerStarted(number, pid=pid)])
        inbox.serve(runner, lambda batch: board.begin(number, batch), lambda: board.clear(number))
    finally:
        companion.close()
        runner.close()  # also if the run has ended before it could report


def _serve_asynchronous(
    setup: Setup,
    channel: WorkerChannel,
    plan: StagePlan,
    values: ArenaValues,
    emit: Callable[[Sequence[Event | BackendEvent]], None],
    board: Board,
    once: Once,
) -> None:
    import asyncio  # 20 ms that most workers save

    from fanfold.backends.asynchronous import AsyncRunner
    from fanfold.backends.local.looping import Host, serve

    def note(under_way: Sequence[int]) -> None:
        if under_way:
            board.begin(setup.worker, under_way[0], len(under_way))
        else:
            board.clear(setup.worker)

    def attach(host: Host) -> None:
        asyncio.get_running_loop().add_reader(channel.fileno(), hear, host)

    def hear(host: Host) -> None:
        try:
            messages = channel.receive_some()
        except OSError:
            messages = None
        if messages is None:
            asyncio.get_running_loop().remove_reader(channel.fileno())
            host.stop()
            return
        for packed in messages:
            message = unpack_work(packed)
            values.free(message.freed)
            host.take(message)

    runner = AsyncRunner(plan, values, emit, worker=setup.name, run=setup.run, once=once)
    runner.note = note
    serve(runner, setup.worker, setup.name, os.getpid(), emit, attach)


def _serve_writer(setup: Setup, channel: WorkerChannel) -> None:
    values = _values(setup)

    def emit(events: Sequence[BackendEvent]) -> None:
        channel.send(pack_events(events))

    try:
        writer: RecordWriter = pickle.loads(setup.payload)
        writer.open()
    except BaseException as error:
        emit([write_failed(-1, error)])
        return
    broken = False
    while True:
        message: Write | CloseWriter | None = channel.receive()
        if message is None:
            return  # the driver is gone; what is committed stays as it is
        if isinstance(message, CloseWriter):
            try:
                writer.close()
            except BaseException as error:
                emit([write_failed(-1, error)])
            else:
                emit([WriterClosed()])
            return
        if broken:
            continue  # the driver stops the run; what is written now would not be counted
        written: list[int] = []
        report: list[BackendEvent] = []
        for result in message.results:
            try:
                refused = write_root(writer, result, values.read, (BaseException,))
            except BaseException as error:
                report.append(write_failed(result.root, error))
                broken = True
                break
            if refused is None:
                written.append(result.root)
            else:
                report.append(refused)
        emit([RecordsWritten(tuple(written)), *report] if written else report)
