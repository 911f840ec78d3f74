"""Workers in virtual time: a backend whose batches take the time that a case says, and go wrong as it says.

Owns when a worker tells what, and what each fault does. What is told of a batch is
:mod:`fanfold.testing.telling`'s; when anything is heard, and what follows, is decided by whoever pops the
timeline and calls :meth:`SimulatedWorkers.heard`. Knows nothing of what runs mean.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from math import inf
from random import Random
from typing import Any, Final

from fanfold.backends.base import BackendEvent, RecordWriter, WorkerSpec
from fanfold.columns import Column, Ref
from fanfold.failures import Failure
from fanfold.plan import Plan
from fanfold.protocol import (
    BatchEvent,
    BatchFinished,
    BatchPaused,
    BatchRaised,
    BlocksSpilled,
    ChildrenReleased,
    Event,
    RootResult,
    Rows,
    RunBatch,
    TasksFinished,
    WorkerDied,
    WorkerFailed,
    WorkerStarted,
)
from fanfold.testing.memory import Blocks
from fanfold.testing.simulation.case import Fault, FaultKind, Timing
from fanfold.testing.simulation.timeline import Timeline
from fanfold.testing.telling import Teller

VERY_LONG_S: Final = 1e6
"""What hangs takes so long, which is no time at all here."""
LATE_S: Final = 1e-3
"""What is late comes at least so much after the end that it should have come before."""
AFTER_S: Final = (0.1, 3.0, 200.0)
"""When a service wants to be asked again."""
DISK_FULL: Final = 0.05
"""How often blocks cannot be moved out of memory."""
INSTANT: Final = Timing()
AT_START: Final = ("death_starting", "slow_start")
CUTTING: Final = ("death_before", "death_while", "late")
"""Faults by which a batch is lost. They meet first attempts alone: an item whose worker dies again while it
runs fails for it, and the meaning of a case does not depend on its faults."""


@dataclass(frozen=True, slots=True)
class Heard:
    """An event on its way from a worker."""

    worker: int
    event: Event
    late: bool = False
    """It comes from beyond: its worker is dead, or its batch has ended."""
    life: int = 0
    """Which of the worker's lives, between which it was recycled, it is of."""


@dataclass(slots=True)
class _Worker:
    stage: int
    batches: deque[tuple[RunBatch, Fault | None]] = field(default_factory=deque)
    """At the worker, the running one first."""
    ready: bool = False
    running: bool = False
    dying: bool = False
    """It will begin nothing any more; its death is on its way."""
    paused: dict[int, RunBatch] = field(default_factory=dict)
    """By number: batches that wait for room."""
    life: int = 0
    """How often it was recycled."""
    leaked: int = 0
    """What it has leaked since it was made, an imagined byte for each item."""
    resumed: deque[RunBatch] = field(default_factory=deque)
    """Those of them that may go on; they come before what has not begun."""


