"""The inline backend: everything in the calling thread, one batch per poll; ``breakpoint()`` works.

Values are Python lists that never leave the process, so nothing is pickled. Owns no policy.
"""

from __future__ import annotations

import itertools
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from fanfold.backends.base import (
    BackendEvent,
    RecordsWritten,
    RecordWriter,
    WorkerSpec,
    WriterClosed,
    worker_failed,
    write_failed,
    write_root,
)
from fanfold.backends.stage_plan import StagePlan, stage_plan
from fanfold.backends.values import rows_bytes
from fanfold.backends.worker import StageRunner
from fanfold.columns import Column, Ref, assemble
from fanfold.plan import Plan
from fanfold.protocol import BlocksSpilled, Event, RootResult, Rows, RunBatch, WorkerStarted

CONTAINED: Final = (Exception, SystemExit)
"""What fails an item here: not ``KeyboardInterrupt``, which is the user's own."""
_ROW_BYTES: Final = 64
"""What a row counts as: nothing is copied, so its size does not matter."""


class MemoryValues:
    """Blocks as lists in this process; implements :class:`fanfold.backends.values.Values`."""

    def __init__(self) -> None:
        self.blocks: dict[Ref, Sequence[Any]] = {}
        self._numbers = itertools.count()

    def put(self, port: int, rows: Sequence[Any]) -> Rows:
        """Keep the rows; the list itself is the worker's and will not change."""
        ref = next(self._numbers)
        self.blocks[ref] = rows
        return Rows(ref, len(rows), rows_bytes(rows))

    def take_back(self, rows: Rows) -> None:
        """Forget the block."""
        del self.blocks[rows.ref]

    def copies(self, port: int) -> bool:
        """They are the same objects."""
        return False

    def row_bytes(self, port: int) -> int:
        """The same for all."""
        return _ROW_BYTES

    def read(self, columns: Sequence[Column]) -> list[list[Any]]:
        """The values themselves, not copies."""
        return [assemble(column, self.blocks.__getitem__) for column in columns]


