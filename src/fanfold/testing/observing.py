"""A real run, observed item by item: the actual engine and dispatch over any backend.

Owns the smallest things that can drive a run: no sink, no report, no progress. :class:`ObservedRun` makes one
move when it is told to, :func:`run_observed` makes them all. What became of each output item is collected
before the rules for records apply, so that a run can be compared with the interpreter.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from fanfold.backends.base import (
    Backend,
    BackendEvent,
    WorkerSpec,
)
from fanfold.dispatch.core import Core
from fanfold.dispatch.scaling import LOOK_S
from fanfold.dispatch.stopping import ON_REQUEST, StopRules
from fanfold.driver.machine import Machine
from fanfold.driver.resources import LOCAL, fewest, fit
from fanfold.driver.settings import worker_specs
from fanfold.engine import invariants, started
from fanfold.engine.chunks import SPAN
from fanfold.engine.commands import (
    AddWorker,
    Command,
    FinishRoots,
    GrantRoom,
    RecycleWorker,
    ReleaseBlocks,
    RestartWorker,
    RetireWorker,
    SpillBlocks,
    StartBatch,
    StopRun,
    TrimBatch,
)
from fanfold.engine.observed import observe
from fanfold.engine.statistics import Statistics
from fanfold.extract import told
from fanfold.failures import Failure
from fanfold.plan import Plan, Stream
from fanfold.protocol import (
    DriverEvent,
    Event,
    RootResult,
    RootsAdmitted,
    RootsCommitted,
    RunBatch,
    SourceExhausted,
    StreamRows,
)
from fanfold.testing.cases import Ordinals
from fanfold.testing.comparison import Seen

HANG_S: Final = 60.0
"""A guard only: a backend that tells nothing for so long, while it holds work, hangs."""


@dataclass(slots=True)
class Observed:
    """What a run did, in full."""

    items: dict[int, dict[Ordinals, Seen]] = field(default_factory=dict)
    """By port of outputs and effects, and by ordinals; of an effect without values."""
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


class ObservedRun:
    """The actual core over a backend, one move at a time; whoever drives it decides what comes when.

    Args:
        plan: The compiled pipeline.
        backend: A backend that was not started yet; whoever drives polls and closes it.
        roots: For each root item one value per source.
        keys: The roots' keys; without them, their positions as text.
        span: Items in a full chunk of the engine's state; small ones put every rule to work across chunks.
        listener: Told of each command of the core's, before it is carried out.
        rules: Which failures stop the run; unless told otherwise, those of stages that ask for it, so that a
            run that is compared goes to its end.
        budget_bytes: How much memory values may take; None: as much as it comes to.
        cores: What stages whose replicas follow the work have together; None: these have their fewest.
        look_s: How far apart looks at that work are.
    """

    def __init__(
        self,
        plan: Plan,
        backend: Backend,
        roots: Sequence[tuple[Any, ...]],
        keys: Sequence[str] | None = None,
        *,
        cores: int | None = None,
        look_s: float = LOOK_S,
        span: int = SPAN,
        listener: Callable[[Command], None] | None = None,
        rules: StopRules = ON_REQUEST,
        budget_bytes: int | None = None,
    ) -> None:
        self._backend, self._roots = backend, roots
        self._listener = listener
        self._keys = [str(position) for position in range(len(roots))] if keys is None else keys
        fitted = fewest(plan) if cores is None else fit(plan, LOCAL[0], Machine(cores, None))
        self.plan: Plan = fitted.plan
        self.cores: int | None = fitted.cores
        plan = fitted.plan
        self.workers: Sequence[WorkerSpec] = worker_specs(fitted)
        self._core = Core(
            plan,
            self.workers,
            span=span,
            rules=rules,
            budget_bytes=budget_bytes,
            cores=fitted.cores,
            look_s=look_s,
        )
        self.started: list[RunBatch] = []
        """The batches that the last dispatch made."""
        self.admitted: int = 0
        self.ended: list[int] = []
        """Roots that ended and were not committed yet; whoever drives commits them."""
        self.observed: Observed = Observed({port: {} for port in started.returned(plan)})
        backend.start(plan, self.workers, None)

    @property
    def over(self) -> bool:
        """Every root is committed and no more will come, or the run was stopped."""
        return self._core.finished or self.observed.stopped is not None

    @property
    def exhausted(self) -> bool:
        """No root will be admitted any more."""
        return self.admitted == len(self._roots)

    def room(self) -> int:
        """How many roots may be admitted now."""
        return self._core.room()

    @property
    def due_s(self) -> float | None:
        """When to dispatch again though nothing happens."""
        return self._core.due_s

    def statistics(self, time_s: float) -> Statistics:
        """Counts so far."""
        return self._core.statistics(time_s)

    @property
    def held_bytes(self) -> int:
        """What the values take that were reported and not released."""
        return self._core.machine.held.size_bytes

    @property
    def promised_bytes(self) -> int:
        """What batches at workers are expected to make yet, if memory is bounded."""
        return self._core.promised_bytes

    @property
    def oldest_root(self) -> int | None:
        """The first root that has not ended."""
        return self._core.machine.roots.oldest_open()

    def works_for(self, root: int, batches: Iterable[int]) -> bool:
        """Whether one of these batches holds an item of a root that has not ended."""
        return self._core.machine.works_for(root, batches)

    def is_ready(self, call: int, root: int) -> bool:
        """Whether an item of a root waits for a worker of a call's."""
        return self._core.machine.is_ready(call, root)

    def open_failures(self) -> Sequence[Failure]:
        """What has failed under roots that have not ended."""
        return self._core.open_failures()

    def check(self) -> None:
        """Recompute what must hold of the engine's state between any two events.

        Raises:
            InternalError: ``FF901`` with what does not hold.
        """
        invariants.check(self._core.machine)

    def admit(self, count: int, time_s: float) -> None:
        """Admit up to ``count`` roots, as far as there is room; after the last one the source is exhausted."""
        count = min(count, self._core.room(), len(self._roots) - self.admitted)
        if count > 0:
            first, self.admitted = self.admitted, self.admitted + count
            rows, keys = self._roots[first : first + count], self._keys[first : first + count]
            streams = tuple(
                self._source_rows(source.stream, [row[position] for row in rows])
                for position, source in enumerate(self.plan.sources)
            )
            self.take_in(RootsAdmitted(tuple(keys), streams, time_s=time_s))
        if self.admitted == len(self._roots):
            self.take_in(SourceExhausted(time_s=time_s))

    def take_in(self, event: Event | DriverEvent) -> None:
        """Hand an event to the core and carry out what it asks for."""
        self._carry_out(self._core.handle(event))

    def dispatch(self, time_s: float) -> None:
        """Give work to workers."""
        commands = self._core.dispatch(time_s)
        self.started = [c.batch for c in commands if isinstance(c, StartBatch)]
        self._carry_out(commands)

    def dead_work(self) -> list[str]:
        """What the last dispatch gave out in vain; ask before anything else happens."""
        numbers = [batch.batch for batch in self.started]
        return list(started.dead_work(self._core.machine, numbers))

    def beyond_the_probe(self) -> list[str]:
        """Where it gave out more of a parent's items than it should have; ask before anything else happens."""
        numbers = [batch.batch for batch in self.started]
        return list(started.beyond_the_probe(self._core.machine, numbers))

    def commit(self, roots: Sequence[int], time_s: float) -> None:
        """These roots' records are written, as it were."""
        self.take_in(RootsCommitted(tuple(roots), time_s=time_s))

    def _source_rows(self, stream: Stream, values: list[Any]) -> StreamRows:
        stored = self._backend.put(values) if stream.stored else None
        return told(self.plan, stream, values, stored)

    def _carry_out(self, commands: Sequence[Command]) -> None:
        for command in commands:
            if self._listener is not None:
                self._listener(command)
            match command:
                case StartBatch():
                    self._backend.submit(command.worker, command.batch)
                case RestartWorker():
                    self._backend.restart(command.worker)
                case RecycleWorker():
                    self._backend.recycle(command.worker)
                case AddWorker():
                    self._backend.add(command.worker)
                case RetireWorker():
                    self._backend.retire(command.worker)
                case TrimBatch():
                    self._backend.trim(command.worker, command.batch, command.tasks)
                case GrantRoom():
                    self._backend.grant(command.worker, command.batch, command.room)
                case SpillBlocks():
                    self._backend.spill(command.refs)
                case ReleaseBlocks():
                    self._backend.release(command.refs)
                case FinishRoots():
                    for result in command.results:
                        self._note(result)
                case StopRun():
                    self.observed.stopped = command.failure
                    return

    def _note(self, result: RootResult) -> None:
        assert result.root not in self.observed.results, f"root {result.root} ended twice"
        self.observed.results[result.root] = result
        self.observed.ended.append(result.root)
        self.ended.append(result.root)
        for port, items in observe(self._core.machine, result.root).items():
            for item in items:
                value = None if item.column is None else self._backend.read(item.column)[0]
                self.observed.items[port][item.ordinals] = Seen(item.outcome, value, item.failure)


