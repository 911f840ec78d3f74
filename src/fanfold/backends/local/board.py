"""The board: what each worker is at, for whoever wants to know after it has died.

Two numbers per worker in a shared memory file: the batch that it has begun and not ended, and how many of them
there are, which only asynchronous stages have several of. Writing them costs a worker nothing, and they outlive
the worker, which a message in its memory would not.
"""

from __future__ import annotations

import mmap
import os
from typing import Final

_IDLE: Final = -1
_NUMBER_BYTES: Final = 8
_ENTRY_BYTES: Final = 2 * _NUMBER_BYTES


class Board:
    """One process's view of the board.

    Args:
        descriptor: The board's file.
        workers: How many workers there are; they are numbered from 0.
    """

    def __init__(self, descriptor: int, workers: int | None = None) -> None:
        size = os.fstat(descriptor).st_size
        if workers is not None:
            size = max(1, workers) * _ENTRY_BYTES
            os.ftruncate(descriptor, size)
        self._entries = memoryview(mmap.mmap(descriptor, size)).cast("q")

    def clear(self, worker: int) -> None:
        """The worker has begun nothing, or ended what it had begun."""
        self._entries[2 * worker] = _IDLE

    def begin(self, worker: int, batch: int, under_way: int = 1) -> None:
        """The worker begins a batch; or it has ended one, and this is one of those that are still under way."""
        self._entries[2 * worker] = batch
        self._entries[2 * worker + 1] = under_way

    def running(self, worker: int) -> int | None:
        """A batch that a worker had begun and not ended."""
        batch = self._entries[2 * worker]
        return None if batch == _IDLE else batch

    def alone(self, worker: int) -> bool:
        """Whether no other batch was under way beside :meth:`running`."""
        return self._entries[2 * worker + 1] <= 1
