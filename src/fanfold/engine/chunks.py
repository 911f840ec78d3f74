"""Chunks: membership, immediate parents, ordinals and outcomes, and nothing that acts on them.

The items of a level lie in *chunks*, laid out by families (:mod:`fanfold.engine.families`) whose parents all
lie in one chunk of the level above. A family that does not fit, or that grows after others have come behind
it, goes on in further chunks.

All that is known of a chunk's items at a port (a *slot*) is a handful of integers used as bit sets: bit ``i``
is the item at offset ``i``. So what anything costs depends on the number of chunks, neither on that of the
items nor on that of the parents.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field
from typing import Final

from fanfold.columns import Ref
from fanfold.engine.bits import bit_positions, low_offset
from fanfold.engine.families import Families
from fanfold.failures import Failure
from fanfold.plan import Path

SPAN: Final = 1024
"""Items in a full chunk. Larger: fewer objects; smaller: cheaper integers."""


@dataclass(slots=True)
class Lost:
    """The outcomes other than done of one slot: the exception, so stored only where there are any."""

    dropped: int = 0
    failed: int = 0
    suppressed: int = 0
    causes: list[tuple[int, Failure]] = field(default_factory=list)
    """Sets of items with the failure that made them failed or suppressed."""

    def cause(self, bit: int) -> Failure | None:
        """Why the item ``bit`` (a set of one) is failed or suppressed."""
        for bits, failure in self.causes:
            if bits & bit:
                return failure
        return None


Segment = tuple[int, Ref, int]
"""Items, the block that holds their values in order, and the row of the first."""


FactsKey = tuple[int, int, Path]
"""A port, a control or -1 - a field check, and the path in the port's values: several may tell of one."""


class Chunk(Families):
    """Some items of one level, by families (those of the root level have no parents)."""

    __slots__ = (
        "base",
        "children",
        "condemned",
        "costs",
        "done",
        "ended",
        "facts",
        "freed",
        "further",
        "given_up",
        "groups",
        "level",
        "lost",
        "parent",
        "row_sizes",
        "segments",
    )

    def __init__(self, level: int, parent: Chunk | None, slots: int, base: int = 0) -> None:
        super().__init__()
        self.level = level
        self.parent = parent
        """The chunk of the parents; None for roots."""
        self.base = base
        """For roots: the number of the first."""
        self.further: dict[int, Chunk] | None = None
        """By parent, for families that go on elsewhere: the next chunk."""
        self.children: dict[int, Children] = {}
        """By child level."""
        self.condemned: dict[int, list[tuple[int, Failure]]] | None = None
        """By call at a child level: the items whose children there were given up, and why."""
        self.given_up: dict[int, list[tuple[int, Failure]]] = {}
        """By slot of a list: the items whose list will be suppressed unless its expansion is dropped."""
        self.done = [0] * slots
        """By slot: the items that are done."""
        self.lost: dict[int, Lost] | None = None
        self.ended = 0
        """Items whose root has ended: what is still under way for them is of no use to anybody."""
        self.segments: dict[int, list[Segment]] = {}
        """By slot: where the values are."""
        self.freed: dict[int, int] | None = None
        """By slot: items whose values were released before their root ended."""
        self.facts: dict[FactsKey, Facts] | None = None
        """What was reported of masks, labels and fields."""
        self.groups: dict[tuple[int, int, Path], dict[Hashable, int]] | None = None
        """By (port, call, path): the items of each group of the call's stage (``batch_by``)."""
        self.costs: dict[tuple[int, int, Path], list[tuple[int, tuple[float, ...], int]]] | None = (
            None
        )
        """By (port, call, path): items, what was told of their costs (``batch_cost``), and the row of the
        first."""
        self.row_sizes: dict[int, list[tuple[int, tuple[int, ...], int]]] | None = None
        """By port: items, what was told of their sizes (:class:`fanfold.protocol.StreamRows`), and the row of
        the first."""

    # ------------------------------------------------------------------------------ outcomes

    def terminal(self, slot: int) -> int:
        """The items that have an outcome at a slot."""
        if self.lost is None or (lost := self.lost.get(slot)) is None:
            return self.done[slot]
        return self.done[slot] | lost.dropped | lost.failed | lost.suppressed

    def lost_at(self, slot: int) -> Lost | None:
        """The slot's other outcomes, or None where there are none."""
        return None if self.lost is None else self.lost.get(slot)

    def shared(self) -> int:
        """The parents whose families have items in other chunks too."""
        found = 0
        for offsets in (self.continued, self.further):
            if offsets is not None:
                for offset in offsets:
                    found |= 1 << offset
        return found


