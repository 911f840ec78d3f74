"""Arenas: shared memory that is recycled. One process writes to an arena, every process reads.

An arena is an anonymous memory file, so it belongs to no directory, does not count against ``/dev/shm`` and
is gone with the last process that holds it, however that ends. Where the system has no such files, an
unlinked temporary file serves. Space is handed out by a first-fit list of free extents; touched pages are
used again rather than fresh ones. Owns the space; knows nothing of what lies there.
"""

from __future__ import annotations

import contextlib
import errno
import mmap
import os
import tempfile
from bisect import bisect_left, insort
from collections.abc import Iterable
from typing import Final

ARENA_BYTES: Final = 1 << 40
"""Address space per arena; only what is written takes memory."""
GRAIN_BYTES: Final = 64
LARGE_BYTES: Final = 32 * 1024 * 1024
"""Before an arena grows by so much, the machine is asked whether it has the memory."""
STEP_BYTES: Final = 64 * 1024 * 1024
"""An arena's file grows, and is mapped, in steps of at least so much."""


class FileTooLarge(MemoryError):
    """The process may not have so large a file (``ulimit -f``), though there may be memory for it."""


def create(name: str, *, directory: str | None = None) -> int:
    """A new memory file; its descriptor. With ``directory``, or without memory files, a mapped one there."""
    if directory is None and hasattr(os, "memfd_create"):
        return os.memfd_create(f"fanfold-{name}", os.MFD_CLOEXEC)
    handle, path = tempfile.mkstemp(prefix=f"fanfold-{name}-", dir=directory)
    os.unlink(path)
    return handle


class Reader:
    """Another process's arena, mapped as far as it is needed."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._view = memoryview(b"")

    def view(self, offset: int, size: int) -> memoryview:
        """``size`` bytes from ``offset``, read-only."""
        if offset + size > len(self._view):
            total = os.fstat(self._descriptor).st_size
            self._view = memoryview(mmap.mmap(self._descriptor, total, prot=mmap.PROT_READ))
        return self._view[offset : offset + size]


class DiskReader:
    """A file of blocks, of which each is read when it is wanted: mapped pages would count as memory."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def view(self, offset: int, size: int) -> memoryview:
        """``size`` bytes from ``offset``."""
        data = memoryview(bytearray(size))
        done = 0
        while done < size:
            got = os.preadv(self._descriptor, [data[done:]], offset + done)
            if not got:
                raise OSError(f"{size:,} bytes at {offset:,} end after {done:,}")
            done += got
        return data.toreadonly()


class Writer:
    """The one process that allocates in an arena.

    Args:
        descriptor: The arena's file.
        used: Extents (offset, size) that are in use already, from a predecessor that died.
        limit_bytes: How much the arena may hold at most.
        keep_bytes: How much memory that is free stays the arena's, to be used again; what goes beyond is given
            back to the system.
    """

    def __init__(
        self,
        descriptor: int,
        used: Iterable[tuple[int, int]] = (),
        limit_bytes: int = ARENA_BYTES,
        keep_bytes: int = ARENA_BYTES,
    ) -> None:
        self._descriptor = descriptor
        self._keep = keep_bytes
        self._warm = 0
        """Memory that is free and was used before, or a little less."""
        self._on_disk = hasattr(os, "posix_fallocate") and _is_on_disk(descriptor)
        self._limit = limit_bytes
        self._size = os.fstat(descriptor).st_size
        self._free: list[tuple[int, int]] = []
        position = 0
        for offset, size in sorted(used):
            if offset > position:
                self._free.append((position, offset - position))
            position = offset + grain(size)
        if self._size > position:
            self._free.append((position, self._size - position))
        self._map = mmap.mmap(descriptor, self._size) if self._size else None
        self._view = memoryview(self._map or b"")

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
                self._warm = max(0, self._warm - wanted)
                return offset, self._view[offset : offset + size]
        self._grow(wanted)
        return self.allocate(size)

    def free(self, offset: int, size: int) -> None:
        """Give an extent back; neighbours join."""
        size = grain(size)
        if self._warm + size > self._keep and not self._on_disk:
            self._cool(offset, size)
        else:
            self._warm += size
        self._add(offset, size)

    def _cool(self, offset: int, size: int) -> None:
        """Give an extent's memory back to the system; its pages come anew, empty, when they are used."""
        first = -(-offset // mmap.PAGESIZE) * mmap.PAGESIZE
        stop = (offset + size) // mmap.PAGESIZE * mmap.PAGESIZE
        if stop > first and self._map is not None and hasattr(mmap, "MADV_REMOVE"):
            with contextlib.suppress(OSError):  # then it stays warm
                self._map.madvise(mmap.MADV_REMOVE, first, stop - first)

    def _add(self, offset: int, size: int) -> None:
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
        large = wanted >= LARGE_BYTES and not self._on_disk
        if large and wanted > (available := available_bytes()):
            raise MemoryError(f"{wanted:,} bytes do not fit the {available:,} that are available")
        try:
            if self._on_disk:
                # Without it a full disk would be told by a signal, in the middle of a copy.
                os.posix_fallocate(self._descriptor, self._size, step)
            else:
                os.ftruncate(self._descriptor, self._size + step)
            mapped = mmap.mmap(self._descriptor, self._size + step)
        except OSError as error:
            if error.errno == errno.EFBIG:
                raise FileTooLarge(
                    f"an arena is at the limit on the size of files: {error}"
                ) from error
            raise MemoryError(f"an arena cannot grow by {step:,} bytes: {error}") from error
        self._map, self._view = mapped, memoryview(mapped)
        self._add(self._size, step)
        self._size += step


def grain(size: int) -> int:
    """``size`` rounded up to whole grains; nothing is smaller than one."""
    return max(1, -(-size // GRAIN_BYTES)) * GRAIN_BYTES


def available_bytes() -> int:
    """How much memory the machine, or the control group of this process, could still give.

    A very large number where the system does not tell.
    """
    found = ARENA_BYTES
    with contextlib.suppress(OSError, ValueError, StopIteration):
        with open("/proc/meminfo", encoding="ascii") as lines:
            line = next(line for line in lines if line.startswith("MemAvailable:"))
        found = int(line.split()[1]) * 1024
    with contextlib.suppress(OSError, ValueError):
        limit, used = (_number(f"/sys/fs/cgroup/memory.{name}") for name in ("max", "current"))
        found = min(found, max(0, limit - used))
    return found


def _number(path: str) -> int:
    with open(path, encoding="ascii") as file:
        return int(file.read())


def _is_on_disk(descriptor: int) -> bool:
    """Whether a file may be refused its space by a full disk."""
    path = f"/proc/self/fd/{descriptor}"
    try:
        return not os.readlink(path).startswith("/memfd:")
    except OSError:
        return False
