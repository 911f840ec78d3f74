"""How items come into being: new items are laid out in chunks, families packed as they fit.

Owns the layout only. What follows from the new items is the machine's business, which is told of them
through ``arrived``.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from itertools import accumulate

from fanfold.engine.bits import bit_positions, low_offset, lowest
from fanfold.engine.chunks import Children, Chunk

Arrived = Callable[[Chunk, int, int], None]
"""Told of a chunk, of its new items, and of the row of the first of them."""


class Membership:
    """Adds the children at one level to the items of the level above.

    Args:
        level: The children's level.
        slots: How many slots its chunks have.
        expansion: The slot of the expansion, at the parents' level.
        span: Items in a full chunk.
        arrived: Told of new items.
    """

    def __init__(self, level: int, slots: int, expansion: int, span: int, arrived: Arrived) -> None:
        self._level = level
        self._slots = slots
        self._expansion = expansion
        self._span = span
        self._arrived = arrived

    def add(self, parent: Chunk, parents: int, counts: Sequence[int], row: int) -> None:
        """Children were released.

        Args:
            parent: The chunk of the parents.
            parents: Their offsets.
            counts: How many more children each of them has, in order; none is zero.
            row: The row of the first child; the others follow in order.
        """
        children = parent.children.get(self._level)
        if children is None:
            children = parent.children[self._level] = Children()
        known = parents & children.begun
        if not known:
            self._begin(parent, children, parents, counts, row)
            return
        for offset, count in zip(bit_positions(parents), counts, strict=True):
            if known >> offset & 1:
                self._go_on(parent, children, offset, count, row)
            else:
                self._begin(parent, children, 1 << offset, (count,), row)
            row += count

    def _begin(
        self, parent: Chunk, children: Children, parents: int, counts: Sequence[int], row: int
    ) -> None:
        """New families: each goes where all its children fit, if it is not larger than any chunk."""
        while parents:
            chunk = self._open_chunk(parent, children, low_offset(parents), counts[0])
            size = chunk.size
            ends = list(accumulate(counts, initial=size))
            fit = bisect_right(ends, self._span) - 1
            if fit:
                members, last = lowest(parents, fit), ends[fit]
                chunk.append(members, ends[1 : fit + 1])
            else:  # the chunk is empty, and the family larger
                members, last = parents & -parents, self._span
                chunk.append(members, [last])
            children.begin(members, chunk)
            self._arrived(chunk, (1 << last) - (1 << size), row)
            row += last - size
            if not fit:
                self._go_on(parent, children, low_offset(members), counts[0] - last, row)
                row += counts[0] - last
                fit = 1
            parents &= ~members
            counts = counts[fit:]

    def _open_chunk(self, parent: Chunk, children: Children, offset: int, count: int) -> Chunk:
        """Where the family of the parent at ``offset`` begins."""
        chunk = children.newest
        if chunk is not None and chunk.size + count <= self._span:
            last = chunk.parents.bit_length() - 1
            # Behind a family that may still grow nothing is put, or it would be torn.
            at_rest = (parent.terminal(self._expansion) | parent.ended) >> last & 1
            if last < offset and at_rest:
                return chunk
        return self._new_chunk(parent)

    def _go_on(self, parent: Chunk, children: Children, offset: int, count: int, row: int) -> None:
        """More children of one family."""
        while count:
            chunk = children.last(offset)
            if chunk.parents >> offset == 1 and chunk.size < self._span:
                size = chunk.size
                chunk.size = min(size + count, self._span)
                self._arrived(chunk, (1 << chunk.size) - (1 << size), row)
                row += chunk.size - size
                count -= chunk.size - size
            else:
                size = min(count, self._span)
                further = self._new_chunk(parent)
                further.append(1 << offset, [size])
                children.go_on(offset, further)
                self._arrived(further, (1 << size) - 1, row)
                row += size
                count -= size

    def _new_chunk(self, parent: Chunk) -> Chunk:
        return Chunk(self._level, parent, self._slots)
