"""The order in which a call's ready items stand: first in first out, or root by root in turns.

Owns who is next, and nothing of what is done with who is. Items stand in *runs*: sets of items of one chunk,
with a sequence that says since when the first of them is ready.

:class:`FairLine` is deficit round robin (Shreedhar and Varghese, "Efficient fair queuing using deficit round
robin", 1995) with items of equal cost: each root with many ready items takes :data:`QUANTUM` of them, or a full
batch, and stands behind the others again. So a small document waits for a turn of those before it, not for all
that they have.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, Protocol, TypeAlias

from fanfold.engine.bits import bit_positions, low_offset, lowest
from fanfold.engine.chunks import Chunk

Run: TypeAlias = tuple[int, Chunk, int]
"""Since when its oldest item is ready, the chunk, and which of its items."""

QUANTUM: Final = 64
"""Items of one root that go before it is the turn of others, at least."""


class Line(Protocol):
    """Runs in the order in which they are taken."""

    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[Run]: ...

    def first(self) -> int | None:
        """The sequence of the run that comes next, or None."""
        ...

    def oldest(self) -> int | None:
        """The sequence of the run that has waited longest, or None."""
        ...

    def join(self, chunk: Chunk, bits: int, after: int) -> bool:
        """Add items to a run of their chunk that has a sequence greater than ``after``, if there is one where
        they belong; say whether there was."""
        ...

    def append(self, run: Run, /) -> None:
        """Add items that became ready."""
        ...

    def let_through(self, run: Run) -> None:
        """Add items that had to wait although it was their turn."""
        ...

    def popleft(self) -> Run:
        """Remove the run that is next, or as much of it as its turn allows."""
        ...

    def appendleft(self, run: Run, /) -> None:
        """Add what was removed but not taken: it is next."""
        ...

    def put_back(self, run: Run) -> None:
        """Add what was taken but did not run: it is next, and siblings stay in their order."""
        ...

    def remove_items(self, chunk: Chunk, items: int) -> None:
        """Remove items of one run from wherever it stands."""
        ...


class FifoLine(deque[Run]):
    """First in, first out."""

    def first(self) -> int | None:
        """See :class:`Line`."""
        return self[0][0] if self else None

    oldest = first

    def join(self, chunk: Chunk, bits: int, after: int) -> bool:
        """See :class:`Line`."""
        if not self or self[-1][1] is not chunk or self[-1][0] <= after:
            return False
        sequence, _, before = self[-1]
        self[-1] = (sequence, chunk, before | bits)
        return True

    def let_through(self, run: Run) -> None:
        """See :class:`Line`: they are next, together with what is left of their chunk there."""
        sequence, chunk, bits = run
        if self and self[0][1] is chunk:
            first, _, left = self.popleft()
            sequence, bits = min(first, sequence), bits | left
        self.appendleft((sequence, chunk, bits))

    put_back = let_through

    def remove_items(self, chunk: Chunk, items: int) -> None:
        """See :class:`Line`."""
        for index, (sequence, of, bits) in enumerate(self):
            if of is chunk and bits & items:
                self[index] = (sequence, chunk, bits ^ items)
                return


class FairLine:
    """Roots in turns. Runs that hold a few items of each of several roots take turns of their own."""

    __slots__ = ("_front", "_quantum", "_turn_of", "_turns")

    def __init__(self, quantum: int = QUANTUM) -> None:
        self._quantum = quantum
        self._front = FifoLine()
        """What comes before any turn: items that were removed but not taken, and those of small families that
        came while nobody had a turn."""
        self._turns: deque[_Turn] = deque()
        self._turn_of: dict[_Root, _Turn] = {}

    def __bool__(self) -> bool:
        return bool(self._turns or self._front)

    def __len__(self) -> int:
        return len(self._front) + len(self._turns)

    def __iter__(self) -> Iterator[Run]:
        yield from self._front
        for turn in self._turns:
            yield from turn.runs

    def first(self) -> int | None:
        """See :class:`Line`."""
        if self._front:
            return self._front[0][0]
        return self._turns[0].runs[0][0] if self._turns else None

    def oldest(self) -> int | None:
        """See :class:`Line`."""
        return min((run[0] for run in self), default=None)

    def join(self, chunk: Chunk, bits: int, after: int) -> bool:
        """See :class:`Line`."""
        root = None if self._has_small_families(chunk) else _only_root(chunk, bits)
        if root is not None:
            turn = self._turn_of.get(root)
            return turn is not None and turn.runs.join(chunk, bits, after)
        if not self._turns:
            return self._front.join(chunk, bits, after)
        return self._turns[-1].root is None and self._turns[-1].runs.join(chunk, bits, after)

    def append(self, run: Run, /) -> None:
        """See :class:`Line`."""
        if not self._turns and self._has_small_families(run[1]):
            self._front.append(run)
            return
        for root, part in self._parted(run):
            turn = self._last_of_several() if root is None else self._turn_of.get(root)
            if turn is None:
                turn = self._begin(root)
                self._turns.append(turn)
            turn.runs.append(part)

    def let_through(self, run: Run) -> None:
        """See :class:`Line`: it is their turn, unless their root stands in line with others."""
        for root, part in self._parted(run):
            if root is None and self._front:
                self._front.let_through(part)
                continue
            turn = None if root is None else self._turn_of.get(root)
            if turn is None:
                turn = self._begin(root)
                self._turns.appendleft(turn)
            turn.runs.let_through(part)

    def popleft(self) -> Run:
        """See :class:`Line`."""
        if self._front:
            return self._front.popleft()
        turn = self._turns[0]
        sequence, chunk, bits = turn.runs.popleft()
        if turn.root is not None:
            if bits.bit_count() > turn.left:
                now = lowest(bits, turn.left)
                turn.runs.appendleft((sequence, chunk, bits ^ now))
                bits = now
            turn.left -= bits.bit_count()
        if not turn.runs:
            self._turns.popleft()
            if turn.root is not None:
                del self._turn_of[turn.root]
        elif turn.left == 0:
            turn.left = self._quantum
            self._turns.rotate(-1)
        return sequence, chunk, bits

    def appendleft(self, run: Run, /) -> None:
        """See :class:`Line`."""
        self._front.appendleft(run)

    def put_back(self, run: Run) -> None:
        """See :class:`Line`."""
        self._front.put_back(run)

    def remove_items(self, chunk: Chunk, items: int) -> None:
        """See :class:`Line`."""
        self._front.remove_items(chunk, items)
        for turn in self._turns:
            turn.runs.remove_items(chunk, items)

    def _has_small_families(self, chunk: Chunk) -> bool:
        """Whether no root has more than one turn's items among those of a chunk and beyond it. So far: a family
        that grows past it takes turns from then on."""
        return (
            chunk.largest <= self._quantum
            and chunk.continued is None
            and chunk.further is None
            and chunk.parent is not None
            and chunk.parent.parent is None
        )

    def _last_of_several(self) -> _Turn | None:
        """The turn that comes last, if it is one of several roots."""
        return self._turns[-1] if self._turns and self._turns[-1].root is None else None

    def _begin(self, root: _Root | None) -> _Turn:
        turn = _Turn(root, self._quantum)
        if root is not None:
            self._turn_of[root] = turn
        return turn

    def _parted(self, run: Run) -> list[tuple[_Root | None, Run]]:
        """The parts of a run that belong to one root each, and what there is of roots with few items."""
        sequence, chunk, bits = run
        if self._has_small_families(chunk):
            return [(None, run)]
        root = _only_root(chunk, bits)
        if root is not None or chunk.parent is None or bits.bit_count() <= self._quantum:
            return [(root, run)]
        parts: list[tuple[_Root | None, Run]] = []
        for root, items in _by_root(chunk, bits):
            if items.bit_count() > self._quantum:
                parts.append((root, (sequence, chunk, items)))
                bits ^= items
        return [*parts, (None, (sequence, chunk, bits))] if bits else parts


_Root: TypeAlias = tuple[Chunk, int]
"""A chunk of roots and an offset there."""


@dataclass(slots=True)
class _Turn:
    """What stands in line together."""

    root: _Root | None
    """Whose it is; None: of several roots."""
    left: int
    """How many items of the root may go before others' turn."""
    runs: FifoLine = field(default_factory=FifoLine)


def _ancestors(chunk: Chunk, bits: int) -> Iterator[tuple[Chunk, int]]:
    """Some items, their parents, and so on up to their roots."""
    yield chunk, bits
    while chunk.parent is not None:
        bits, chunk = chunk.parents_of(bits), chunk.parent
        yield chunk, bits


def _only_root(chunk: Chunk, bits: int) -> _Root | None:
    """The root of some items if it is one; roots themselves are never asked for theirs."""
    if chunk.parent is None:
        return None
    *_, (top, roots) = _ancestors(chunk, bits)
    return (top, low_offset(roots)) if roots and not roots & (roots - 1) else None


def _by_root(chunk: Chunk, bits: int) -> Iterator[tuple[_Root, int]]:
    """The items of each of several roots."""
    (top, roots), *path = reversed(list(_ancestors(chunk, bits)))
    for offset in bit_positions(roots):
        items = 1 << offset
        for part, _ in path:
            items = part.items_of(items)
        yield (top, offset), items & bits
