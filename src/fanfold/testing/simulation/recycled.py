"""What must hold of workers that are replaced from time to time, in a simulated run.

Owns a count of its own of what each worker was sent, so that it can contradict the core's.
"""

from __future__ import annotations

from collections import Counter

from fanfold.engine.commands import Command, RecycleWorker, RestartWorker, StartBatch
from fanfold.plan import Plan
from fanfold.protocol import BatchFinished, BatchPaused, BatchRaised, Event
from fanfold.testing.observing import ObservedRun


class Lives:
    """Watches that a worker gets no more than its stage lets it have, and is replaced in time.

    Args:
        plan: What runs.
        run: The run, whose workers are looked at.
    """

    def __init__(self, plan: Plan, run: ObservedRun) -> None:
        self._stage_of = {spec.worker: plan.stages[spec.stage] for spec in run.workers}
        self._sent: Counter[int] = Counter()
        """By worker: items since it was made, those given back apart."""
        self._holds: dict[int, tuple[int, int]] = {}
        """By batch at a worker: the worker, and how many items."""
        self._grown: set[int] = set()
        """Workers that were too large at the end of a batch."""
        self._found: list[str] = []

    def heard(self, event: Event) -> None:
        """A worker tells something."""
        match event:
            case BatchPaused() if event.batch in self._holds:
                worker, items = self._holds[event.batch]
                self._sent[worker] -= items - event.begun
                self._holds[event.batch] = worker, event.begun
            case BatchFinished() | BatchRaised() if event.batch in self._holds:
                worker, _ = self._holds.pop(event.batch)
                above = self._stage_of[worker].recycle_above
                if above is not None and event.own_bytes > above:
                    self._grown.add(worker)

    def answered(self, command: Command, *, carried: bool) -> None:
        """The core asks for something; ``carried``: there may be no credit, so that the oldest root goes on."""
        match command:
            case StartBatch():
                self._started(command.worker, command.batch.batch, command.batch.count, carried)
            case RestartWorker():
                self._renew(command.worker)
                self._holds = {b: h for b, h in self._holds.items() if h[0] != command.worker}
            case RecycleWorker():
                self._recycled(command.worker)

    def _started(self, worker: int, batch: int, items: int, carried: bool) -> None:
        stage, sent = self._stage_of[worker], self._sent[worker]
        most = stage.recycle_after
        if not carried:
            if worker in self._grown:
                self._found.append(f"worker {worker} was sent a batch though it is too large")
            if most is not None and sent >= most:
                self._found.append(f"worker {worker} was sent a batch after {sent} of {most} items")
            elif most is not None and stage.batch_size is None and sent + items > most:
                self._found.append(f"worker {worker} was sent {sent + items} of {most} items")
        self._sent[worker] += items
        self._holds[batch] = worker, items

    def _recycled(self, worker: int) -> None:
        if held := [batch for batch, (holder, _) in self._holds.items() if holder == worker]:
            self._found.append(f"worker {worker} was replaced while it held batches {held}")
        stage = self._stage_of[worker]
        turns = stage.replicas
        spent = stage.recycle_after is not None and (
            self._sent[worker] * turns >= stage.recycle_after
        )  # in its first life one of several replicas has a share of it alone
        if not spent and worker not in self._grown:
            self._found.append(f"worker {worker} was replaced after {self._sent[worker]} items")
        self._renew(worker)

    def _renew(self, worker: int) -> None:
        del self._sent[worker]
        self._grown.discard(worker)

    def complaints(self) -> list[str]:
        """What was found since the last time."""
        found, self._found = self._found, []
        return found
