"""A run of the actual core in virtual time: workers take as long as they are told, and nothing goes wrong."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable, Sequence
from typing import Any

from fanfold.dispatch.core import Core
from fanfold.driver.machine import Machine
from fanfold.driver.resources import LOCAL, fit
from fanfold.driver.settings import worker_specs
from fanfold.engine.commands import (
    AddWorker,
    Command,
    FinishRoots,
    RestartWorker,
    RetireWorker,
    StartBatch,
    StopRun,
)
from fanfold.failures import Failure
from fanfold.plan import Plan
from fanfold.protocol import (
    BatchFinished,
    DriverEvent,
    Event,
    RootsAdmitted,
    RootsCommitted,
    Rows,
    RunBatch,
    SourceExhausted,
    StreamRows,
    TasksFinished,
    WorkerDied,
    WorkerFailed,
    WorkerStarted,
)


class Shop:
    """One run; all calls are at the root level, one after the other.

    Args:
        plan: What to run.
        cores: What the machine has.
        item_s: By stage, how long an item takes.
        start_s: By stage, how long a constructor takes.
        item_s_at: How long an item of a stage takes at a time, if that changes.
    """

    def __init__(
        self,
        plan: Plan,
        cores: int,
        item_s: Sequence[float],
        start_s: Sequence[float],
        item_s_at: Callable[[int, float], float] | None = None,
    ) -> None:
        fitted = fit(plan, LOCAL[0], Machine(cores, None))
        self.plan = fitted.plan
        self.workers = {spec.worker: spec for spec in worker_specs(fitted)}
        self.core = Core(self.plan, tuple(self.workers.values()), cores=fitted.cores)
        self._item_s = item_s_at or (lambda stage, _: item_s[stage])
        self._start_s = start_s
        self.now_s = 0.0
        self.there: set[int] = set()
        self.first_ready_s: dict[int, float] = {}
        self.added: list[tuple[float, int]] = []
        """When, and a worker of which stage."""
        self.retired: list[tuple[float, int]] = []
        self.done_at: list[tuple[float, int]] = []
        """When a worker ended an item."""
        self.stopped: StopRun | None = None
        self._held: dict[int, list[RunBatch]] = {worker: [] for worker in self.workers}
        self._free_s: dict[int, float] = dict.fromkeys(self.workers, 0.0)
        self._coming: list[tuple[float, int, Event]] = []
        self._numbers = itertools.count(1)
        for spec in self.workers.values():
            if not spec.parked:
                self._begin(spec.worker)

    def run(self, roots: int | None, until_s: float = float("inf")) -> None:
        """Until all roots (or, of an endless source, None) are done, or a time has come."""
        left = 10**9 if roots is None else roots
        while not self.core.finished and self.now_s < until_s:
            left -= self._admit(left)
            self._carry_out(self.core.dispatch(self.now_s))
            if self._coming:
                self.now_s, _, event = heapq.heappop(self._coming)
                self._hear(event)

    def replicas(self) -> list[int]:
        """By stage, how many there are."""
        stages = [self.workers[worker].stage for worker in self.there]
        return [stages.count(stage.index) for stage in self.plan.stages]

    def held(self, worker: int) -> list[RunBatch]:
        """What is at a worker."""
        return self._held[worker]

    def die(self, worker: int) -> None:
        """A worker dies now, with all that it holds."""
        lost = {batch.batch for batch in self._held[worker]}
        self._held[worker].clear()
        self.there.remove(worker)
        self._coming = [c for c in self._coming if getattr(c[2], "batch", None) not in lost]
        heapq.heapify(self._coming)
        self._event(WorkerDied(worker, "killed", self.now_s, next(iter(lost), None)))

    def fail(self, worker: int) -> None:
        """A worker that was to start cannot be made."""
        self.there.remove(worker)
        self._coming = [c for c in self._coming if getattr(c[2], "worker", None) != worker]
        heapq.heapify(self._coming)
        failure = Failure(kind="raised", message="no memory")
        self._event(WorkerFailed(worker, failure, self.now_s))

    # ------------------------------------------------------------------------------------- parts

    def _admit(self, left: int) -> int:
        count = min(left, self.core.room())
        if count > 0:
            first = self.core.machine.roots.admitted
            keys = tuple(str(first + i) for i in range(count))
            port = self.plan.sources[0].stream.port
            self._event(RootsAdmitted(keys, (self._rows(port, count),), self.now_s))
            if count == left:
                self._event(SourceExhausted(self.now_s))
        return max(0, count)

    def _rows(self, port: int, count: int) -> StreamRows:
        return StreamRows(port, Rows(next(self._numbers), count, count))

    def _begin(self, worker: int) -> None:
        self.there.add(worker)
        ready_s = self.now_s + self._start_s[self.workers[worker].stage]
        self._tell(ready_s, WorkerStarted(worker, ready_s))

    def _tell(self, time_s: float, event: Any) -> None:
        heapq.heappush(self._coming, (time_s, next(self._numbers), event))

    def _hear(self, event: Event) -> None:
        match event:
            case WorkerStarted():
                self.first_ready_s.setdefault(event.worker, self.now_s)
            case BatchFinished():
                worker = next(
                    w for w, held in self._held.items() if any(b.batch == event.batch for b in held)
                )
                batch = next(b for b in self._held[worker] if b.batch == event.batch)
                self._held[worker].remove(batch)
                self.done_at += [(self.now_s, worker)] * batch.count
                streams = self.plan.streams[batch.call].items
                rows = tuple(self._rows(stream.port, batch.count) for stream in streams)
                self._event(TasksFinished(batch.batch, 0, batch.count, rows, time_s=self.now_s))
        self._event(event)

    def _event(self, event: Event | DriverEvent) -> None:
        self._carry_out(self.core.handle(event))

    def _carry_out(self, commands: Sequence[Command]) -> None:
        for command in commands:
            match command:
                case StartBatch():
                    self._start(command.worker, command.batch)
                case FinishRoots():
                    roots = tuple(result.root for result in command.results)
                    self._event(RootsCommitted(roots, self.now_s))
                case AddWorker():
                    assert command.worker not in self.there
                    self.added.append((self.now_s, self.workers[command.worker].stage))
                    self._begin(command.worker)
                case RetireWorker():
                    assert command.worker in self.there and not self._held[command.worker]
                    self.retired.append((self.now_s, self.workers[command.worker].stage))
                    self.there.remove(command.worker)
                case RestartWorker():
                    self._begin(command.worker)
                case StopRun():
                    self.stopped = command

    def _start(self, worker: int, batch: RunBatch) -> None:
        assert worker in self.there
        stage = self.workers[worker].stage
        busy_s = batch.count * self._item_s(stage, self.now_s)
        self._held[worker].append(batch)
        self._free_s[worker] = max(self.now_s, self._free_s[worker]) + busy_s
        self._tell(
            self._free_s[worker],
            BatchFinished(batch.batch, busy_s, batch.attempt, self._free_s[worker]),
        )