class SimulatedWorkers:
    """A backend in virtual time; it keeps the contract of :class:`fanfold.backends.base.Backend`.

    Args:
        random: Draws what is left open.
        timing: How long things take.
        faults: What goes wrong.
        timeline: Where to put what will be heard; without one, whoever runs it has to poll.
        tracebacks: Whether failures keep theirs, which differ from machine to machine.
    """

    def __init__(
        self,
        random: Random,
        timing: Timing = INSTANT,
        faults: Sequence[Fault] = (),
        timeline: Timeline[Any] | None = None,
        *,
        tracebacks: bool = False,
    ) -> None:
        self._tracebacks = tracebacks
        self._timing, self._random = timing, random
        self._timeline = Timeline[Any](random) if timeline is None else timeline
        self._blocks = Blocks()
        self._workers: dict[int, _Worker] = {}
        self._sent = 0
        self._granted: dict[int, int] = {}
        """By batch that has not begun: the room that it was granted beyond what it was sent with."""
        self._rooms: dict[int, float] = {}
        """By batch, if it has a bound: how many bytes of children it may release in all."""
        self._rest: dict[int, list[BatchEvent]] = {}
        """By batch that has paused, or is about to: what it has yet to tell."""
        self._released: Counter[int] = Counter()
        """By batch: bytes of children that it has released."""
        self._faults = sorted(faults, key=lambda fault: fault.at)
        self.injected: Counter[FaultKind] = Counter()
        self.mishaps: Counter[str] = Counter()
        """Tasks that went wrong by themselves, by kind."""
        self.items_started: Counter[int] = Counter()
        """By call: items that a worker began to run."""
        self.items_lost: Counter[int] = Counter()
        """By call: items of batches that were lost or raised, so that they may run again."""

    # --------------------------------------------------------------------------------- the contract

    def start(self, plan: Plan, workers: Sequence[WorkerSpec], writer: RecordWriter | None) -> None:
        """Make all workers."""
        assert writer is None, "nothing is written in memory"
        self._plan = plan
        self._teller = Teller(plan, self._blocks, self._random, tracebacks=self._tracebacks)
        self.mishaps = self._teller.mishaps
        for spec in workers:
            self._workers[spec.worker] = _Worker(spec.stage)
            if not spec.parked:
                self._make(spec.worker)

    def submit(self, worker: int, batch: RunBatch) -> None:
        """Take a batch; it begins when those before it have ended."""
        state = self._workers[worker]
        state.batches.append((batch, self._fault_of(batch)))
        self._sent += 1
        self._go_on(worker)

    def trim(self, worker: int, batch: int, tasks: int) -> None:
        """Leave out tasks of a batch that has not begun; have one go on that has paused, or is about to."""
        self._teller.trim(batch, tasks)
        if batch in self._rooms:  # it need not wait, though nobody may know yet that it does
            self._rooms[batch] = inf
            self._resume(worker, batch)

    def grant(self, worker: int, batch: int, room: int) -> None:
        """Have a batch that has paused go on, before those that have not begun."""
        if batch in self._rooms:
            self._rooms[batch] += room
            self._resume(worker, batch)
        else:
            self._granted[batch] = self._granted.get(batch, 0) + room

    def restart(self, worker: int) -> None:
        """Make the worker anew."""
        self._make(worker)

    def recycle(self, worker: int) -> None:
        """Make the worker anew; what it would have told yet, such as its death, nobody hears. If it held
        anything, nobody would hear of that either."""
        self.retire(worker)
        self._make(worker)

    def add(self, worker: int) -> None:
        """Make the worker."""
        self._make(worker)

    def retire(self, worker: int) -> None:
        """Let the worker go; as for what it held and would have told yet, see :meth:`recycle`."""
        state = self._workers[worker]
        state.batches.clear()
        state.paused.clear()
        state.life += 1
        state.ready = state.dying = False
        state.leaked = 0

    def write(self, results: Sequence[RootResult]) -> None:
        """Never called."""
        raise AssertionError("nothing is written in memory")

    def close_writer(self) -> None:
        """Never called."""
        raise AssertionError("nothing is written in memory")

    def put(self, values: Sequence[Any]) -> Rows:
        """Store values."""
        return self._blocks.put(values)

    def read(self, column: Column) -> list[Any]:
        """Read values."""
        return self._blocks.read(column)

    def spill(self, refs: Sequence[Ref]) -> None:
        """Move blocks out of memory; it takes a while. Sometimes a disk is full."""
        moved = tuple(refs)[: len(refs) - (self._random.random() < DISK_FULL)]
        time_s = self._timeline.now_s + self._lasting(self._random.choice((0.0, 0.01)))
        self._timeline.add(time_s, Heard(-1, BlocksSpilled(tuple(refs), moved)))

    def release(self, refs: Iterable[Ref]) -> None:
        """Forget blocks; one that is released twice is a ``KeyError``."""
        self._blocks.release(refs)

    def poll(self, timeout_s: float | None) -> list[Event | BackendEvent]:
        """Everything that happens next, at one moment."""
        events: list[Event | BackendEvent] = []
        while (next_s := self._timeline.next_s) is not None and (
            not events or next_s == self._timeline.now_s
        ):
            if (event := self.heard(self._timeline.pop())) is not None:
                events.append(event)
        return events

    def worker_log_tail(self, worker: int, limit_bytes: int = 4_096) -> str:
        """Nothing: no worker prints here."""
        return ""

    def close(self) -> None:
        """Nothing is left to end."""
        self._workers.clear()

    # ------------------------------------------------------------------------------------ its state

    @property
    def blocks_left(self) -> int:
        """Blocks that nobody released."""
        return self._blocks.left

    def idle(self) -> dict[int, int]:
        """Workers that are ready and have nothing to do, with their stages."""
        return {
            worker: state.stage
            for worker, state in self._workers.items()
            if state.ready and not state.batches
        }

    def heard(self, heard: Heard) -> Event | None:
        """It is told now: the event with its time; None if its worker was recycled before."""
        event = heard.event
        if not heard.late and not isinstance(event, BlocksSpilled):
            state = self._workers[heard.worker]
            if heard.life != state.life:
                return None
            match event:
                case WorkerStarted():
                    state.ready = True
                case WorkerDied():
                    self._died(state)
                case BatchPaused():
                    self._paused(heard.worker, state, event)
                case BatchFinished() | BatchRaised():
                    self._ended(heard.worker, state, event)
        return event._replace(time_s=self._timeline.now_s)

    # -------------------------------------------------------------------------------------- working

    def _make(self, worker: int) -> None:
        """A worker is being made; it will be told when it is ready, or dead."""
        state = self._workers[worker]
        time_s = self._lasting(self._timing.start_s)
        event: Event = WorkerStarted(worker)
        try:
            self._teller.stages.construct(state.stage)
        except Exception as error:
            event = WorkerFailed(worker, Failure.from_exception(error))
        fault = next((f for f in self._faults if f.kind in AT_START and f.at == worker), None)
        if fault is not None:
            self._faults.remove(fault)
            self.injected[fault.kind] += 1
            if fault.kind == "slow_start":
                time_s += VERY_LONG_S
            else:
                event = WorkerDied(worker, "it died before it was ready")
        self._tell(worker, time_s, [event])

    def _go_on(self, worker: int) -> None:
        """Begin the next batch at a worker, if it is free to."""
        state = self._workers[worker]
        if not state.ready or state.running or state.dying:
            return
        if state.resumed:
            batch = state.resumed.popleft()
            state.batches.appendleft((batch, None))
            state.running = True
            span_s = self._lasting(self._item_s(state.stage))
            self._tell_until_paused(worker, batch, self._rest.pop(batch.batch), span_s)
        elif state.batches:
            batch, fault = state.batches[0]
            self._run(worker, state, batch, None if fault is None else fault.kind)

    def _run(self, worker: int, state: _Worker, batch: RunBatch, fault: FaultKind | None) -> None:
        """Run a batch: its events are put where they will be heard."""
        span_s = sum(self._lasting(self._item_s(state.stage)) for _ in range(batch.count))
        if fault is not None:
            self.injected[fault] += 1
        if fault == "death_before":
            state.dying = True
            self._tell(worker, span_s, [WorkerDied(worker, "it died before it began")])
            return
        state.running = True
        self.items_started[batch.call] += self._teller.to_run(batch)
        if fault == "put_off":
            first = self._random.randrange(batch.count)
            self.items_lost[batch.call] += batch.count - first
            self._teller.put_off(batch.batch, first, self._random.choice(AFTER_S))
        told = self._teller.run(batch)
        events: list[Event] = [*told.events]
        if fault in ("death_while", "late"):
            cut = self._random.randint(0, len(told.events) - told.whole)
            self._tell(worker, span_s, [*events[:cut], self._death(worker, batch)])
            if fault == "late":
                self._tell_late(worker, span_s, told.events[cut:])
            else:
                self._teller.forget(told.events[cut:])
        elif not told.whole:
            self._tell(worker, span_s, [*events, self._death(worker, batch)])
        else:
            if fault == "hang":
                span_s += VERY_LONG_S
            elif fault == "doubled":
                self._tell_late(worker, span_s, self._teller.again(told.events))
            elif fault == "death_after":
                state.dying = True
            end = told.events[-1]
            assert isinstance(end, (BatchFinished, BatchRaised)), "a batch ends with its end"
            state.leaked += batch.count
            own_bytes = 0 if self._plan.stages[state.stage].recycle_above is None else state.leaked
            events[-1] = end._replace(busy_s=span_s, own_bytes=own_bytes)
            if batch.room is not None and fault in (None, "hang", "put_off"):
                self._rooms[batch.batch] = batch.room + self._granted.pop(batch.batch, 0)
                self._tell_until_paused(worker, batch, [*told.events[:-1], events[-1]], span_s)
                return
            if fault == "death_after":
                events.append(WorkerDied(worker, "it died after a batch"))
            self._tell(worker, span_s, events)

    def _tell_until_paused(
        self, worker: int, batch: RunBatch, events: list[Any], span_s: float
    ) -> None:
        """Tell what a batch has to tell until it has used up its room; put the rest aside."""
        number = batch.batch
        for index, event in enumerate(events):
            if not isinstance(event, ChildrenReleased):
                continue
            self._released[number] += sum(s.rows.size_bytes for s in event.streams if s.rows)
            further = index + 1 < len(events) and isinstance(events[index + 1], ChildrenReleased)
            if further and self._released[number] >= self._rooms[number]:
                end = next(e for e in events[index:] if isinstance(e, TasksFinished))
                begun, stop = end.first + end.count, events.index(end) + 1
                self._teller.forget(events[stop:-1])  # of tasks that are given back
                self._rest[number] = [*events[index + 1 : stop], events[-1]]
                paused = BatchPaused(number, begun, int(self._rooms[number]), batch.attempt)
                self._tell(worker, span_s, [*events[: index + 1], paused])
                return
        self._tell(worker, span_s, events)

    def _paused(self, worker: int, state: _Worker, event: BatchPaused) -> None:
        batch, _ = state.batches.popleft()
        assert batch.batch == event.batch, "batches at one worker run in the order of submission"
        self.items_started[batch.call] -= batch.count - event.begun
        state.running = False
        state.paused[event.batch] = batch._replace(count=event.begun)
        if self._rooms[event.batch] > event.room:  # more came while it was on its way
            self._resume(worker, event.batch)
        self._go_on(worker)

    def _resume(self, worker: int, batch: int) -> None:
        state = self._workers[worker]
        if batch in state.paused:
            state.resumed.append(state.paused.pop(batch))
            self._go_on(worker)

    def _ended(self, worker: int, state: _Worker, event: BatchFinished | BatchRaised) -> None:
        batch, _ = state.batches.popleft()
        assert batch.batch == event.batch, "batches at one worker run in the order of submission"
        if isinstance(event, BatchRaised):
            self.items_lost[batch.call] += batch.count
        state.running = False
        self._go_on(worker)

    def _died(self, state: _Worker) -> None:
        if state.running:
            batch, _ = state.batches[0]
            self.items_lost[batch.call] += batch.count
        for batch in (*state.paused.values(), *state.resumed):
            self.items_lost[batch.call] += batch.count
            self._teller.forget(self._rest.pop(batch.batch))
        state.paused.clear()
        state.resumed.clear()
        state.ready = state.running = state.dying = False
        state.leaked = 0
        state.batches.clear()

    @staticmethod
    def _death(worker: int, batch: RunBatch) -> WorkerDied:
        return WorkerDied(worker, "it died in the middle of a batch", running=batch.batch)

    # --------------------------------------------------------------------------------------- faults

    def _fault_of(self, batch: RunBatch) -> Fault | None:
        """The fault that meets a batch which is being sent, if one does."""
        for fault in self._faults:
            if fault.at > self._sent:
                break
            repeats = fault.kind in CUTTING and batch.attempt > 1
            if fault.kind not in AT_START and not repeats:
                self._faults.remove(fault)
                return fault
        return None

    # ---------------------------------------------------------------------------------------- times

    def _item_s(self, stage: int) -> float:
        times = self._timing.item_s
        return times[min(stage, len(times) - 1)] if times else 0.0

    def _lasting(self, mean_s: float) -> float:
        """How long something takes this time."""
        match self._timing.spread:
            case "wide":
                return mean_s * self._random.uniform(0.2, 1.8)
            case "heavy":
                return mean_s * self._random.choice((0.1, 0.1, 0.1, 1.0, 1.0, 100.0))
        return mean_s

    def _tell(self, worker: int, span_s: float, events: Sequence[Event]) -> None:
        """Tell events one after the other within a span, the last one at its end."""
        moments = sorted(self._random.random() for _ in events[1:])
        life = self._workers[worker].life
        tie = self._random.random()  # the same for all, so that they keep their order
        for part, event in zip([*moments, 1.0], events, strict=True):
            time_s = self._timeline.now_s + part * span_s
            self._timeline.add(time_s, Heard(worker, event, life=life), tie)

    def _tell_late(self, worker: int, span_s: float, events: Sequence[BatchEvent]) -> None:
        """Tell events, in their order, some time after a span's end."""
        time_s = self._timeline.now_s + span_s
        for event in events:
            time_s += LATE_S + self._lasting(self._random.choice((0.0, 0.01, 1.0)))
            self._timeline.add(time_s, Heard(worker, event, late=True))
