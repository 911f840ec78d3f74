"""What goes on without credit: the deepest work of the oldest open root. Pure.

Owns that choice. How much memory there is, and how much of an item's making counts as little, is
:mod:`fanfold.dispatch.credits`' business; how work is sent is the core's.

One root that always moves is enough for a run to end: when it has ended, its values go, and the next is the
oldest. The rule, by stages from the end of the pipeline on:

1. Generators of the root that wait for room go on, by one child or as many as are little.
2. If none waits there, idle workers get what is ready of the root: an item each, or as many as make little. A
   worker that is being replaced gets some only where nothing of the root would go on at the stage otherwise.
3. Where the root has anything to go on with, stages farther from the end wait, whether there is a worker for it
   or not. What they make would only add to what those behind them have not got round to, who let values go.

So each worker has one item at a time that nobody had credit for, or has made it, and nobody has begun it yet.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias

from fanfold.dispatch.credits import Credits
from fanfold.dispatch.pool import Pool, Worker
from fanfold.dispatch.recycling import Recycling
from fanfold.engine.machine import Machine
from fanfold.protocol import RunBatch

Move: TypeAlias = tuple[Worker, RunBatch | int]
"""A worker, and the batch that it begins; or the number of one that waits there and goes on."""


class Carrying:
    """Finds the next moves of the oldest open root.

    Args:
        machine: The state of the run.
        pools: All of them, those nearest to the end first.
        recycling: How much workers may be sent.
    """

    def __init__(self, machine: Machine, pools: Sequence[Pool], recycling: Recycling) -> None:
        self._machine = machine
        self._pools = pools
        self._recycling = recycling
        self._last: dict[int, int] = {}
        """By worker: the batch that began or went on there without credit last."""

    def moves(self, credits: Credits, time_s: float) -> Iterator[Move]:
        """What goes on now; each is to be made before the next is asked for."""
        root = self._machine.roots.oldest_open()
        if root is None:
            return
        for pool in self._pools:
            at_work = [batch for worker in pool.workers for batch in worker.batches]
            goes_on = bool(at_work) and self._machine.works_for(root, at_work)
            waiting = self._waiting(pool, root)
            calls = [call for call in pool.calls if self._machine.is_ready(call, root)]
            moves = (
                iter(waiting)
                if waiting
                else self._begin(pool, root, calls, goes_on, credits, time_s)
            )
            for worker, work in moves:
                self._last[worker.number] = work if isinstance(work, int) else work.batch
                yield worker, work
            if waiting or calls:
                return

    def _waiting(self, pool: Pool, root: int) -> list[Move]:
        """The root's generators that wait for room, one for each worker."""
        found: dict[int, Move] = {}
        for worker in pool.workers:
            if self._last.get(worker.number) in worker.batches:
                continue
            for batch in worker.paused:
                # What has ended in it may not be told of before it goes on.
                if self._machine.works_for(root, [batch]):
                    found.setdefault(worker.number, (worker, batch))
        return list(found.values())

    def _begin(
        self,
        pool: Pool,
        root: int,
        calls: Sequence[int],
        goes_on: bool,
        credits: Credits,
        time_s: float,
    ) -> Iterator[Move]:
        idle = [worker for worker in pool.workers if worker.ready and not worker.batches]
        chosen = [worker for worker in idle if worker.open]
        if not (chosen or goes_on):
            chosen = [worker for worker in idle if not worker.retiring][:1]
        for worker in chosen:
            if pool.closed(time_s):
                return  # it waits for the rate
            run = self._take(pool, worker, root, calls, goes_on, credits)
            if run is None:
                return
            goes_on = True
            yield worker, run

    def _take(
        self,
        pool: Pool,
        worker: Worker,
        root: int,
        calls: Sequence[int],
        goes_on: bool,
        credits: Credits,
    ) -> RunBatch | None:
        limit = self._recycling.limit(worker, pool.batch_size or pool.message_items())
        for call in calls:
            few = credits.without(call, limit, len(pool.workers))
            # Nobody is held back by the probe where nothing else could give its first result.
            if run := self._machine.take_of(call, root, few, probed=goes_on):
                return run
        return None
