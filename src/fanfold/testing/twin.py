"""The in-memory twin of a backend: no process, no clock, and any order of completion that a seed tells.

Owns the shuffling. Each worker keeps its own order, as the contract says; which worker gets on next, how
many events a poll tells, how children are grouped when they are released, and which worker dies is drawn
from a random generator. The users' code is read by :mod:`fanfold.testing.usercode`, one item at a time,
so that a twin and a real backend have nothing in common but the contract.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from random import Random
from typing import Any

from fanfold.backends.base import BackendEvent, RecordWriter, WorkerSpec
from fanfold.columns import Column, Ref, assemble, get_field
from fanfold.failures import Failure
from fanfold.plan import CallNode, CallStreams, Expansion, Path, Plan, Stream
from fanfold.protocol import (
    BatchFinished,
    BatchRaised,
    ChildrenReleased,
    ControlRows,
    Event,
    ExpansionSealed,
    ItemRun,
    RootResult,
    Rows,
    RunBatch,
    StreamRows,
    TasksFinished,
    WorkerDied,
    WorkerFailed,
    WorkerStarted,
)
from fanfold.testing.usercode import NOBODY, Made, Stages, is_bool


class Twin:
    """A backend in memory.

    Args:
        random: Decides all that is not determined.
        deaths: How many times a worker may die in the middle of a batch.
    """

    def __init__(self, random: Random, deaths: int = 0) -> None:
        self._random = random
        self._deaths_left = deaths
        self._blocks: dict[Ref, list[Any]] = {}
        self._next_ref = 0
        self._stage_of: dict[int, int] = {}
        self._batches: dict[int, deque[RunBatch]] = {}
        self._told: dict[int, deque[Event]] = {}
        """By worker: what happened there and was not told yet."""
        self._time_s = 0.0

    # --------------------------------------------------------------------------------- the contract

    def start(self, plan: Plan, workers: Sequence[WorkerSpec], writer: RecordWriter | None) -> None:
        assert writer is None, "nothing is written in memory"
        self._plan = plan
        self._stages = Stages(plan)
        for spec in workers:
            self._batches[spec.worker] = deque()
            self._stage_of[spec.worker] = spec.stage
            self._told[spec.worker] = deque([self._constructed(spec.worker)])

    def submit(self, worker: int, batch: RunBatch) -> None:
        self._batches[worker].append(batch)

    def restart(self, worker: int) -> None:
        self._told[worker].append(self._constructed(worker))

    def write(self, results: Sequence[RootResult]) -> None:
        raise AssertionError("nothing is written in memory")

    def close_writer(self) -> None:
        raise AssertionError("nothing is written in memory")

    def put(self, values: Sequence[Any]) -> Rows:
        self._next_ref += 1
        self._blocks[self._next_ref] = list(values)
        # As if they were large, so that they are released at their last reader.
        return Rows(self._next_ref, len(values), 4096 * len(values))

    def read(self, column: Column) -> list[Any]:
        return assemble(column, self._blocks.__getitem__)

    def release(self, refs: Iterable[Ref]) -> None:
        for ref in refs:
            del self._blocks[ref]  # released twice, or never made: a KeyError tells

    def poll(self, timeout_s: float | None) -> list[Event | BackendEvent]:
        events: list[Event | BackendEvent] = []
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
        return len(self._blocks)

    # -------------------------------------------------------------------------------------- working

    def _constructed(self, worker: int) -> Event:
        try:
            self._stages.construct(self._stage_of[worker])
        except Exception as error:
            return WorkerFailed(worker, Failure.from_exception(error))
        return WorkerStarted(worker)

    def _work(self, worker: int) -> None:
        """Run the worker's next batch and note what it will tell."""
        batch = self._batches[worker].popleft()
        events = self._run(batch)
        if self._deaths_left and self._random.random() < 0.2:
            self._deaths_left -= 1
            told = self._random.randrange(len(events))
            self._forget(events[told:])
            events = events[:told]
            events.append(WorkerDied(worker, "the seed said so", running=batch.batch))
            self._batches[worker].clear()
        self._told[worker].extend(events)

    def _forget(self, events: Sequence[Event]) -> None:
        """Nobody will be told of these: what they carry goes with the worker."""
        for event in events:
            if isinstance(event, (ChildrenReleased, TasksFinished)):
                self.release(s.rows.ref for s in event.streams if s.rows is not None)

    def _run(self, batch: RunBatch) -> list[Event]:
        call = self._plan.nodes[batch.call]
        assert isinstance(call, CallNode)
        columns = [self.read(column) for column in batch.columns]
        rows = list(zip(*columns, strict=True))
        assert len(rows) == batch.count, "a batch has as many rows as it says"
        who = [
            ItemRun(key, above, first + offset, 1)
            for key, above, first, mask in batch.identity
            for offset in range(mask.bit_length())
            if mask >> offset & 1
        ] or [NOBODY] * len(rows)
        made = [self._stages.run(call, row, one) for row, one in zip(rows, who, strict=True)]
        failed = [m.failure for m in made if m.failure is not None and not _declared(m)]
        if failed and self._plan.stages[call.stage].batch_size is not None:
            return [BatchRaised(batch.batch, failed[0], attempt=batch.attempt)]
        streams = self._plan.streams[call.index]
        events: list[Event] = []
        first = 0
        while first < len(made):
            count = self._random.randint(1, len(made) - first)
            part = made[first : first + count]
            for expansion in streams.expansions:
                events += self._release(batch, first, part, expansion)
            events.append(self._finish(batch, first, part, streams))
            first += count
        events.append(BatchFinished(batch.batch, attempt=batch.attempt))
        return events

    def _release(
        self, batch: RunBatch, first: int, made: Sequence[Made], expansion: Expansion
    ) -> list[Event]:
        """The children of some tasks, released in random portions, and the expansions sealed."""
        events: list[Event] = []
        sealed: list[int] = []
        children = [
            (task, row[batch.skip[task] if batch.skip else 0 :])
            for task, row in enumerate((_children(one, expansion) for one in made), first)
        ]
        left = [(task, list(rows)) for task, rows in children if rows]
        while left:
            counts, rows = [0] * batch.count, []
            for task, waiting in left:
                n = self._random.randint(0, len(waiting)) if len(waiting) > 1 else 1
                counts[task] = n
                rows += waiting[:n]
                del waiting[:n]
            left = [(task, waiting) for task, waiting in left if waiting]
            if rows:
                streams = tuple(
                    self._stream_rows(stream, [row[i] for row in rows], ())
                    for i, stream in enumerate(expansion.streams)
                )
                events.append(
                    ChildrenReleased(
                        batch.batch, expansion.node, 0, tuple(counts), streams, batch.attempt
                    )
                )
        for task, one in enumerate(made, first):
            if one.failure is None and _opened(one, expansion) is not None:
                sealed.append(task)
        if sealed:
            events.append(
                ExpansionSealed(batch.batch, expansion.node, tuple(sealed), batch.attempt)
            )
        return events

    def _finish(
        self, batch: RunBatch, first: int, made: Sequence[Made], streams: CallStreams
    ) -> TasksFinished:
        good = [one for one in made if one.failure is None]
        return TasksFinished(
            batch.batch,
            first,
            len(made),
            tuple(
                self._stream_rows(
                    stream, [one.outputs[stream.position] for one in good], stream.path
                )
                for stream in streams.items
            ),
            tuple(
                (task, one.failure)
                for task, one in enumerate(made, first)
                if one.failure is not None
            ),
            batch.attempt,
        )

    def _stream_rows(self, stream: Stream, values: list[Any], path: Path) -> StreamRows:
        assert not path, "whole outputs are delivered"
        return report(self._plan, stream, values, self.put)


