"""How outcomes settle: items end at their slots, once, and the rules that watch these are told.

Every settled slot has its watching rules scheduled, once per chunk, with the items concerned; they run deepest
level first, so that a parent hears once of all its children's news. Rules settle further slots, until nothing
is left to do. Owns the schedule, and what an end means for queues, counts and batches at workers; which end
follows from which is in :mod:`fanfold.engine.rules` (forwards) and :mod:`fanfold.engine.needs` (backwards).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fanfold.columns import Ref
from fanfold.engine.bits import below
from fanfold.engine.chunks import Chunk, Lost, descend
from fanfold.engine.held import HeldBlocks
from fanfold.engine.ledger import Ledger
from fanfold.engine.needs import Backwards
from fanfold.engine.placing import place_facts
from fanfold.engine.program import Program
from fanfold.engine.ready import ReadyQueue
from fanfold.engine.roots import Roots
from fanfold.engine.rules import Causes, Rule
from fanfold.engine.statistics import CallCounts
from fanfold.engine.wiring import wire
from fanfold.failures import Failure
from fanfold.protocol import StreamRows

PlacedStream = tuple[int, Ref | None, StreamRows | None]
"""Rows that were reported: slot, block, and the report if there are facts in it."""


class Settling:
    """Settles outcomes. Implements :class:`fanfold.engine.rules.State` for the rules.

    Args:
        program: The slots.
        queues: By call: where ready items wait.
        counts: By call: what is counted of it.
        ledger: What is told of items at workers that need not run any more.
        held: What is told of values that nobody reads any more.
        roots: What is told of roots that end.
    """

    def __init__(
        self,
        program: Program,
        queues: Mapping[int, ReadyQueue],
        counts: Mapping[int, CallCounts],
        ledger: Ledger,
        held: HeldBlocks,
        roots: Roots,
    ) -> None:
        plan = program.plan
        self._program = program
        self._queues = queues
        self._counts = counts
        self._ledger = ledger
        self._held = held
        self._roots = roots
        self._wiring = wire(program, queues)
        self._watchers = self._wiring.watchers
        self._backwards = Backwards(program)
        for level, slot, rule in self._backwards.ends:
            self._wiring.watch(level, slot, rule)
        self._depths = [level.depth for level in plan.levels]
        self._work: list[dict[tuple[Rule, Chunk], int]] = [{} for _ in range(max(self._depths) + 1)]
        self._call_of_slot = {
            (node.level, program.call_outputs[node.index][0]): node.index for node in plan.calls()
        }

    # ------------------------------------------------------------------------------ reported

    def arrived(self, chunk: Chunk, new: int, row: int, streams: Sequence[PlacedStream]) -> None:
        """New items have come into being, with the values of some streams from ``row`` on."""
        level = chunk.level
        watchers, work = self._watchers[level], self._work[self._depths[level]]
        segments, done = chunk.segments, chunk.done
        for slot, ref, reported in streams:
            if ref is not None:
                segments.setdefault(slot, []).append((new, ref, row))
            if reported is not None:
                place_facts(chunk, reported, new, row)
            done[slot] |= new
            for rule in watchers[slot]:
                key = (rule, chunk)
                work[key] = work.get(key, 0) | new
        for broadcast in self._wiring.broadcasts[level]:
            self.schedule(broadcast, chunk, new)
        if chunk.parent is not None and chunk.parent.lost is not None:
            for late in self._backwards.late[level]:
                self.schedule(late, chunk, new)

    def returned(
        self,
        call: int,
        chunk: Chunk,
        items: int,
        returned: int,
        row: int,
        streams: Sequence[PlacedStream],
    ) -> None:
        """Tasks of a call ended with values.

        Args:
            call: The call.
            chunk: The chunk of its items.
            items: Those that are done.
            returned: Those that have rows, from ``row`` on; of some the values came too late.
            row: Where they begin in the blocks.
            streams: The blocks.
        """
        for slot, ref, reported in streams:
            if ref is not None:
                if slot in chunk.segments:
                    chunk.segments[slot].append((returned, ref, row))
                else:
                    chunk.segments[slot] = [(returned, ref, row)]
            if reported is not None:
                place_facts(chunk, reported, returned, row)
        if items != returned:
            self._held.never_held(chunk, [slot for slot, _, _ in streams], returned & ~items)
        for slot in self._program.call_outputs[call]:
            self.settle_done(chunk, slot, items)

    def hold(self, streams: Sequence[StreamRows], rows: int) -> None:
        """Count the rows of new blocks; where values are large, have them go at their last reader. Where all
        values together take a lot from now on, have all of them go so, and those now that had their last."""
        before = self._held.tight
        for stream in streams:
            if self._held.hold(stream, rows) and stream.port in self._wiring.early:
                self._wiring.watch_early(stream.port)
        if self._held.tight and not before:
            self._let_all_go_early()

    def _let_all_go_early(self) -> None:
        for port in list(self._wiring.early):
            self._wiring.watch_early(port)
        for top in self._roots.known_chunks():
            items = below(top.size) & ~self._roots.gone(top)
            for chunk, members in ((top, items), *descend(top, items)):
                for rule in self._wiring.early_in_force:
                    if rule.level == chunk.level:
                        self.schedule(rule, chunk, members)

    # ------------------------------------------------------------------------------ for the rules

    def settle_done(self, chunk: Chunk, slot: int, bits: int) -> None:
        """Items at a slot are done, unless they ended before."""
        if chunk.lost is not None and (lost := chunk.lost.get(slot)) is not None:
            bits &= ~(lost.dropped | lost.failed | lost.suppressed)
        new = bits & ~chunk.done[slot]
        if new:
            chunk.done[slot] |= new
            self._tell(chunk, slot, new)

    def settle_lost(
        self,
        chunk: Chunk,
        slot: int,
        *,
        dropped: int = 0,
        failed: int = 0,
        suppressed: int = 0,
        causes: Causes = (),
    ) -> None:
        """Items at a slot are dropped, failed or suppressed, unless they ended before."""
        left = ~chunk.terminal(slot)
        dropped &= left
        failed &= left
        suppressed &= left & ~failed
        new = dropped | failed | suppressed
        if not new:
            return
        if chunk.lost is None:
            chunk.lost = {}
        lost = chunk.lost.get(slot)
        if lost is None:
            lost = chunk.lost[slot] = Lost()
        lost.dropped |= dropped
        lost.failed |= failed
        lost.suppressed |= suppressed
        unexplained = failed | suppressed
        for bits, cause in causes:
            if bits & unexplained:
                lost.causes.append((bits & unexplained, cause))
                unexplained &= ~bits
        self._tell(chunk, slot, new)
        if failed | suppressed:
            for rule in self._backwards.reads[chunk.level][slot]:
                self.schedule(rule, chunk, failed | suppressed)
        call = self._call_of_slot.get((chunk.level, slot))
        if call is not None:
            self._queues[call].results(chunk, 0)
            taken = suppressed & chunk.done[self._program.taken[call]]
            if taken:
                self._ledger.trim(call, chunk, taken)
            counts = self._counts[call]
            counts.dropped += dropped.bit_count()
            counts.failed += failed.bit_count()
            counts.suppressed += suppressed.bit_count()

    def new_failure(self, chunk: Chunk, bit: int, kind: str, message: str, where: str) -> Failure:
        """A failure that originates in a structural operation."""
        return self._roots.placed(chunk, bit, Failure(kind=kind, message=message), call=where)

    def give_up(self, chunk: Chunk, slot: int, items: int, causes: Causes) -> None:
        """Items that nobody needs any more are suppressed."""
        self.settle_lost(chunk, slot, suppressed=items, causes=causes)
        call = self._call_of_slot.get((chunk.level, slot))
        if call is not None:
            self._queues[call].alarm()

    def unneeded(self, chunk: Chunk, slot: int, items: int) -> None:
        """A merge takes nothing more from a slot for these items: who else needs them?"""
        self._backwards.unneeded(self, chunk, slot, items)

    def release_early(self, chunk: Chunk, slot: int, bits: int) -> None:
        """Free the values of items at a slot before their root ends, unless they are small."""
        self._held.free_early(chunk, slot, bits)

    def end_roots(self, chunk: Chunk, bits: int) -> None:
        """Roots have ended: everything that they return is terminal."""
        self._roots.end(chunk, bits)

    def schedule(self, rule: Rule, chunk: Chunk, hint: int) -> None:
        """Have a rule look at items of a chunk."""
        work = self._work[self._depths[rule.level]]
        key = (rule, chunk)
        work[key] = work.get(key, 0) | hint

    def _tell(self, chunk: Chunk, slot: int, bits: int) -> None:
        level = chunk.level
        work = self._work[self._depths[level]]
        for rule in self._watchers[level][slot]:
            key = (rule, chunk)
            work[key] = work.get(key, 0) | bits

    def run(self) -> None:
        """Tell the scheduled rules, deepest level first, until none is left."""
        works = self._work
        deepest = len(works) - 1
        depth = deepest
        while depth >= 0:
            work = works[depth]
            if not work:
                depth -= 1
                continue
            works[depth] = {}
            for (rule, chunk), hint in work.items():
                rule.update(self, chunk, hint)
            depth = deepest
