"""Workers that are threads of the driver's process: they share its memory, and nobody can kill them.

Owns the threads and their way of talking to the driver: a queue to each, and one bell for all. What a thread
runs is the same as in a process.

A thread that is in users' code when the run is stopped cannot be interrupted. It is waited for a moment and
then left behind: it ends by itself at the next result that it would report, and with the program at the latest.
"""

from __future__ import annotations

import contextlib
import os
import queue
import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from fanfold.backends.base import BackendEvent, RunFacts, worker_failed
from fanfold.backends.local.inbox import Inbox
from fanfold.backends.local.member import Holding
from fanfold.backends.local.shelf import ThreadValues
from fanfold.backends.local.store import BlockRef
from fanfold.backends.local.wire import Work
from fanfold.backends.stage_plan import StagePlan
from fanfold.backends.worker import Once, StageRunner
from fanfold.protocol import Event, RunBatch, WorkerStarted

if TYPE_CHECKING:
    import asyncio

    from fanfold.backends.local.looping import Host


class RunIsOver(BaseException):
    """What a thread is told that reports to a run which has ended."""


class Bell:
    """What all threads report to: events for the driver, and a socket that wakes it."""

    def __init__(self) -> None:
        ours, theirs = socket.socketpair()
        self.socket: socket.socket = ours
        self._rope = theirs
        for end in (ours, theirs):
            end.setblocking(False)
        self._told: deque[tuple[int, Sequence[Event | BackendEvent]]] = deque()
        self.closed: bool = False

    def tell(self, worker: int, events: Sequence[Event | BackendEvent]) -> None:
        """From a thread: these events happened, together.

        Raises:
            RunIsOver: Nobody listens any more.
        """
        if self.closed:
            raise RunIsOver
        self._told.append((worker, events))
        with contextlib.suppress(OSError):  # it is full, so it rings; or it was closed just now
            self._rope.send(b"\0")

    def hear(self) -> list[tuple[int, list[Event | BackendEvent]]]:
        """For the driver: what was told, each with the time of now."""
        with contextlib.suppress(BlockingIOError):
            while self.socket.recv(4096):
                continue
        now_s = time.monotonic()
        heard = []
        while self._told:
            worker, events = self._told.popleft()
            heard.append((worker, [event._replace(time_s=now_s) for event in events]))
        return heard

    def close(self) -> None:
        """Nobody listens any more."""
        self.closed = True
        self.socket.close()
        self._rope.close()


class Lease:
    """Calls ``close`` when the last of its users has left: what threads have open must outlive them.

    Args:
        close: What to do in the end. Whoever makes the lease is its first user.
    """

    def __init__(self, close: Callable[[], None]) -> None:
        self._users = 1
        self._close = close
        self._lock = threading.Lock()

    def enter(self) -> None:
        """One user more."""
        with self._lock:
            self._users += 1

    def leave(self) -> None:
        """One user less."""
        with self._lock:
            self._users -= 1
            last = self._users == 0
        if last:
            self._close()