def report(
    plan: Plan, stream: Stream, values: Sequence[Any], put: Callable[[Sequence[Any]], Rows]
) -> StreamRows:
    """What is told of a stream's values: masks, labels and missing fields; the values if they are stored."""
    controls = []
    for index, path in stream.controls:
        control = plan.controls[index]
        labels = [0] * len(control.labels)
        illegal: list[tuple[int, str]] = []
        for row, value in enumerate(values):
            found, part = _follow(value, path)
            if not found:
                continue  # the field's own item fails
            legal = is_bool(part) if control.kind == "mask" else True
            here = [i for i, label in enumerate(control.labels) if legal and part == label]
            if here:
                labels[here[0]] |= 1 << row
            elif not legal or (control.kind == "label" and not control.rest):
                illegal.append((row, repr(part)))
        controls.append(ControlRows(index, tuple(labels), tuple(illegal)))
    missing = []
    for index, path in stream.checks:
        lacking = 0
        for row, value in enumerate(values):
            found, part = _follow(value, path)
            if found and not _follow(part, (plan.checks[index].name,))[0]:
                lacking |= 1 << row
        if lacking:
            missing.append((index, lacking, "something else"))
    stored = put(values) if stream.stored else None
    return StreamRows(stream.port, stored, tuple(controls), tuple(missing))


def _follow(value: Any, path: Path) -> tuple[bool, Any]:
    """Whether the path leads somewhere, and to what."""
    try:
        for name in path:
            value = get_field(value, name)
    except LookupError:
        return False, None
    return True, value


def _declared(made: Made) -> bool:
    return made.failure is not None and made.failure.kind == "declared"


def _opened(made: Made, expansion: Expansion) -> list[Any] | None:
    """What is expanded, for each stream; None if a field is missing."""
    opened = []
    for stream in expansion.streams:
        found, value = _follow(made.outputs[stream.position], stream.path)
        if not found:
            return None
        opened.append(value)
    return opened


def _children(made: Made, expansion: Expansion) -> list[tuple[Any, ...]]:
    """A row for each child; also those that a generator gave before it failed."""
    if made.released is not None:
        positions = [stream.position for stream in expansion.streams]
        return [tuple(row[position] for position in positions) for row in made.released]
    opened = None if made.failure is not None else _opened(made, expansion)
    return [] if opened is None else list(zip(*opened, strict=True))
