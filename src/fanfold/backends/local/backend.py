"""The local backend: worker processes and threads on this machine, values in shared arenas, no server.

Owns the driver's side: which process or thread is which worker, what their messages mean, what becomes of the
dead.
Nothing here blocks but :meth:`LocalBackend.poll`, as long as it is told, and :meth:`LocalBackend.close`.
"""

from __future__ import annotations

import os
import selectors
import socket
import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final, Literal, cast

from fanfold.backends.base import (
    NO_RUN,
    BackendEvent,
    RecordRefused,
    RecordsWritten,
    RecordWriter,
    RunFacts,
    WorkerSpec,
    WriteFailed,
    WriterClosed,
)
from fanfold.backends.local.board import Board
from fanfold.backends.local.channel import DriverChannel
from fanfold.backends.local.limits import allow_descriptors
from fanfold.backends.local.member import Holding, Member
from fanfold.backends.local.messages import CloseWriter, Ended, Fork, Setup, Write
from fanfold.backends.local.node import Node
from fanfold.backends.local.nursery import Nursery, reason
from fanfold.backends.local.shelf import SHELF, Shelf, ThreadValues
from fanfold.backends.local.shipping import hide_secrets, ship
from fanfold.backends.local.spill import Spill, spill_file
from fanfold.backends.local.store import SPILLED, BlockRef
from fanfold.backends.local.threads import Bell, Lease, ThreadWorker
from fanfold.backends.local.wire import pack_grant, pack_trim, pack_work, unpack_events
from fanfold.backends.local.zygote import CLOSE_S, GRACE_S
from fanfold.backends.readers import leaving
from fanfold.backends.stage_plan import StagePlan, stage_plan
from fanfold.backends.standard_streams import occupy
from fanfold.backends.values import Unstorable
from fanfold.blocks.arena import ARENA_BYTES, create
from fanfold.columns import Column, Ref, references
from fanfold.errors import SetupError
from fanfold.plan import Plan
from fanfold.protocol import (
    BatchFinished,
    BatchRaised,
    BlocksSpilled,
    ChildrenReleased,
    Event,
    RootResult,
    Rows,
    RunBatch,
    TasksFinished,
    WorkerDied,
    WorkerFailed,
    WorkerStarted,
)
from fanfold.secret import redacted

ARENA_DIR_VARIABLE: Final = "FANFOLD_ARENA_DIR"
"""Names a directory for mapped files in the place of anonymous memory."""
KEPT_SHARE: Final = 0.25
"""So much of a run's budget may lie free in arenas, to be used again: fresh memory is slow."""
KEPT_BYTES: Final = 4 * 1024 * 1024
"""Each arena keeps at least so much."""
_DRIVER_ARENA: Final = -1
_WRITER: Final = -2
_SERIALS_PER_LIFE: Final = 1 << 40


