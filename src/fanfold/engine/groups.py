"""Groups and chunks: membership, immediate parents, ordinals and outcomes, and nothing that acts on them.

A *group* is one expansion: the children of one parent, in ordinal order; the roots are the one group
without a parent. Its items lie in *chunks* of at most :data:`SPAN`; the item at offset ``i`` of a chunk
has the ordinal ``chunk.base + i``. All that is known of a chunk's items at a port (a *slot*) is a handful
of integers used as bit sets, so its cost does not depend on how many items they are.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from fanfold.columns import Ref
from fanfold.failures import Failure

SPAN: Final = 1024
"""Items in a full chunk. Larger: fewer objects for giants; smaller: cheaper integers."""


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
"""Items, the block that holds their values in ordinal order, and the row of the first."""


class Group:
    """The children of one parent at one level."""

    __slots__ = ("bit", "chunk", "chunks", "closed", "count", "level", "sealed")

    def __init__(self, level: int, chunk: Chunk | None, bit: int) -> None:
        self.level = level
        self.chunk = chunk
        """The parent's chunk; None for the group of the roots."""
        self.bit = bit
        """The parent in its chunk, as a set of one."""
        self.count = 0
        self.sealed = False
        self.closed = False
        """The root has ended; no more children are taken in."""
        self.chunks: list[Chunk] = []


class Chunk:
    """Up to :data:`SPAN` consecutive items of a group."""

    __slots__ = (
        "base",
        "done",
        "ended",
        "facts",
        "freed",
        "group",
        "groups",
        "lost",
        "segments",
        "size",
    )

    def __init__(self, group: Group, base: int, slots: int) -> None:
        self.group = group
        self.base = base
        self.size = 0
        self.done = [0] * slots
        """By slot: the items that are done."""
        self.ended = 0
        """Items whose root has ended: what is still under way for them is of no use to anybody."""
        self.lost: dict[int, Lost] | None = None
        self.segments: dict[int, list[Segment]] = {}
        """By slot: where the values are."""
        self.freed: dict[int, int] | None = None
        """By slot: items whose values were released before their root ended."""
        self.facts: dict[tuple[int, int], Facts] | None = None
        """By (port, control): what was reported of masks and labels; by (port, -1 - check): fields."""
        self.groups: dict[int, list[Group | None]] = {}
        """By child level: each item's group, once it has one."""

    def terminal(self, slot: int) -> int:
        """The items that have an outcome at a slot."""
        if self.lost is None or (lost := self.lost.get(slot)) is None:
            return self.done[slot]
        return self.done[slot] | lost.dropped | lost.failed | lost.suppressed

    def lost_at(self, slot: int) -> Lost | None:
        """The slot's other outcomes, or None where there are none."""
        return None if self.lost is None else self.lost.get(slot)

    def group_of(self, level: int, offset: int) -> Group | None:
        """The children at ``level`` of the item at ``offset``, if any were released yet."""
        groups = self.groups.get(level)
        return groups[offset] if groups is not None and offset < len(groups) else None


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
