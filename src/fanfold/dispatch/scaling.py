"""How many replicas stages have whose number follows the measured work, and when that changes. Pure.

Owns the split of a machine's cores among these stages. Time arrives with dispatches; what a worker does
meanwhile is what :mod:`fanfold.dispatch.pool` notes of it anyway. Knows no processes and no memory: how many
replicas a stage can have at most was found out before the run.

Rules
-----
1. A stage begins with the fewest replicas that it may have. While nothing of it was measured, it gets as many
   more as have a batch waiting for them, up to an even share of the cores, all at once: the others are not to
   wait for a constructor that takes a minute. (With a rate limit it waits to be measured.)
2. From then on its *use* counts: how many of its workers were busy on average since the evidence began. The
   best split is the one in which the stage with the least to spare, workers over use, has the most. It is aimed
   at when it promises more than :data:`GAIN`, at :data:`LOOKS` looks in a row, to stages whose workers are busy
   and leave something waiting. The looks together take at least as long as a start does.
3. A start has to pay: what it gains until the end is more than :data:`PAYS` times the start. How long a run
   lasts nobody knows before its source is exhausted; it is taken to last as long again as it has.
4. Cores that nobody has are given first. Then those with more to spare than the best split gives them let
   replicas go: of those that are ready, the ones with the least in hand. Such a worker is *retiring*: it gets
   nothing more, ends what it holds, and is parked. Only then is another started in its place.
5. While a worker that was added is not ready, its stage gives and takes nothing.
6. One that cannot be started, or dies before it is ready, is parked, and its stage gets no more from then on,
   since the run does not need it. :attr:`Scaling.notes` says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Final

from fanfold.dispatch.pool import STARTING, Pool, Worker
from fanfold.dispatch.supply import Supply
from fanfold.engine.commands import AddWorker, Command, RetireWorker
from fanfold.plan import Plan

LOOK_S: Final = 0.5
"""Looks are at least so far apart."""
LOOKS: Final = 3
"""So many have to say the same before anything is moved."""
GAIN: Final = 0.05
"""By so much the stage that holds up all others has to get faster."""
FULL: Final = 0.8
"""Workers that are busy for such a share of the time hold a stage up, and not credit or its consumers."""
PAYS: Final = 2.0
"""So many times the time that a start takes has to be gained by it."""


@dataclass(slots=True)
class _Scaled:
    """A stage whose replicas follow the work."""

    name: str
    pool: Pool
    fewest: int
    most: int
    cores: int
    """That one replica takes."""
    start_s: float = 0.0
    """How long its workers took to start, the last one."""
    coming: set[int] = field(default_factory=set)
    """Workers that were added and have not been ready yet."""
    owed: int = 0
    """Workers to be added when cores are free."""
    busy_s: float = 0.0
    """Of all its workers, when the evidence began."""

    @property
    def staying(self) -> int:
        """Replicas that are not about to go."""
        return sum(not worker.retiring for worker in self.pool.workers)

    @property
    def waiting(self) -> int:
        """Items that wait in its queues."""
        return sum(queue.count for queue in self.pool.queues)

    def total_busy_s(self, time_s: float) -> float:
        """Of all workers that it has, or had."""
        pool = self.pool
        return sum(worker.busy_s(time_s) for worker in (*pool.workers, *pool.parked))

    def batches_waiting(self) -> int:
        """How many more workers could begin something now."""
        size = self.pool.batch_size or 1
        return sum(-(-queue.count // size) for queue in self.pool.queues)


def split(
    cores: int, uses: Sequence[float], bounds: Sequence[tuple[int, int]], costs: Sequence[int]
) -> list[int]:
    """The replicas of each stage, so that the one with the least to spare has the most.

    Args:
        cores: To be split.
        uses: By stage: how many replicas are kept busy, in any unit that is the same for all.
        bounds: By stage: the fewest and the most.
        costs: By stage: cores that a replica takes.

    Example:
        >>> split(16, [0.17, 0.21], [(1, 16), (1, 16)], [1, 1])
        [7, 9]
    """
    counts = [fewest for fewest, _ in bounds]
    left = cores - sum(count * cost for count, cost in zip(counts, costs, strict=True))
    while True:
        can = [
            index
            for index, (_, most) in enumerate(bounds)
            if counts[index] < most and costs[index] <= left and uses[index] > 0
        ]
        if not can:
            return counts
        least = min(can, key=lambda index: (counts[index] / uses[index], index))
        counts[least] += 1
        left -= costs[least]


class Scaling:
    """The stages of a run whose replicas follow the measured work.

    Args:
        plan: What runs.
        pools: By stage: its workers, the fewest that it may have, and those that are parked.
        cores: What these stages have together.
        supply: Tells what may still come.
        start_s: The time now.
        look_s: How far apart looks are at least.
    """

    def __init__(
        self,
        plan: Plan,
        pools: Mapping[int, Pool],
        cores: int,
        supply: Supply,
        start_s: float,
        look_s: float = LOOK_S,
    ) -> None:
        self._supply = supply
        self._cores = cores
        self._look_s = look_s
        self._stages = {
            stage.index: _Scaled(
                stage.name,
                pools[stage.index],
                stage.replicas,
                stage.most_replicas,
                stage.cpus or 1,
            )
            for stage in plan.stages
            if stage.most_replicas
        }
        self._start_s = self._since_s = start_s
        self._due_s = start_s
        self._takers: frozenset[int] = frozenset()
        """Who has been found to need more, at each look since the evidence began."""
        self._looks = 0
        self._retiring: list[Worker] = []
        self._notes: dict[int, str] = {}
        """By stage: why it has no more replicas."""

    # ------------------------------------------------------------------------------ what happens

    def started(self, worker: Worker, time_s: float) -> None:
        """A worker is ready, and was not until now."""
        stage = self._stages.get(worker.stage)
        if stage is None:
            return
        if worker.state == STARTING:
            stage.start_s = time_s - worker.since_s
        if worker.number in stage.coming:
            stage.coming.discard(worker.number)
            self._forget(time_s)

    def failed(self, worker: Worker, why: str, time_s: float) -> bool:
        """A worker cannot be started; whether that is all, since the run does not need it.

        Args:
            worker: Which.
            why: The reason, in words.
            time_s: Now.
        """
        stage = self._stages.get(worker.stage)
        if stage is None or worker.number not in stage.coming:
            return False
        stage.coming.discard(worker.number)
        stage.pool.park(worker, time_s)
        stage.most, stage.owed = len(stage.pool.workers), 0
        self._forget(time_s)
        self._notes[worker.stage] = (
            f"stage {stage.name!r} has no more than {stage.most} replica{'s' * (stage.most > 1)}, since "
            f"{worker.name} could not be started: {why}"
        )
        return True

    @property
    def notes(self) -> tuple[str, ...]:
        """What the run's report is to say."""
        return tuple(self._notes.values())

    def died(self, worker: Worker, why: str, time_s: float) -> bool:
        """A worker died; whether that is all, since it was to go or the run does not need it."""
        if not worker.retiring:
            return self.failed(worker, why, time_s)
        self._retiring.remove(worker)
        self._stages[worker.stage].pool.park(worker, time_s)
        return True

    def turn(self, time_s: float) -> list[Command]:
        """What is to change now."""
        if time_s >= self._due_s:
            self._look(time_s)
        commands: list[Command] = []
        for worker in tuple(self._retiring):
            if not worker.batches and not worker.paused:
                self._retiring.remove(worker)
                self._stages[worker.stage].pool.park(worker, time_s)
                commands.append(RetireWorker(worker.number))
        for stage in self._stages.values():
            while stage.owed and stage.cores <= self._free():
                stage.owed -= 1
                worker = stage.pool.add(time_s)
                stage.coming.add(worker.number)
                commands.append(AddWorker(worker.number))
        return commands

    # ------------------------------------------------------------------------------ looking

    def _look(self, time_s: float) -> None:
        slowest_s = max(stage.start_s for stage in self._stages.values())
        self._due_s = time_s + max(self._look_s, slowest_s / LOOKS)
        if any(stage.owed for stage in self._stages.values()):
            return  # what was decided is not carried out yet
        if self._begin():
            self._forget(time_s)
            return
        self._weigh(time_s)

    def _begin(self) -> bool:
        """Give stages of which nothing was measured what they have work for; whether any got something."""
        stages = list(self._stages.values())
        free = self._free()
        for stage, share in zip(stages, self._best([1.0] * len(stages)), strict=True):
            if stage.pool.item_s is not None or stage.pool.gate is not None:
                continue  # with a rate, a single one may be enough
            held = sum(len(worker.batches) for worker in stage.pool.workers)
            wanted = min(share, stage.batches_waiting() + held) - stage.staying
            stage.owed = max(0, min(wanted, free // stage.cores))
            free -= stage.owed * stage.cores
        return any(stage.owed for stage in stages)

    def _weigh(self, time_s: float) -> None:
        """Look at the evidence, and act upon it if there is enough."""
        span_s = time_s - self._since_s
        if span_s <= 0:
            return
        stages = list(self._stages.values())
        still = [stage.pool.item_s is None or bool(stage.coming) for stage in stages]
        uses = [(stage.total_busy_s(time_s) - stage.busy_s) / span_s for stage in stages]
        best = self._best(
            uses, [stage.staying if s else None for stage, s in zip(stages, still, strict=True)]
        )
        takers = frozenset(
            index
            for index, stage in enumerate(stages)
            if not still[index]
            and best[index] > stage.staying
            and uses[index] >= FULL * stage.staying
            and stage.waiting >= stage.staying * stage.pool.max_in_flight
        )
        gain = self._gain(stages, uses, best)
        if not takers or gain <= GAIN or not (self._looks == 0 or takers & self._takers):
            self._forget(time_s)
            return
        self._takers = takers & self._takers if self._looks else takers
        self._looks += 1
        slowest_s = max(stages[index].start_s for index in self._takers)
        if self._looks < LOOKS or span_s < slowest_s:
            return
        if self._lasts_s(time_s) * gain / (1 + gain) > PAYS * slowest_s:
            self._move(stages, uses, best)
        self._forget(time_s)

    def _move(self, stages: Sequence[_Scaled], uses: Sequence[float], best: Sequence[int]) -> None:
        """Have the takers get more, of what is free and of what others can spare."""
        free = self._free()
        for index in sorted(self._takers):
            stage = stages[index]
            stage.owed = min(best[index] - stage.staying, stage.batches_waiting())
            free -= stage.owed * stage.cores
        spare = sorted(range(len(stages)), key=lambda i: uses[i] / max(1, stages[i].staying))
        for index in spare:
            stage = stages[index]
            ready = sorted(
                (worker for worker in stage.pool.workers if worker.ready and not worker.retiring),
                key=lambda worker: (len(worker.batches) + len(worker.paused), -worker.number),
            )
            for worker in ready[: max(0, stage.staying - best[index])]:
                if free >= 0:
                    break
                self._retire(worker)
                free += stage.cores
        for index in sorted(self._takers):  # there may not be enough to let go
            stage = stages[index]
            while free < 0 and stage.owed:
                stage.owed -= 1
                free += stage.cores

    def _retire(self, worker: Worker) -> None:
        worker.retiring = True
        self._retiring.append(worker)

    def _best(self, uses: Sequence[float], fixed: Iterable[int | None] = ()) -> list[int]:
        """The best split, in which some stages stay as they are."""
        stages = list(self._stages.values())
        kept = list(fixed) or [None] * len(stages)
        bounds = [
            (stage.fewest, stage.most) if count is None else (count, count)
            for stage, count in zip(stages, kept, strict=True)
        ]
        return split(self._cores, uses, bounds, [stage.cores for stage in stages])

    @staticmethod
    def _gain(stages: Sequence[_Scaled], uses: Sequence[float], best: Sequence[int]) -> float:
        """By how much the stage that holds up the others gets faster."""
        now = min(
            (s.staying / use for s, use in zip(stages, uses, strict=True) if use > 0), default=inf
        )
        then = min(
            (count / use for count, use in zip(best, uses, strict=True) if use > 0), default=inf
        )
        return then / now - 1 if now < inf else 0.0

    def _lasts_s(self, time_s: float) -> float:
        """How long the run is going to last, as far as one can tell."""
        if not self._supply.exhausted:
            return time_s - self._start_s
        return max(
            stage.waiting * (stage.pool.item_s or 0.0) / max(1, stage.staying)
            for stage in self._stages.values()
        )

    def _forget(self, time_s: float) -> None:
        """The evidence begins anew."""
        self._since_s, self._looks, self._takers = time_s, 0, frozenset()
        for stage in self._stages.values():
            stage.busy_s = stage.total_busy_s(time_s)

    def _free(self) -> int:
        """Cores that no worker has, those that retire included."""
        taken = sum(len(stage.pool.workers) * stage.cores for stage in self._stages.values())
        return self._cores - taken
