"""Workers as dispatch sees them: what each is doing, and how its time went. Pure; time arrives as values."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf
from typing import Final, Protocol

from fanfold.dispatch.rates import Gate
from fanfold.engine.ready import ReadyQueue
from fanfold.engine.statistics import WorkerTimes
from fanfold.plan import StageSpec

AHEAD: Final = 2
"""Batches at one worker: the one that runs and the next, so that no worker waits for transport."""

LEAD_S: Final = 0.002
"""Work that lies at a worker, so that it need not wait for the driver: several batches if they are short."""
AHEAD_LIMIT: Final = 6

MESSAGE_S: Final = 0.01
"""Work worth sending in one message to a worker that takes one item at a time."""
MESSAGE_ITEMS: Final = 1024

STARTING: Final = "starting"
BUSY: Final = "busy"
NO_INPUT: Final = "no input"
DOWNSTREAM_FULL: Final = "downstream full"
RATE_LIMIT: Final = "rate limit"
FINISHED: Final = "finished"
DEAD: Final = "dead"
PARKED: Final = "parked"


class WorkerLike(Protocol):
    """What the core must know of a worker."""

    @property
    def worker(self) -> int: ...
    @property
    def stage(self) -> int: ...
    @property
    def name(self) -> str: ...


@dataclass(slots=True)
class Worker:
    """One replica of a stage."""

    number: int
    stage: int
    name: str
    ready: bool = False
    batches: list[int] = field(default_factory=list)
    """At the worker, the running one first."""
    paused: list[int] = field(default_factory=list)
    """At the worker too, but waiting for room: it is free for others."""
    alone: bool = False
    """It runs an item that nothing may be queued behind."""
    state: str = STARTING
    since_s: float = 0.0
    spent_s: dict[str, float] = field(default_factory=dict)
    restarts: int = 0
    leaving: bool = False
    """It ends what it holds, and is replaced then (:mod:`fanfold.dispatch.recycling`)."""
    recycled: int = 0
    retiring: bool = False
    """It ends what it holds, and is parked then (:mod:`fanfold.dispatch.scaling`)."""
    lived: bool = True
    """It is not a worker that was parked all the time."""

    @property
    def open(self) -> bool:
        """Whether it may be given work."""
        return self.ready and not (self.leaving or self.retiring)

    def enter(self, state: str, time_s: float) -> None:
        """Note a change of state."""
        if state != self.state:
            spent = time_s - self.since_s
            self.spent_s[self.state] = self.spent_s.get(self.state, 0.0) + spent
            self.state = state
            self.since_s = time_s

    def take(self, batch: int, time_s: float, *, alone: bool) -> None:
        """It is sent a batch."""
        self.batches.append(batch)
        self.alone = alone
        self.enter(BUSY, time_s)

    def pause(self, batch: int) -> None:
        """A batch waits, and others may have their turn."""
        self.batches.remove(batch)
        self.paused.append(batch)
        self.alone = False

    def resume(self, batch: int, time_s: float) -> None:
        """A batch that had paused goes on, before those that have not begun."""
        if batch in self.paused:
            self.paused.remove(batch)
            self.batches.insert(min(1, len(self.batches)), batch)
            self.enter(BUSY, time_s)

    def let_go(self, batch: int) -> None:
        """A batch has ended."""
        (self.batches if batch in self.batches else self.paused).remove(batch)
        self.alone = False

    def die(self, time_s: float) -> list[int]:
        """It died; the batches that it held, the last one first."""
        held = [*reversed(self.batches), *reversed(self.paused)]
        self.batches, self.paused = [], []
        self.ready = self.alone = False
        self.restarts += 1
        self.enter(DEAD, time_s)
        return held

    def recycle(self, time_s: float) -> None:
        """It is replaced, and holds nothing."""
        self.ready = False
        self.recycled += 1
        self.enter(STARTING, time_s)

    def park(self, time_s: float) -> None:
        """There is no such replica now."""
        self.ready = self.retiring = False
        self.enter(PARKED, time_s)

    def add(self, time_s: float) -> None:
        """It is started, and was parked."""
        self.lived = True
        self.enter(STARTING, time_s)

    def busy_s(self, time_s: float) -> float:
        """How long it has been busy in all."""
        now_s = time_s - self.since_s if self.state == BUSY else 0.0
        return self.spent_s.get(BUSY, 0.0) + now_s

    def times(self, time_s: float) -> WorkerTimes:
        """How the worker spent its time up to now."""
        spent = dict(self.spent_s)
        spent[self.state] = spent.get(self.state, 0.0) + time_s - self.since_s
        return WorkerTimes(
            worker=self.number,
            name=self.name,
            state=self.state,
            starting_s=spent.pop(STARTING, 0.0) + spent.pop(DEAD, 0.0),
            busy_s=spent.pop(BUSY, 0.0),
            idle_s=spent,
            restarts=self.restarts,
            recycled=self.recycled,
        )


@dataclass(slots=True)
class Pool:
    """All replicas of one stage and the calls that they serve."""

    stage: int
    calls: tuple[int, ...]
    batch_size: int | None
    max_in_flight: int = 1
    """Batches that a worker runs at the same time (asynchronous stages)."""
    queues: tuple[ReadyQueue, ...] = ()
    """Of the calls, in their order."""
    lingers: bool = False
    """Whether batches that are not full wait for more."""
    gate: Gate | None = None
    """When its calls may begin; None: at any time."""
    workers: list[Worker] = field(default_factory=list)
    parked: list[Worker] = field(default_factory=list)
    """Those that there are not now, the next to be started first."""
    item_s: float | None = None
    """Measured time per item (a moving mean)."""
    ahead: int = AHEAD
    """Batches at one worker, unless it runs several at the same time."""
    noted: str = ""
    """Why its idle workers are idle, if all of them are noted as such."""

    def __post_init__(self) -> None:
        if self.gate is not None or (self.max_in_flight > 1 and self.batch_size is None):
            self.ahead = 1  # what lay ahead would wait for a slow call, though others have room

    def join(self, worker: Worker, stage: StageSpec) -> None:
        """One of the stage's replicas; those beyond its fewest are parked."""
        if stage.most_replicas is None or len(self.workers) < stage.replicas:
            self.workers.append(worker)
        else:
            worker.state, worker.lived = PARKED, False
            self.parked.append(worker)

    def park(self, worker: Worker, time_s: float) -> None:
        """One of its workers is there no more."""
        self.workers.remove(worker)
        self.parked.append(worker)
        self.parked.sort(key=lambda parked: parked.number)
        worker.park(time_s)

    def add(self, time_s: float) -> Worker:
        """One of those that are parked is there from now on."""
        worker = self.parked.pop(0)
        self.workers.append(worker)
        self.workers.sort(key=lambda present: present.number)
        worker.add(time_s)
        return worker

    def has_idle(self) -> bool:
        """Whether a worker holds nothing that it could run."""
        for worker in self.workers:  # noqa: SIM110  asked after every dispatch: a generator costs twice as much
            if not worker.batches:
                return True
        return False

    @property
    def opens_s(self) -> float:
        """When a call may begin."""
        return -inf if self.gate is None else self.gate.opens_s

    def closed(self, time_s: float) -> bool:
        """Whether no call may begin now."""
        return self.gate is not None and time_s < self.gate.opens_s

    def begin(self, time_s: float) -> None:
        """A call begins."""
        if self.gate is not None:
            self.gate.begin(time_s)

    def message_items(self) -> int:
        """How many items go in one message, if each is a call by itself."""
        if self.item_s is None or self.max_in_flight > 1 or self.gate is not None:
            return 1  # of an asynchronous stage each result is to come by itself
        return max(1, min(MESSAGE_ITEMS, int(MESSAGE_S / max(self.item_s, 1e-6))))

    def put_off(self, until_s: float) -> None:
        """The stage's service wants to be asked again no sooner than then."""
        if self.gate is None:
            self.gate = Gate(None)
            self.ahead = 1
        self.gate.put_off(until_s)

    @property
    def held(self) -> int:
        """How many batches a worker may hold: those that it runs, and the next."""
        return self.max_in_flight + self.ahead - 1

    def learn(self, items: int, busy_s: float) -> None:
        """A batch of ``items`` took ``busy_s`` seconds."""
        if items:
            per_item = busy_s / items
            self.item_s = per_item if self.item_s is None else 0.7 * self.item_s + 0.3 * per_item
            if self.batch_size is not None and busy_s > 0 and self.ahead > 1:
                batch_s = max(self.item_s * self.batch_size, LEAD_S / AHEAD_LIMIT)
                self.ahead = max(AHEAD, round(LEAD_S / batch_s))
