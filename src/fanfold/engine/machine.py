"""The engine: a deterministic state machine. Events in, commands out; one door, no I/O, no clock.

It alone knows membership, immediate parents, ordinals, outcomes and readiness. What a value is and where it
lies is opaque to it; who runs what is decided by :mod:`fanfold.dispatch`, which takes work through
:meth:`Machine.take`.

How an event is handled
-----------------------
1. The event is matched to its batch; events of batches that are no longer awaited are ignored.
2. The reported rows become segments and facts of the chunks concerned, and items end
   (:mod:`fanfold.engine.settling`).
3. What follows from these ends is settled, until nothing is left to do (:mod:`fanfold.engine.rules`).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from functools import reduce
from operator import or_
from typing import Final

from fanfold.columns import Ref
from fanfold.engine.batches import Batch
from fanfold.engine.bits import below, bit_positions, low_offset
from fanfold.engine.chunks import SPAN, Chunk
from fanfold.engine.commands import Command, FinishRoots, ReleaseBlocks
from fanfold.engine.condemning import Condemning
from fanfold.engine.held import HeldBlocks
from fanfold.engine.ledger import Ledger
from fanfold.engine.membership import Membership
from fanfold.engine.patience import Patience
from fanfold.engine.probe import Probe
from fanfold.engine.program import lower
from fanfold.engine.queues import make_queue
from fanfold.engine.ready import Entry, ReadyQueue, Retry
from fanfold.engine.resolve import Resolvers
from fanfold.engine.roots import Roots
from fanfold.engine.settling import PlacedStream, Settling
from fanfold.engine.statistics import CallCounts
from fanfold.errors import InternalError
from fanfold.failures import Failure
from fanfold.plan import Plan
from fanfold.protocol import (
    BatchFinished,
    BatchPaused,
    BatchRaised,
    BlocksSpilled,
    ChildrenReleased,
    ExpansionSealed,
    RootsAdmitted,
    RootsCommitted,
    RunBatch,
    StreamRows,
    TasksFinished,
)

DEATHS_LIMIT: Final = 2
"""An item is ``worker_died`` when so many workers died while they ran it, the last one alone with it."""


class Machine:
    """All state of a run's items.

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
            probe = Probe(
                plan.stages[plan.call(call).stage].probe, outputs[0], self.program.taken[call]
            )
            self.queues[call] = make_queue(self.program, call, sequence, probe, span)
        self.counts = {
            call.index: CallCounts(
                call.name, plan.stages[call.stage].name, plan.levels[call.level].name
            )
            for call in plan.calls()
        }
        self._patience = Patience()
        self._retries = {call.index: plan.stages[call.stage].retries for call in plan.calls()}
        self._going = {
            call.index
            for call in plan.calls()
            if (stage := plan.stages[call.stage]).asynchronous and stage.batch_size is None
        }
        """Calls of which workers have several items going, each a call of the user's code by itself."""
        self.items_per_level = [0] * len(plan.levels)
        self.held = HeldBlocks()
        self.resolvers = Resolvers(self.program)
        self.roots = Roots(self.program, self.resolvers, self.held, span)
        self._ledger = Ledger(self.program, self.counts, self.resolvers, self.held, self.roots)
        self.batches = self._ledger.batches
        """By number: what is at workers."""
        self.settling = Settling(
            self.program, self.queues, self.counts, self._ledger, self.held, self.roots
        )
        self._condemning = Condemning(self.program, self.queues)
        self._memberships = {
            level: Membership(level, self.program.slots[level], slot, span, self._arrived)
            for level, slot in self.program.expansion.items()
        }
        self._incoming: list[PlacedStream] = []
        """The streams of the event that is being taken in."""
        self._waiting: set[int] = set()
        """Batches whose generators have waited for room."""
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
        | BatchPaused
        | BatchFinished
        | BatchRaised
        | BlocksSpilled,
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
            case BatchPaused():
                self._batch_paused(event)
            case BlocksSpilled():
                self.held.spilled(event.asked, event.moved)
            case BatchRaised():
                self._batch_raised(event)
            case RootsAdmitted():
                self._admit(event)
            case RootsCommitted():
                self.roots.commit(event.roots)
        return self._settle()

    def take(self, call: int, limit: int) -> RunBatch | None:
        """Take up to ``limit`` ready items of ``call`` from the head of its queue, as a batch."""
        entries, count = self.queues[call].take(limit)
        return self._ledger.start(call, entries, count) if count else None

    def take_alone(self, call: int, *, company: bool = False) -> RunBatch | None:
        """Take one item that must run alone, or that may have company."""
        retries = self.queues[call].alone
        for retry in [one for one in retries if one.company is company]:
            retries.remove(retry)
            if not retry.bit & self.queues[call].dead(retry.chunk):
                return self._ledger.start(call, [(retry.chunk, retry.bit)], 1, retry)
        return None

    def waiting_blocks(self, wanted: int) -> tuple[Ref, ...]:
        """Blocks that nobody reads before something else has happened, of about so many bytes: no batch at a
        worker does, and no item that is ready."""
        busy: set[Ref] = set()
        for batch in self.batches.values():
            busy |= batch.refs
        for node in self.plan.calls():
            queue = self.queues[node.index]
            entries = [(chunk, bits & ~queue.dead(chunk)) for _, chunk, bits in queue.runs()]
            entries += [(one.chunk, one.bit & ~queue.dead(one.chunk)) for one in queue.alone]
            if entries := [entry for entry in entries if entry[1]]:
                for port in node.inputs:
                    self.resolvers[port.port](entries, busy)
        return self.held.idle(busy, wanted)

    def take_trimmed(self) -> dict[int, int]:
        """By batch at a worker: tasks that need not run any more, since the last call."""
        return self._ledger.take_trimmed()

    def is_ready(self, call: int, root: int) -> bool:
        """Whether an item of a root waits in the queue of ``call``."""
        return bool(self.queues[call].count) and self.queues[call].has_any(
            self.roots.items_of(root)
        )

    def take_of(self, call: int, root: int, limit: int, *, probed: bool) -> RunBatch | None:
        """Take ready items of ``call`` that belong to a root, wherever they stand in its queue.

        Args:
            call: The call.
            root: The root.
            limit: How many at most.
            probed: Only as many of one parent as the probe lets through.
        """
        among = self.roots.items_of(root)
        entries, count = self.queues[call].take_some(among, limit, probed=probed)
        return self._ledger.start(call, entries, count) if count else None

    def works_for(self, root: int, numbers: Iterable[int]) -> bool:
        """Whether one of some batches at workers holds an item of a root that has not ended."""
        among = self.roots.items_of(root)
        return any(
            among(chunk, bits)
            for batch in filter(None, map(self.batches.get, numbers))
            for chunk, bits in batch.unfinished()
        )

    def root_of(self, number: int) -> int:
        """The root of the first unfinished task of a batch at a worker; none if all have ended."""
        for chunk, bits in self.batches[number].unfinished():
            return self.roots.ordinals(chunk, low_offset(bits))[0]
        return self.roots.admitted

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
        batch = self._ledger.end(batch_id)
        if batch is None:
            return []
        entries = batch.unfinished()
        if not running and not batch.alone:
            begun = [(chunk, bits & self._begun(batch.call, chunk)) for chunk, bits in entries]
            fresh = [(c, bits & ~b) for (c, bits), (_, b) in zip(entries, begun, strict=True)]
            self.queues[batch.call].push_back([entry for entry in fresh if entry[1]])
            entries = begun  # they have released children, and go on from there
        deaths = batch.deaths + (1 if running and blamed else 0)
        for chunk, bits in entries:
            self.settling.unneeded(
                chunk, self.program.call_outputs[batch.call][0], bits & ~chunk.ended
            )
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
        self.roots.admit(event.keys, self._arrived)
        self.settling.hold(event.streams, len(event.keys))

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
        self.settling.hold(event.streams, taken)

    def _expansion_sealed(self, event: ExpansionSealed) -> None:
        batch = self.batches.get(event.batch)
        if batch is None or batch.attempt != event.attempt:
            return
        slot = self.program.expansion[self.plan.nodes[event.node].level]
        tasks = sum(1 << task for task in event.tasks)
        # It counts when the task ends: until then a sibling's parent failure may suppress the item.
        batch.sealed[slot] = batch.sealed.get(slot, 0) | tasks

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
        later: list[Entry] = []
        for task, failure in event.failures:
            chunk, offset = batch.find(task)
            failed[chunk] = failed.get(chunk, 0) | 1 << offset
            if dead(chunk) >> offset & 1:
                continue
            if self._patience.lasts(batch.call, chunk, offset, failure, event.time_s):
                later.append((chunk, 1 << offset))
            else:
                self._task_failed(batch, chunk, 1 << offset, failure)
        if later:
            self._put_off(batch, later)
        output = self.program.call_outputs[batch.call][0]
        streams = self._placed(event.streams)
        row = live = done = 0
        for chunk, bits in batch.runs(event.first, event.count):
            if failed and chunk in failed:
                bits &= ~failed[chunk]
            open_bits = bits & ~dead(chunk)
            if open_bits:
                self.settling.returned(batch.call, chunk, open_bits, bits, row, streams)
                live += open_bits.bit_count()
            count = bits.bit_count()
            queue.results(chunk, count)
            row += count
            if chunk.lost is not None:  # those count too whose root has ended meanwhile
                count = (bits & ~chunk.terminal(output) | open_bits).bit_count()
            done += count
        for slot, sealed in batch.sealed.items():
            for chunk, bits in batch.among(sealed & told):
                self.settling.settle_done(chunk, slot, bits & chunk.done[output] & ~chunk.ended)
        self.counts[batch.call].done += done
        self.settling.hold(event.streams, live)

    def _batch_finished(self, event: BatchFinished) -> None:
        batch = self._ledger.end(event.batch)
        if batch is not None:
            if batch.finished != below(batch.count):
                raise self._broken("FF903", event.batch, batch, "it was reported as finished")
            self.counts[batch.call].busy_s += event.busy_s

    def _batch_paused(self, event: BatchPaused) -> None:
        batch = self.batches.get(event.batch)
        if batch is not None and batch.attempt == event.attempt:
            self.queues[batch.call].push_back(self._ledger.give_back(batch, event.begun))
            self._waiting.add(event.batch)
            self._ledger.trim_ended(self._waiting)

    def _begun(self, call: int, chunk: Chunk) -> int:
        """The items of a call that have released children."""
        levels = (expansion.level for expansion in self.plan.streams[call].expansions)
        known = (chunk.children[level].begun for level in levels if level in chunk.children)
        return reduce(or_, known, 0)

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
        batch = self._ledger.end(event.batch)
        if batch is None:
            return
        self.counts[batch.call].busy_s += event.busy_s
        later: list[Entry] = []
        for chunk, bits in batch.entries:
            for offset in bit_positions(bits & ~self.queues[batch.call].dead(chunk)):
                if self._patience.lasts(batch.call, chunk, offset, event.failure, event.time_s):
                    later.append((chunk, 1 << offset))
                elif batch.count == 1 or event.failure.after_s is not None:
                    self._task_failed(batch, chunk, 1 << offset, event.failure)
                else:
                    self.queues[batch.call].alone.append(
                        Retry(chunk, 1 << offset, batch.attempt + 1)
                    )
        self._put_off(batch, later)

    def _put_off(self, batch: Batch, entries: list[Entry]) -> None:
        """Items are to be tried again later, as if they had not been tried."""
        queue, output = self.queues[batch.call], self.program.call_outputs[batch.call][0]
        fresh: list[Entry] = []
        for chunk, bit in entries:
            self.settling.unneeded(chunk, output, bit & ~chunk.ended)
            if bit & queue.dead(chunk):
                continue
            if batch.attempt > 1 or bit & self._begun(batch.call, chunk):  # it goes on from there
                queue.alone.append(self._again(batch, chunk, bit, errors=batch.errors))
            else:
                fresh.append((chunk, bit))
        queue.push_back(fresh)

    def _task_failed(self, batch: Batch, chunk: Chunk, bit: int, failure: Failure) -> None:
        """A task failed by itself: it is tried again, if its stage says so."""
        if failure.kind == "raised" and batch.errors < self._retries[batch.call]:
            retry = self._again(batch, chunk, bit, errors=batch.errors + 1)
            self.queues[batch.call].alone.append(retry)
        else:
            self._fail_item(batch, chunk, bit, failure)

    def _again(self, batch: Batch, chunk: Chunk, bit: int, errors: int) -> Retry:
        """The next attempt at an item that came to its end at a worker."""
        company = batch.call in self._going and not batch.deaths
        return Retry(chunk, bit, batch.attempt + 1, batch.deaths, errors, company)

    def _fail_item(self, batch: Batch, chunk: Chunk, bit: int, failure: Failure) -> None:
        name = self.counts[batch.call].name
        placed = self.roots.placed(chunk, bit, failure, call=name, attempts=batch.attempt)
        self.failed_tasks.append((batch.call, placed))
        for slot in self.program.call_outputs[batch.call]:
            self.settling.settle_lost(chunk, slot, failed=bit, causes=((bit, placed),))
        if placed.scope == "parent" and chunk.parent is not None:
            self._condemning.condemn(
                self.settling, batch.call, chunk.parent, chunk.parents_of(bit), placed
            )

    # ------------------------------------------------------------------------------ membership

    def _placed(self, streams: Sequence[StreamRows]) -> list[PlacedStream]:
        """Streams with what is needed to put their rows into chunks, looked up once per event."""
        return [
            (
                self.program.port[stream.port],
                None if stream.rows is None else stream.rows.ref,
                stream
                if stream.controls
                or stream.missing
                or stream.sizes
                or stream.groups
                or stream.costs
                else None,
            )
            for stream in streams
        ]

    def _arrived(self, chunk: Chunk, new: int, row: int) -> None:
        """New items have come into being; their values are those of the streams being taken in."""
        self.items_per_level[chunk.level] += new.bit_count()
        self.settling.arrived(chunk, new, row, self._incoming)
        if chunk.parent is not None and chunk.parent.condemned is not None:
            self._condemning.arrived(self.settling, chunk, new)

    # ------------------------------------------------------------------------------ following up

    def _settle(self) -> list[Command]:
        """Settle what follows; say what must be done."""
        self.settling.run()
        commands: list[Command] = []
        released = self.held.take_released()
        if released:
            commands.append(ReleaseBlocks(released))
        results = self.roots.take_results()
        if results:
            commands.append(FinishRoots(results))
            self._ledger.trim_ended(self._waiting)
        return commands
