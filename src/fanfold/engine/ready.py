"""A call's ready queue: runs of items, first in first out by readiness, across parents.

Owns the order in which ready items are taken, and which must run alone. An entry is a set of items of one
chunk, so a queue's length is counted in runs, not in items.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

from fanfold.engine.bits import lowest
from fanfold.engine.chunks import Chunk

Entry = tuple[Chunk, int]
"""Items of one chunk."""


@dataclass(slots=True)
class Retry:
    """One item that must run alone, because a batch that held it raised or lost its worker."""

    chunk: Chunk
    bit: int
    attempt: int
    deaths: int


class ReadyQueue:
    """The ready items of one call.

    Args:
        sequence: Numbers that grow with time, shared by all queues of a run, so that heads compare.
    """

    __slots__ = ("_runs", "_sequence", "alone", "count", "total")

    def __init__(self, sequence: Iterator[int]) -> None:
        self._sequence = sequence
        self._runs: deque[tuple[int, Chunk, int]] = deque()
        self.alone: deque[Retry] = deque()
        """Items to run one by one, each with a worker to itself."""
        self.count = 0
        """Ready items in the runs (those of roots that ended since are still counted)."""
        self.total = 0
        """Items that ever became ready."""

    def push(self, chunk: Chunk, bits: int) -> None:
        """Items became ready."""
        runs = self._runs
        if runs and runs[-1][1] is chunk:
            first, _, before = runs[-1]
            runs[-1] = (first, chunk, before | bits)
        else:
            runs.append((next(self._sequence), chunk, bits))
        size = bits.bit_count()
        self.count += size
        self.total += size

    def push_back(self, entries: list[Entry]) -> None:
        """Items that were taken but not run go to the head again, in their order."""
        head = self._runs[0][0] if self._runs else 0
        for chunk, bits in reversed(entries):
            self._runs.appendleft((head, chunk, bits))
            self.count += bits.bit_count()

    def runs(self) -> Iterator[tuple[int, Chunk, int]]:
        """Triples (sequence, chunk, items), oldest first."""
        return iter(self._runs)

    def head(self) -> int | None:
        """The sequence of the oldest run, or None."""
        return self._runs[0][0] if self._runs else None

    def take(self, limit: int) -> tuple[list[Entry], int]:
        """Remove up to ``limit`` items from the head; items of ended roots vanish on the way."""
        runs, taken, room = self._runs, [], limit
        while runs and room:
            sequence, chunk, bits = runs[0]
            live = bits & ~chunk.ended
            size = live.bit_count()
            if size <= room:
                runs.popleft()
                self.count -= bits.bit_count()
            else:
                live = lowest(live, room)
                size = room
                runs[0] = (sequence, chunk, bits & ~live)
                self.count -= size
            if live:
                taken.append((chunk, live))
                room -= size
        return taken, limit - room
