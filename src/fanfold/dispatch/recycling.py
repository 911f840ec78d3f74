"""Which workers are replaced because of what they have done or grown to, and when. Pure.

Owns that decision: how many items each worker has been sent since it was made, whether its stage lets it have
more, and that it holds nothing when it is replaced. Who takes its work meanwhile, and whether there will be
any, is the core's to know.

Rules
-----
* A worker that has been sent ``recycle_after`` items, or whose memory was above ``recycle_above`` bytes at the
  end of a batch, is *leaving*: it gets nothing more, but for an item of the oldest open root when there is no
  credit for anything else, and is replaced once it has ended all that it holds.
* A stage that takes one item at a time is sent no more of them than are left; batches are not cut.
* The replicas of a stage take turns: in its first life each has a share less than the one before, so that they
  are not all replaced at the same time.
* Nobody is replaced for whom there will be no work, or who is let go anyway (:mod:`fanfold.dispatch.scaling`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from fanfold.dispatch.pool import Pool, Worker
from fanfold.engine.commands import Command, RecycleWorker
from fanfold.plan import Plan


@dataclass(slots=True)
class _Life:
    """A worker's life since it was made."""

    after: int | None
    """After so many items it is over."""
    sent: int = 0
    grown: bool = False
    """It has more memory than its stage lets it have."""

    @property
    def over(self) -> bool:
        return self.grown or (self.after is not None and self.sent >= self.after)


class Recycling:
    """The workers of stages that have theirs replaced from time to time.

    Args:
        plan: What runs.
        pools: By stage: its workers.
    """

    def __init__(self, plan: Plan, pools: Mapping[int, Pool]) -> None:
        self._stages = plan.stages
        self._pools = pools
        self._lives: dict[int, _Life] = {}
        """By worker; those of other stages have none."""
        self._leaving: dict[int, Worker] = {}
        for stage in plan.stages:
            if stage.recycle_after is None and stage.recycle_above is None:
                continue
            workers = (*pools[stage.index].workers, *pools[stage.index].parked)
            for turn, worker in enumerate(workers):
                after = stage.recycle_after
                if after is not None:
                    after -= after * turn // len(workers)
                self._lives[worker.number] = _Life(after)

    def limit(self, worker: Worker, items: int) -> int:
        """How many of so many items a worker may be sent at once."""
        life = self._lives.get(worker.number)
        if life is None or life.after is None or self._stages[worker.stage].batch_size is not None:
            return items
        return max(1, min(items, life.after - life.sent))

    def sent(self, worker: Worker, items: int) -> None:
        """A worker was sent so many items; if they were given back unbegun, fewer than none."""
        if (life := self._lives.get(worker.number)) is not None:
            life.sent += items
            self._judge(worker, life)

    def grown(self, worker: Worker, own_bytes: int) -> None:
        """A worker has so much memory of its own at the end of a batch."""
        above = self._stages[worker.stage].recycle_above
        if above is not None and own_bytes > above:
            life = self._lives[worker.number]
            life.grown = True
            self._judge(worker, life)

    def _judge(self, worker: Worker, life: _Life) -> None:
        worker.leaving = life.over
        if life.over:
            self._leaving[worker.number] = worker
        else:
            self._leaving.pop(worker.number, None)

    def died(self, worker: Worker) -> None:
        """A worker died, and is replaced anyway; or it was let go, and its next life is a new one."""
        if worker.number in self._lives:
            self._renew(worker)

    def replaced(self, wanted: Callable[[Pool], bool], time_s: float) -> list[Command]:
        """Have those replaced that hold nothing any more.

        Args:
            wanted: Whether there is, or may come, work for a pool.
            time_s: Now.
        """
        if not self._leaving:
            return []
        commands: list[Command] = []
        for worker in tuple(self._leaving.values()):
            if worker.batches or worker.paused or not wanted(self._pools[worker.stage]):
                continue
            worker.recycle(time_s)
            self._renew(worker)
            commands.append(RecycleWorker(worker.number))
        return commands

    def _renew(self, worker: Worker) -> None:
        life = _Life(self._stages[worker.stage].recycle_after)
        self._lives[worker.number] = life
        self._judge(worker, life)
