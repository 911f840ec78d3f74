"""A real run, observed item by item: the actual engine and dispatch over any backend.

Owns the smallest loop that can drive a run: no sink, no report, no progress. It collects what became of
each output item before the rules for records apply, so that a run can be compared with the interpreter.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from fanfold.backends.base import (
    Backend,
    BackendEvent,
    WorkerSpec,
)
from fanfold.dispatch.core import Core
from fanfold.engine import invariants
from fanfold.engine.chunks import SPAN
from fanfold.engine.commands import (
    Command,
    FinishRoots,
    ReleaseBlocks,
    RestartWorker,
    StartBatch,
    StopRun,
)
from fanfold.engine.observed import observe
from fanfold.engine.statistics import Statistics
from fanfold.extract import facts
from fanfold.failures import Failure
from fanfold.plan import Plan, Stream
from fanfold.protocol import (
    Event,
    RootResult,
    RootsAdmitted,
    RootsCommitted,
    SourceExhausted,
    StreamRows,
)
from fanfold.testing.comparison import Seen
from fanfold.testing.interpreter import Ordinals

HANG_S: Final = 60.0
"""A guard only: a backend that tells nothing for so long, while it holds work, hangs."""


@dataclass(slots=True)
class Observed:
    """What a run did, in full."""

    items: dict[int, dict[Ordinals, Seen]] = field(default_factory=dict)
    """By output port and ordinals."""
    results: dict[int, RootResult] = field(default_factory=dict)
    """By the root's position."""
    ended: list[int] = field(default_factory=list)
    """The roots in the order in which they ended."""
    stopped: Failure | None = None
    """Why the run could not go on, if it could not."""
    statistics: Statistics = field(default_factory=Statistics)

    @property
    def failures(self) -> Mapping[int, Sequence[Failure]]:
        """By the root's position, the failures that the run listed."""
        return {root: result.failures for root, result in self.results.items()}


def run_observed(
    plan: Plan,
    backend: Backend,
    roots: Sequence[tuple[Any, ...]],
    keys: Sequence[str] | None = None,
    *,
    span: int = SPAN,
    checked: bool = False,
) -> Observed:
    """Run ``plan`` over ``roots`` on ``backend`` to its end, and close the backend.

    Args:
        plan: The compiled pipeline.
        backend: A backend that was not started yet.
        roots: For each root item one value per source.
        keys: The roots' keys; without them, their positions as text.
        span: Items in a full chunk of the engine's state; small ones put every rule to work across chunks.
        checked: Check the engine's invariants after every event (slow).

    Raises:
        InternalError: An invariant is broken.
        AssertionError: The run hangs: nothing is under way, and it is not finished.
    """
    names = [str(position) for position in range(len(roots))] if keys is None else keys
    run = _Run(plan, backend, roots, names, span=span, checked=checked)
    try:
        run.go()
    finally:
        backend.close()
    return run.observed


class _Run:
    def __init__(
        self,
        plan: Plan,
        backend: Backend,
        roots: Sequence[tuple[Any, ...]],
        keys: Sequence[str],
        *,
        span: int,
        checked: bool,
    ) -> None:
        self._checked = checked
        self._plan, self._backend, self._roots, self._keys = plan, backend, roots, keys
        self._workers: list[WorkerSpec] = []
        for stage in plan.stages:
            for replica in range(stage.replicas):
                name = f"{stage.name}[{replica}]"
                self._workers.append(WorkerSpec(len(self._workers), stage.index, name))
        self._core = Core(plan, self._workers, span=span)
        self._admitted = 0
        self._time_s = 0.0
        self.observed = Observed({output.port: {} for output in plan.outputs})

    def go(self) -> None:
        self._backend.start(self._plan, self._workers, None)
        self._admit()
        while not self._over():
            self._carry_out(self._core.dispatch(self._time_s))
            if not self._over():
                self._take_in(self._wait())
                self._admit()
        while self.observed.stopped is None and (events := self._backend.poll(0)):
            self._take_in(events)  # late news, such as the end of a batch, lets blocks go
        self.observed.statistics = self._core.statistics(self._time_s)

    def _over(self) -> bool:
        return self._core.finished or self.observed.stopped is not None

    def _wait(self) -> Sequence[Event | BackendEvent]:
        """The next events; a poll may come back without any."""
        limit_s = time.monotonic() + HANG_S
        while not (events := self._backend.poll(HANG_S)):
            assert time.monotonic() < limit_s, f"nothing for {HANG_S} s in an unfinished run"
        return events

    def _take_in(self, events: Sequence[Event | BackendEvent]) -> None:
        for event in events:
            self._time_s = max(self._time_s, event.time_s)
            assert not isinstance(event, BackendEvent), "there is no writer"
            self._carry_out(self._core.handle(event))
            if self._checked:
                invariants.check(self._core.machine)

    def _admit(self) -> None:
        while self._admitted < len(self._roots) and (room := self._core.room()) > 0:
            rows = self._roots[self._admitted : self._admitted + room]
            keys = self._keys[self._admitted : self._admitted + room]
            self._admitted += len(rows)
            streams = tuple(
                self._source_rows(source.stream, [row[position] for row in rows])
                for position, source in enumerate(self._plan.sources)
            )
            self._carry_out(
                self._core.handle(RootsAdmitted(tuple(keys), streams, time_s=self._time_s))
            )
        if self._admitted == len(self._roots):
            self._carry_out(self._core.handle(SourceExhausted(time_s=self._time_s)))

    def _source_rows(self, stream: Stream, values: list[Any]) -> StreamRows:
        controls, missing = facts(self._plan, stream, values)
        stored = self._backend.put(values) if stream.stored else None
        return StreamRows(stream.port, stored, controls, missing)

    def _carry_out(self, commands: Sequence[Command]) -> None:
        for command in commands:
            match command:
                case StartBatch():
                    self._backend.submit(command.worker, command.batch)
                case RestartWorker():
                    self._backend.restart(command.worker)
                case ReleaseBlocks():
                    self._backend.release(command.refs)
                case FinishRoots():
                    for result in command.results:
                        self._note(result)
                    roots = tuple(result.root for result in command.results)
                    self._carry_out(self._core.handle(RootsCommitted(roots, time_s=self._time_s)))
                case StopRun():
                    self.observed.stopped = command.failure
                    return

    def _note(self, result: RootResult) -> None:
        assert result.root not in self.observed.results, f"root {result.root} ended twice"
        self.observed.results[result.root] = result
        self.observed.ended.append(result.root)
        for port, items in observe(self._core.machine, result.root).items():
            for item in items:
                value = None if item.column is None else self._backend.read(item.column)[0]
                self.observed.items[port][item.ordinals] = Seen(item.outcome, value, item.failure)
