"""The in-memory twin of a backend: no process, no clock, and any order of completion that a seed tells.

Owns the shuffling. Each worker keeps its own order, as the contract says; which worker gets on next, how
many events a poll tells, how children are grouped when they are released, and which worker dies is drawn
from a random generator. What is told of a batch is :mod:`fanfold.testing.telling`'s.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from random import Random
from typing import Any

from fanfold.backends.base import BackendEvent, RecordWriter, WorkerSpec
from fanfold.columns import Column, Ref
from fanfold.failures import Failure
from fanfold.plan import Plan
from fanfold.protocol import (
    BlocksSpilled,
    Event,
    RootResult,
    Rows,
    RunBatch,
    WorkerDied,
    WorkerFailed,
    WorkerStarted,
)
from fanfold.testing.memory import Blocks
from fanfold.testing.telling import Teller


class Twin:
    """A backend in memory.

    Args:
        random: Decides all that is not determined.
        deaths: How many times a worker may die in the middle of a batch.
    """

    def __init__(self, random: Random, deaths: int = 0) -> None:
        self._random = random
        self._deaths_left = deaths
        self._blocks = Blocks()
        self._stage_of: dict[int, int] = {}
        self._batches: dict[int, deque[RunBatch]] = {}
        self._told: dict[int, deque[Event]] = {}
        """By worker: what happened there and was not told yet."""
        self._asked: list[BlocksSpilled] = []
        self._time_s = 0.0

    # --------------------------------------------------------------------------------- the contract

    def start(self, plan: Plan, workers: Sequence[WorkerSpec], writer: RecordWriter | None) -> None:
        assert writer is None, "nothing is written in memory"
        self._teller = Teller(plan, self._blocks, self._random)
        for spec in workers:
            self._batches[spec.worker] = deque()
            self._stage_of[spec.worker] = spec.stage
            self._told[spec.worker] = deque([self._constructed(spec.worker)])

    def submit(self, worker: int, batch: RunBatch) -> None:
        self._batches[worker].append(batch)

    def trim(self, worker: int, batch: int, tasks: int) -> None:
        self._teller.trim(batch, tasks)

    def grant(self, worker: int, batch: int, room: int) -> None:
        """Too late: a batch has made all that it makes by the time that any of it is told."""

    def spill(self, refs: Sequence[Ref]) -> None:
        """There is nowhere to move them to."""
        self._asked.append(BlocksSpilled(tuple(refs), ()))

    def restart(self, worker: int) -> None:
        self._batches[worker].clear()  # what was sent to it since it died is lost
        self._told[worker].append(self._constructed(worker))

    def recycle(self, worker: int) -> None:
        assert not self._batches[worker], "it holds nothing"
        self._told[worker].append(self._constructed(worker))

    def write(self, results: Sequence[RootResult]) -> None:
        raise AssertionError("nothing is written in memory")

    def close_writer(self) -> None:
        raise AssertionError("nothing is written in memory")

    def put(self, values: Sequence[Any]) -> Rows:
        return self._blocks.put(values)

    def read(self, column: Column) -> list[Any]:
        return self._blocks.read(column)

    def release(self, refs: Iterable[Ref]) -> None:
        self._blocks.release(refs)

    def poll(self, timeout_s: float | None) -> list[Event | BackendEvent]:
        events: list[Event | BackendEvent] = [*self._asked]
        self._asked.clear()
        for _ in range(self._random.choice((1, 1, 2, 5))):
            busy = [w for w in self._told if self._told[w] or self._batches[w]]
            if not busy:
                assert events or timeout_s == 0, "the run waits, but nothing is under way"
                break
            worker = self._random.choice(busy)
            if not self._told[worker]:
                self._work(worker)
            self._time_s += 0.001
            events.append(self._told[worker].popleft()._replace(time_s=self._time_s))
        return events

    def worker_log_tail(self, worker: int, limit_bytes: int = 4_096) -> str:
        return ""

    def close(self) -> None:
        self._batches.clear()
        self._told.clear()

    @property
    def blocks_left(self) -> int:
        """Blocks that nobody released."""
        return self._blocks.left

    # -------------------------------------------------------------------------------------- working

    def _constructed(self, worker: int) -> Event:
        try:
            self._teller.stages.construct(self._stage_of[worker])
        except Exception as error:
            return WorkerFailed(worker, Failure.from_exception(error))
        return WorkerStarted(worker)

    def _work(self, worker: int) -> None:
        """Run the worker's next batch and note what it will tell."""
        batch = self._batches[worker].popleft()
        told = self._teller.run(batch)
        events: list[Event] = [*told.events]
        dies = not told.whole
        if self._deaths_left and self._random.random() < 0.2:
            self._deaths_left -= 1
            dies = True
            kept = self._random.randint(0, len(told.events) - told.whole)
            self._teller.forget(told.events[kept:])
            del events[kept:]
        if dies:
            events.append(WorkerDied(worker, "the seed said so", running=batch.batch))
            self._batches[worker].clear()
        self._told[worker].extend(events)
