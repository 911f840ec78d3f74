"""Inputs that are read before their batch begins, by another thread, while users' code is at the batch before.

Owns whose turn it is: one thread reads at a time, and no batch is read ahead that has begun. What may be read
so, nothing that runs users' code, is the store's to say.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from fanfold.columns import Column
from fanfold.protocol import RunBatch

Read: TypeAlias = Callable[[Sequence[Column]], list[list[Any]]]
"""Gives the values of columns."""
ReadAhead: TypeAlias = Callable[[Sequence[Column]], list[list[Any]] | None]
"""The same without running anybody's code; None if that cannot be done, or takes too much memory."""


class Ahead:
    """The reading of one worker's inputs.

    Args:
        read: Reads the inputs of a batch that begins.
        read_ahead: Reads those of one that has not begun.
        following: Gives the batch that will begin next, if it is there.
        prepare: Told of each batch that was read ahead, before it begins.
    """

    def __init__(
        self,
        read: Read,
        read_ahead: ReadAhead,
        following: Callable[[], RunBatch | None],
        prepare: Callable[[RunBatch], object] = lambda _: None,
    ) -> None:
        self._read = read
        self._read_ahead = read_ahead
        self._following = following
        self._prepare = prepare
        self._turn = threading.Lock()
        self._batch = -1
        self._columns: list[list[Any]] | None = None
        """The inputs of that batch."""
        self._refused: set[int] = set()
        """Calls whose inputs cannot be read ahead."""

    def prepare(self) -> None:
        """Read the inputs of the next batch, if it is there and they allow it; for another thread."""
        with self._turn:
            batch = self._following()  # it cannot begin before this has ended
            if batch is None or batch.batch == self._batch or batch.call in self._refused:
                return
            self._batch, self._columns = batch.batch, None
            self._columns = self._read_ahead(batch.columns)
            if self._columns is None:
                self._refused.add(batch.call)
            else:
                self._prepare(batch)

    def read(self, batch: RunBatch) -> list[list[Any]]:
        """The inputs of a batch that begins.

        Raises:
            Exception: Whatever a user's class raises when it is unpickled.
        """
        with self._turn:
            columns, self._columns = self._columns, None
            if columns is None or self._batch != batch.batch:
                columns = self._read(batch.columns)
            return columns
