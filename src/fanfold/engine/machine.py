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
from fanfold.engine.held import HeldBlocks
from fanfold.engine.identity import identify
from fanfold.engine.membership import Membership
from fanfold.engine.needs import Backwards
from fanfold.engine.placing import place_facts
from fanfold.engine.probe import Probe
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

_PlacedStream = tuple[int, Ref | None, StreamRows | None]
"""Slot, block, and the report if there are facts in it."""

DEATHS_LIMIT: Final = 2
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
        self.queues: dict[int, ReadyQueue] = {}
        for call, outputs in self.program.call_outputs.items():
            limit = plan.stages[plan.call(call).stage].probe
            probe = Probe(limit, outputs[0], self.program.taken[call])
            self.queues[call] = ReadyQueue(sequence, outputs[0], probe)
        self._wiring = wire(self.program, self.queues)
        self._watchers = self._wiring.watchers
        self._backwards = Backwards(self.program)
        for level, slot, rule in self._backwards.ends:
            self._wiring.watch(level, slot, rule)
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
        self._retries = {call.index: plan.stages[call.stage].retries for call in plan.calls()}
        self.items_per_level = [0] * len(plan.levels)
        self.batches: dict[int, Batch] = {}
        self._next_batch = 0
        self.held = HeldBlocks()
        self.roots = Roots(self, span)
        self._memberships = {
            level: Membership(level, self.program.slots[level], slot, span, self.arrived)
            for level, slot in self.program.expansion.items()
        }
        self._incoming: list[_PlacedStream] = []
        """The streams of the event that is being taken in."""
        self._trimmed: dict[int, int] = {}
        self._commands: list[Command] = []
        self.failed_tasks: list[tuple[int, Failure]] = []
        """Call and failure of each task that failed for good; whoever reads them empties the list."""

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
            if not retry.bit & self.queues[call].dead(retry.chunk):
                return self._start(call, [(retry.chunk, retry.bit)], 1, retry)
        return None

    def lose_batch(
        self, batch_id: int, *, running: bool, reason: str, blamed: bool = True
    ) -> list[Command]:
        """The batch's worker died. Unless it was ``running``, its items are simply ready again.

        Args:
            batch_id: The batch.
            running: The worker had begun it.
            reason: Why the worker died, in words.
            blamed: It alone can have been running; otherwise its items run alone, but the death does not count.
        """
        batch = self._end_batch(batch_id)
        if batch is None:
            return []
        entries = batch.unfinished()
        if not running and not batch.alone:
            self.queues[batch.call].push_back(entries)
            return self._settle()
        deaths = batch.deaths + (1 if running and blamed else 0)
        for chunk, bits in entries:
            self.unneeded(chunk, self.program.call_outputs[batch.call][0], bits & ~chunk.ended)
            for offset in bit_positions(bits & ~self.queues[batch.call].dead(chunk)):
                bit = 1 << offset
                if batch.alone and deaths >= DEATHS_LIMIT:
                    failure = Failure(
                        kind="worker_died",
                        message=f"its worker died {deaths} times while it ran: {reason}",
                    )
                    self._fail_item(batch, chunk, bit, failure)
                else:
                    self.queues[batch.call].alone.append(
                        Retry(chunk, bit, batch.attempt + 1, deaths, batch.errors)
                    )
        return self._settle()

    # ------------------------------------------------------------------------------ events

    def _admit(self, event: RootsAdmitted) -> None:
        self._incoming = self._placed(event.streams)
        self.roots.admit(event.keys)
        self._hold(event.streams, len(event.keys))

    def _children_released(self, event: ChildrenReleased) -> None:
        batch = self.batches.get(event.batch)
        if batch is None or batch.attempt != event.attempt:
            self.held.discard(event.streams)
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
        self._hold(event.streams, taken)

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
            self.held.discard(event.streams)
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
        queue = self.queues[batch.call]
        dead = queue.dead
        failed: dict[Chunk, int] = {}
        for task, failure in event.failures:
            chunk, offset = batch.find(task)
            failed[chunk] = failed.get(chunk, 0) | 1 << offset
            if not dead(chunk) >> offset & 1:
                self._task_failed(batch, chunk, 1 << offset, failure)
        outputs = self.program.call_outputs[batch.call]
        streams = self._placed(event.streams)
        level = self.plan.nodes[batch.call].level
        watchers, work = self._watchers[level], self._work[self._depths[level]]
        row = live = done = 0
        for chunk, bits in batch.runs(event.first, event.count):
            if failed and chunk in failed:
                bits &= ~failed[chunk]
            open_bits = bits & ~dead(chunk)
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
                    self.held.never_held(chunk, [slot for slot, _, _ in streams], bits & ~open_bits)
                for slot in outputs:
                    if chunk.lost is not None:
                        self.settle_done(chunk, slot, open_bits)
                        continue
                    chunk.done[slot] |= open_bits
                    for rule in watchers[slot]:
                        key = (rule, chunk)
                        work[key] = work.get(key, 0) | open_bits
                live += open_bits.bit_count()
            queue.results(chunk, bits.bit_count())
            row += bits.bit_count()
            lost = 0 if chunk.lost is None else chunk.terminal(outputs[0])
            done += (
                bits & ~lost | open_bits
            ).bit_count()  # those too whose root has ended meanwhile
        self.counts[batch.call].done += done
        self._hold(event.streams, live)

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
            for offset in bit_positions(bits & ~self.queues[batch.call].dead(chunk)):
                if batch.count == 1:
                    self._task_failed(batch, chunk, 1 << offset, event.failure)
                else:
                    self.queues[batch.call].alone.append(
                        Retry(chunk, 1 << offset, batch.attempt + 1)
                    )

    # ------------------------------------------------------------------------------ batches

    def _start(
        self, call: int, entries: list[Entry], count: int, retry: Retry | None = None
    ) -> tuple[int, RunBatch]:
        node = self.plan.nodes[call]
        assert isinstance(node, CallNode)
        refs: set[Ref] = set()
        columns = tuple(self.resolvers[i.port](entries, refs) for i in node.inputs)
        self.held.read(refs)
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
            errors=0 if retry is None else retry.errors,
            alone=retry is not None,
        )
        counts = self.counts[call]
        counts.batches += 1
        counts.executed += count
        counts.running += count
        stage = self.plan.stages[node.stage]
        if stage.batch_size is not None:
            counts.capacity += stage.batch_size
        identity = identify(self.roots, entries) if stage.identities else ()
        skip = () if attempt == 1 else self._released(call, entries[0])
        return number, RunBatch(
            number, call, count, columns, attempt=attempt, skip=skip, identity=identity
        )

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
                self.held.drop(ref)
        return batch

    def _task_failed(self, batch: Batch, chunk: Chunk, bit: int, failure: Failure) -> None:
        """A task failed by itself: it is tried again, if its stage says so."""
        if failure.kind == "raised" and batch.errors < self._retries[batch.call]:
            self.queues[batch.call].alone.append(
                Retry(chunk, bit, batch.attempt + 1, batch.deaths, batch.errors + 1)
            )
        else:
            self._fail_item(batch, chunk, bit, failure)

    def _fail_item(self, batch: Batch, chunk: Chunk, bit: int, failure: Failure) -> None:
        name = self.counts[batch.call].name
        placed = self.roots.placed(chunk, bit, failure, call=name, attempts=batch.attempt)
        self.failed_tasks.append((batch.call, placed))
        for slot in self.program.call_outputs[batch.call]:
            self.settle_lost(chunk, slot, failed=bit, causes=((bit, placed),))
        if placed.scope == "parent" and chunk.parent is not None:
            self._condemn(batch.call, chunk.parent, chunk.parents_of(bit), placed)

    def _condemn(self, call: int, chunk: Chunk, parent: int, cause: Failure) -> None:
        """A parent failure at ``call``: what has not ended there under the parent is suppressed, and the
        lists that depend on the call."""
        level, outputs = self.plan.nodes[call].level, self.program.call_outputs[call]
        self.queues[call].alarm()
        if chunk.condemned is None:
            chunk.condemned = {}
        chunk.condemned.setdefault(call, []).append((parent, cause))
        for child in chunk.children[level].chunks(parent):
            items = child.items_of(parent)
            for slot in outputs:
                self.settle_lost(child, slot, suppressed=items, causes=((items, cause),))
        for gather in self.program.condemned.get(call, ()):
            expansion = self.program.expansion[gather.child_level]
            children = chunk.children.get(gather.child_level)
            begun = 0 if children is None else children.begun
            # Where no child is known the expansion may be dropped yet, and then the list is.
            certain = parent & (begun | chunk.terminal(expansion))
            for slot in map(self.program.port.__getitem__, gather.outputs):
                if certain:
                    self.settle_lost(chunk, slot, suppressed=certain, causes=((parent, cause),))
                else:
                    chunk.given_up.setdefault(slot, []).append((parent, cause))

    def _trim(self, call: int, chunk: Chunk, items: int) -> None:
        """Items that are at workers need not run any more."""
        for number, batch in self.batches.items():
            if batch.call == call and (tasks := batch.tasks_of(chunk, items)):
                self._trimmed[number] = self._trimmed.get(number, 0) | tasks

    def take_trimmed(self) -> dict[int, int]:
        """By batch at a worker: tasks that need not run any more, since the last call."""
        trimmed, self._trimmed = self._trimmed, {}
        return trimmed

    def _condemn_late(self, chunk: Chunk, new: int) -> None:
        """Children of condemned parents that came afterwards."""
        assert chunk.parent is not None
        for call, condemned in (chunk.parent.condemned or {}).items():
            if self.plan.nodes[call].level == chunk.level:
                for parents, cause in condemned:
                    items = chunk.items_of(parents) & new
                    for slot in self.program.call_outputs[call]:
                        self.settle_lost(chunk, slot, suppressed=items, causes=((items, cause),))

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
        if chunk.parent is not None:
            if chunk.parent.lost is not None:
                for rule in self._backwards.late[level]:
                    self.schedule(rule, chunk, new)
            if chunk.parent.condemned is not None:
                self._condemn_late(chunk, new)

    def _hold(self, streams: Sequence[StreamRows], rows: int) -> None:
        """Count the rows of new blocks; where values are large, have them go at their last reader."""
        for stream in streams:
            if self.held.hold(stream, rows) and stream.port in self._wiring.early:
                self._wiring.watch_early(stream.port)

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
            self.queues[call].results(chunk, 0)
            taken = suppressed & chunk.done[self.program.taken[call]]
            if taken:
                self._trim(call, chunk, taken)
            counts = self.counts[call]
            counts.dropped += dropped.bit_count()
            counts.failed += failed.bit_count()
            counts.suppressed += suppressed.bit_count()

    def new_failure(self, chunk: Chunk, bit: int, kind: str, message: str, where: str) -> Failure:
        """A failure that originates in a structural operation."""
        return self.roots.placed(chunk, bit, Failure(kind=kind, message=message), call=where)

    def give_up(self, chunk: Chunk, slot: int, items: int, causes: Causes) -> None:
        """Items that nobody needs any more are suppressed."""
        self.settle_lost(chunk, slot, suppressed=items, causes=causes)
        call = self._call_of_slot.get((chunk.level, slot))
        if call is not None:
            self.queues[call].alarm()

    def unneeded(self, chunk: Chunk, slot: int, items: int) -> None:
        """A merge takes nothing more from a slot for these items: who else needs them?"""
        self._backwards.unneeded(self, chunk, slot, items)

    def release_early(self, chunk: Chunk, slot: int, bits: int) -> None:
        """Free the values of items at a slot before their root ends, unless they are small."""
        self.held.free_early(chunk, slot, bits)

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
        released = self.held.take_released()
        if released:
            self._commands.append(ReleaseBlocks(released))
        results = self.roots.take_results()
        if results:
            self._commands.append(FinishRoots(results))
        commands, self._commands = self._commands, []
        return commands
