"""How long blocks of values are held: by rows that may still be read, and by batches that are reading.

Owns the counts. A row goes when its root is committed, or when its last reader has ended if that is worth it:
its values are large, or all values together take a good part of what they may. A block without rows is handed
back for release.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from typing import Final

from fanfold.columns import Ref
from fanfold.engine.chunks import Chunk
from fanfold.protocol import StreamRows

EARLY_ROW_BYTES: Final = 1024
"""Values that are smaller on average stay until their root ends while memory is plenty, since to let them go
before costs more than to keep them."""

SPILLED_BYTES: Final = 512
"""Smaller blocks take not much more than the references to them."""


class HeldBlocks:
    """The blocks that the engine knows of.

    Attributes:
        plenty_bytes: Up to here small values stay until their root ends. None: whatever they take.
        tight: They have taken more. From then on all values go at their last reader.
    """

    def __init__(self) -> None:
        self.plenty_bytes: int | None = None
        self.tight: bool = False
        self.rows: dict[Ref, int] = {}
        """By block: rows that may still be read, and one for each batch that is reading it."""
        self._small: set[Ref] = set()
        """Blocks of values that are not worth releasing before their root ends."""
        self._released: list[Ref] = []
        self._sizes: dict[Ref, int] = {}
        """Of those that are in memory and may be moved out of it, in the order of their making."""
        self.size_bytes: int = 0
        """What all of them take, as it was reported; those that were handed back are left out."""
        self.made_bytes: int = 0
        """What all blocks have taken that there ever were."""
        self.peak_bytes: int = 0
        """The most that it ever was."""
        self._spilled: set[Ref] = set()
        """Those that take no memory any more."""
        self._fixed: dict[Ref, int] = {}
        """The sizes of those that cannot be, or are not worth it."""

    def take_released(self) -> tuple[Ref, ...]:
        """The blocks that nobody needs any more, since the last call."""
        if not self._released:
            return ()
        released, self._released = tuple(self._released), []
        for ref in released:
            if ref in self._spilled:
                self._spilled.discard(ref)
            else:
                size = self._sizes.pop(ref, None)
                self.size_bytes -= self._fixed.pop(ref, 0) if size is None else size
        return released

    def spilled(self, asked: Iterable[Ref], moved: Iterable[Ref]) -> None:
        """Of the blocks that were to be moved these take no memory any more; the others stay."""
        for ref in moved:
            if ref in self._sizes:
                self._spilled.add(ref)
                self.size_bytes -= self._sizes.pop(ref)
        for ref in asked:
            if ref in self._sizes:
                self._fixed[ref] = self._sizes.pop(ref)

    def idle(self, busy: Container[Ref], wanted: int) -> tuple[Ref, ...]:
        """Blocks in memory that are not ``busy``, the newest first, until they are as large as ``wanted``."""
        found: list[Ref] = []
        for ref in reversed(self._sizes):
            if wanted <= 0:
                break
            size = self._sizes[ref]
            if ref in self.rows and ref not in busy:
                found.append(ref)
                wanted -= size
        return tuple(found)

    def hold(self, stream: StreamRows, rows: int) -> bool:
        """A new block has so many rows that may be read; without any it goes at once.

        Returns whether its rows are worth releasing one by one.
        """
        if stream.rows is None:
            return False
        ref = stream.rows.ref
        left = self.rows.get(ref, 0) + rows
        if left <= 0:
            self.rows.pop(ref, None)
            self._released.append(ref)
            return False
        self.rows[ref] = left
        size = stream.rows.size_bytes
        (self._sizes if size >= SPILLED_BYTES else self._fixed)[ref] = size
        self.size_bytes += size
        self.made_bytes += size
        if self.size_bytes > self.peak_bytes:
            self.peak_bytes = self.size_bytes
        if self.tight:
            return True
        if self.plenty_bytes is not None and self.size_bytes > self.plenty_bytes:
            self.tight = True
            self._small.clear()
            return True
        if 0 < size < EARLY_ROW_BYTES * stream.rows.count:
            self._small.add(ref)
            return False
        return True

    def discard(self, streams: Sequence[StreamRows]) -> None:
        """Blocks that came too late."""
        self._released += [stream.rows.ref for stream in streams if stream.rows is not None]

    def read(self, refs: Iterable[Ref]) -> None:
        """A batch reads these blocks."""
        for ref in refs:
            self.rows[ref] += 1

    def drop(self, ref: Ref, rows: int = 1) -> None:
        """So many rows, or a reader, are no more."""
        left = self.rows[ref] - rows
        if left:
            self.rows[ref] = left
        else:
            del self.rows[ref]
            self._small.discard(ref)
            self._released.append(ref)

    def free(self, chunk: Chunk, items: int) -> None:
        """All values of some items go: their roots' records are committed."""
        freed, live = chunk.freed, self.rows
        for slot, segments in chunk.segments.items():
            left = items if freed is None else items & ~freed.get(slot, 0)
            for members, ref, _ in segments:
                rows = (members & left).bit_count()
                if rows:
                    rest = live[ref] - rows
                    if rest:
                        live[ref] = rest
                    else:
                        self.drop(ref, rows)

    def free_early(self, chunk: Chunk, slot: int, items: int) -> None:
        """The values of items at a slot go before their root ends, unless they are small."""
        segments = chunk.segments.get(slot)
        if segments is None or segments[0][1] in self._small:
            return
        before = 0 if chunk.freed is None else chunk.freed.get(slot, 0)
        items &= ~before
        self.never_held(chunk, (slot,), items)
        left, kept = items, ~(before | items)
        spent: list[int] = []
        for index, (members, ref, _) in enumerate(segments):
            here = members & left
            if here:
                left ^= here
                self.drop(ref, here.bit_count())
                if not members & kept:
                    spent.append(index)
                if not left:
                    break
        if len(spent) == len(segments):
            del chunk.segments[slot]
        else:
            for index in reversed(spent):  # what comes later need not look through them
                del segments[index]

    def never_held(self, chunk: Chunk, slots: Iterable[int], items: int) -> None:
        """The rows of these items at some slots are not counted (any more)."""
        if chunk.freed is None:
            chunk.freed = {}
        for slot in slots:
            chunk.freed[slot] = chunk.freed.get(slot, 0) | items
