"""A ready queue whose batches come to at most so much together: bytes of input values, or a user's cost.

Owns which items share such a batch: first in first out, but an item that does not fit lets smaller ones behind
it go first, so that batches fill. It is the head then, and the first of the next batch. An item larger than the
limit goes alone.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator
from itertools import accumulate
from typing import Final

from fanfold.engine.bits import bit_positions, lowest
from fanfold.engine.chunks import Chunk
from fanfold.engine.lines import Line
from fanfold.engine.probe import Probe
from fanfold.engine.ready import Entry, ReadyQueue
from fanfold.engine.weights import Weigh

LOOKED_AT: Final = 8
"""Batches' worth of items that are looked through for those that fit; the queue may be far longer."""


class MeasuredQueue(ReadyQueue):
    """The ready items of one call whose batches are limited by what their items weigh.

    Args:
        sequence: As of any queue.
        output: As of any queue.
        probe: As of any queue.
        line: As of any queue.
        limit: The most that the items of a batch weigh together.
        weigh: What they weigh.
    """

    __slots__ = ("_limit", "_weigh")

    def __init__(
        self,
        sequence: Iterator[int],
        output: int,
        probe: Probe,
        line: Line | None = None,
        *,
        limit: float,
        weigh: Weigh,
    ) -> None:
        super().__init__(sequence, output, probe, line)
        self._limit = limit
        self._weigh = weigh

    def fills(self, limit: int) -> bool:
        """Whether there are so many items, or some so heavy that not all of them would fit."""
        if super().fills(limit):
            return True
        left = self._limit
        for _, chunk, bits in self.runs():
            if live := bits & ~self.dead(chunk):
                left -= sum(self._weigh(chunk, live))
                if left <= 0:
                    return True
        return False

    def take(self, limit: int, *, held: bool = True) -> tuple[list[Entry], int]:
        """Remove up to ``limit`` items that fit into one batch together."""
        taken: list[Entry] = []
        passed: list[tuple[int, Chunk, int]] = []
        filling = _Filling(limit, self._limit, self._weigh)
        unseen = LOOKED_AT * limit
        while self._runs and filling.room and unseen > 0:
            sequence, chunk, bits = self._runs.popleft()
            live = bits & ~self.dead(chunk)
            self.count -= (bits ^ live).bit_count()
            later = 0 if self._probe.trusting else self._probe.held_back(chunk, live)
            if later:
                first, before = self._held.get(chunk, (sequence, 0))
                self._held[chunk] = first, before | later
                live &= ~later
            self._take_fitting(filling, chunk, live, taken, passed, sequence)
            unseen -= live.bit_count()
        while held and self._held and filling.room and not passed:
            chunk, (sequence, bits) = next(iter(self._held.items()))
            del self._held[chunk]
            live = bits & ~self.dead(chunk)
            self.count -= (bits ^ live).bit_count()
            self._take_fitting(filling, chunk, live, taken, passed, sequence)
        for run in reversed(passed):
            self._runs.appendleft(run)
        return taken, filling.count

    def _chooser(self, limit: int) -> Callable[[Chunk, int], int]:
        return _Filling(limit, self._limit, self._weigh).choose

    def _take_fitting(
        self,
        filling: _Filling,
        chunk: Chunk,
        live: int,
        taken: list[Entry],
        passed: list[tuple[int, Chunk, int]],
        sequence: int,
    ) -> None:
        """Take what fits of a run; what does not is passed over."""
        bits = filling.choose(chunk, live)
        if bits:
            taken.append((chunk, bits))
            chunk.done[self._probe.taken] |= bits
            self.count -= bits.bit_count()
        if live ^ bits:
            passed.append((sequence, chunk, live ^ bits))


class _Filling:
    """A batch while it is being filled."""

    def __init__(self, room: int, limit: float, weigh: Weigh) -> None:
        self.room = room
        self.count = 0
        self._limit = self._left = limit
        self._weigh = weigh

    def choose(self, chunk: Chunk, live: int) -> int:
        """Those of some items of a chunk, from the first on, that fit in as well."""
        chosen, rest = 0, live
        while rest and self.room:
            items = lowest(rest, min(self.room, rest.bit_count()))
            weights = self._weigh(chunk, items)
            if not self.count and weights[0] > self._limit:
                self.room, self.count = 0, 1
                return items & -items
            ends = list(accumulate(weights))
            fitting = bisect_right(ends, self._left)
            if fitting:
                part = lowest(items, fitting)
                chosen |= part
                rest ^= part
                self.room -= fitting
                self.count += fitting
                self._left -= ends[fitting - 1]
            if fitting < len(weights):
                # What is too large by itself is passed over; of the rest, the weights may be others now.
                left = self._left
                large = (w > left for w in weights[fitting:])
                places = bit_positions(items)[fitting:]
                rest &= ~sum(1 << o for o, is_large in zip(places, large, strict=True) if is_large)
        return chosen
