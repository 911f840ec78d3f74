"""A call's ready queue: runs of items, across parents.

Owns what is ready, what the probe holds back of it, and which items must run alone. In which order the others
stand is their line's business (:mod:`fanfold.engine.lines`). An entry is a set of items of one chunk, so a
queue's length is counted in runs, not in items.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from fanfold.engine.bits import lowest
from fanfold.engine.chunks import Chunk
from fanfold.engine.lines import FifoLine, Line, Run
from fanfold.engine.probe import Probe

Entry = tuple[Chunk, int]
"""Items of one chunk."""
Among = Callable[[Chunk, int], int]
"""Those of some items of a chunk that are meant."""


@dataclass(slots=True)
class Retry:
    """One item that is taken again, in a batch of its own: one that held it raised or lost its worker."""

    chunk: Chunk
    bit: int
    attempt: int
    deaths: int = 0
    """Workers that died while they ran it alone."""
    errors: int = 0
    """Exceptions that it alone raised."""
    company: bool = False
    """Others may be under way beside it: it raised by itself, in a stage that has several going."""


class ReadyQueue:
    """The ready items of one call.

    Args:
        sequence: Numbers that grow with time, shared by all queues of a run, so that heads compare.
        output: The slot of the call's output: items that have ended there need not run any more.
        probe: Which items wait for a sibling's first result.
        line: In which order items stand; none is there yet. First in, first out unless given.
    """

    __slots__ = (
        "_held",
        "_marked",
        "_newest",
        "_output",
        "_probe",
        "_runs",
        "_sequence",
        "alone",
        "count",
        "total",
    )

    def __init__(
        self, sequence: Iterator[int], output: int, probe: Probe, line: Line | None = None
    ) -> None:
        self._sequence = sequence
        self._output = output
        self._probe = probe
        self._runs: Line = FifoLine() if line is None else line
        self._held: dict[Chunk, tuple[int, int]] = {}
        """Items that the probe holds back, by chunk: the run's sequence, and which."""
        self._newest = 0
        """The sequence of the run that came last."""
        self._marked = 0
        """Runs up to this sequence grow no more (:meth:`mark`)."""
        self.alone: deque[Retry] = deque()
        """Items to run one by one, each with a worker to itself unless it may have company."""
        self.count = 0
        """Ready items in the runs (those that died since are still counted)."""
        self.total = 0
        """Items that ever became ready."""

    def push(self, chunk: Chunk, bits: int) -> None:
        """Items became ready."""
        if not self._runs.join(chunk, bits, self._marked):
            self._newest = next(self._sequence)
            self._runs.append((self._newest, chunk, bits))
        size = bits.bit_count()
        self.count += size
        self.total += size

    def push_back(self, entries: list[Entry]) -> None:
        """Items that were taken but not run go to the head again, in their order."""
        head = self.head() or 0
        for chunk, bits in reversed(entries):
            self._runs.put_back((head, chunk, bits))
            self.count += bits.bit_count()
            chunk.done[self._probe.taken] &= ~bits

    def dead(self, chunk: Chunk) -> int:
        """Items that need not run any more: their root has ended, or they have, without being run."""
        return chunk.ended if chunk.lost is None else chunk.ended | chunk.terminal(self._output)

    def runs(self) -> Iterator[tuple[int, Chunk, int]]:
        """Triples (sequence, chunk, items): what may be taken, oldest first, then what is held back."""
        yield from self._runs
        yield from self._held_runs()

    def head(self) -> int | None:
        """The sequence of the oldest run, or None."""
        if (head := self._runs.first()) is not None:
            return head
        return next(iter(self._held.values()))[0] if self._held else None

    def oldest(self) -> int | None:
        """The sequence of the oldest run, those that are held back among them, or None."""
        heads = [sequence for sequence, _ in self._held.values()]
        oldest = self._runs.oldest()
        return min(heads if oldest is None else [*heads, oldest], default=None)

    def mark(self) -> int:
        """The sequence of the newest run. What comes from now on makes new ones, so that nothing passes for
        older than it is."""
        self._marked = self._newest
        return self._newest

    def alarm(self) -> None:
        """Items were given up because of a sibling."""
        self._probe.alarm()

    def results(self, chunk: Chunk, count: int) -> None:
        """Some items of a chunk have results: what waited for them need not wait any more."""
        self._probe.results(count)
        if not self._held:
            return
        if self._probe.trusting:
            for held in reversed(list(self._held)):
                self._let_through(held)
            return
        elsewhere = chunk.shared()
        for held in list(self._held) if elsewhere else (chunk,):
            if held is chunk or (held in self._held and held.parent is chunk.parent):
                self._let_through(held)

    def _let_through(self, chunk: Chunk) -> None:
        """What was held back of a chunk is the head again, together with what was left of it there."""
        sequence, bits = self._held.pop(chunk, (0, 0))
        if bits:
            self._runs.let_through((sequence, chunk, bits))

    def fills(self, limit: int) -> bool:
        """Whether a batch of so many items would be full."""
        return self.count >= limit

    @property
    def free(self) -> bool:
        """Whether anything waits that is not held back."""
        return bool(self._runs)

    def take(self, limit: int, *, held: bool = True) -> tuple[list[Entry], int]:
        """Remove up to ``limit`` items from the head; dead ones vanish on the way.

        What the probe holds back is taken only if there is nothing else, and only where ``held`` says so.
        """
        taken: list[Entry] = []
        room = limit
        while self._runs and room:
            sequence, chunk, bits = self._runs.popleft()
            live = bits & ~self.dead(chunk)
            self.count -= (bits ^ live).bit_count()
            later = 0 if self._probe.trusting else self._probe.held_back(chunk, live)
            if later:
                first, before = self._held.get(chunk, (sequence, 0))
                self._held[chunk] = first, before | later
            room = self._take(chunk, live & ~later, room, taken, sequence)
        while held and self._held and room:
            chunk, (sequence, bits) = next(iter(self._held.items()))
            del self._held[chunk]
            live = bits & ~self.dead(chunk)
            self.count -= (bits ^ live).bit_count()
            room = self._take(chunk, live, room, taken, sequence)
        return taken, limit - room

    def has_any(self, among: Among) -> bool:
        """Whether an item is here that is among some."""
        return any(
            among(chunk, live)
            for _, chunk, bits in self.runs()
            if (live := bits & ~self.dead(chunk))
        )

    def take_some(self, among: Among, limit: int, *, probed: bool) -> tuple[list[Entry], int]:
        """Remove the oldest items that are among some, wherever they stand, as many as fit into one batch.

        Args:
            among: Which they are.
            limit: How many at most.
            probed: What the probe holds back stays here; if not, one such item is taken where there is
                nothing else.
        """
        taken: list[Entry] = []
        count, choose = 0, self._chooser(limit)
        for _, chunk, bits in list(self._runs):
            if count == limit:
                break
            wanted = among(chunk, bits & ~self.dead(chunk))
            if wanted and not self._probe.trusting:
                wanted &= ~self._probe.held_back(chunk, wanted)
            if wanted and (chosen := choose(chunk, wanted)):
                self._runs.remove_items(chunk, chosen)
                chunk.done[self._probe.taken] |= chosen
                taken.append((chunk, chosen))
                count += chosen.bit_count()
        if not (taken or probed) and (one := self._take_any(among)) is not None:
            taken, count = [one], 1
        self.count -= count
        return taken, count

    def _take_any(self, among: Among) -> Entry | None:
        """Remove an item that is among some, though the probe holds it back."""
        for held, runs in ((False, list(self._runs)), (True, self._held_runs())):
            for sequence, chunk, bits in runs:
                wanted = among(chunk, bits & ~self.dead(chunk))
                if not wanted:
                    continue
                item = wanted & -wanted
                if held:
                    self._held[chunk] = (sequence, bits ^ item)
                else:
                    self._runs.remove_items(chunk, item)
                chunk.done[self._probe.taken] |= item
                return chunk, item
        return None

    def _chooser(self, limit: int) -> Callable[[Chunk, int], int]:
        """Chooses those of some items of a chunk, from the first on, that fit into a batch with what was chosen
        before."""
        left = limit

        def choose(chunk: Chunk, items: int) -> int:
            nonlocal left
            chosen = lowest(items, min(left, items.bit_count()))
            left -= chosen.bit_count()
            return chosen

        return choose

    def _held_runs(self) -> list[Run]:
        return [(sequence, chunk, bits) for chunk, (sequence, bits) in self._held.items()]

    def _take(self, chunk: Chunk, live: int, room: int, taken: list[Entry], sequence: int) -> int:
        """Take what fits; the rest is the head again. Returns the room that is left."""
        size = live.bit_count()
        if size > room:
            rest = live
            live = lowest(live, room)
            self._runs.appendleft((sequence, chunk, rest ^ live))
            size = room
        if live:
            taken.append((chunk, live))
            chunk.done[self._probe.taken] |= live
            self.count -= size
        return room - size
