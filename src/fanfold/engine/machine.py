"""The engine: a deterministic state machine. Events in, commands out; one door, no I/O, no clock.

It alone knows membership, immediate parents, ordinals, outcomes and readiness. How outcomes spread is in
:mod:`fanfold.engine.rules`; what a value is and where it lies is opaque to it; who runs what is decided by
:mod:`fanfold.dispatch`, which takes work through :meth:`Machine.take`.

How an event is handled
-----------------------
1. The event is matched to its batch; events of batches that are no longer awaited are ignored.
2. The reported rows become segments and facts of the chunks concerned, then the outcomes are settled.
3. Every settled slot has its watching rules scheduled, once per chunk, with the items concerned; they run
   deepest level first, so that a parent hears once of all its children's news.
4. Rules settle further slots, until nothing is left to do.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Final

from fanfold.columns import Ref
from fanfold.engine.batches import Batch
from fanfold.engine.bits import below, bit_positions
from fanfold.engine.chunks import SPAN, Chunk, Lost
from fanfold.engine.commands import Command, FinishRoots, ReleaseBlocks
from fanfold.engine.membership import Membership
from fanfold.engine.placing import place_facts
from fanfold.engine.program import lower
from fanfold.engine.ready import Entry, ReadyQueue, Retry
from fanfold.engine.resolve import Resolvers
from fanfold.engine.roots import Roots
from fanfold.engine.rules import Causes, Rule
from fanfold.engine.statistics import CallCounts
from fanfold.engine.wiring import wire
from fanfold.errors import InternalError
from fanfold.failures import Failure
from fanfold.plan import CallNode, Plan
from fanfold.protocol import (
    BatchFinished,
    BatchRaised,
    ChildrenReleased,
    ExpansionSealed,
    RootsAdmitted,
    RootsCommitted,
    RunBatch,
    StreamRows,
    TasksFinished,
)

EARLY_ROW_BYTES: Final = 1024
"""Values that are smaller on average stay until their root ends; releasing them one by one costs more."""

_PlacedStream = tuple[int, Ref | None, StreamRows | None]
"""Slot, block, and the report if there are facts in it."""

DEATHS_LIMIT = 2
"""An item is ``worker_died`` when so many workers died while they ran it, the last one alone with it."""


class Machine:
    """All state of a run's items. Implements :class:`fanfold.engine.rules.State` for the rules.

    Args:
        plan: What to run.
        span: Items in a full chunk; only tests choose another.
    """

    def __init__(self, plan: Plan, *, span: int = SPAN) -> None:
        self.plan = plan
        self.span = span
        self.program = lower(plan)
        sequence = itertools.count(1)
        self.queues = {call.index: ReadyQueue(sequence) for call in plan.calls()}
        self._wiring = wire(self.program, self.queues)
        self._watchers = self._wiring.watchers
        self.resolvers = Resolvers(self.program)
        self._depths = [level.depth for level in plan.levels]
        self._work: list[dict[tuple[Rule, Chunk], int]] = [{} for _ in range(max(self._depths) + 1)]
        self.counts = {
            call.index: CallCounts(
                call.name, plan.stages[call.stage].name, plan.levels[call.level].name
            )
            for call in plan.calls()
        }
        self._call_of_slot = {
            (node.level, self.program.call_outputs[node.index][0]): node.index
            for node in plan.calls()
        }
        self.items_per_level = [0] * len(plan.levels)
        self.batches: dict[int, Batch] = {}
        self._next_batch = 0
        self.live_rows: dict[Ref, int] = {}
        """By block: rows that may still be read, and one for each batch that is reading it."""
        self._small: set[Ref] = set()
        """Blocks of small values, which are not worth releasing before their root ends."""
        self.roots = Roots(self, span)
        self._memberships = {
            level: Membership(level, self.program.slots[level], slot, span, self.arrived)
            for level, slot in self.program.expansion.items()
        }
        self._incoming: list[_PlacedStream] = []
        """The streams of the event that is being taken in."""
        self._commands: list[Command] = []

    # ------------------------------------------------------------------------------ the door

    def handle(
        self,
        event: RootsAdmitted
        | RootsCommitted
        | ChildrenReleased
        | ExpansionSealed
        | TasksFinished
        | BatchFinished
        | BatchRaised,
    ) -> list[Command]:
        """Take one event in; return what must be done now, in order."""
        match event:
            case TasksFinished():
                self._tasks_finished(event)
            case ChildrenReleased():
                self._children_released(event)
            case ExpansionSealed():
                self._expansion_sealed(event)
            case BatchFinished():
                self._batch_finished(event)
            case BatchRaised():
                self._batch_raised(event)
            case RootsAdmitted():
                self._admit(event)
            case RootsCommitted():
                self.roots.commit(event.roots)
        return self._settle()

    def take(self, call: int, limit: int) -> tuple[int, RunBatch] | None:
        """Take up to ``limit`` ready items of ``call`` from the head of its queue, as a batch."""
        entries, count = self.queues[call].take(limit)
        return self._start(call, entries, count) if count else None

    def take_alone(self, call: int) -> tuple[int, RunBatch] | None:
        """Take one item that must run alone."""
        retries = self.queues[call].alone
        while retries:
            retry = retries.popleft()
            if not retry.bit & retry.chunk.ended:
                return self._start(call, [(retry.chunk, retry.bit)], 1, retry)
        return None

    def lose_batch(self, batch_id: int, *, running: bool, reason: str) -> list[Command]:
        """The batch's worker died. Unless it was ``running``, its items are simply ready again."""
        batch = self._end_batch(batch_id)
        if batch is None:
            return []
        entries = batch.unfinished()
        if not running and not batch.alone:
            self.queues[batch.call].push_back(entries)
            return self._settle()
        deaths = batch.deaths + (1 if running else 0)
        for chunk, bits in entries:
            for offset in bit_positions(bits & ~chunk.ended):
                bit = 1 << offset
                if batch.alone and deaths >= DEATHS_LIMIT:
                    failure = Failure(
                        kind="worker_died",
                        message=f"its worker died {deaths} times while it ran: {reason}",
                    )
                    self._fail_item(batch, chunk, bit, failure)
                else:
                    self.queues[batch.call].alone.append(
                        Retry(chunk, bit, batch.attempt + 1, deaths)
                    )
        return self._settle()

    # ------------------------------------------------------------------------------ events

    def _admit(self, event: RootsAdmitted) -> None:
        self._incoming = self._placed(event.streams)
        self.roots.admit(event.keys)
        for stream in event.streams:
            self._hold(stream, stream.rows.count if stream.rows else 0)

    def _children_released(self, event: ChildrenReleased) -> None:
        batch = self.batches.get(event.batch)
        if batch is None or batch.attempt != event.attempt:
            self._discard(event.streams)
            return
        level = self.plan.nodes[event.node].level
        expansion = self.program.expansion[level]
        self._incoming = self._placed(event.streams)
        add = self._memberships[level].add
        row = taken = position = 0
        for chunk, bits in batch.runs(event.first, len(event.counts)):
            size = bits.bit_count()
            counts = event.counts[position : position + size]
            position += size
            closed = bits & (chunk.ended | chunk.terminal(expansion))
            if not closed and 0 not in counts:
                add(chunk, bits, counts, row)
                total = sum(counts)
                taken += total
                row += total
                continue
            for offset, count in zip(bit_positions(bits), counts, strict=True):
                if count and not closed >> offset & 1:
                    add(chunk, 1 << offset, (count,), row)
                    taken += count
                row += count
        for stream in event.streams:
            self._hold(stream, taken)

    def _expansion_sealed(self, event: ExpansionSealed) -> None:
        batch = self.batches.get(event.batch)
        if batch is None or batch.attempt != event.attempt:
            return
        slot = self.program.expansion[self.plan.nodes[event.node].level]
        for chunk, bits in batch.items(event.tasks):
            self.settle_done(chunk, slot, bits & ~chunk.ended)

    def _tasks_finished(self, event: TasksFinished) -> None:
        batch = self.batches.get(event.batch)
        if batch is None or batch.attempt != event.attempt:
            self._discard(event.streams)
            return
        told = below(event.count) << event.first
        if event.first + event.count > batch.count or batch.finished & told:
            raise self._broken(
                "FF902",
                event.batch,
                batch,
                f"tasks {event.first} to {event.first + event.count - 1} were reported",
            )
        batch.finished |= told
        failed: dict[Chunk, int] = {}
        for task, failure in event.failures:
            chunk, offset = batch.find(task)
            failed[chunk] = failed.get(chunk, 0) | 1 << offset
            if not chunk.ended >> offset & 1:
                self._fail_item(batch, chunk, 1 << offset, failure)
        outputs = self.program.call_outputs[batch.call]
        streams = self._placed(event.streams)
        level = self.plan.nodes[batch.call].level
        watchers, work = self._watchers[level], self._work[self._depths[level]]
        row = live = 0
        for chunk, bits in batch.runs(event.first, event.count):
            if failed and chunk in failed:
                bits &= ~failed[chunk]
            open_bits = bits & ~chunk.ended
            if open_bits:
                for slot, ref, reported in streams:
                    if ref is not None:
                        if slot in chunk.segments:
                            chunk.segments[slot].append((bits, ref, row))
                        else:
                            chunk.segments[slot] = [(bits, ref, row)]
                    if reported is not None:
                        place_facts(chunk, reported, bits, row)
                if open_bits != bits:
                    self._free_ended(chunk, [slot for slot, _, _ in streams], bits & chunk.ended)
                for slot in outputs:
                    if chunk.lost is not None:
                        self.settle_done(chunk, slot, open_bits)
                        continue
                    chunk.done[slot] |= open_bits
                    for rule in watchers[slot]:
                        key = (rule, chunk)
                        work[key] = work.get(key, 0) | open_bits
                live += open_bits.bit_count()
            row += bits.bit_count()
        self.counts[batch.call].done += row  # those too whose root has ended meanwhile
        for stream in event.streams:
            self._hold(stream, live)

    def _batch_finished(self, event: BatchFinished) -> None:
        batch = self._end_batch(event.batch)
        if batch is not None:
            if batch.finished != below(batch.count):
                raise self._broken("FF903", event.batch, batch, "it was reported as finished")
            self.counts[batch.call].busy_s += event.busy_s

    def _broken(self, code: str, number: int, batch: Batch, what: str) -> InternalError:
        """A backend broke rule 4 of the protocol; going on would lose items without a word."""
        name = self.counts[batch.call].name
        return InternalError(
            code,
            f"the backend's report of batch {number} of call {name!r} cannot be: {what}, it has "
            f"{batch.count} tasks, of which {batch.finished.bit_count()} had been reported before.",
            "The protocol's rules are in fanfold/protocol.py; the backend broke one.",
        )

    def _batch_raised(self, event: BatchRaised) -> None:
        batch = self._end_batch(event.batch)
        if batch is None:
            return
        self.counts[batch.call].busy_s += event.busy_s
        for chunk, bits in batch.entries:
            for offset in bit_positions(bits & ~chunk.ended):
                if batch.count == 1:
                    self._fail_item(batch, chunk, 1 << offset, event.failure)
                else:
                    self.queues[batch.call].alone.append(
                        Retry(chunk, 1 << offset, batch.attempt + 1, 0)
                    )

    # ------------------------------------------------------------------------------ batches

    def _start(
        self, call: int, entries: list[Entry], count: int, retry: Retry | None = None
    ) -> tuple[int, RunBatch]:
        node = self.plan.nodes[call]
        assert isinstance(node, CallNode)
        refs: set[Ref] = set()
        columns = tuple(self.resolvers[i.port](entries, refs) for i in node.inputs)
        for ref in refs:
            self.live_rows[ref] += 1
        attempt = 1 if retry is None else retry.attempt
        number = self._next_batch
        self._next_batch += 1
        self.batches[number] = Batch(
            call,
            entries,
            count,
            refs,
            attempt=attempt,
            deaths=0 if retry is None else retry.deaths,
            alone=retry is not None,
        )
        counts = self.counts[call]
        counts.batches += 1
        counts.executed += count
        counts.running += count
        batch_size = self.plan.stages[node.stage].batch_size
        if batch_size is not None:
            counts.capacity += batch_size
        skip = () if attempt == 1 else self._released(call, entries[0])
        return number, RunBatch(number, call, count, columns, attempt=attempt, skip=skip)

    def _released(self, call: int, entry: Entry) -> tuple[int, ...]:
        """How many children an earlier attempt at an item released, per expansion of the call."""
        chunk, bit = entry
        offset = bit.bit_length() - 1
        levels = (expansion.level for expansion in self.plan.streams[call].expansions)
        known = (chunk.children[level] for level in levels if level in chunk.children)
        return (max((children.count(offset) for children in known), default=0),)

    def _end_batch(self, number: int) -> Batch | None:
        batch = self.batches.pop(number, None)
        if batch is not None:
            self.counts[batch.call].running -= batch.count
            for ref in batch.refs:
                self._drop_rows(ref, 1)
        return batch

    def _fail_item(self, batch: Batch, chunk: Chunk, bit: int, failure: Failure) -> None:
        name = self.counts[batch.call].name
        placed = self.roots.placed(chunk, bit, failure, call=name, attempts=batch.attempt)
        for slot in self.program.call_outputs[batch.call]:
            self.settle_lost(chunk, slot, failed=bit, causes=((bit, placed),))

    # ------------------------------------------------------------------------------ membership

    def _placed(self, streams: Sequence[StreamRows]) -> list[_PlacedStream]:
        """Streams with what is needed to put their rows into chunks, looked up once per event."""
        return [
            (
                self.program.port[stream.port],
                None if stream.rows is None else stream.rows.ref,
                stream if stream.controls or stream.missing else None,
            )
            for stream in streams
        ]

    def arrived(self, chunk: Chunk, new: int, row: int) -> None:
        """New items have come into being; their values are those of the streams being taken in."""
        level = chunk.level
        self.items_per_level[level] += new.bit_count()
        watchers, work = self._watchers[level], self._work[self._depths[level]]
        segments, done = chunk.segments, chunk.done
        for slot, ref, reported in self._incoming:
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

    # ------------------------------------------------------------------------------ blocks

    def _hold(self, stream: StreamRows, rows: int) -> None:
        """Count the rows of a new block that may be read; without any it goes at once."""
        if stream.rows is not None:
            ref = stream.rows.ref
            left = self.live_rows.get(ref, 0) + rows
            if left > 0:
                self.live_rows[ref] = left
                if 0 < stream.rows.size_bytes < EARLY_ROW_BYTES * stream.rows.count:
                    self._small.add(ref)
                elif stream.port in self._wiring.early:
                    self._wiring.watch_early(stream.port)
            else:
                self.live_rows.pop(ref, None)
                self._commands.append(ReleaseBlocks((ref,)))

    def _discard(self, streams: Sequence[StreamRows]) -> None:
        refs = tuple(s.rows.ref for s in streams if s.rows is not None)
        if refs:
            self._commands.append(ReleaseBlocks(refs))

    def _drop_rows(self, ref: Ref, rows: int) -> None:
        left = self.live_rows[ref] - rows
        if left:
            self.live_rows[ref] = left
        else:
            del self.live_rows[ref]
            self._small.discard(ref)
            self._commands.append(ReleaseBlocks((ref,)))

    def release_early(self, chunk: Chunk, slot: int, bits: int) -> None:
        """Free the values of items at a slot before their root ends, unless they are small."""
        segments = chunk.segments.get(slot)
        if segments is None or segments[0][1] in self._small:
            return
        if chunk.freed is None:
            chunk.freed = {}
        before = chunk.freed.get(slot, 0)
        bits &= ~before
        chunk.freed[slot] = before | bits
        for items, ref, _ in segments:
            rows = (items & bits).bit_count()
            if rows:
                self._drop_rows(ref, rows)
        if len(segments) == 1 and segments[0][0] == bits:
            del chunk.segments[slot]

    def free_items(self, chunk: Chunk, bits: int) -> None:
        """Free all values of items of a chunk (their root's records are committed)."""
        freed, live = chunk.freed, self.live_rows
        for slot, segments in chunk.segments.items():
            left = bits if freed is None else bits & ~freed.get(slot, 0)
            for items, ref, _ in segments:
                rows = (items & left).bit_count()
                if rows:
                    rest = live[ref] - rows
                    if rest:
                        live[ref] = rest
                    else:
                        self._drop_rows(ref, rows)

    def _free_ended(self, chunk: Chunk, slots: Sequence[int], bits: int) -> None:
        """Rows that came for items whose root had ended were never counted: mark them as freed."""
        if chunk.freed is None:
            chunk.freed = {}
        for slot in slots:
            chunk.freed[slot] = chunk.freed.get(slot, 0) | bits

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
        call = self._call_of_slot.get((chunk.level, slot))
        if call is not None:
            counts = self.counts[call]
            counts.dropped += dropped.bit_count()
            counts.failed += failed.bit_count()
            counts.suppressed += suppressed.bit_count()

    def new_failure(self, chunk: Chunk, bit: int, kind: str, message: str, where: str) -> Failure:
        """A failure that originates in a structural operation."""
        return self.roots.placed(chunk, bit, Failure(kind=kind, message=message), call=where)

    def end_roots(self, chunk: Chunk, bits: int) -> None:
        """Roots have ended: everything that they return is terminal."""
        self.roots.end(chunk, bits)

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

    def _settle(self) -> list[Command]:
        """Run the scheduled rules, deepest level first, until none is left."""
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
        results = self.roots.take_results()
        if results:
            self._commands.append(FinishRoots(results))
        commands, self._commands = self._commands, []
        return commands
