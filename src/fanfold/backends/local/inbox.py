"""What a worker was sent and has not done yet: batches in order, and what need not be done of them any more.

Owns the waiting batches and the trimmed tasks of each. Where messages come from is told by two functions, one
that waits for the next and one that takes what has arrived: a process has a channel, a thread a queue.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable
from typing import Final

from fanfold.backends.local.store import BlockRef
from fanfold.backends.local.wire import Work
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
        self._looked_s = 0.0

    def next(self) -> RunBatch | None:
        """Wait for the next batch; None when there is no more to come."""
        while not self._batches:
            message = self._wait()
            if message is None:
                return None
            self._take(message)
        self._look()  # what was trimmed meanwhile is not begun
        return self._batches.popleft()

    def trimmed(self, batch: int) -> int:
        """Which tasks of a batch need not run any more, as far as is known by now."""
        if time.perf_counter() - self._looked_s >= LOOK_S:
            self._look()
        return self._trimmed.get(batch, 0)

    def ended(self, batch: int) -> None:
        """A batch is done with."""
        self._trimmed.pop(batch, None)

    def _look(self) -> None:
        self._looked_s = time.perf_counter()
        for message in self._arrived():
            self._take(message)

    def _take(self, message: Work) -> None:
        self._free(message.freed)
        if message.batch is not None:
            self._batches.append(message.batch)
        if message.trim is not None:
            batch, tasks = message.trim
            self._trimmed[batch] = self._trimmed.get(batch, 0) | tasks
