"""Arenas: shared memory that is recycled. One process writes to an arena, every process reads.

An arena is a sparse anonymous memory file, so it belongs to no directory, does not count against
``/dev/shm`` and is gone with the last process that holds it, however that ends. Where the system has no
such files, an unlinked temporary file serves. Space is handed out by a first-fit list of free extents;
touched pages are used again rather than fresh ones.
"""

from __future__ import annotations

import mmap
import os
import tempfile
from bisect import bisect_left, insort
from typing import Final

ARENA_BYTES: Final = 1 << 40
"""Address space per arena; only what is written takes memory."""
GRAIN_BYTES: Final = 64
STEP_BYTES: Final = 64 * 1024 * 1024
"""An arena's file grows, and is mapped, in steps of at least so much."""


def create(name: str, *, directory: str | None = None) -> int:
    """A new memory file; its descriptor. With ``directory``, or without memory files, a mapped one there."""
    if directory is None and hasattr(os, "memfd_create"):
        return os.memfd_create(name, os.MFD_CLOEXEC)
    handle, path = tempfile.mkstemp(prefix=f"fanfold-{name}-", dir=directory)
    os.unlink(path)
    return handle


class Reader:
    """Another process's arena, mapped as far as it is needed."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._map: mmap.mmap | None = None
        self._view = memoryview(b"")

    def view(self, offset: int, size: int) -> memoryview:
        """``size`` bytes from ``offset``, read-only."""
        if offset + size > len(self._view):
            total = os.fstat(self._descriptor).st_size
            self._map = mmap.mmap(self._descriptor, total, prot=mmap.PROT_READ)
            self._view = memoryview(self._map)
        return self._view[offset : offset + size]


class Writer:
    """The one process that allocates in an arena.

    Args:
        descriptor: The arena's file.
        used: Extents (offset, size) that are in use already, from a predecessor that died.
        limit_bytes: How much the arena may hold at most.
    """

    def __init__(
        self,
        descriptor: int,
        used: list[tuple[int, int]] | None = None,
        limit_bytes: int = ARENA_BYTES,
    ) -> None:
        self._descriptor = descriptor
        self._limit = limit_bytes
        self._size = os.fstat(descriptor).st_size
        self._free: list[tuple[int, int]] = []
        position = 0
        for offset, size in sorted(used or []):
            if offset > position:
                self._free.append((position, offset - position))
            position = offset + grain(size)
        if self._size > position:
            self._free.append((position, self._size - position))
        self._map: mmap.mmap | None = None
        self._view = memoryview(b"")
        if self._size:
            self._remap()

    def allocate(self, size: int) -> tuple[int, memoryview]:
        """Room for ``size`` bytes: its offset and the memory.

        Raises:
            MemoryError: The arena's limit, or the system's memory, does not allow it.
        """
        wanted = grain(size)
        for index, (offset, room) in enumerate(self._free):
            if room >= wanted:
                if room == wanted:
                    del self._free[index]
                else:
                    self._free[index] = (offset + wanted, room - wanted)
                return offset, self._view[offset : offset + size]
        self._grow(wanted)
        return self.allocate(size)

    def free(self, offset: int, size: int) -> None:
        """Give an extent back; neighbours join."""
        size = grain(size)
        index = bisect_left(self._free, (offset, 0))
        if index < len(self._free) and self._free[index][0] == offset + size:
            size += self._free.pop(index)[1]
        if index and sum(self._free[index - 1]) == offset:
            before, room = self._free[index - 1]
            self._free[index - 1] = (before, room + size)
        else:
            insort(self._free, (offset, size))

    @property
    def free_extents(self) -> list[tuple[int, int]]:
        """What is free, in order, for tests and reports."""
        return list(self._free)

    def _grow(self, wanted: int) -> None:
        step = max(wanted, min(STEP_BYTES, max(self._size, 1024 * 1024)))
        if self._size + step > self._limit:
            step = wanted
        if self._size + step > self._limit:
            raise MemoryError(f"{wanted:,} bytes do not fit an arena of {self._limit:,}")
        os.ftruncate(self._descriptor, self._size + step)
        self.free(self._size, step)
        self._size += step
        self._remap()

    def _remap(self) -> None:
        self._map = mmap.mmap(self._descriptor, self._size)
        self._view = memoryview(self._map)


def grain(size: int) -> int:
    """``size`` rounded up to whole grains; nothing is smaller than one."""
    return max(1, -(-size // GRAIN_BYTES)) * GRAIN_BYTES
