"""The board: what each worker is at, for whoever wants to know after it has died.

One number per worker in a shared memory file: the batch that it has begun and not ended. Writing it costs a
worker nothing, and it outlives the worker, which a message in its memory would not.
"""

from __future__ import annotations

import mmap
import os
from typing import Final

_IDLE: Final = -1
_ENTRY_BYTES: Final = 8


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
        self._entries[worker] = _IDLE

    def begin(self, worker: int, batch: int) -> None:
        """The worker begins a batch."""
        self._entries[worker] = batch

    def running(self, worker: int) -> int | None:
        """The batch that a worker had begun and not ended."""
        batch = self._entries[worker]
        return None if batch == _IDLE else batch
