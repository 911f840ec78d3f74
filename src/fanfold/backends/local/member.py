"""One process of a run as the driver knows it: its channel, its log, what is at it, what it has in memory.

Owns that record and its bookkeeping; what its messages mean to a run is the backend's.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from fanfold.backends.base import BackendEvent
from fanfold.backends.local.channel import DriverChannel
from fanfold.backends.local.store import BlockRef
from fanfold.protocol import Event, WorkerStarted

_ESCAPES: Final = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\^_])")
"""ANSI sequences: colours and the like, a terminal's title, single letters."""


class Holding:
    """A worker as the driver's bookkeeping has it, process or thread.

    Args:
        number: The worker's number in this run.
        name: ``Ocr[2]``.
    """

    def __init__(self, number: int, name: str) -> None:
        self.number = number
        self.name = name
        self.ready: bool = False
        """It takes batches."""
        self.pid: int = 0
        """Its process, once it is ready."""
        self.through: bool = False
        """It has told all that it had to tell; its end is no death."""
        self.batches: list[int] = []
        """Batches that were sent and have not ended, in order."""
        self.used: set[BlockRef] = set()
        """Blocks of its arena that are in use."""
        self._freed: list[BlockRef] = []
        self.freed_bytes: int = 0
        """How much is free again that it has not been told of."""

    def free(self, ref: BlockRef) -> None:
        """A block of its arena is read by nobody any more."""
        self.used.discard(ref)
        self._freed.append(ref)
        self.freed_bytes += ref[2]

    @property
    def freed(self) -> int:
        """How many blocks it has not been told of."""
        return len(self._freed)

    def take_freed(self) -> tuple[BlockRef, ...]:
        """The blocks to tell it of."""
        freed, self._freed, self.freed_bytes = tuple(self._freed), [], 0
        return freed

    def hold(self, refs: Iterable[BlockRef]) -> None:
        """It has told of these blocks."""
        self.used.update(refs)


class Member(Holding):
    """A worker process, or the writer, through all its lives.

    Args:
        number: The worker's number in this run.
        name: ``Ocr[2]``.
        threads: Cores that it owns.
        payload: What it is to be, by cloudpickle.
        log_dir: Where its output goes; None: an unnamed temporary file.
        closes: Whether its stage has a ``close()`` to be called at the end.
        gpus: GPUs that it is to see; None: those that the program sees.
        scarce: Whether it holds what there may not be enough of for two, so that one process ends before the
            next begins.
    """

    def __init__(
        self,
        number: int,
        name: str,
        threads: int,
        payload: bytes,
        log_dir: Path | None,
        *,
        closes: bool = False,
        gpus: tuple[str, ...] | None = None,
        scarce: bool = False,
    ) -> None:
        super().__init__(number, name)
        self.threads = threads
        self.payload = payload
        self.closes = closes
        self.gpus = gpus
        self.scarce = scarce
        self.retired: set[int] = set()
        """Processes that were replaced and have not ended yet."""
        self._held_back: WorkerStarted | None = None
        self.log: int = _open_log(name, log_dir)
        self.channel: DriverChannel | None = None
        """None while there is no process to talk to."""
        self.lives: int = 0

    def begin(self, channel: DriverChannel) -> None:
        """A new life. What is not in use is free, so that there is nothing to tell of."""
        self.channel = channel
        self.lives += 1
        self.ready = self.through = False
        self._held_back = None
        self.take_freed()

    def holds_back(self, event: Event | BackendEvent) -> bool:
        """Whether nobody is to hear of it yet: it has started, but the process in whose place it is has not
        ended, and may still give space of the arena back, which this one would use."""
        if isinstance(event, WorkerStarted) and self.retired:
            self._held_back = event
            return True
        return False

    def take_held_back(self) -> WorkerStarted | None:
        """What may be told now, if no process is left in whose place this one is."""
        if self.retired:
            return None
        started, self._held_back = self._held_back, None
        return started

    def log_tail(self, limit_bytes: int) -> str:
        """The end of its output, without what colours it on a terminal."""
        size = os.fstat(self.log).st_size
        tail = os.pread(self.log, limit_bytes, max(0, size - limit_bytes))
        return _ESCAPES.sub("", tail.decode(errors="replace"))


def _open_log(name: str, log_dir: Path | None) -> int:
    if log_dir is None:
        log, path = tempfile.mkstemp(prefix="fanfold-log-")
        os.unlink(path)
        return log
    log_dir.mkdir(parents=True, exist_ok=True)
    file = log_dir / f"{name.replace(os.sep, '_')}.log"
    return os.open(file, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
