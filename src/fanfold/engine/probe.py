"""The probe: of a parent that has no result yet at a call, only so many items are let through.

So a bad document is found before the workers are full of it. Owns who is held back; that nobody is while
workers would wait otherwise is the queue's business.
"""

from __future__ import annotations

from fanfold.engine.bits import bit_positions, lowest
from fanfold.engine.chunks import Chunk


class Probe:
    """Which ready items of a call to hold back.

    Args:
        limit: Items of a parent that may be taken before its first result.
        output: The slot of the call's output.
        taken: The slot of the items that were taken from its queue.
    """

    __slots__ = ("_limit", "_output", "taken")

    def __init__(self, limit: int, output: int, taken: int) -> None:
        self._limit = limit
        self._output = output
        self.taken = taken

    def held_back(self, chunk: Chunk, ready: int) -> int:
        """Those of some ready items that wait for a sibling's result."""
        shared = chunk.shared()
        if chunk.parent is None or (chunk.largest <= self._limit and not shared):
            return 0  # roots have no siblings; small families are let through whole
        held = 0
        for offset in bit_positions(
            chunk.parents_of(ready) & ~chunk.parents_of(self._results(chunk))
        ):
            family = 1 << offset
            items = chunk.items_of(family)
            taken = self._waited_for(chunk, items)
            if shared & family:
                runs = chunk.parent.children[chunk.level].runs(family)
                if any(members & self._results(part) for part, members in runs):
                    continue
                taken = sum(self._waited_for(part, members) for part, members in runs)
            held |= _all_but(ready & items, self._limit - taken)
        return held

    def _waited_for(self, chunk: Chunk, items: int) -> int:
        """How many of some items were taken and may still give a result."""
        taken = items & chunk.done[self.taken]
        return (taken & ~chunk.terminal(self._output)).bit_count() if taken else 0

    def _results(self, chunk: Chunk) -> int:
        lost = chunk.lost_at(self._output)
        return chunk.done[self._output] | (0 if lost is None else lost.failed)


def _all_but(items: int, count: int) -> int:
    """Some items without the first ``count``."""
    if items.bit_count() <= count:
        return 0
    return items & ~lowest(items, count) if count > 0 else items