class ThreadWorker(Holding):
    """A replica in a thread.

    Args:
        number: The worker's number in this run.
        name: ``Ocr[2]``.
        plan: What it runs.
        values: Its view of all values.
        bell: Where it reports.
        run: What is known of the run.
        once: As for :class:`StageRunner`.
        lease: Used as long as the thread lives.
        after: A thread that has to end before this one begins, since they have one arena.
    """

    def __init__(
        self,
        number: int,
        name: str,
        plan: StagePlan,
        values: ThreadValues,
        bell: Bell,
        *,
        run: RunFacts,
        once: Once,
        lease: Lease,
        after: threading.Thread | None = None,
    ) -> None:
        super().__init__(number, name)
        self._plan = plan
        self._values = values
        self._bell = bell
        self._run = run
        self._once = once
        self._lease = lease
        self._after = after
        self._inbox: queue.SimpleQueue[Work | None] = queue.SimpleQueue()
        self._over = False
        """In its own thread: it has heard that there is no more to come."""
        self._host: Host | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        lease.enter()
        self._thread = threading.Thread(target=self._live, name=name, daemon=True)
        self._thread.start()

    # ------------------------------------------------------------------------------ in the driver's thread

    def post(self, batch: RunBatch | None, freed: tuple[BlockRef, ...]) -> None:
        """Send a batch (or nothing), and the blocks of its arena that are free again."""
        self._inbox.put(Work(batch, freed))
        self._wake()

    def trim(self, batch: int, tasks: int) -> None:
        """Some tasks of a batch need not run any more."""
        self._inbox.put(Work(trim=(batch, tasks)))
        self._wake()

    def grant(self, batch: int, room: int) -> None:
        """A batch may release more."""
        self._inbox.put(Work(grant=(batch, room)))
        self._wake()

    def succeeded(self) -> ThreadWorker:
        """Stop, and have another thread in its place, which takes over the arena."""
        self.stop()
        successor = ThreadWorker(
            self.number,
            self.name,
            self._plan,
            self._values,
            self._bell,
            run=self._run,
            once=self._once,
            lease=self._lease,
            after=self._thread,
        )
        successor.hold(self.used)
        if freed := self.take_freed():
            successor.post(None, freed)
        return successor

    def stop(self) -> None:
        """There is no more to come."""
        self._inbox.put(None)
        self._wake()

    def join(self, timeout_s: float) -> None:
        """Wait for its end, at most so long."""
        self._thread.join(max(0.0, timeout_s))

    def _wake(self) -> None:
        loop = self._loop
        if loop is not None:
            with contextlib.suppress(RuntimeError):  # it has just ended
                loop.call_soon_threadsafe(self._hear)

    # ------------------------------------------------------------------------------ in its own thread

    def _live(self) -> None:
        if self._after is not None:
            self._after.join()
            self._after = None
        try:
            with contextlib.suppress(RunIsOver):
                if self._plan.stage.asynchronous:
                    self._serve_asynchronous()
                else:
                    self._serve()
        finally:
            self._lease.leave()

    def _tell(self, events: Sequence[Event | BackendEvent]) -> None:
        self._bell.tell(self.number, events)

    def _options(self) -> dict[str, Any]:
        return {"worker": self.name, "run": self._run, "once": self._once}

    def _serve(self) -> None:
        runner = StageRunner(self._plan, self._values, self._tell, **self._options())
        try:
            runner.construct()
        except BaseException as error:
            self._tell([worker_failed(self.number, error, self.name)])
            return
        try:
            self._tell([WorkerStarted(self.number, pid=os.getpid())])
            inbox = Inbox(self._next, self._arrived, self._values.free)
            inbox.serve(runner, lambda _: self._check())
        finally:
            runner.close()  # also of one that was left behind: the process lives on

    def _check(self) -> None:
        if self._bell.closed:  # nobody waits for what was sent before the end
            raise RunIsOver

    def _next(self) -> Work | None:
        return None if self._over else self._inbox.get()

    def _arrived(self) -> Iterator[Work]:
        while not self._over:
            try:
                message = self._inbox.get_nowait()
            except queue.Empty:
                return
            if message is None:
                self._over = True
            else:
                yield message

    def _serve_asynchronous(self) -> None:
        from fanfold.backends.asynchronous import AsyncRunner  # asyncio is for those who need it
        from fanfold.backends.local.looping import serve

        runner = AsyncRunner(self._plan, self._values, self._tell, **self._options())
        serve(runner, self.number, self.name, os.getpid(), self._tell, self._attach)

    def _attach(self, host: Host) -> None:
        import asyncio

        self._host, self._loop = host, asyncio.get_running_loop()
        self._hear()  # what came before there was a loop to wake

    def _hear(self) -> None:
        assert self._host is not None, "attached first"
        while True:
            try:
                message = self._inbox.get_nowait()
            except queue.Empty:
                return
            if message is None:
                self._host.stop()
                return
            self._values.free(message.freed)
            self._host.take(message)
