"""The probe: of a parent that has no result yet at a call, only so many items are let through.

So a bad document is found before the workers are full of it. It costs the driver more to give out the first
items of many parents than all items of a few, so a call earns trust: after enough results without a sign that
parents fail there nobody is held back, until there is one.

Owns who is held back; that nobody is while workers would wait otherwise is the queue's business.
"""

from __future__ import annotations

from typing import Final

from fanfold.engine.bits import bit_positions, lowest
from fanfold.engine.chunks import Chunk

TRUST: Final = 10_000
"""Results in a row without a sign of a parent that fails, after which a call is trusted."""


class Probe:
    """Which ready items of a call to hold back.

    Args:
        limit: Items of a parent that may be taken before its first result.
        output: The slot of the call's output.
        taken: The slot of the items that were taken from its queue.
    """

    __slots__ = ("_limit", "_output", "_trust", "taken")

    def __init__(self, limit: int, output: int, taken: int) -> None:
        self._limit = limit
        self._output = output
        self.taken = taken
        self._trust = 0

    @property
    def trusting(self) -> bool:
        """Whether nobody is held back at present."""
        return self._trust >= TRUST

    def results(self, count: int) -> None:
        """The call gave so many results."""
        self._trust += count

    def alarm(self) -> None:
        """Items of the call were given up because of a sibling: parents do fail here."""
        self._trust = 0

    def held_back(self, chunk: Chunk, ready: int) -> int:
        """Those of some ready items that wait for a sibling's result."""
        shared = chunk.shared()
        if chunk.parent is None or (chunk.largest <= self._limit and not shared):
            return 0  # roots have no siblings; small families are let through whole
        later = chunk.beyond(self._limit)
        taken = chunk.done[self.taken] & ~chunk.terminal(self._output)
        unusual = chunk.parents_of(
            taken & later
        )  # others than the first were taken: let nothing follow
        held = ready & (later | chunk.items_of(unusual))
        if held:
            proven = chunk.parents_of(self._results(chunk))
            if shared:
                proven |= self._proven_elsewhere(chunk, shared & chunk.parents_of(held))
            held &= ~chunk.items_of(proven)
        if held:
            through = chunk.parents_of(ready & ~held | taken)
            for offset in bit_positions(chunk.parents_of(held) & ~through):
                family = 1 << offset
                if not (shared & family and self._waits_elsewhere(chunk, family)):
                    items = held & chunk.items_of(family)
                    held ^= lowest(items, min(self._limit, items.bit_count()))
        return held

    def _proven_elsewhere(self, chunk: Chunk, parents: int) -> int:
        """Those of some parents that have results in other chunks."""
        assert chunk.parent is not None
        found = 0
        for offset in bit_positions(parents):
            runs = chunk.parent.children[chunk.level].runs(1 << offset)
            if any(members & self._results(part) for part, members in runs):
                found |= 1 << offset
        return found

    def _waits_elsewhere(self, chunk: Chunk, parent: int) -> bool:
        """Whether a parent has items in other chunks that may still give its first result."""
        assert chunk.parent is not None
        return any(
            members & part.done[self.taken] & ~part.terminal(self._output)
            for part, members in chunk.parent.children[chunk.level].runs(parent)
        )

    def _results(self, chunk: Chunk) -> int:
        lost = chunk.lost_at(self._output)
        return chunk.done[self._output] | (0 if lost is None else lost.failed)