class Children:
    """The families of a chunk's items at one child level: where each begins and where it grows."""

    __slots__ = ("_first", "_last", "begun", "newest")

    def __init__(self) -> None:
        self.begun = 0
        """The parents that have children."""
        self.newest: Chunk | None = None
        """The chunk to which new families are added while they fit."""
        self._first: list[Chunk | None] = []
        """By offset of the parent: where its family begins; may be shorter than the chunk."""
        self._last: dict[int, Chunk] = {}
        """By offset: where a family ends that has more than one chunk."""

    def last(self, offset: int) -> Chunk:
        """The chunk where the family of a parent ends that has children."""
        chunk = self._last.get(offset) or self._first[offset]
        assert chunk is not None
        return chunk

    def count(self, offset: int) -> int:
        """How many children a parent has."""
        if not self.begun >> offset & 1:
            return 0
        chunk = self.last(offset)
        before = 0 if chunk.continued is None else chunk.continued.get(offset, 0)
        return before + chunk.items_of(1 << offset).bit_count()

    def begin(self, parents: int, chunk: Chunk) -> None:
        """The families of ``parents``, which had no children, begin in ``chunk``."""
        if len(self._first) < parents.bit_length():
            self._first += [None] * (parents.bit_length() - len(self._first))
        self._set_first(parents, chunk)
        self.begun |= parents
        self.newest = chunk

    def go_on(self, offset: int, chunk: Chunk) -> None:
        """A family goes on in a new chunk."""
        last = self.last(offset)
        chunk.continued = {offset: self.count(offset)}
        if last.further is None:
            last.further = {}
        last.further[offset] = self._last[offset] = chunk

    def forget(self, parents: int) -> None:
        """Let the families of ``parents`` go."""
        self._set_first(parents & self.begun, None)
        self.begun &= ~parents
        if self._last:
            self._last = {o: chunk for o, chunk in self._last.items() if not parents >> o & 1}
        if self.newest is not None and not self.newest.parents & ~parents:
            self.newest = None

    def chunks(self, parents: int) -> list[Chunk]:
        """The chunks that hold children of ``parents``; those of one family in order."""
        places = bit_positions(parents & self.begun)
        found = [c for c in dict.fromkeys(map(self._first.__getitem__, places)) if c is not None]
        if self._last:
            return list(dict.fromkeys(part for c in found for part in _with_further(c, parents)))
        return found

    def runs(self, parents: int) -> list[tuple[Chunk, int]]:
        """The children of ``parents`` in the order of parents and ordinals."""
        found = self.chunks(parents)
        highest = 0
        for chunk in found:
            here = chunk.parents & parents
            if low_offset(here) < highest:  # a family lies in one chunk, its neighbours in another
                return [
                    (part, part.items_of(1 << offset))
                    for offset in bit_positions(parents & self.begun)
                    for part in self._family(offset)
                ]
            highest = here.bit_length() - 1
        return [(chunk, chunk.items_of(parents)) for chunk in found]

    def _family(self, offset: int) -> Iterator[Chunk]:
        chunk = self._first[offset]
        while chunk is not None:
            yield chunk
            chunk = None if chunk.further is None else chunk.further.get(offset)

    def _set_first(self, parents: int, chunk: Chunk | None) -> None:
        places = bit_positions(parents)
        if isinstance(places, range):
            self._first[places.start : places.stop] = [chunk] * len(places)
        else:
            for offset in places:
                self._first[offset] = chunk


def _with_further(chunk: Chunk, parents: int) -> Iterator[Chunk]:
    """A chunk and those in which the families of ``parents`` go on."""
    yield chunk
    for offset in sorted(chunk.further or ()):
        after: Chunk | None = chunk
        while parents >> offset & 1 and after is not None and after.further is not None:
            after = after.further.get(offset)
            if after is not None:
                yield after


def descend(chunk: Chunk, items: int) -> Iterator[tuple[Chunk, int]]:
    """All descendants of some items, parents before children."""
    for children in chunk.children.values():
        for child in children.chunks(items):
            members = child.items_of(items)
            yield child, members
            if child.children:
                yield from descend(child, members)


@dataclass(slots=True)
class Facts:
    """What a producer reported of the values of a chunk's items at one port, for one control or check."""

    labels: list[int]
    """For each label the items that have it; for a field check: the items that lack the field."""
    illegal: int = 0
    texts: list[tuple[int, str]] = field(default_factory=list)
    """Sets of items with a text that shows the offending value."""

    @classmethod
    def empty(cls, labels: int) -> Facts:
        return cls([0] * labels)

    def text(self, bit: int) -> str:
        for bits, text in self.texts:
            if bits & bit:
                return text
        return "?"
