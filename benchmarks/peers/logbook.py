"""When stages ran, in their own words: each writes into a file of its own, and a reader has them all.

Owns the form of an entry. Writing one into mapped memory costs next to nothing, so that a function of a
millisecond can be measured, and loses nothing when the process is killed. Times are those of the machine's
monotonic clock, which all processes share.
"""

from __future__ import annotations

import itertools
import mmap
import os
import struct
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

STARTED, FIRST_PAGE, RENDERED, MODEL, ASSEMBLED = range(5)
"""A replica of the model is ready; a document's first page, and its last; a call of the model; a document."""

_ENTRY = struct.Struct("<Bddqq")
_PART_BYTES = 1 << 20
_NUMBERS = itertools.count()


class Entry(NamedTuple):
    """Something that a stage did."""

    kind: int
    start_s: float
    end_s: float
    items: int
    document: int
    process: int

    @property
    def seconds(self) -> float:
        """How long it took."""
        return self.end_s - self.start_s


class Logbook:
    """The file of one stage in this process.

    Args:
        folder: Where it lies.
    """

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self._name = ""
        self._entries: mmap.mmap | None = None
        self._end = 0

    def write(self, kind: int, start_s: float, items: int, document: int = -1) -> None:
        """Something that began at ``start_s`` has ended now."""
        end_s = time.monotonic()
        if self._entries is None or self._end + _ENTRY.size > len(self._entries):
            self._entries = self._longer()
        _ENTRY.pack_into(self._entries, self._end, kind, start_s, end_s, items, document)
        self._end += _ENTRY.size

    def _longer(self) -> mmap.mmap:
        self._name = self._name or f"{os.getpid()}-{next(_NUMBERS)}.log"
        path = os.path.join(self.folder, self._name)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT)
        try:
            size = self._end + _PART_BYTES
            os.ftruncate(descriptor, size)
            return mmap.mmap(descriptor, size)
        finally:
            os.close(descriptor)


def entries(folder: Path) -> list[Entry]:
    """All that was written, in the order of its end."""
    return sorted(_read(folder), key=lambda entry: entry.end_s)


def _read(folder: Path) -> Iterator[Entry]:
    for path in folder.glob("*.log"):
        data = path.read_bytes()
        whole = len(data) - len(data) % _ENTRY.size
        for kind, start_s, end_s, items, document in _ENTRY.iter_unpack(data[:whole]):
            if not end_s:
                break  # from here on nothing was written
            yield Entry(kind, start_s, end_s, items, document, int(path.stem.partition("-")[0]))
