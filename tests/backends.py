"""What tests of backends share: plans of one call, a runner with values in memory, a driver of a few lines."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from fanfold.backends.base import Backend, BackendEvent, RecordWriter, WorkerSpec
from fanfold.backends.inline import MemoryValues
from fanfold.backends.stage_plan import stage_plan
from fanfold.backends.worker import StageRunner
from fanfold.plan import (
    CallNode,
    CallStreams,
    Control,
    ExpandNode,
    Expansion,
    FieldCheck,
    Input,
    Level,
    Node,
    Output,
    Path,
    Plan,
    PortSpec,
    Source,
    StageSpec,
    Stream,
)
from fanfold.protocol import (
    BatchEvent,
    BatchFinished,
    BatchRaised,
    ChildrenReleased,
    Event,
    ExpansionSealed,
    RunBatch,
    StreamRows,
    TasksFinished,
    WorkerStarted,
)

HANG_S: Final = 60.0
"""A guard only: what has not happened by then never will."""
SOURCES: Final = 4
CALL: Final = 0
T = TypeVar("T")


def call_plan(
    *targets: Callable[..., Any],
    batch_size: int | None = None,
    outputs: int = 1,
    inputs: Sequence[str | None] = (None,),
    expand: Sequence[Sequence[tuple[int, Path]]] = (),
    items: bool = True,
    static: dict[str, Any] | None = None,
    args: tuple[Any, ...] | None = None,
    method: str | None = None,
    cpus: int = 1,
    controls: Sequence[Control] = (),
    checks: Sequence[FieldCheck] = (),
    child_facts: bool = False,
    stored: bool = True,
) -> Plan:
    """A plan of one call for each target, all alike; call ``i`` is of stage ``i``.

    Args:
        targets: Functions, or classes if ``args`` are given.
        inputs: For each input of a call the keyword by which it is given, or None.
        expand: For each expansion, its streams: pairs of an output's position and a path.
        items: Whether whole outputs are delivered.
        controls: Reported of the first stream; the path is empty.
        checks: Likewise.
        child_facts: They are reported of the first child stream instead.
        stored: Whether values are needed at all.
    """
    levels = [Level(0, "document", 0)]
    ports = [PortSpec(i, f"source{i}", 0, None) for i in range(SOURCES)]
    stages: list[StageSpec] = []
    nodes: list[Node] = []
    streams: dict[int, CallStreams] = {}
    facts: dict[str, Any] = {
        "controls": tuple((c.index, ()) for c in controls),
        "checks": tuple((c.index, ()) for c in checks),
    }

    def port(level: int, node: int) -> int:
        ports.append(PortSpec(len(ports), f"port{len(ports)}", level, node))
        return len(ports) - 1

    for target in targets:
        call = len(nodes)
        stages.append(
            StageSpec(
                len(stages),
                target.__name__,
                target,
                args=args or (),
                is_class=args is not None,
                method=method,
                batch_size=batch_size,
                cpus=cpus,
            )
        )
        made = tuple(port(0, call) for _ in range(outputs))
        given = tuple(Input(i, keyword) for i, keyword in enumerate(inputs))
        nodes.append(CallNode(call, target.__name__, len(stages) - 1, 0, given, made, static or {}))
        expansions = []
        for wanted in expand:
            level = Level(len(levels), f"level{len(levels)}", 1, 0, len(nodes))
            levels.append(level)
            children = tuple(port(level.index, len(nodes)) for _ in wanted)
            expansions.append(
                Expansion(
                    len(nodes),
                    level.index,
                    tuple(
                        Stream(
                            child,
                            level.index,
                            position,
                            path,
                            stored,
                            **(facts if child_facts and child == children[0] else {}),
                        )
                        for child, (position, path) in zip(children, wanted, strict=True)
                    ),
                )
            )
            nodes.append(ExpandNode(len(nodes), call, level.index, made, children))
        whole = tuple(
            Stream(
                p, 0, position, (), stored, **(facts if p == made[0] and not child_facts else {})
            )
            for position, p in enumerate(made)
        )
        streams[call] = CallStreams(call, whole if items else (), tuple(expansions))
    return Plan(
        "test",
        tuple(levels),
        tuple(stages),
        tuple(ports),
        tuple(nodes),
        tuple(Source(f"source{i}", Stream(i, 0)) for i in range(SOURCES)),
        (Output(None, len(ports) - 1),),
        "single",
        streams,
        tuple(controls),
        tuple(checks),
    )


@dataclass
class Told:
    """What a batch was told to have given, put together."""

    events: list[BatchEvent] = field(default_factory=list)
    children: dict[int, list[tuple[int, list[list[Any]]]]] = field(default_factory=dict)
    """By expand node: releases, each a task and its children by stream."""
    sealed: dict[int, list[int]] = field(default_factory=dict)
    values: dict[int, Any] = field(default_factory=dict)
    """By task that is done: the value, or the list of outputs if there are several."""
    failures: dict[int, tuple[str, str]] = field(default_factory=dict)
    """By task: kind and message."""
    raised: tuple[str, str] | None = None

    def of(self, kind: type[T]) -> list[T]:
        return [event for event in self.events if isinstance(event, kind)]

    def children_of(self, task: int, node: int = 1, stream: int = 0) -> list[Any]:
        """All children of a task, in order."""
        return [
            child
            for other, streams in self.children.get(node, [])
            if other == task
            for child in streams[stream]
        ]

    def take(self, event: BatchEvent, read: Callable[[StreamRows, int], list[Any]]) -> None:
        """Add an event; ``read`` gives the rows of a stream."""
        self.events.append(event)
        match event:
            case ChildrenReleased():
                total = sum(event.counts)
                assert total, "no children are no release"
                streams = [read(stream, total) for stream in event.streams]
                start = 0
                for task, n in enumerate(event.counts, event.first):
                    if n:
                        part = [rows[start : start + n] for rows in streams]
                        self.children.setdefault(event.node, []).append((task, part))
                    start += n
            case ExpansionSealed():
                self.sealed.setdefault(event.node, []).extend(event.tasks)
            case TasksFinished():
                failed = dict(event.failures)
                done = [t for t in range(event.first, event.first + event.count) if t not in failed]
                columns = [read(stream, len(done)) for stream in event.streams]
                for row, task in enumerate(done):
                    assert task not in self.values, f"task {task} ended twice"
                    outputs = [column[row] for column in columns]
                    self.values[task] = outputs[0] if len(outputs) == 1 else outputs
                for task, failure in failed.items():
                    assert task not in self.failures, f"task {task} failed twice"
                    self.failures[task] = (failure.kind, failure.message)
            case BatchRaised():
                self.raised = (event.failure.kind, event.failure.message)


class Rig:
    """A stage's runner over values in memory.

    Args:
        plan: As :func:`call_plan` makes it.
        step_s: How far each look at the clock moves it.
    """

    def __init__(self, plan: Plan, *, step_s: float = 0.0, **options: Any) -> None:
        self.values = MemoryValues()
        self.flushes: list[list[BatchEvent]] = []
        self.time_s = 0.0
        self._step_s = step_s
        self._numbers = itertools.count()
        self.runner = StageRunner(
            stage_plan(plan, 0),
            self.values,
            lambda events: self.flushes.append(list(events)),
            clock=self._clock,
            **options,
        )
        self.runner.construct()

    def _clock(self) -> float:
        self.time_s += self._step_s
        return self.time_s

    def run(self, *columns: Sequence[Any], skip: tuple[int, ...] = (), attempt: int = 1) -> Told:
        """Run a batch of these inputs, one sequence per input, and tell what came of it."""
        count = len(columns[0])
        given = tuple(
            ("rows", self.values.put(i, list(column)).ref, 0, count)
            for i, column in enumerate(columns)
        )
        number = next(self._numbers)
        self.flushes.clear()
        self.runner.run(RunBatch(number, CALL, count, given, attempt=attempt, skip=skip))
        told = Told()
        for events in self.flushes:
            for event in events:
                assert event.batch == number and event.attempt == attempt
                told.take(event, self._read)
        return told

    def _read(self, stream: StreamRows, count: int) -> list[Any]:
        if stream.rows is None:
            return [None] * count
        rows = self.values.read([("rows", stream.rows.ref, 0, stream.rows.count)])[0]
        assert len(rows) == stream.rows.count == count, "a row for each, and no more"
        return rows


class Session:
    """The smallest driver: starts a backend, runs batches, waits for what it is told."""

    def __init__(
        self,
        backend: Backend,
        plan: Plan,
        *,
        replicas: int = 1,
        writer: RecordWriter | None = None,
        ready: bool = True,
    ) -> None:
        self.backend = backend
        self.plan = plan
        self.heard: list[Event | BackendEvent] = []
        self._waited_for: set[int] = set()
        self._numbers = itertools.count()
        self.workers = [
            WorkerSpec(number, stage.index, f"{stage.name}[{replica}]")
            for number, (stage, replica) in enumerate(
                (stage, replica) for stage in plan.stages for replica in range(replicas)
            )
        ]
        try:
            backend.start(plan, self.workers, writer)
            if ready:
                self.wait(WorkerStarted, len(self.workers))
        except BaseException:
            backend.close()
            raise

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self.backend.close()

    def submit(
        self, values: Sequence[Any], *, worker: int = 0, call: int = CALL, **fields: Any
    ) -> int:
        """Send a batch of one input's values; its number."""
        rows = self.backend.put(values)
        return self.send(("rows", rows.ref, 0, rows.count), len(values), worker, call, **fields)

    def send(
        self, column: Any, count: int, worker: int = 0, call: int = CALL, **fields: Any
    ) -> int:
        """Send a batch of one input, which is a column; its number."""
        number = next(self._numbers)
        self.backend.submit(worker, RunBatch(number, call, count, (column,), **fields))
        return number

    def wait(self, kind: type[T], count: int = 1) -> list[T]:
        """The next events of a kind that were not waited for before."""
        deadline = time.monotonic() + HANG_S
        while True:
            found = [
                (i, event)
                for i, event in enumerate(self.heard)
                if isinstance(event, kind) and i not in self._waited_for
            ]
            if len(found) >= count:
                self._waited_for.update(i for i, _ in found[:count])
                return [event for _, event in found[:count]]
            assert time.monotonic() < deadline, f"no {kind.__name__}; heard {self.heard[-3:]}"
            self.heard += self.backend.poll(HANG_S)

    def finish(self, batch: int) -> Told:
        """Wait for the end of a batch, and tell all that came of it."""
        while not any(
            isinstance(e, (BatchFinished, BatchRaised)) and e.batch == batch for e in self.heard
        ):
            events = self.backend.poll(HANG_S)
            assert events, f"batch {batch} never ended"
            self.heard += events
        return self.told(batch)

    def told(self, batch: int) -> Told:
        """What was heard of a batch so far."""
        told = Told()
        for event in self.heard:
            if isinstance(event, BatchEvent) and event.batch == batch:
                told.take(event, self._read)
        return told

    def run(self, values: Sequence[Any], **where: Any) -> Told:
        """Send a batch and wait for its end."""
        return self.finish(self.submit(values, **where))

    def release(self, told: Told) -> None:
        """Free all that a batch has stored."""
        self.backend.release(refs_of(told.events))

    def _read(self, stream: StreamRows, count: int) -> list[Any]:
        if stream.rows is None:
            return [None] * count
        assert stream.rows.count == count
        return self.backend.read(("rows", stream.rows.ref, 0, count))


def refs_of(events: Iterable[BatchEvent]) -> list[Any]:
    """The blocks that events tell of."""
    return [
        stream.rows.ref
        for event in events
        if isinstance(event, (ChildrenReleased, TasksFinished))
        for stream in event.streams
        if stream.rows is not None
    ]
