"""A ready queue whose batches hold items of one group only (``batch_by``).

Owns the parting of a call's ready items into queues of their own, one for each group that has any, and which of
them the next batch comes from: a full one before others, the oldest first. One that is not full is passed over
:data:`PASSED_OVER` times at most. All share one probe, so no group takes what another's siblings wait for.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from typing import Final

from fanfold.engine.chunks import Chunk
from fanfold.engine.groups import ReadGroups
from fanfold.engine.probe import Probe
from fanfold.engine.ready import Among, Entry, ReadyQueue

PASSED_OVER: Final = 8
"""Full batches of other groups that may go before the oldest item's."""


class GroupedQueue(ReadyQueue):
    """The ready items of one call whose batches hold one group each.

    Args:
        sequence: As of any queue.
        output: As of any queue.
        probe: As of any queue.
        groups: Which group each item is of.
        make: Makes the queue of one group.
    """

    __slots__ = ("_groups", "_make", "_parts", "_passed_over")

    def __init__(
        self,
        sequence: Iterator[int],
        output: int,
        probe: Probe,
        *,
        groups: ReadGroups,
        make: Callable[[], ReadyQueue],
    ) -> None:
        super().__init__(sequence, output, probe)
        self._groups = groups
        self._make = make
        self._parts: dict[Hashable, ReadyQueue] = {}
        """By group; those that hold something."""
        self._passed_over = 0

    def push(self, chunk: Chunk, bits: int) -> None:
        """Items became ready."""
        for group, items in self._groups(chunk, bits):
            self._part(group).push(chunk, items)
        size = bits.bit_count()
        self.count += size
        self.total += size

    def push_back(self, entries: list[Entry]) -> None:
        """Items of one batch that were taken but not run go to the head of their group again."""
        parted = [
            (group, (chunk, items))
            for chunk, bits in entries
            for group, items in self._groups(chunk, bits)
        ]
        for group in dict.fromkeys(group for group, _ in parted):
            self._part(group).push_back([entry for other, entry in parted if other == group])
        self.count += sum(bits.bit_count() for _, bits in entries)

    def runs(self) -> Iterator[tuple[int, Chunk, int]]:
        """What may be taken and what is held back, group by group."""
        for part in self._parts.values():
            yield from part.runs()

    def head(self) -> int | None:
        """The sequence of the oldest group's oldest run, or None."""
        return min((h for p in self._parts.values() if (h := p.head()) is not None), default=None)

    def oldest(self) -> int | None:
        """The sequence of the oldest run, those that are held back among them, or None."""
        found = (part.oldest() for part in self._parts.values())
        return min((one for one in found if one is not None), default=None)

    def mark(self) -> int:
        """The sequence of the newest run."""
        for part in self._parts.values():
            self._newest = max(self._newest, part.mark())
        return self._newest

    def results(self, chunk: Chunk, count: int) -> None:
        """Some items of a chunk have results."""
        self._probe.results(count)
        for part in self._parts.values():
            part.results(chunk, 0)

    def fills(self, limit: int) -> bool:
        """Whether a batch of some group would be full."""
        return any(part.fills(limit) for part in self._parts.values())

    def take(self, limit: int, *, held: bool = True) -> tuple[list[Entry], int]:
        """Remove up to ``limit`` items of one group; what is held back only if no group has anything else."""
        order = self._order(limit)
        for group in order:
            others = any(part.free for other, part in self._parts.items() if other != group)
            entries, count = self._take_of(group, limit, held=held and not others)
            if count:
                return entries, count
        for group in order if held else ():
            entries, count = self._take_of(group, limit, held=True)
            if count:
                return entries, count
        return [], 0

    def take_some(self, among: Among, limit: int, *, probed: bool) -> tuple[list[Entry], int]:
        """Remove the oldest items of one group that are among some, as many as fit into one batch."""
        for group, part in self._parts.items():
            entries, count = part.take_some(among, limit, probed=probed)
            if count:
                self.count -= count
                if part.oldest() is None:
                    del self._parts[group]
                return entries, count
        return [], 0

    def _order(self, limit: int) -> list[Hashable]:
        """The groups, the one first that the next batch should be of."""
        order = sorted(self._parts, key=lambda group: self._parts[group].oldest() or 0)
        if self._passed_over < PASSED_OVER:
            first = order[:1]
            order.sort(key=lambda group: not self._parts[group].fills(limit))
            self._passed_over = self._passed_over + 1 if order[:1] != first else 0
        else:
            self._passed_over = 0
        return order

    def _take_of(self, group: Hashable, limit: int, *, held: bool) -> tuple[list[Entry], int]:
        part = self._parts.get(group)
        if part is None:
            return [], 0
        before = part.count
        entries, count = part.take(limit, held=held)
        self.count += part.count - before
        if part.oldest() is None:
            del self._parts[group]
        return entries, count

    def _part(self, group: Hashable) -> ReadyQueue:
        part = self._parts.get(group)
        if part is None:
            part = self._parts[group] = self._make()
        return part
