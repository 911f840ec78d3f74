"""When stages ran, in their own words: each process appends to a file of its own, and a reader has them all.

Owns the form of an entry. Writing one costs two microseconds, so that a function of a millisecond can be
measured, and loses nothing when the process is killed. Times are those of the machine's monotonic clock, which
all processes share.
"""

from __future__ import annotations

import os
import struct
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

STARTED, FIRST_PAGE, RENDERED, MODEL, ASSEMBLED = range(5)
"""A replica of the model is ready; a document's first page, and its last; a call of the model; a document."""

_ENTRY = struct.Struct("<Bddqq")


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
    """The file of this process.

    Args:
        folder: Where it lies.
    """

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self._file = -1

    def write(self, kind: int, start_s: float, items: int, document: int = -1) -> None:
        """Something that began at ``start_s`` has ended now."""
        end_s = time.monotonic()
        if self._file < 0:
            path = os.path.join(self.folder, f"{os.getpid()}.log")
            self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.write(self._file, _ENTRY.pack(kind, start_s, end_s, items, document))


def entries(folder: Path) -> list[Entry]:
    """All that was written, in the order of its end."""
    return sorted(_read(folder), key=lambda entry: entry.end_s)


def _read(folder: Path) -> Iterator[Entry]:
    for path in folder.glob("*.log"):
        data = path.read_bytes()
        whole = len(data) - len(data) % _ENTRY.size
        for kind, start_s, end_s, items, document in _ENTRY.iter_unpack(data[:whole]):
            yield Entry(kind, start_s, end_s, items, document, int(path.stem))
