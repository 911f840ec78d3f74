"""The inline backend's own worker code under shuffled completion orders."""

from __future__ import annotations

from collections import deque
from random import Random

from fanfold.backends.base import BackendEvent
from fanfold.backends.inline import InlineBackend
from fanfold.protocol import Event, RunBatch


class ShuffledInline(InlineBackend):
    """Runs batches and tells of them in an order that is drawn; each worker keeps its own order."""

    def __init__(self, random: Random) -> None:
        super().__init__()
        self._random = random
        self.blocks_left = 0
        """Blocks that nobody had released when the run was over."""
        self._waiting: dict[int, deque[RunBatch]] = {}
        self._untold: dict[int, deque[Event | BackendEvent]] = {}

    def submit(self, worker: int, batch: RunBatch) -> None:
        self._waiting.setdefault(worker, deque()).append(batch)

    def poll(self, timeout_s: float | None) -> list[Event | BackendEvent]:
        while self._starting:
            worker = self._starting.popleft()
            self._construct(worker)
            self._keep(worker)
        told: list[Event | BackendEvent] = []
        for _ in range(self._random.choice((1, 1, 2, 4))):
            busy = [w for w in self._specs if self._untold.get(w) or self._waiting.get(w)]
            if not busy:
                assert told or timeout_s == 0, "the run waits, but nothing is under way"
                break
            worker = self._random.choice(busy)
            if not self._untold.get(worker):
                self._runners[worker].run(self._waiting[worker].popleft())
                self._keep(worker)
            told.append(self._untold[worker].popleft())
        return told

    def _keep(self, worker: int) -> None:
        """What was just told by a worker waits for its turn."""
        self._untold.setdefault(worker, deque()).extend(self._events)
        self._events = []

    def close(self) -> None:
        self.blocks_left = len(self._values.blocks)
        super().close()