def run_observed(
    plan: Plan,
    backend: Backend,
    roots: Sequence[tuple[Any, ...]],
    keys: Sequence[str] | None = None,
    *,
    span: int = SPAN,
    checked: bool = False,
    rules: StopRules = ON_REQUEST,
    budget_bytes: int | None = None,
) -> Observed:
    """Run ``plan`` over ``roots`` on ``backend`` to its end, and close the backend.

    Args:
        plan: The compiled pipeline.
        backend: A backend that was not started yet.
        roots: For each root item one value per source.
        keys: The roots' keys; without them, their positions as text.
        span: Items in a full chunk of the engine's state; small ones put every rule to work across chunks.
        checked: Check the engine's invariants after every event (slow).
        rules: Which failures stop the run, as for :class:`ObservedRun`.
        budget_bytes: How much memory values may take; None: as much as it comes to.

    Raises:
        InternalError: An invariant is broken.
        AssertionError: The run hangs: nothing is under way, and it is not finished.
    """
    try:
        run = ObservedRun(
            plan, backend, roots, keys, span=span, rules=rules, budget_bytes=budget_bytes
        )
        return _to_the_end(run, backend, len(roots), checked=checked)
    finally:
        backend.close()


def _to_the_end(run: ObservedRun, backend: Backend, roots: int, *, checked: bool) -> Observed:
    time_s = 0.0
    run.admit(roots, time_s)
    while not run.over:
        run.dispatch(time_s)
        _commit(run, time_s)
        if not run.over:
            due_s = run.due_s
            events = _wait(backend, due_s)
            if not events and due_s is not None:
                time_s = max(time_s, due_s)
            for event in events:
                time_s = max(time_s, event.time_s)
                _take_in(run, event, time_s)
                if checked:
                    run.check()
            while run.admitted < roots and run.room() > 0:
                run.admit(roots, time_s)
                _commit(run, time_s)
    while run.observed.stopped is None and (events := backend.poll(0)):
        for event in events:  # late news, such as the end of a batch, lets blocks go
            time_s = max(time_s, event.time_s)
            _take_in(run, event, time_s)
            if checked:
                run.check()
    run.observed.statistics = run.statistics(time_s)
    return run.observed


def _take_in(run: ObservedRun, event: Event | BackendEvent, time_s: float) -> None:
    assert not isinstance(event, BackendEvent), "there is no writer"
    run.take_in(event)
    _commit(run, time_s)


def _commit(run: ObservedRun, time_s: float) -> None:
    """What ended is committed at once."""
    while run.ended and run.observed.stopped is None:
        roots, run.ended = run.ended, []
        run.commit(roots, time_s)


def _wait(backend: Backend, due_s: float | None) -> Sequence[Event | BackendEvent]:
    """The next events, or none by ``due_s``; a poll may come back without any.

    Backends in virtual time do not wait, and their clock begins at 0: there it is as late as one likes.
    """
    limit_s = time.monotonic() + HANG_S
    until_s = limit_s if due_s is None else min(due_s, limit_s)
    while not (events := backend.poll(max(0.0, until_s - time.monotonic()))):
        now_s = time.monotonic()
        if due_s is not None and now_s >= due_s:
            break
        assert now_s < limit_s, f"nothing for {HANG_S} s in an unfinished run"
    return events
