"""Where the values of a chunk's items lie: from segments and sets of items to rows of blocks and columns.

Owns the reading of segments. A batch usually made neighbours together, so most sets of items are a stretch of
one block; where several batches made some of them each, in turns, their rows are woven.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from fanfold.columns import Column, Ref
from fanfold.engine.bits import bit_positions, extract
from fanfold.engine.chunks import Segment

WOVEN: Final = 8
"""So many blocks are woven; rows of more are named one by one."""


class Part(NamedTuple):
    """Some items whose values lie in one block, in the items' order."""

    items: int
    ref: Ref
    first: int
    mask: int
    """0 if the rows are consecutive from ``first`` on; else which of the rows from there."""

    def column(self) -> Column:
        """The column of the items."""
        if self.mask:
            return ("pick", self.ref, self.first, self.mask)
        return ("rows", self.ref, self.first, self.items.bit_count())


def parts(segments: Sequence[Segment], bits: int) -> list[Part]:
    """Where some items' values lie: one part for each block, by their first items."""
    found: list[Part] = []
    for items, ref, first in segments:
        if items == bits:
            return [Part(bits, ref, first, 0)]
        here = items & bits
        if here:
            low = here & -here
            row = first + (items & (low - 1)).bit_count()
            between = items & ((1 << here.bit_length()) - low)
            part = Part(here, ref, row, 0 if between == here else extract(here, between))
            if here == bits:
                return [part]
            found.append(part)
    found.sort(key=lambda part: part.items & -part.items)
    return found


def in_turns(parts: Sequence[Part]) -> bool:
    """Whether items of one part lie between those of another."""
    last = 0
    for part in parts:
        if part.items & last:  # an item below the highest seen before
            return True
        last |= (1 << part.items.bit_length()) - 1
    return False


def woven(parts: Sequence[Part], bits: int) -> Column:
    """The column of items that lie in turns in several blocks."""
    if len(parts) > WOVEN:
        return ("cat", tuple(("rows", ref, row, 1) for ref, row in rows(parts)))
    first, *others = parts
    if not others:
        return first.column()
    mask = extract(first.items, bits)
    return ("weave", mask, first.column(), woven(others, bits & ~first.items))


def rows(parts: Sequence[Part]) -> list[tuple[Ref, int]]:
    """Block and row of each item, in the items' order."""
    found: list[tuple[int, Ref, int]] = []
    for items, ref, first, mask in parts:
        places: Sequence[int] = range(first, first + items.bit_count())
        if mask:
            places = [first + i for i in bit_positions(mask)]
        found += zip(bit_positions(items), [ref] * len(places), places, strict=True)
    if in_turns(parts):
        found.sort(key=lambda place: place[0])
    return [(ref, row) for _, ref, row in found]
