"""The layout of a chunk: families one after the other, and set arithmetic between parents and children.

A *family* is the children of one parent, in ordinal order. Parents and children are bit sets of offsets, the
parents' in their own chunk. Whatever is asked is answered for all families at once; what is asked most (all
of them, or a stretch of neighbours) costs a few operations on integers. Owns no outcomes.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from operator import sub
from typing import Final

from fanfold.engine.bits import below, bit_positions, deposit, extract, is_run, low_offset

FEW: Final = 12
"""So many families are looked up one by one; more are cheaper to renumber together."""


class Families:
    """Consecutive families. Grows at its end only."""

    __slots__ = (
        "_beyond",
        "_owners",
        "_starts",
        "continued",
        "heads",
        "largest",
        "parents",
        "size",
    )

    def __init__(self) -> None:
        self.size = 0
        """How many children there are."""
        self.largest = 0
        """How many children the largest family has here."""
        self.parents = 0
        """The parents that have children here."""
        self.heads = array("H")
        """By family: the offset of its first child here."""
        self._starts = 0
        """The same as a set."""
        self._owners = array("H")
        """By family: its parent's offset; ascending."""
        self._beyond = (0, 0, 0)
        """What :meth:`beyond` said last: for which number, at which size, which items."""
        self.continued: dict[int, int] | None = None
        """By parent, for families that began elsewhere: the ordinal of their first child here."""

    def append(self, parents: int, ends: Sequence[int]) -> None:
        """Add families behind all others.

        Args:
            parents: Their parents; all come after those known already.
            ends: Where each family ends, as offsets behind its last child.
        """
        heads = [self.size, *ends[:-1]]
        self.parents |= parents
        self._owners.extend(bit_positions(parents))
        self.heads.extend(heads)
        self._starts |= sum(map((1).__lshift__, heads))
        self.largest = max(self.largest, max(map(sub, ends, heads)))
        self.size = ends[-1]

    def grow(self, count: int) -> None:
        """Add children to the last family."""
        self.size += count
        self.largest = max(self.largest, self.size - self.heads[-1])

    def items_of(self, parents: int) -> int:
        """The children of some parents.

        >>> families = Families()
        >>> families.append(0b1011, [2, 3, 6])  # parents 0, 1 and 3 have two, one and three children
        >>> bin(families.items_of(0b1001))
        '0b111011'
        """
        parents &= self.parents
        if parents == self.parents:
            return (1 << self.size) - 1
        if not parents:
            return 0
        first, stop = self._ranks(parents)
        if stop - first == parents.bit_count():
            return (1 << self._end(stop)) - (1 << self.heads[first])
        ranks = extract(parents, self.parents)
        # Each family is the ones from its first child to its last: 2^(last + 1) - 2^first, summed at once.
        return (deposit(ranks, self._lasts()) << 1) - deposit(ranks, self._starts)

    def parents_of(self, items: int) -> int:
        """The parents of some children.

        Adding all ones but the last of each family to the children carries into the family's last place if
        there are any, and never beyond: one addition asks all families at once.
        """
        if not items:
            return 0
        if len(self.heads) == 1:
            return self.parents
        if is_run(items):
            first = bisect_right(self.heads, low_offset(items)) - 1
            last = bisect_right(self.heads, items.bit_length() - 1) - 1
            return self.parents & (2 << self._owners[last]) - (1 << self._owners[first])
        lasts = self._lasts()
        inner = ((1 << self.size) - 1) & ~lasts
        touched = ((items & inner) + inner | items) & lasts
        if touched == lasts:
            return self.parents
        if touched.bit_count() <= FEW:
            found = 0
            while touched:
                rank = bisect_right(self.heads, low_offset(touched)) - 1
                found |= 1 << self._owners[rank]
                touched &= touched - 1
            return found
        return deposit(extract(touched, lasts), self.parents)

    def whole(self, items: int) -> int:
        """The parents all of whose children here are among ``items``."""
        missing = ((1 << self.size) - 1) & ~items
        return self.parents & ~self.parents_of(missing) if missing else self.parents

    def sizes(self, parents: int, items: int) -> list[int]:
        """How many of ``items`` are children of each of some parents, which all have children here."""
        first, stop = self._ranks(parents)
        if stop - first == parents.bit_count():
            heads = self.heads[first:stop].tolist()
            ends = [*heads[1:], self._end(stop)]
        else:
            ranks = [bisect_left(self._owners, offset) for offset in bit_positions(parents)]
            heads = [self.heads[rank] for rank in ranks]
            ends = [self._end(rank + 1) for rank in ranks]
        if items == self.items_of(parents):
            return list(map(sub, ends, heads))
        return [
            (items >> head & below(end - head)).bit_count()
            for head, end in zip(heads, ends, strict=True)
        ]

    def beyond(self, count: int) -> int:
        """The children after the first ``count`` of each family; all here of those that began elsewhere."""
        known, size, items = self._beyond
        if known == count and size == self.size:
            return items
        items = 0
        ends = [*self.heads[1:], self.size]
        for owner, head, end in zip(self._owners, self.heads, ends, strict=True):
            first = head if self.continued is not None and owner in self.continued else head + count
            if first < end:
                items += (1 << end) - (1 << first)
        self._beyond = count, self.size, items
        return items

    def place(self, offset: int) -> tuple[int, int]:
        """A child's parent and its ordinal."""
        rank = bisect_right(self.heads, offset) - 1
        parent = self._owners[rank]
        ordinal = offset - self.heads[rank]
        if self.continued is not None:
            ordinal += self.continued.get(parent, 0)
        return parent, ordinal

    def _ranks(self, parents: int) -> tuple[int, int]:
        """The stretch of families from the first of some parents to the last."""
        return (
            bisect_left(self._owners, low_offset(parents)),
            bisect_left(self._owners, parents.bit_length() - 1) + 1,
        )

    def _end(self, rank: int) -> int:
        """Where the family before the one with this rank ends."""
        return self.heads[rank] if rank < len(self.heads) else self.size

    def _lasts(self) -> int:
        """The last child here of each family."""
        return self._starts >> 1 | 1 << self.size - 1
