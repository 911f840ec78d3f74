"""What must hold of replicas whose number follows the work, in a simulated run.

Owns a count of its own of which workers there are and what each holds, from commands and events alone, so that
it can contradict the core's.
"""

from __future__ import annotations

from fanfold.driver.resources import most_of
from fanfold.engine.commands import AddWorker, Command, RestartWorker, RetireWorker, StartBatch
from fanfold.plan import Plan
from fanfold.protocol import BatchFinished, BatchRaised, Event, WorkerDied, WorkerStarted
from fanfold.testing.observing import ObservedRun


class Scales:
    """Watches that there are as many replicas as there may be, and that those which go hold nothing.

    Args:
        plan: What runs, with the fewest and the most replicas of each stage.
        run: The run, whose workers are counted.
    """

    def __init__(self, plan: Plan, run: ObservedRun) -> None:
        self._plan = plan
        self._stage_of = {spec.worker: plan.stages[spec.stage] for spec in run.workers}
        self._there = {spec.worker for spec in run.workers if not spec.parked}
        self._ready: set[int] = set()
        self._dead: set[int] = set()
        """Those that were told to be dead; who is not restarted is there no more."""
        self._holds: dict[int, int] = {}
        """By batch: the worker that it is at."""
        self._cores = run.cores
        self._found: list[str] = []

    def heard(self, event: Event) -> None:
        """A worker tells something."""
        match event:
            case WorkerStarted():
                self._ready.add(event.worker)
            case BatchFinished() | BatchRaised():
                self._holds.pop(event.batch, None)
            case WorkerDied():
                self._ready.discard(event.worker)
                self._dead.add(event.worker)
                self._holds = {b: w for b, w in self._holds.items() if w != event.worker}

    def answered(self, command: Command) -> None:
        """The core asks for something."""
        match command:
            case StartBatch():
                if command.worker not in self._there:
                    self._found.append(f"worker {command.worker} was sent a batch and is not there")
                self._holds[command.batch.batch] = command.worker
            case RestartWorker():
                self._dead.discard(command.worker)
            case AddWorker():
                if command.worker in self._there - self._dead:
                    self._found.append(f"worker {command.worker} was added and is there")
                self._dead.discard(command.worker)
                self._there.add(command.worker)
            case RetireWorker():
                if held := [b for b, worker in self._holds.items() if worker == command.worker]:
                    self._found.append(f"worker {command.worker} was retired with batches {held}")
                if command.worker not in self._ready:
                    self._found.append(f"worker {command.worker} was retired and was not ready")
                self._ready.discard(command.worker)
                self._there.discard(command.worker)

    def complaints(self) -> list[str]:
        """After a dispatch: what was found since the last time, and whether there are as many as may be."""
        found, self._found = self._found, []
        self._there -= self._dead
        self._dead.clear()
        counts = dict.fromkeys((stage.index for stage in self._plan.stages), 0)
        for worker in self._there:
            counts[self._stage_of[worker].index] += 1
        taken = 0
        for stage in self._plan.stages:
            count, most = counts[stage.index], most_of(stage)
            if not stage.replicas <= count <= most:
                found.append(f"{stage.name} has {count} replicas, not {stage.replicas} to {most}")
            if stage.most_replicas is not None:
                taken += count * (stage.cpus or 1)
        if taken > (self._cores or 0):
            found.append(f"{taken} cores are taken, and there are {self._cores}")
        return found
