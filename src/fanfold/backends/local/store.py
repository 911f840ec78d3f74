"""One process's view of all arenas: it writes to its own and reads every one.

A reference is ``(arena, offset, size, serial)``; the serial makes it unique for ever, so that what was
decoded of a block can be kept for later batches without fear that its place was given away.
"""

from __future__ import annotations

import itertools
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from fanfold.backends.worker import Unstorable
from fanfold.blocks.arena import ARENA_BYTES, Reader, Writer
from fanfold.blocks.codec import BlockRows, Unpicklable, encode, write
from fanfold.columns import Column, assemble
from fanfold.failures import Failure
from fanfold.protocol import Rows

KEPT_BYTES: Final = 16 * 1024 * 1024
"""Encoded size of the blocks that a reader keeps decoded between batches."""


class BlockRef(NamedTuple):
    """Where a block lies."""

    arena: int
    offset: int
    size: int
    serial: int


class ArenaValues:
    """Implements :class:`fanfold.backends.worker.Values` over arenas.

    Args:
        descriptors: The arenas' files, by number.
        own: The arena that this process may write to, or None for a mere reader.
        used: Extents of the own arena that a predecessor left in use.
        serials: Where serial numbers start, above all that the arena's blocks ever had.
        serials_from: The first serial number: above all that the arena's blocks ever had.
        limit_bytes: How much the own arena may hold.
    """

    def __init__(
        self,
        descriptors: Mapping[int, int],
        own: int | None,
        used: Iterable[BlockRef] = (),
        *,
        serials_from: int = 1,
        limit_bytes: int = ARENA_BYTES,
    ) -> None:
        self._own = own
        self._limit = limit_bytes
        self._readers = {number: Reader(fd) for number, fd in descriptors.items()}
        self._writer = (
            None
            if own is None
            else Writer(descriptors[own], [(r.offset, r.size) for r in used], limit_bytes)
        )
        self._serials = itertools.count(serials_from)
        self._row_bytes: dict[int, int] = {}
        self._kept: OrderedDict[BlockRef, BlockRows] = OrderedDict()
        self._kept_bytes = 0

    # ------------------------------------------------------------------------------ reading

    def read(self, columns: Sequence[Column]) -> list[list[Any]]:
        try:
            return [assemble(column, self._block) for column in columns]
        finally:
            while self._kept_bytes > KEPT_BYTES:
                ref, _ = self._kept.popitem(last=False)
                self._kept_bytes -= ref.size

    def _block(self, ref: Any) -> BlockRows:
        rows = self._kept.get(ref)
        if rows is None:
            rows = BlockRows(self._readers[ref.arena].view(ref.offset, ref.size))
            self._kept[ref] = rows
            self._kept_bytes += ref.size
        else:
            self._kept.move_to_end(ref)
        return rows

    # ------------------------------------------------------------------------------ writing

    def put(self, stream: int, rows: Sequence[Any]) -> Rows:
        assert self._writer is not None and self._own is not None
        try:
            parts, size = encode(rows, self._row_bytes.get(stream, 0))
        except Unpicklable as error:
            raise Unstorable([(row, _unpicklable(rows[row], e)) for row, e in error.rows]) from None
        self._row_bytes[stream] = max(1, size // len(rows))
        try:
            offset, memory = self._writer.allocate(size)
        except MemoryError:
            raise Unstorable(self._too_large(rows)) from None
        write(parts, memory)
        ref = BlockRef(self._own, offset, size, next(self._serials))
        return Rows(ref, len(rows), size)

    def free(self, refs: Iterable[BlockRef]) -> None:
        """Blocks of the own arena that nobody reads any more."""
        assert self._writer is not None
        for ref in refs:
            self._writer.free(ref.offset, ref.size)

    def _too_large(self, rows: Sequence[Any]) -> list[tuple[int, Failure]]:
        sizes = [encode([row])[1] for row in rows]
        guilty = [row for row, size in enumerate(sizes) if size > self._limit]
        return [
            (
                row,
                Failure(
                    kind="too_large",
                    message=f"a value of {sizes[row]:,} bytes does not fit the store of a worker "
                    f"({self._limit:,} bytes)",
                ),
            )
            for row in guilty or range(len(rows))
        ]


def _unpicklable(value: Any, error: BaseException) -> Failure:
    kind = f"{type(value).__module__}.{type(value).__qualname__}"
    return Failure(
        kind="unpicklable",
        message=f"the stage returned a {kind} that cannot be pickled: {type(error).__name__}: {error}",
        exception=type(error).__qualname__,
    )