def make_runner(plan: StagePlan) -> type[StageRunner]:
    """What runs a stage's batches one after the other, asynchronous or not."""
    if not plan.stage.asynchronous:
        return StageRunner
    from fanfold.backends.asynchronous import (
        OwnLoopRunner,  # and asyncio: 20 ms that most runs save
    )

    return OwnLoopRunner


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
        self._set_up: set[int] = set()
        """Classes, by number, whose ``setup_on_node`` has run."""
        self._specs: dict[int, WorkerSpec] = {}
        self._batches: deque[tuple[int, RunBatch | int]] = deque()
        """Worker, and a batch, or the number of one that had paused and goes on."""
        self._trimmed: dict[int, int] = {}
        """By batch: tasks that need not run any more."""
        self._rooms: dict[int, int] = {}
        """By batch, if it has a bound: how many bytes of children it may release in all."""
        self._paused: dict[int, int] = {}
        """By batch that waits for room: its worker."""
        self._starting: deque[int] = deque()
        self._plan: Plan | None = None
        self._writer: RecordWriter | None = None
        self._writer_broken = False

    def start(self, plan: Plan, workers: Sequence[WorkerSpec], writer: RecordWriter | None) -> None:
        """Note what to construct at the next poll; open the writer."""
        self._plan = plan
        self._specs = {spec.worker: spec for spec in workers}
        self._starting.extend(spec.worker for spec in workers if not spec.parked)
        if writer is not None:
            writer.open()
        self._writer = writer

    def submit(self, worker: int, batch: RunBatch) -> None:
        """Queue a batch."""
        if batch.room is not None:
            self._rooms[batch.batch] = batch.room
        self._batches.append((worker, batch))

    def trim(self, worker: int, batch: int, tasks: int) -> None:
        """Note it for when the batch's turn comes."""
        self._trimmed[batch] = self._trimmed.get(batch, 0) | tasks
        self._resume(batch)

    def grant(self, worker: int, batch: int, room: int) -> None:
        """Have the batch go on with the next poll."""
        if batch in self._rooms:
            self._rooms[batch] += room
            self._resume(batch)

    def _resume(self, batch: int) -> None:
        if batch in self._paused:
            self._batches.appendleft((self._paused.pop(batch), batch))

    def restart(self, worker: int) -> None:
        """Construct the stage anew; no worker dies here, but the contract has it."""
        self._starting.append(worker)

    def recycle(self, worker: int) -> None:
        """Close the stage, and construct it anew with the next poll."""
        self._runners.pop(worker).close()
        self._starting.append(worker)

    def add(self, worker: int) -> None:
        """Construct the stage with the next poll."""
        self._starting.append(worker)

    def retire(self, worker: int) -> None:
        """Close the stage."""
        self._runners.pop(worker).close()

    def write(self, results: Sequence[RootResult]) -> None:
        """Write at once."""
        assert self._writer is not None, "write() without a writer"
        if self._writer_broken:
            return
        written: list[int] = []
        told: list[BackendEvent] = []
        for result in results:
            try:
                refused = write_root(self._writer, result, self._values.read, self._contain)
            except Exception as error:
                told.append(write_failed(result.root, error))
                self._writer_broken = True
                break
            if refused is None:
                written.append(result.root)
            else:
                told.append(refused)
        if written:
            self._tell([RecordsWritten(tuple(written))])
        self._tell(told)

    def close_writer(self) -> None:
        """Close the sinks at once."""
        writer, self._writer = self._writer, None
        assert writer is not None, "close_writer() without a writer"
        try:
            writer.close()
        except Exception as error:
            self._tell([write_failed(-1, error)])
        else:
            self._tell([WriterClosed()])

    def put(self, values: Sequence[Any]) -> Rows:
        """Keep a source's values."""
        return self._values.put(-1, list(values))

    def read(self, column: Column) -> list[Any]:
        """The values of a column."""
        return self._values.read([column])[0]

    def spill(self, refs: Sequence[Ref]) -> None:
        """Values stay where they are: to move them they would have to be pickled."""
        self._tell([BlocksSpilled(tuple(refs), ())])

    def release(self, refs: Iterable[Ref]) -> None:
        """Forget blocks."""
        for ref in refs:
            del self._values.blocks[ref]

    def poll(self, timeout_s: float | None) -> list[Event | BackendEvent]:
        """Run the next batch, if any. Never waits: there is nobody to wait for."""
        while self._starting:
            self._construct(self._starting.popleft())
        if self._batches and not self._events:
            worker, work = self._batches.popleft()
            runner = self._runners[worker]
            number = work if isinstance(work, int) else work.batch
            if runner.resume(work) if isinstance(work, int) else runner.run(work):
                self._trimmed.pop(number, None)
                self._rooms.pop(number, None)
            else:
                self._paused[number] = worker
        events, self._events = self._events, []
        return events

    def _construct(self, worker: int) -> None:
        assert self._plan is not None, "start() comes first"
        spec = self._specs[worker]
        plan = stage_plan(self._plan, spec.stage)
        runner = make_runner(plan)(
            plan,
            self._values,
            self._tell,
            worker=spec.name,
            run=spec.run,
            contain=self._contain,
            once=self._once,
        )
        try:
            runner.construct()
        except self._contain as error:
            self._tell([worker_failed(worker, error, spec.name)])
            return
        runner.trimmed = lambda batch: self._trimmed.get(batch, 0)
        runner.room = self._rooms.get
        self._runners[worker] = runner
        self._tell([WorkerStarted(worker)])

    def _once(self, number: int, setup: Callable[[], object]) -> None:
        if number not in self._set_up:
            setup()
            self._set_up.add(number)

    def _tell(self, events: Sequence[Event | BackendEvent]) -> None:
        now_s = time.monotonic()
        self._events += [event._replace(time_s=now_s) for event in events]

    def worker_log_tail(self, worker: int, limit_bytes: int = 4_096) -> str:
        """Nothing: output goes where the caller's goes."""
        return ""

    def close(self) -> None:
        """Close stages and forget workers and values; close the writer if nobody has."""
        writer, self._writer = self._writer, None
        runners, self._runners = self._runners, {}
        for runner in runners.values():
            runner.close()
        self._batches.clear()
        self._values.blocks.clear()
        if writer is not None:
            writer.close()