class LocalBackend:
    """Worker processes, forked from a zygote of the run's own, and worker threads of this process.

    Args:
        workers: What all workers are, whatever their stages say; None: what they say.
        log_dir: Where workers' output goes (``NAME.log`` each); None: unnamed temporary files.
        arena_dir: Keep values in mapped files of this directory instead of anonymous memory; by default what
            the environment variable ``FANFOLD_ARENA_DIR`` says.
        arena_limit_bytes: How much one worker's arena may hold; None: the machine's memory.
        spill_dir: Where values go that have no room in memory, a folder on a disk; by default what the
            environment variable ``FANFOLD_SPILL_DIR`` says, else the folder for temporary files.
    """

    def __init__(
        self,
        *,
        workers: Literal["process", "thread"] | None = None,
        log_dir: Path | None = None,
        arena_dir: str | None = None,
        arena_limit_bytes: int | None = None,
        spill_dir: str | None = None,
    ) -> None:
        self._kind = workers
        self._log_dir = log_dir
        self._arena_dir = arena_dir or os.environ.get(ARENA_DIR_VARIABLE)
        self._limit = arena_limit_bytes or os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        self._keep = ARENA_BYTES
        """How much free memory an arena keeps."""
        self._spill_dir = spill_dir
        self._pid = os.getpid()
        self._selector = selectors.DefaultSelector()
        self._members: dict[int, Member] = {}
        self._threads: dict[int, ThreadWorker] = {}
        self._later: dict[int, Callable[[], None]] = {}
        """By worker that is a thread and was never started: how to start it."""
        self._bell: Bell | None = None
        self._shelf = Shelf()
        self._leaving: frozenset[int] = frozenset()
        self._lease = Lease(self._close_descriptors)
        self._facts: dict[int, RunFacts] = {}
        self._arenas: dict[int, int] = {}
        self._board_fd = -1
        self._board: Board | None = None
        self._node_fd = -1
        self._nursery: Nursery | None = None
        self._values: ThreadValues | None = None
        self._spill: Spill | None = None
        self._writing: dict[int, RootResult] = {}
        """By root: what the writer has in hand."""
        self._told: list[Event | BackendEvent] = []
        self._unsent: dict[int, Member] = {}
        self._closed = False

    # ------------------------------------------------------------------------------ starting

    def start(self, plan: Plan, workers: Sequence[WorkerSpec], writer: RecordWriter | None) -> None:
        """Start the threads, and the zygote, which is asked for all processes.

        Raises:
            DefinitionError: A stage or the writer cannot be sent to its process (FF406).
            SetupError: The process may not open enough files for so many workers (FF409), or values that have
                no room in memory have no folder to go to (FF410).
        """
        occupy()  # so that nothing of ours gets a number that workers' output is directed to
        threads = frozenset(
            stage.index for stage in plan.stages if (self._kind or stage.workers) == "thread"
        )
        processes = [spec for spec in workers if spec.stage not in threads]
        allow_descriptors(len(workers), len(processes))
        payloads = {
            stage: ship(stage_plan(plan, stage), f"stage {plan.stages[stage].name!r}")
            for stage in {spec.stage for spec in processes}
        }
        hide_secrets(plan)
        self._facts = {spec.worker: spec.run for spec in workers}
        budget = next((spec.run.budget_bytes for spec in workers), None)
        if budget is not None:
            self._keep = max(KEPT_BYTES, int(KEPT_SHARE * budget) // (len(workers) + 1))
        for number in (*(spec.worker for spec in workers), _DRIVER_ARENA):
            self._arenas[number] = create(f"arena{number}", directory=self._arena_dir)
        self._arenas[SPILLED] = spill_file(self._spill_dir)
        self._spill = Spill(self._arenas[SPILLED])
        self._node_fd = create("node", directory=self._arena_dir)
        node = Node(self._node_fd, len(plan.stages))
        self._leaving = leaving(plan, threads, written=writer is not None)
        if any(source.stream.port in self._leaving for source in plan.sources):
            self._leaving |= {_DRIVER_ARENA}  # the driver stores the values of all sources alike
        # In this thread, Ctrl-C is the user's own.
        self._values = self._make_values(_DRIVER_ARENA, contain=Exception)
        if processes or writer is not None:
            self._start_nursery(max((s.worker for s in workers), default=0) + 1)
        if writer is not None:
            self._members[_WRITER] = Member(
                _WRITER, "writer", 1, ship(writer, "the sink"), self._log_dir
            )
        for spec in processes:
            stage = plan.stages[spec.stage]
            self._members[spec.worker] = Member(
                spec.worker,
                spec.name,
                stage.cpus or 1,
                payloads[spec.stage],
                self._log_dir,
                closes=stage.is_class and callable(getattr(stage.target, "close", None)),
                gpus=spec.gpus,
                scarce=bool(stage.gpus or stage.memory or stage.recycle_above),
                parked=spec.parked,
            )
        for member in self._members.values():
            if not member.parked:
                self._fork(member)
        if threads:
            self._bell = Bell()
            self._selector.register(self._bell.socket, selectors.EVENT_READ, self._bell)
        for spec in workers:
            if spec.stage in threads:
                start = partial(self._start_thread, spec, stage_plan(plan, spec.stage), node)
                if spec.parked:
                    self._later[spec.worker] = start
                else:
                    start()

    def _make_values(self, own: int, contain: type[BaseException] = BaseException) -> ThreadValues:
        return ThreadValues(
            self._arenas,
            own,
            self._shelf,
            self._leaving,
            limit_bytes=self._limit,
            keep_bytes=self._keep,
            contain=contain,
        )

    def _start_nursery(self, workers: int) -> None:
        self._board_fd = create("board", directory=self._arena_dir)
        self._board = Board(self._board_fd, workers)
        self._nursery = Nursery((*self._arenas.values(), self._board_fd, self._node_fd))
        self._selector.register(self._nursery.socket, selectors.EVENT_READ, None)

    def _start_thread(self, spec: WorkerSpec, plan: StagePlan, node: Node) -> None:
        assert self._bell is not None, "made before"
        self._threads[spec.worker] = ThreadWorker(
            spec.worker,
            spec.name,
            plan,
            self._make_values(spec.worker),
            self._bell,
            run=spec.run,
            once=node.once,
            lease=self._lease,
        )

    def restart(self, worker: int) -> None:
        """Fork another process for a worker; it takes over the arena. (A thread does not die.)"""
        self._fork(self._members[worker])

    def recycle(self, worker: int) -> None:
        """Let a worker's process go, and fork another: at once, or where it holds GPUs or much memory, when it
        has ended. The new one is given work when the old has ended, since they have one arena. A thread makes
        place for another."""
        thread = self._threads.get(worker)
        if thread is not None:
            self._threads[worker] = thread.succeeded()
            return
        member = self._members[worker]
        self._let_go(member)
        if not member.scarce:
            self._fork(member)

    def _let_go(self, member: Member) -> None:
        self._hang_up(member)
        member.ready = False
        member.retired.add(member.pid)
        assert self._nursery is not None, "start() comes first"
        self._nursery.retire(member.pid)

    def add(self, worker: int) -> None:
        """Fork a process for a worker that has none, or start a thread. What was there before it, if it has not
        ended yet, goes first as in :meth:`recycle`."""
        if (start := self._later.pop(worker, None)) is not None:
            start()
        elif (thread := self._threads.get(worker)) is not None:
            self._threads[worker] = thread.succeeded()
        else:
            member = self._members[worker]
            member.parked = False
            if not (member.scarce and member.retired):
                self._fork(member)

    def retire(self, worker: int) -> None:
        """Let a worker's process or thread go. Its arena stays, since values in it may be read yet."""
        thread = self._threads.get(worker)
        if thread is not None:
            thread.ready = False
            thread.stop()
            return
        member = self._members[worker]
        self._let_go(member)
        member.parked = True

    def _fork(self, member: Member) -> None:
        assert self._nursery is not None and self._board is not None, "start() comes first"
        ours, theirs = socket.socketpair()
        member.begin(DriverChannel(ours))
        writes = member.number == _WRITER
        if not writes:
            self._board.clear(member.number)
        self._nursery.fork(Fork(member.number, member.threads, member.gpus), theirs, member.log)
        self._watch_nursery()
        self._selector.register(ours, selectors.EVENT_READ, member)
        setup = Setup(
            worker=member.number,
            name=member.name,
            payload=member.payload,
            writes=writes,
            arenas=dict(self._arenas),
            board=self._board_fd,
            node=self._node_fd,
            used=tuple(member.used),
            serials_from=member.lives * _SERIALS_PER_LIFE,
            limit_bytes=self._limit,
            keep_bytes=self._keep,
            run=self._facts.get(member.number, NO_RUN),
        )
        self._send(member, setup)

    # ------------------------------------------------------------------------------ work and values

    def submit(self, worker: int, batch: RunBatch) -> None:
        """Queue a batch for the worker; it goes out with the next poll."""
        if self._spill:
            columns = tuple(map(self._spill.relocated, batch.columns))
            batch = batch._replace(columns=columns)
        thread = self._threads.get(worker)
        if thread is not None:
            thread.batches.append(batch.batch)
            thread.post(batch, thread.take_freed())
            return
        member = self._members[worker]
        member.batches.append(batch.batch)
        self._send(member, pack_work(batch, member.take_freed()))

    def trim(self, worker: int, batch: int, tasks: int) -> None:
        """Tell the worker, with the next poll."""
        thread = self._threads.get(worker)
        if thread is not None:
            thread.trim(batch, tasks)
        elif batch in self._members[worker].batches:
            self._send(self._members[worker], pack_trim(batch, tasks))

    def grant(self, worker: int, batch: int, room: int) -> None:
        """Tell the worker, with the next poll."""
        thread = self._threads.get(worker)
        if thread is not None:
            thread.grant(batch, room)
        elif batch in self._members[worker].batches:
            self._send(self._members[worker], pack_grant(batch, room))

    def write(self, results: Sequence[RootResult]) -> None:
        """Queue roots for the writer."""
        self._writing.update((result.root, result) for result in results)
        assert self._spill is not None, "start() comes first"
        self._send(self._members[_WRITER], Write(tuple(map(self._spill.relocated_result, results))))

    def close_writer(self) -> None:
        """Have the writer close its sinks when it has written all."""
        self._send(self._members[_WRITER], CloseWriter())

    def put(self, values: Sequence[Any]) -> Rows:
        """Store a source's values in the driver's own arena.

        Raises:
            SourceError: One of them cannot be pickled, or does not fit (FF408).
        """
        assert self._values is not None, "start() comes first"
        try:
            return self._values.put(_DRIVER_ARENA, values)
        except Unstorable as error:
            raise error.of_source() from None

    def read(self, column: Column) -> list[Any]:
        """The values of a column, in this process."""
        assert self._values is not None, "start() comes first"
        if self._spill:
            column = self._spill.relocated(column)
        return self._values.read([column])[0]

    def spill(self, refs: Sequence[Ref]) -> None:
        """Move blocks to the file for them, but what the writer has in hand, and what threads have as it is."""
        assert self._spill is not None, "start() comes first"
        written = {
            ref
            for result in self._writing.values()
            for column in result.columns
            if column is not None
            for ref in references(column)
        }
        asked = cast(Sequence[BlockRef], refs)
        moved = self._spill.move(
            (ref for ref in asked if ref[0] != SHELF and ref not in written), self._arenas
        )
        self._free(moved)
        self._told.append(BlocksSpilled(tuple(refs), tuple(moved), time.monotonic()))

    def release(self, refs: Iterable[Ref]) -> None:
        """Blocks are free again; workers are told with their next batch."""
        assert self._spill is not None, "start() comes first"
        blocks = cast(Iterable[BlockRef], refs)
        self._free([ref for ref in blocks if not (self._spill and self._spill.forget(ref))])

    def _free(self, refs: Iterable[BlockRef]) -> None:
        """The places of blocks in memory are free again."""
        assert self._values is not None, "start() comes first"
        own: list[BlockRef] = []
        for ref in refs:
            if ref[0] == _DRIVER_ARENA:
                own.append(ref)
                continue
            if ref[0] == SHELF:
                self._shelf.free((ref,))
                continue
            thread = self._threads.get(ref[0])
            if thread is not None:
                thread.free(ref)
                if thread.is_told_soon:
                    thread.post(None, thread.take_freed())
                continue
            member = self._members[ref[0]]
            member.free(ref)
            if member.is_told_soon:
                self._send(member, pack_work(None, member.take_freed()))
        self._values.free(own)

    def _send(self, member: Member, message: object) -> None:
        """Have a message sent with the next poll, together with others for the same process."""
        if member.channel is not None:
            member.channel.post(message)
            self._unsent[member.number] = member

    def _flush(self) -> None:
        for member in self._unsent.values():
            channel = member.channel
            if channel is not None:
                channel.flush()
                if channel.waiting:
                    both = selectors.EVENT_READ | selectors.EVENT_WRITE
                    self._selector.modify(channel.socket, both, member)
        self._unsent.clear()

    # ------------------------------------------------------------------------------ what happened

    def poll(self, timeout_s: float | None) -> list[Event | BackendEvent]:
        """Send what is queued, then wait until something happened.

        Raises:
            SetupError: The zygote (FF405) or the writer (FF404) is gone.
        """
        deadline_s = None if timeout_s is None else time.monotonic() + timeout_s
        self._flush()
        while not self._told:
            left_s = None if deadline_s is None else max(0.0, deadline_s - time.monotonic())
            ready = self._selector.select(left_s)
            for key, mask in ready:
                match key.data:
                    case None:
                        self._hear_nursery(mask)
                    case Bell() as bell:
                        self._hear_threads(bell)
                    case Member() as member:
                        self._serve(member, mask)
            if not ready and deadline_s is not None and time.monotonic() >= deadline_s:
                break
        events, self._told = self._told, []
        return events

    def _serve(self, member: Member, mask: int) -> None:
        channel = member.channel
        if channel is not None and mask & selectors.EVENT_WRITE:
            channel.flush()
            if not channel.waiting:
                self._selector.modify(channel.socket, selectors.EVENT_READ, member)
        if mask & selectors.EVENT_READ:
            self._hear(member)

    def _hear(self, member: Member) -> None:
        """Take in what a process has sent."""
        channel = member.channel
        if channel is None:
            return
        now_s = time.monotonic()
        for report in channel.receive():
            events = unpack_events(report, now_s)
            for event in events:
                self._note(member, event)
            self._told += (event for event in events if not member.holds_back(event))
        if channel.closed:
            self._hang_up(member)

    def _hear_threads(self, bell: Bell) -> None:
        for worker, events in bell.hear():
            for event in events:
                self._note(self._threads[worker], event)
            self._told += events

    def _note(self, member: Holding, event: Event | BackendEvent) -> None:
        match event:
            case TasksFinished() | ChildrenReleased():
                member.hold(
                    cast(BlockRef, stream.rows.ref)
                    for stream in event.streams
                    if stream.rows is not None
                )
            case BatchFinished() | BatchRaised():
                if event.batch in member.batches:  # a copy of the worker may have told it before
                    member.batches.remove(event.batch)
            case WorkerStarted():
                member.ready = True
                member.pid = event.pid
            case WorkerFailed() | WriterClosed():
                member.through = True
            case RecordsWritten():
                for root in event.roots:
                    self._writing.pop(root, None)
            case RecordRefused():
                self._writing.pop(event.root, None)
            case WriteFailed(root=-1):
                member.through = True

    def _hang_up(self, member: Member) -> None:
        if member.channel is not None:
            self._selector.unregister(member.channel.socket)
            member.channel.close()
            member.channel = None

    def _hear_nursery(self, mask: int) -> None:
        assert self._nursery is not None
        if mask & selectors.EVENT_WRITE:
            self._nursery.flush()
            self._watch_nursery()
        if mask & selectors.EVENT_READ:
            for message in self._nursery.hear():
                if isinstance(message, Ended):
                    self._bury(self._members[message.worker], message)

    def _watch_nursery(self) -> None:
        assert self._nursery is not None
        mask = selectors.EVENT_READ | (selectors.EVENT_WRITE if self._nursery.waiting else 0)
        self._selector.modify(self._nursery.socket, mask, None)

    def _bury(self, member: Member, ended: Ended) -> None:
        """A process ended: take in its last words, then tell of its death, if it is one."""
        if ended.pid in member.retired:
            member.retired.discard(ended.pid)
            if member.channel is None:
                if not member.parked:
                    self._fork(member)
                    self._flush()  # the poll that hears of it goes on
            elif (started := member.take_held_back()) is not None:
                self._told.append(started._replace(time_s=time.monotonic()))
            return
        self._hear(member)
        self._hang_up(member)  # though something that it started may hold the other end
        if member.through:
            return
        how = reason(os.waitstatus_to_exitcode(ended.status))
        if member.number == _WRITER:
            raise SetupError(
                "FF404",
                f"the process that writes records {how}.",
                f"Its last output: {member.last_words()}",
            )
        if not member.ready:
            # By chance, or for good? Who counts deaths finds out: this one ran nothing.
            how += " before it was ready"
        assert self._board is not None
        running = self._board.running(member.number)
        if running not in member.batches:
            running = None
        alone = self._board.alone(member.number)
        member.batches.clear()
        self._told.append(WorkerDied(member.number, how, time.monotonic(), running, alone))

    def worker_log_tail(self, worker: int, limit_bytes: int = 4_096) -> str:
        """The end of a worker's log; a thread has none, its output goes where the driver's goes."""
        member = self._members.get(worker)
        return "" if member is None else redacted(member.log_tail(limit_bytes))

    # ------------------------------------------------------------------------------ ending

    def close(self) -> None:
        """End all workers, the idle ones in peace; then nothing of them or of their values is left, but threads
        that are in users' code."""
        if self._closed or os.getpid() != self._pid:  # a fork of the driver does not own the run
            return
        self._closed = True
        started_s = time.monotonic()
        if self._bell is not None:
            self._selector.unregister(self._bell.socket)
            self._bell.close()
        for thread in self._threads.values():
            thread.stop()
        closing = [m.number for m in self._members.values() if m.closes and not m.batches]
        for member in self._members.values():
            if member.channel is not None:
                member.channel.close()
        if self._nursery is not None:
            self._nursery.close(closing)
        for thread in self._threads.values():
            patience_s = GRACE_S if thread.batches else CLOSE_S
            thread.join(started_s + patience_s - time.monotonic())
        for member in self._members.values():
            os.close(member.log)
        self._selector.close()
        self._lease.leave()

    def _close_descriptors(self) -> None:
        for descriptor in (*self._arenas.values(), self._node_fd, self._board_fd):
            if descriptor >= 0:  # it was made
                os.close(descriptor)
