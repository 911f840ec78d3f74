"""The local backend: worker processes on this machine, values in shared arenas, no server.

Owns the driver's side: which process is which worker, what is at each, which blocks of an arena are in use.
Nothing here blocks but :meth:`LocalBackend.poll`, and that only as long as it is told.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

from fanfold.backends.base import BackendEvent, RecordWriter, WorkerSpec, WriteFailed, WriterClosed
from fanfold.backends.local.channel import DriverChannel
from fanfold.backends.local.process import CloseWriter, Setup, Work, Write
from fanfold.backends.local.store import ArenaValues, BlockRef
from fanfold.backends.local.zygote import Ended, Fork, Forked
from fanfold.blocks.arena import create
from fanfold.columns import Column, Ref
from fanfold.errors import DefinitionError, SetupError
from fanfold.plan import Plan
from fanfold.protocol import (
    BatchFinished,
    BatchRaised,
    Event,
    RootResult,
    Rows,
    RunBatch,
    TasksFinished,
    ChildrenReleased,
    WorkerDied,
    WorkerFailed,
    WorkerStarted,
)

_DRIVER_ARENA: Final = -1
_WRITER: Final = -2
_CLOSE_S: Final = 5.0
_FREE_SOON: Final = 64
"""Freed blocks after which an idle worker is told of them."""
_SERIALS_PER_LIFE: Final = 1 << 40


class _Process:
    """One forked process as the driver knows it."""

    def __init__(self, number: int, name: str, log: int) -> None:
        self.number = number
        self.name = name
        self.log = log
        self.channel: DriverChannel | None = None
        self.pid = 0
        self.started = False
        self.batches: list[int] = []
        self.freed: list[BlockRef] = []
        self.used: set[BlockRef] = set()
        self.lives = 0
        self.ending = False
        """The writer: it told all that it had to tell."""


class LocalBackend:
    """Worker processes, forked from a zygote of the run's own.

    Args:
        log_dir: Where workers' output goes (``NAME.log`` each); None: unnamed temporary files.
        arena_dir: Keep values in mapped files of this directory instead of anonymous memory.
        arena_limit_bytes: How much one worker's arena may hold; None: the machine's memory.
    """

    def __init__(
        self,
        *,
        log_dir: Path | None = None,
        arena_dir: str | None = None,
        arena_limit_bytes: int | None = None,
    ) -> None:
        self._log_dir = log_dir
        self._arena_dir = arena_dir or os.environ.get("FANFOLD_ARENA_DIR")
        self._limit = arena_limit_bytes or os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        self._selector = selectors.DefaultSelector()
        self._processes: dict[int, _Process] = {}
        self._specs: dict[int, WorkerSpec] = {}
        self._arenas: dict[int, int] = {}
        self._zygote: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None
        self._values: ArenaValues | None = None
        self._plan: Plan | None = None
        self._payload = b""
        self._writer_payload = b""
        self._told: list[Event | BackendEvent] = []
        self._unsent: dict[int, _Process] = {}
        self._closed = False

    # ------------------------------------------------------------------------------ starting

    def start(
        self, plan: Plan, workers: Sequence[WorkerSpec], writer: RecordWriter | None
    ) -> None:
        self._plan = plan
        self._payload = _pickled_plan(plan)
        self._specs = {spec.worker: spec for spec in workers}
        for number in (*self._specs, _DRIVER_ARENA):
            self._arenas[number] = create(f"arena{number}", directory=self._arena_dir)
        self._values = ArenaValues(self._arenas, _DRIVER_ARENA, limit_bytes=self._limit)
        self._start_zygote()
        if writer is not None:
            self._writer_payload = _by_value(writer, "the sink")
            self._fork(self._process(_WRITER, "writer"), threads=1)
        for spec in workers:
            process = self._process(spec.worker, spec.name)
            self._fork(process, threads=plan.stages[spec.stage].cpus)

    def _process(self, number: int, name: str) -> _Process:
        if self._log_dir is None:
            log, path = tempfile.mkstemp(prefix="fanfold-log-")
            os.unlink(path)
        else:
            self._log_dir.mkdir(parents=True, exist_ok=True)
            file = self._log_dir / f"{name.replace('/', '_')}.log"
            log = os.open(file, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        process = self._processes[number] = _Process(number, name, log)
        return process

    def _start_zygote(self) -> None:
        kind = getattr(socket, "SOCK_SEQPACKET", socket.SOCK_DGRAM)
        ours, theirs = socket.socketpair(socket.AF_UNIX, kind)
        inherited = (theirs.fileno(), *self._arenas.values())
        code = (
            "import sys; fd, driver, *sys.path[:] = sys.argv[1:]; "
            "from fanfold.backends.local.zygote import main; main([fd, driver])"
        )
        with contextlib.closing(theirs):
            self._zygote = subprocess.Popen(
                [
                    sys.executable,
                    *subprocess._args_from_interpreter_flags(),  # type: ignore[attr-defined]
                    "-c",
                    code,
                    str(theirs.fileno()),
                    str(os.getpid()),
                    *(os.path.abspath(entry) for entry in sys.path),
                ],
                stdin=subprocess.DEVNULL,
                pass_fds=inherited,
                close_fds=True,
            )
        self._control = ours
        self._selector.register(ours, selectors.EVENT_READ, None)

    def _fork(self, process: _Process, *, threads: int) -> None:
        assert self._control is not None
        process.lives += 1
        ours, theirs = socket.socketpair()
        with contextlib.closing(theirs):
            try:
                socket.send_fds(
                    self._control,
                    [pickle.dumps(Fork(process.number, threads))],
                    [theirs.fileno(), process.log],
                )
            except OSError as error:
                raise self._zygote_gone() from error
        process.channel = DriverChannel(ours)
        process.started = False
        self._selector.register(ours, selectors.EVENT_READ, process)
        spec = self._specs.get(process.number)
        own = None if spec is None else process.number
        self._send(
            process,
            Setup(
                worker=process.number,
                name=process.name,
                stage=None if spec is None else spec.stage,
                payload=self._writer_payload if spec is None else self._payload,
                arenas=dict(self._arenas),
                own_arena=own,
                used=tuple(process.used),
                serials_from=process.lives * _SERIALS_PER_LIFE,
                limit_bytes=self._limit,
            ),
        )
        process.freed.clear()  # what is free is not among ``used``

    def restart(self, worker: int) -> None:
        assert self._plan is not None
        threads = self._plan.stages[self._specs[worker].stage].cpus
        self._fork(self._processes[worker], threads=threads)

    # ------------------------------------------------------------------------------ work and values

    def submit(self, worker: int, batch: RunBatch) -> None:
        process = self._processes[worker]
        process.batches.append(batch.batch)
        freed, process.freed = tuple(process.freed), []
        self._send(process, Work(batch, freed))

    def write(self, results: Sequence[RootResult]) -> None:
        self._send(self._processes[_WRITER], Write(tuple(results)))

    def close_writer(self) -> None:
        self._send(self._processes[_WRITER], CloseWriter())

    def put(self, values: Sequence[Any]) -> Rows:
        assert self._values is not None
        return self._values.put(_DRIVER_ARENA, values)

    def read(self, column: Column) -> list[Any]:
        assert self._values is not None
        return self._values.read([column])[0]

    def release(self, refs: Iterable[Ref]) -> None:
        for ref in refs:
            assert isinstance(ref, BlockRef)
            if ref.arena == _DRIVER_ARENA:
                assert self._values is not None
                self._values.free((ref,))
                continue
            process = self._processes[ref.arena]
            process.used.discard(ref)
            process.freed.append(ref)
            if len(process.freed) >= _FREE_SOON and not process.batches and process.started:
                freed, process.freed = tuple(process.freed), []
                self._send(process, Work(None, freed))

    def _send(self, process: _Process, message: object) -> None:
        """Have a message sent with the next poll, together with others for the same process."""
        if process.channel is not None:
            process.channel.post(message)
            self._unsent[process.number] = process

    def _flush(self) -> None:
        for process in self._unsent.values():
            channel = process.channel
            if channel is not None:
                channel.flush()
                if channel.waiting:
                    both = selectors.EVENT_READ | selectors.EVENT_WRITE
                    self._selector.modify(channel.socket, both, process)
        self._unsent.clear()

    # ------------------------------------------------------------------------------ what happened

    def poll(self, timeout_s: float | None) -> list[Event | BackendEvent]:
        self._flush()
        if not self._told:
            for key, mask in self._selector.select(timeout_s):
                process: _Process | None = key.data
                if process is None:
                    self._hear_zygote()
                    continue
                if mask & selectors.EVENT_WRITE and process.channel is not None:
                    process.channel.flush()
                    if not process.channel.waiting:
                        self._selector.modify(key.fileobj, selectors.EVENT_READ, process)
                if mask & selectors.EVENT_READ:
                    self._hear(process)
        events, self._told = self._told, []
        now = time.monotonic()
        return [event._replace(time_s=now) for event in events]

    def _hear(self, process: _Process) -> None:
        """Take in what a process has sent."""
        channel = process.channel
        if channel is None:
            return
        for report in channel.receive():
            for event in report:
                match event:
                    case BatchFinished() | BatchRaised():
                        process.batches.remove(event.batch)
                    case TasksFinished() | ChildrenReleased():
                        for stream in event.streams:
                            if stream.rows is not None:
                                process.used.add(stream.rows.ref)
                    case WorkerStarted():
                        process.started = True
                    case WorkerFailed():
                        process.started = True  # its end is no death
                        process.batches.clear()
                    case WriterClosed():
                        process.ending = True
                    case WriteFailed():
                        process.ending = event.root < 0
                self._told.append(event)
        if channel.closed:
            self._selector.unregister(channel.socket)
            channel.close()
            process.channel = None

    def _hear_zygote(self) -> None:
        assert self._control is not None
        try:
            data = self._control.recv(4096)
        except OSError:
            data = b""
        if not data:
            raise self._zygote_gone()
        message = pickle.loads(data)
        process = self._processes[message.worker]
        match message:
            case Forked():
                process.pid = message.pid
            case Ended():
                self._bury(process, message)

    def _bury(self, process: _Process, ended: Ended) -> None:
        """A process ended: take in its last words, then tell of its death."""
        if process.channel is not None:
            self._hear(process)
        if process.channel is not None:  # something it started still holds the other end
            self._selector.unregister(process.channel.socket)
            process.channel.close()
            process.channel = None
        if any(isinstance(e, WorkerFailed) and e.worker == process.number for e in self._told):
            return
        if process.ending:
            return
        if process.number == _WRITER:
            raise SetupError(
                "FF404",
                f"the process that writes records {_reason(ended.status)}.",
                f"Its last output: {self.worker_log_tail(_WRITER) or '(none)'}",
            )
        running = process.batches[0] if process.batches else None
        process.batches.clear()
        self._told.append(
            WorkerDied(process.number, _reason(ended.status), running=running)
        )

    def _zygote_gone(self) -> SetupError:
        return SetupError(
            "FF405",
            "the process that starts workers ended, and all workers with it.",
            "The system may have ended it for want of memory; its log has the last words.",
        )

    def worker_log_tail(self, worker: int, limit_bytes: int = 4_096) -> str:
        process = self._processes.get(worker)
        if process is None:
            return ""
        size = os.fstat(process.log).st_size
        data = os.pread(process.log, limit_bytes, max(0, size - limit_bytes))
        return data.decode(errors="replace")

    # ------------------------------------------------------------------------------ ending

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        for process in self._processes.values():
            if process.channel is not None:
                process.channel.close()
        if self._control is not None:
            self._control.close()
        if self._zygote is not None:
            try:
                self._zygote.wait(_CLOSE_S)
            except subprocess.TimeoutExpired:
                self._zygote.kill()
                self._zygote.wait()
        for process in self._processes.values():
            os.close(process.log)
        for descriptor in self._arenas.values():
            os.close(descriptor)
        self._selector.close()


def _reason(status: int) -> str:
    """How a process ended, in words."""
    code = os.waitstatus_to_exitcode(status)
    if code < 0:
        with contextlib.suppress(ValueError):
            return f"was killed by {signal.Signals(-code).name}"
        return f"was killed by signal {-code}"
    return f"exited with code {code}"


def _by_value(thing: object, what: str) -> bytes:
    import cloudpickle

    try:
        blob: bytes = cloudpickle.dumps(thing, protocol=5)
        return blob
    except Exception as error:
        raise DefinitionError(
            "FF406",
            f"{what} cannot be sent to a worker process: {type(error).__name__}: {error}.",
            "Open files, connections and locks belong into the stage's constructor, which runs in the "
            'worker; or run with backend="inline".',
        ) from error


def _pickled_plan(plan: Plan) -> bytes:
    """The plan for workers; where that fails, the guilty stage is named."""
    try:
        return _by_value(plan, "the pipeline")
    except DefinitionError:
        for stage in plan.stages:
            _by_value(stage, f"stage {stage.name!r}")
        raise


