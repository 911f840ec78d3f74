"""Values that stay in the driver's process, because only threads of it read them: nothing is copied.

Owns the shelf where they lie and the choice between it and the arenas.
"""

from __future__ import annotations

import itertools
from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Any, Final, cast

from fanfold.backends.local.store import ArenaValues, BlockRef
from fanfold.backends.values import rows_bytes
from fanfold.protocol import Rows

SHELF: Final = -3
"""In the place of an arena's number."""


class Shelf:
    """Blocks as lists, for all threads of this process."""

    def __init__(self) -> None:
        self.blocks: dict[BlockRef, Sequence[Any]] = {}
        self._serials = itertools.count()

    def put(self, rows: Sequence[Any]) -> Rows:
        """Keep rows; the list itself is the worker's and will not change."""
        ref = (SHELF, 0, 0, next(self._serials))
        self.blocks[ref] = rows
        return Rows(ref, len(rows), rows_bytes(rows))

    def free(self, refs: Iterable[BlockRef]) -> None:
        """Forget blocks."""
        for ref in refs:
            del self.blocks[ref]


class ThreadValues(ArenaValues):
    """One thread's view of all values: those on the shelf, and those in arenas.

    Args:
        descriptors: The arenas' files, by number.
        own: The arena that this thread may write to.
        shelf: What stays in this process.
        leaving: The ports whose values do not.
        limit_bytes: How much the own arena may hold.
        keep_bytes: How much free memory it keeps.
        contain: Exceptions of users' code that make a value unpicklable; others go through.
    """

    def __init__(
        self,
        descriptors: Mapping[int, int],
        own: int,
        shelf: Shelf,
        leaving: Container[int],
        *,
        limit_bytes: int,
        keep_bytes: int,
        contain: type[BaseException] = BaseException,
    ) -> None:
        super().__init__(
            descriptors,
            own,
            limit_bytes=limit_bytes,
            keep_bytes=keep_bytes,
            contain=contain,
            kept=shelf.blocks,
        )
        self._shelf = shelf
        self._leaving = leaving
        self._row_bytes: dict[int, int] = {}

    def put(self, port: int, rows: Sequence[Any]) -> Rows:
        """Store rows where their readers can be."""
        if port in self._leaving:
            return super().put(port, rows)
        stored = self._shelf.put(rows)
        self._row_bytes[port] = stored.size_bytes // stored.count
        return stored

    def take_back(self, rows: Rows) -> None:
        """A block that nobody was told of."""
        ref = cast(BlockRef, rows.ref)
        if ref in self._shelf.blocks:
            self._shelf.free((ref,))
        else:
            super().take_back(rows)

    def copies(self, port: int) -> bool:
        """What leaves the process is a copy; what lies on the shelf is the same object."""
        return port in self._leaving

    def row_bytes(self, port: int) -> int:
        """What a row at ``port`` took lately, as far as it is known."""
        return self._row_bytes.get(port, 0) or super().row_bytes(port)
