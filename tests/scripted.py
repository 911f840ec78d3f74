"""A core driven by hand: tests say what workers report, and invariants are checked after every event."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from fanfold.dispatch.core import Core
from fanfold.dispatch.stopping import ON_REQUEST, StopRules
from fanfold.engine.commands import (
    Command,
    FinishRoots,
    GrantRoom,
    RecycleWorker,
    ReleaseBlocks,
    StartBatch,
    StopRun,
    TrimBatch,
)
from fanfold.engine.invariants import check
from fanfold.failures import Failure
from fanfold.plan import Plan
from fanfold.protocol import (
    BatchFinished,
    ChildrenReleased,
    DriverEvent,
    Event,
    ExpansionSealed,
    RootResult,
    RootsAdmitted,
    RootsCommitted,
    Rows,
    RunBatch,
    SourceExhausted,
    StreamRows,
    TasksFinished,
    WorkerStarted,
)


@dataclass(frozen=True)
class Replica:
    worker: int
    stage: int
    name: str


class Script:
    """Plays the driver and all workers of one plan; blocks are numbers, values do not exist."""

    def __init__(
        self,
        plan: Plan,
        *,
        replicas: int = 1,
        checked: bool = True,
        rules: StopRules = ON_REQUEST,
        budget_bytes: int | None = None,
        row_bytes: int | Mapping[int, int] = 0,
    ) -> None:
        self.plan = plan
        workers = [
            Replica(number, stage.index, f"{stage.name}[{i}]")
            for number, (stage, i) in enumerate(
                (stage, i) for stage in plan.stages for i in range(replicas)
            )
        ]
        self.core = Core(plan, workers, rules=rules, budget_bytes=budget_bytes)
        self._row_bytes = row_bytes
        self.checked = checked
        self.running: list[tuple[int, RunBatch]] = []
        self.results: list[RootResult] = []
        self.released: list[object] = []
        self.restarted: list[int] = []
        self.recycled: list[int] = []
        self.grants: list[GrantRoom] = []
        self.on_trim: Callable[[TrimBatch], object] = lambda _: None
        self.stops: list[StopRun] = []
        self._refs = itertools.count(1)
        for worker in workers:
            self.event(WorkerStarted(worker.worker))

    def event(self, event: Event | DriverEvent) -> None:
        self._carry_out(self.core.handle(event))
        if self.checked:
            check(self.core.machine)

    def dispatch(self, time_s: float = 0.0) -> list[RunBatch]:
        """Have work dispatched; the batches that were started now."""
        before = len(self.running)
        self._carry_out(self.core.dispatch(time_s))
        if self.checked:
            check(self.core.machine)
        return [batch for _, batch in self.running[before:]]

    def _carry_out(self, commands: Iterable[Command]) -> None:
        for command in commands:
            match command:
                case StartBatch():
                    self.running.append((command.worker, command.batch))
                case FinishRoots():
                    self.results += command.results
                case TrimBatch():
                    self.on_trim(command)
                case ReleaseBlocks():
                    self.released += command.refs
                case GrantRoom():
                    self.grants.append(command)
                case RecycleWorker():
                    self.recycled.append(command.worker)
                case StopRun():
                    self.stops.append(command)
                case _:
                    self.restarted.append(getattr(command, "worker", -1))

    def rows(self, port: int, count: int) -> StreamRows:
        size = self._row_bytes if isinstance(self._row_bytes, int) else self._row_bytes[port]
        return StreamRows(port, Rows(next(self._refs), count, size * count))

    def admit(self, count: int, *, last: bool = True) -> None:
        first = self.core.machine.roots.admitted
        keys = tuple(f"doc{i}" for i in range(first, first + count))
        self.event(RootsAdmitted(keys, (self.rows(self.plan.sources[0].stream.port, count),)))
        if last:
            self.event(SourceExhausted())

    def worker_of(self, batch: RunBatch) -> int:
        return next(worker for worker, b in self.running if b is batch)

    def release(self, batch: RunBatch, counts: dict[int, int], *, node: int = 1) -> None:
        port = self.plan.nodes[node].outputs[0]  # type: ignore[union-attr]
        self.event(
            ChildrenReleased(
                batch.batch,
                node,
                min(counts),
                tuple(counts.get(task, 0) for task in range(min(counts), max(counts) + 1)),
                (self.rows(port, sum(counts.values())),),
                attempt=batch.attempt,
            )
        )

    def seal(self, batch: RunBatch, tasks: Iterable[int], *, node: int = 1) -> None:
        self.event(ExpansionSealed(batch.batch, node, tuple(tasks), attempt=batch.attempt))

    def finish(
        self, batch: RunBatch, failures: dict[int, str] | None = None, kind: str = "declared"
    ) -> None:
        """All tasks end; ``failures`` maps tasks to messages."""
        failed = tuple(
            (task, Failure(kind=kind, message=m)) for task, m in (failures or {}).items()
        )
        streams = tuple(
            self.rows(stream.port, batch.count - len(failed))
            for stream in self.plan.streams[batch.call].items
        )
        self.event(
            TasksFinished(batch.batch, 0, batch.count, streams, failed, attempt=batch.attempt)
        )
        self.end(batch)

    def end(self, batch: RunBatch, *, own_bytes: int = 0) -> None:
        self.running = [(w, b) for w, b in self.running if b is not batch]
        self.event(BatchFinished(batch.batch, attempt=batch.attempt, own_bytes=own_bytes))

    def commit(self) -> None:
        """Commit all roots that have ended."""
        roots = tuple(result.root for result in self.results)
        self.event(RootsCommitted(roots))

    def expand_all(self, batch: RunBatch, counts: list[int]) -> None:
        """A batch of a call whose tasks yield ``counts`` children each, all at once."""
        self.release(batch, dict(enumerate(counts)))
        self.seal(batch, range(len(counts)))
        self.finish(batch)
