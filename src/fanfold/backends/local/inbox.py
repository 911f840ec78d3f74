"""What a worker was sent and has not done yet: batches in order, and what is told of them on the way.

Owns the waiting batches, those that have paused, and by batch the trimmed tasks and the room for children.
Where messages come from is told by two functions, one that waits for the next and one that takes what has
arrived: a process has a channel, a thread a queue. They are called by the thread that runs the batches or,
while it is at one, by another (:meth:`Inbox.fetch`); never by both at a time.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from typing import Final

from fanfold.backends.local.store import BlockRef
from fanfold.backends.local.wire import Work
from fanfold.backends.worker import StageRunner
from fanfold.protocol import RunBatch

LOOK_S: Final = 0.005
"""While a batch runs, what has arrived is looked at no more often than this."""


class Inbox:
    """The messages of one worker.

    Args:
        wait: Gives the next message; None when there is no more to come.
        arrived: Gives the messages that have arrived, without waiting.
        free: Takes blocks that are free again.
    """

    def __init__(
        self,
        wait: Callable[[], Work | None],
        arrived: Callable[[], Iterable[Work]],
        free: Callable[[tuple[BlockRef, ...]], None],
    ) -> None:
        self._wait = wait
        self._arrived = arrived
        self._free = free
        self._batches: deque[RunBatch] = deque()
        self._trimmed: dict[int, int] = {}
        self._rooms: dict[int, int] = {}
        """By batch, if it has a bound: how many bytes it may release in all."""
        self._paused: set[int] = set()
        self._resumed: deque[int] = deque()
        """Batches that had paused and may go on."""
        self._unheard: set[int] = set()
        """Batches of which tasks were trimmed since they asked."""
        self._granted: set[int] = set()
        """Batches that were given room since they asked."""
        self._looked_s = self._prepared_s = 0.0
        """When what had arrived was looked at last; and when last before the next batch was read."""
        self._changed = threading.Condition()
        self._fetching = False
        self._over = False
        """There is no more to come."""
        self._error: BaseException | None = None
        """What another thread met."""

    def serve(
        self,
        runner: StageRunner,
        begin: Callable[[int], object] = lambda _: None,
        end: Callable[[], object] = lambda: None,
    ) -> None:
        """Have a replica run what comes, until there is no more to come.

        Args:
            runner: The replica, constructed.
            begin: Told of each batch before it runs, or goes on.
            end: Told when it has ended, or paused.

        Raises:
            BaseException: What the replica does not contain.
        """
        runner.trimmed, runner.room = self.trimmed, self.room
        while True:
            started_s = time.perf_counter()
            work = self.next(runner.tell)
            if work is None:
                return
            number = work if isinstance(work, int) else work.batch
            begin(number)
            if isinstance(work, int):
                ended = runner.resume(work)
            else:
                ended = runner.run(work, wait_s=time.perf_counter() - started_s)
            end()
            if ended:
                self.ended(number)
            else:
                self.paused(number)

    def next(self, idle: Callable[[], object] = lambda: None) -> RunBatch | int | None:
        """Wait for the next batch, or the number of one that had paused and goes on; None when there is no more
        to come.

        Args:
            idle: Called before it waits.
        """
        with self._changed:
            if time.perf_counter() - self._prepared_s >= LOOK_S:
                self._look()  # what was trimmed meanwhile is not begun
            if (taken := self._taken()) is not None:
                return taken
        idle()
        with self._changed:
            while not self._waits():
                if self._over:
                    return None
                if self._error is not None:
                    raise self._error
                if self._fetching:
                    self._changed.wait()
                else:
                    self._take(self._wait())
            self._look()
            return self._taken()

    def _taken(self) -> RunBatch | int | None:
        if self._resumed:
            return self._resumed.popleft()
        return self._batches.popleft() if self._batches else None

    def fetch(self) -> None:
        """Take in messages until a batch waits, or there are no more to come; for another thread. What it meets
        is raised where batches are taken."""
        with self._changed:
            if self._waits() or self._over:
                return
            self._fetching = True
        try:
            while self._fetching:
                message = self._wait()
                with self._changed:
                    self._take(message)
                    self._fetching = not (self._batches or self._over)
                    self._changed.notify()
        except BaseException as error:
            with self._changed:
                self._fetching, self._error = False, error
                self._changed.notify()

    def following(self) -> RunBatch | None:
        """The batch that will begin next, as far as is known by now; for another thread. What it meets is
        raised where batches are taken."""
        with self._changed:
            try:
                self._look()
            except BaseException as error:
                self._error = error
                return None
            self._prepared_s = self._looked_s
            return None if self._resumed or not self._batches else self._batches[0]

    def _waits(self) -> bool:
        return bool(self._resumed or self._batches)

    def room(self, batch: int) -> int | None:
        """How many bytes of children a batch may release in all, as far as is known by now."""
        with self._changed:
            room = self._rooms.get(batch)
            if room is not None:
                self._look()
                self._granted.discard(batch)
                room = self._rooms[batch]
            return room

    def paused(self, batch: int) -> None:
        """A batch waits for more room, or to be trimmed; that may have been told since it asked."""
        with self._changed:
            self._paused.add(batch)
            if batch in self._unheard or batch in self._granted:
                self._resume(batch)

    def ended(self, batch: int) -> None:
        """A batch is done with."""
        with self._changed:
            self._trimmed.pop(batch, None)
            self._rooms.pop(batch, None)
            self._unheard.discard(batch)
            self._granted.discard(batch)

    def trimmed(self, batch: int) -> int:
        """Which tasks of a batch need not run any more, as far as is known by now."""
        with self._changed:
            if time.perf_counter() - self._looked_s >= LOOK_S:
                self._look()
            self._unheard.discard(batch)
            return self._trimmed.get(batch, 0)

    def _look(self) -> None:
        self._looked_s = time.perf_counter()
        if self._fetching:
            return  # the other thread takes in whatever comes
        for message in self._arrived():
            self._take(message)

    def _take(self, message: Work | None) -> None:
        if message is None:
            self._over = True
            return
        self._free(message.freed)
        if message.batch is not None:
            self._batches.append(message.batch)
            if message.batch.room is not None:
                self._rooms[message.batch.batch] = message.batch.room
        if message.trim is not None:
            batch, tasks = message.trim
            self._trimmed[batch] = self._trimmed.get(batch, 0) | tasks
            self._unheard.add(batch)
            self._resume(batch)
        if message.grant is not None:
            batch, more = message.grant
            if batch in self._rooms:
                self._rooms[batch] += more
                self._granted.add(batch)
                self._resume(batch)

    def _resume(self, batch: int) -> None:
        if batch in self._paused:
            self._paused.discard(batch)
            self._resumed.append(batch)
