"""The batches that are at workers: made from ready items, trimmed of what need not run, ended.

Owns their numbers, the blocks that they keep alive, and the counts of what was given out. What their ends
mean for the items in them is the machine's business.
"""

from __future__ import annotations

from collections.abc import Mapping

from fanfold.columns import Ref
from fanfold.engine.batches import Batch
from fanfold.engine.chunks import Chunk
from fanfold.engine.held import HeldBlocks
from fanfold.engine.identity import identify
from fanfold.engine.program import Program
from fanfold.engine.ready import Entry, Retry
from fanfold.engine.resolve import Resolvers
from fanfold.engine.roots import Roots
from fanfold.engine.statistics import CallCounts
from fanfold.plan import CallNode
from fanfold.protocol import RunBatch


class Ledger:
    """All batches at workers.

    Args:
        program: The slots.
        counts: By call: what is counted of it.
        resolvers: Where values lie.
        held: What is told of the blocks that batches read.
        roots: Who the items are.
    """

    def __init__(
        self,
        program: Program,
        counts: Mapping[int, CallCounts],
        resolvers: Resolvers,
        held: HeldBlocks,
        roots: Roots,
    ) -> None:
        self._program = program
        self._counts = counts
        self._resolvers = resolvers
        self._held = held
        self._roots = roots
        self.batches: dict[int, Batch] = {}
        self._next = 0
        self._trimmed: dict[int, int] = {}

    def start(
        self, call: int, entries: list[Entry], count: int, retry: Retry | None = None
    ) -> RunBatch:
        """Make a batch of ``count`` ready items; as the next attempt of one item if it is a ``retry``."""
        plan = self._program.plan
        node = plan.nodes[call]
        assert isinstance(node, CallNode)
        refs: set[Ref] = set()
        columns = tuple(self._resolvers[i.port](entries, refs) for i in node.inputs)
        self._held.read(refs)
        attempt = 1 if retry is None else retry.attempt
        number = self._next
        self._next += 1
        self.batches[number] = Batch(
            call,
            entries,
            count,
            refs,
            attempt=attempt,
            deaths=0 if retry is None else retry.deaths,
            errors=0 if retry is None else retry.errors,
            alone=retry is not None and not retry.company,
        )
        counts = self._counts[call]
        counts.batches += 1
        counts.executed += count
        counts.running += count
        stage = plan.stages[node.stage]
        if stage.batch_size is not None:
            counts.capacity += stage.batch_size
        identity = identify(self._roots, entries) if stage.identities else ()
        skip = () if attempt == 1 else self._released(call, entries[0])
        return RunBatch(number, call, count, columns, attempt=attempt, skip=skip, identity=identity)

    def end(self, number: int) -> Batch | None:
        """A batch is at no worker any more; None if it was not."""
        batch = self.batches.pop(number, None)
        if batch is not None:
            self._counts[batch.call].running -= batch.count - batch.returned
            for ref in batch.refs:
                self._held.drop(ref)
        return batch

    def give_back(self, batch: Batch, begun: int) -> list[Entry]:
        """Tasks from ``begun`` on will not be run at the batch's worker. Their entries."""
        returned = batch.give_back(begun)
        count = sum(bits.bit_count() for _, bits in returned)
        batch.returned += count
        counts = self._counts[batch.call]
        counts.running -= count
        counts.executed -= count
        return returned

    def trim(self, call: int, chunk: Chunk, items: int) -> None:
        """Items that are at workers need not run any more."""
        for number, batch in self.batches.items():
            if batch.call == call and (tasks := batch.tasks_of(chunk, items)):
                self._trimmed[number] = self._trimmed.get(number, 0) | tasks

    def trim_ended(self, waiting: set[int]) -> None:
        """Of batches that wait for room, those need not go on whose roots have ended. They, and what is at no
        worker any more, wait no longer."""
        for number in tuple(waiting):
            batch = self.batches.get(number)
            if batch is None:
                waiting.discard(number)
                continue
            tasks = 0
            for chunk, bits in batch.unfinished():
                tasks |= batch.tasks_of(chunk, bits & chunk.ended)
            if tasks:
                self._trimmed[number] = self._trimmed.get(number, 0) | tasks
                waiting.discard(number)

    def take_trimmed(self) -> dict[int, int]:
        """By batch: tasks that need not run any more, since the last call."""
        trimmed = self._trimmed
        if trimmed:
            self._trimmed = {}
        return trimmed

    def _released(self, call: int, entry: Entry) -> tuple[int, ...]:
        """How many children an earlier attempt at an item released, per expansion of the call."""
        chunk, bit = entry
        offset = bit.bit_length() - 1
        levels = (e.level for e in self._program.plan.streams[call].expansions)
        known = (chunk.children[level] for level in levels if level in chunk.children)
        return (max((children.count(offset) for children in known), default=0),)
