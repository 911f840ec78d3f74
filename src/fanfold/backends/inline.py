"""The inline backend: everything in the calling thread, one batch per poll; ``breakpoint()`` works.

Values are Python lists that never leave the process, so nothing is pickled. Owns no policy.
"""

from __future__ import annotations

import itertools
import time
from collections import deque
from collections.abc import Iterable, Sequence
from typing import Any

from fanfold.backends.base import (
    BackendEvent,
    RecordsWritten,
    RecordWriter,
    WorkerSpec,
    WriterClosed,
    output_values,
    write_failed,
)
from fanfold.backends.worker import StageRunner
from fanfold.columns import Column, Ref, assemble
from fanfold.failures import Failure
from fanfold.plan import Plan
from fanfold.protocol import Event, RootResult, Rows, RunBatch, WorkerFailed, WorkerStarted

CONTAINED = (Exception, SystemExit)
"""What fails an item here: not ``KeyboardInterrupt``, which is the user's own."""


class MemoryValues:
    """Blocks as lists in this process."""

    def __init__(self) -> None:
        self.blocks: dict[Ref, Sequence[Any]] = {}
        self._numbers = itertools.count()

    def put(self, stream: int, rows: Sequence[Any]) -> Rows:
        ref = next(self._numbers)
        self.blocks[ref] = list(rows)
        return Rows(ref, len(rows))

    def read(self, columns: Sequence[Column]) -> list[list[Any]]:
        return [assemble(column, self.blocks.__getitem__) for column in columns]


class InlineBackend:
    """Runs batches in this thread, in the order of submission.

    Args:
        contain: Exceptions of users' code that fail its items; others end the run and reach the caller.
    """

    def __init__(self, contain: tuple[type[BaseException], ...] = CONTAINED) -> None:
        self._contain = contain
        self._values = MemoryValues()
        self._events: list[Event | BackendEvent] = []
        self._runners: dict[int, StageRunner] = {}
        self._specs: dict[int, WorkerSpec] = {}
        self._batches: deque[tuple[int, RunBatch]] = deque()
        self._starting: deque[int] = deque()
        self._plan: Plan | None = None
        self._writer: RecordWriter | None = None

    def start(
        self, plan: Plan, workers: Sequence[WorkerSpec], writer: RecordWriter | None
    ) -> None:
        self._plan = plan
        self._specs = {spec.worker: spec for spec in workers}
        self._starting.extend(self._specs)
        self._writer = writer
        if writer is not None:
            writer.open()

    def submit(self, worker: int, batch: RunBatch) -> None:
        self._batches.append((worker, batch))

    def restart(self, worker: int) -> None:
        self._starting.append(worker)

    def write(self, results: Sequence[RootResult]) -> None:
        assert self._writer is not None
        for result in results:
            try:
                self._writer.write(result, output_values(result, self._values.read))
            except Exception as error:
                self._tell(write_failed(result.root, error))
                return
        self._tell(RecordsWritten(tuple(result.root for result in results)))

    def close_writer(self) -> None:
        writer, self._writer = self._writer, None
        assert writer is not None
        try:
            writer.close()
        except Exception as error:
            self._tell(write_failed(-1, error))
        else:
            self._tell(WriterClosed())

    def put(self, values: Sequence[Any]) -> Rows:
        return self._values.put(-1, values)

    def read(self, column: Column) -> list[Any]:
        return self._values.read([column])[0]

    def release(self, refs: Iterable[Ref]) -> None:
        for ref in refs:
            del self._values.blocks[ref]

    def poll(self, timeout_s: float | None) -> list[Event | BackendEvent]:
        """Run the next batch, if any. Never waits: there is nobody to wait for."""
        while self._starting:
            self._construct(self._starting.popleft())
        if self._batches:
            worker, batch = self._batches.popleft()
            self._runners[worker].run(batch)
        events, self._events = self._events, []
        return events

    def _construct(self, worker: int) -> None:
        assert self._plan is not None
        spec = self._specs[worker]
        runner = StageRunner(
            self._plan,
            spec.stage,
            self._values,
            self._tell,
            worker=spec.name,
            contain=self._contain,
        )
        try:
            runner.construct()
        except self._contain as error:
            failure = Failure.from_exception(error, worker=spec.name)
            self._tell(WorkerFailed(worker, failure))
            return
        self._runners[worker] = runner
        self._tell(WorkerStarted(worker))

    def _tell(self, event: Event | BackendEvent) -> None:
        self._events.append(event._replace(time_s=time.monotonic()))

    def worker_log_tail(self, worker: int, limit_bytes: int = 4_096) -> str:
        return ""

    def close(self) -> None:
        writer, self._writer = self._writer, None
        if writer is not None:
            writer.close()
        self._runners.clear()
        self._values.blocks.clear()
