"""The core as the driver sees it: engine and dispatch behind one door. Pure.

Owns which worker gets which batch and when roots are admitted. Decides from the engine's queues and the
workers' states alone; time arrives with the events.

Policy
------
* A call's ready items go out first in first out; of several calls of one stage the one whose head has
  waited longest is served first.
* An idle worker takes what is there, up to a full batch. A second batch is sent ahead to a busy worker only
  when no replica is idle and it would be full (or nothing more can come).
* A stage that takes one item at a time gets several in one message when they are short (about
  :data:`MESSAGE_S` of work), each of which still runs, fails and is reported by itself.
* A call pauses while one that consumes its output has a long queue (:meth:`Core._backlog`). What is queued
  can always run, so the pause always ends; it keeps intermediate values few where a fast stage feeds a slow
  one.
* Items that must run alone (after an exception or a death) get a worker with nothing else at it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, Protocol

from fanfold.dispatch.pool import (
    AHEAD,
    BUSY,
    DEAD,
    DOWNSTREAM_FULL,
    FINISHED,
    NO_INPUT,
    Pool,
    Worker,
)
from fanfold.dispatch.stopping import ON_REQUEST, Stopping, StopRules
from fanfold.engine.chunks import SPAN
from fanfold.engine.commands import (
    Command,
    FinishRoots,
    RestartWorker,
    StartBatch,
    StopRun,
    TrimBatch,
)
from fanfold.engine.machine import Machine
from fanfold.engine.statistics import Statistics
from fanfold.failures import Failure
from fanfold.plan import CallNode, Plan, ports_made, ports_read
from fanfold.protocol import (
    BatchFinished,
    BatchRaised,
    ChildrenReleased,
    DriverEvent,
    Event,
    ExpansionSealed,
    RootRefused,
    RootsAdmitted,
    RootsCommitted,
    RunBatch,
    SourceExhausted,
    TasksFinished,
    WorkerDied,
    WorkerFailed,
    WorkerStarted,
)

MESSAGE_S: Final = 0.01
"""Work worth sending in one message to a worker that takes one item at a time."""
MESSAGE_ITEMS: Final = 1024
BACKLOG_BATCHES: Final = 8
"""Full batches per replica that may wait at a call before its producers pause."""
OPEN_ROOTS: Final = 64
"""Roots open beyond what the calls at the root level can hold at their workers."""


class WorkerLike(Protocol):
    """What the core must know of a worker."""

    @property
    def worker(self) -> int: ...
    @property
    def stage(self) -> int: ...
    @property
    def name(self) -> str: ...


class Core:
    """Engine and dispatch of one run.

    Args:
        plan: What to run.
        workers: The replicas that are being started.
        start_s: The time now, on the clock of the events to come.
        span: Items in a full chunk of the engine's state; only tests choose another.
        rules: Which failures stop the run before its end.
    """

    def __init__(
        self,
        plan: Plan,
        workers: Sequence[WorkerLike],
        start_s: float = 0.0,
        *,
        span: int = SPAN,
        rules: StopRules = ON_REQUEST,
    ) -> None:
        self.plan = plan
        self.machine = Machine(plan, span=span)
        self._stopping = Stopping(plan, rules)
        self._pools: dict[int, Pool] = {}
        for stage in plan.stages:
            calls = tuple(call.index for call in plan.calls() if call.stage == stage.index)
            queues = tuple(self.machine.queues[call] for call in calls)
            self._pools[stage.index] = Pool(
                stage.index, calls, stage.batch_size, stage.max_in_flight, queues
            )
        self._workers = {
            w.worker: Worker(w.worker, w.stage, w.name, since_s=start_s) for w in workers
        }
        for worker in self._workers.values():
            self._pools[worker.stage].workers.append(worker)
        self._worker_of: dict[int, Worker] = {}
        self._pool_of_call = {call: pool for pool in self._pools.values() for call in pool.calls}
        self._consumers = _consuming_calls(plan)
        self._producers = _producing_calls(plan)
        self._exhausted = False
        self._dropped = False
        """Whether this dispatch met a queue that held nothing but items whose roots have ended."""
        self._window = OPEN_ROOTS + sum(
            4 * (pool.batch_size or 1) * pool.max_in_flight * len(pool.workers)
            for pool in self._pools.values()
            if any(_level(plan, call) == 0 for call in pool.calls)
        )

    # ------------------------------------------------------------------------------ the door

    def handle(self, event: Event | DriverEvent) -> list[Command]:
        """Take one event in; return what must be done now, in order."""
        match event:  # the frequent ones first
            case ChildrenReleased() | ExpansionSealed() | RootsAdmitted() | RootsCommitted():
                pass
            case BatchFinished() | BatchRaised():
                self._batch_ended(event)
            case TasksFinished() if event.count > len(event.failures):
                batch = self.machine.batches.get(event.batch)
                if batch is not None:
                    self._stopping.task_done(batch.call)
            case WorkerStarted():
                worker = self._workers[event.worker]
                worker.ready = True
                worker.enter(NO_INPUT, event.time_s)
                self._pools[worker.stage].noted = ""
                return []
            case WorkerFailed():
                failure = event.failure
                return [StopRun(failure, f"a worker cannot be made: {failure.message}.")]
            case WorkerDied():
                return self._heeded(self._worker_died(event))
            case RootRefused():
                self._stopping.root_refused(event.failure)
                return self._heeded([])
            case SourceExhausted():
                self._exhausted = True
                return []
        commands = self._heeded(self.machine.handle(event))
        if trimmed := self.machine.take_trimmed():
            for number, tasks in trimmed.items():
                if number in self._worker_of:
                    commands.append(TrimBatch(self._worker_of[number].number, number, tasks))
        return commands

    def dispatch(self, time_s: float) -> list[Command]:
        """Give work to workers; call it after the events of one poll were handled."""
        commands: list[Command] = []
        self._dropped = True
        # A queue that is found to hold nothing of use may have held back a pool that was served before it.
        while self._dropped:
            self._dropped = False
            for pool in self._pools.values():
                self._serve(pool, time_s, commands)
        return commands

    def room(self) -> int:
        """How many roots may be admitted now; 0 until a fair number of places is free."""
        roots = self.machine.roots
        free = min(
            self._window - (roots.admitted - roots.ended),
            8 * self._window - (roots.admitted - roots.committed),
        )
        return free if free >= self._window // 4 or roots.admitted == roots.ended else 0

    @property
    def finished(self) -> bool:
        """The source is exhausted and every root is committed."""
        roots = self.machine.roots
        return self._exhausted and roots.committed == roots.admitted

    def statistics(self, time_s: float) -> Statistics:
        """Counts so far."""
        machine, roots = self.machine, self.machine.roots
        for call, queue in machine.queues.items():
            machine.counts[call].ready = queue.count + len(queue.alone)
        return Statistics(
            calls=list(machine.counts.values()),
            levels={
                level.name: count
                for level, count in zip(self.plan.levels, machine.items_per_level, strict=True)
            },
            roots=dict(roots.by_status),
            admitted=roots.admitted,
            open_roots=roots.admitted - roots.ended,
            workers=[worker.times(time_s) for worker in self._workers.values()],
        )

    def open_failures(self) -> tuple[Failure, ...]:
        """What has failed under roots that have not ended: no result tells it."""
        return self.machine.roots.open_failures()

    def _heeded(self, commands: list[Command]) -> list[Command]:
        """An event's commands, and that to stop the run if a rule holds now."""
        stopping, failed = self._stopping, self.machine.failed_tasks
        if failed:
            for call, failure in failed:
                stopping.task_failed(call, failure)
            failed.clear()
        if stopping.counts_roots:
            for command in commands:
                if isinstance(command, FinishRoots):
                    for result in command.results:
                        stopping.root_ended(result.status, result.failures)
        stop = stopping.take()
        return commands if stop is None else [*commands, stop]

    # ------------------------------------------------------------------------------ workers

    def _batch_ended(self, event: BatchFinished | BatchRaised) -> None:
        worker = self._worker_of.pop(event.batch, None)
        if worker is None:
            return
        worker.batches.remove(event.batch)
        worker.alone = False
        pool = self._pools[worker.stage]
        if not worker.batches:
            worker.enter(NO_INPUT, event.time_s)
            pool.noted = ""
        batch = self.machine.batches.get(event.batch)
        if batch is not None:
            pool.learn(batch.count, event.busy_s)

    def _worker_died(self, event: WorkerDied) -> list[Command]:
        worker = self._workers[event.worker]
        worker.ready = worker.alone = False
        worker.restarts += 1
        worker.enter(DEAD, event.time_s)
        commands: list[Command] = []
        batches, worker.batches = worker.batches, []
        for batch in reversed(batches):
            self._worker_of.pop(batch, None)
            commands += self.machine.lose_batch(
                batch,
                running=batch == event.running,
                reason=event.reason,
                blamed=event.alone,
            )
        commands.append(RestartWorker(event.worker))
        return commands

    # ------------------------------------------------------------------------------ policy

    def _serve(self, pool: Pool, time_s: float, commands: list[Command]) -> None:
        for worker in pool.workers:
            if worker.ready and len(worker.batches) < pool.held:
                break
        else:
            return  # nobody could take anything, and nobody is idle
        waiting = alone = 0
        for queue in pool.queues:
            waiting += queue.count
            alone += len(queue.alone)
        if alone:
            self._serve_alone(pool, time_s, commands)
        if waiting:
            # Nothing is sent ahead while items wait to run alone, or no worker would ever be free for them.
            self._serve_batches(pool, time_s, commands, 1 if alone else pool.held)
            if any(queue.count for queue in pool.queues):
                self._note_idle(pool, DOWNSTREAM_FULL, time_s)
                return
        self._note_idle(pool, NO_INPUT, time_s)

    def _serve_alone(self, pool: Pool, time_s: float, commands: list[Command]) -> None:
        """Items that must run alone go to workers that hold nothing."""
        for worker in pool.workers:
            if worker.ready and not worker.batches:
                for call in pool.calls:
                    started = self.machine.take_alone(call)
                    if started is not None:
                        self._start(worker, started, time_s, commands, alone=True)
                        break

    def _serve_batches(
        self, pool: Pool, time_s: float, commands: list[Command], ahead: int
    ) -> None:
        """Each worker gets a batch before any gets one more; ``ahead`` is how many one may hold."""
        for held in range(ahead):
            for worker in pool.workers:
                if not worker.ready or worker.alone or len(worker.batches) != held:
                    continue
                started = None
                while started is None:  # a queue may hold nothing but items whose roots have ended
                    chosen = self._next_call(pool)
                    if chosen is None:
                        return
                    full = self.machine.queues[chosen].count >= (pool.batch_size or 1)
                    if held >= pool.max_in_flight and not full and self._more_to_come(chosen):
                        break
                    started = self.machine.take(chosen, self._limit(pool, chosen))
                    self._dropped |= started is None
                if started is None:
                    break
                self._start(worker, started, time_s, commands)

    def _start(
        self,
        worker: Worker,
        run: RunBatch,
        time_s: float,
        commands: list[Command],
        *,
        alone: bool = False,
    ) -> None:
        worker.batches.append(run.batch)
        worker.alone = alone
        self._worker_of[run.batch] = worker
        worker.enter(BUSY, time_s)
        commands.append(StartBatch(worker.number, run))

    def _next_call(self, pool: Pool) -> int | None:
        """The call whose oldest ready item has waited longest, if it is not paused."""
        oldest = chosen = None
        for call, queue in zip(pool.calls, pool.queues, strict=True):
            head = queue.head()
            if head is not None and (oldest is None or head < oldest) and not self._paused(call):
                oldest, chosen = head, call
        return chosen

    def _paused(self, call: int) -> bool:
        for consumer in self._consumers[call]:
            count = self.machine.queues[consumer].count
            if count > BACKLOG_BATCHES and count > self._backlog(call, consumer):
                return True
        return False

    def _backlog(self, call: int, consumer: int) -> int:
        """Ready items at a consumer above which its producer pauses: some batches, and what one more batch of
        the producer is likely to add, since the consumer would run dry while it is made."""
        pool = self._pool_of_call[consumer]
        size = pool.batch_size or self._message_items(pool)
        executed = self.machine.counts[call].executed
        added = self.machine.queues[consumer].total / executed if executed else 0
        producer = self._pool_of_call[call]
        burst = added * (producer.batch_size or self._message_items(producer))
        places = max(1, len(pool.workers)) * pool.max_in_flight
        return BACKLOG_BATCHES * size * places + int(burst)

    def _limit(self, pool: Pool, call: int) -> int:
        """How many items to send at once."""
        if pool.batch_size is not None:
            return pool.batch_size
        share = -(-self.machine.queues[call].count // (AHEAD * max(1, len(pool.workers))))
        return max(1, min(self._message_items(pool), share))

    @staticmethod
    def _message_items(pool: Pool) -> int:
        if pool.item_s is None or pool.max_in_flight > 1:
            return 1  # of an asynchronous stage each result is to come by itself
        return max(1, min(MESSAGE_ITEMS, int(MESSAGE_S / max(pool.item_s, 1e-6))))

    def _more_to_come(self, call: int) -> bool:
        """Whether items may still become ready at a call without its own doing."""
        if not self._exhausted:
            return True
        machine = self.machine
        return any(
            machine.queues[c].count or machine.queues[c].alone or machine.counts[c].running
            for c in self._producers[call]
        )

    def _note_idle(self, pool: Pool, reason: str, time_s: float) -> None:
        if self._exhausted and self.machine.roots.ended == self.machine.roots.admitted:
            reason = FINISHED
        if reason == pool.noted:
            return
        pool.noted = reason
        for worker in pool.workers:
            if worker.ready and not worker.batches and worker.state != reason:
                worker.enter(reason, time_s)


def _level(plan: Plan, call: int) -> int:
    node = plan.nodes[call]
    assert isinstance(node, CallNode)
    return node.level


def _consuming_calls(plan: Plan) -> dict[int, tuple[int, ...]]:
    """For each call the calls that read its output, directly or through structural operations."""
    readers: dict[int, set[int]] = {}

    def calls_below(ports: Iterable[int]) -> set[int]:
        return set().union(*(readers.get(port, set()) for port in ports))

    result: dict[int, tuple[int, ...]] = {}
    for node in reversed(plan.nodes):
        if isinstance(node, CallNode):
            result[node.index] = tuple(sorted(calls_below(node.outputs)))
            found = {node.index}
        else:
            found = calls_below(ports_made(node))
        for port in ports_read(node):
            readers.setdefault(port, set()).update(found)
    return result


def _producing_calls(plan: Plan) -> dict[int, tuple[int, ...]]:
    """For each call all calls on whose outcomes its readiness depends, however far above."""
    above: dict[int, set[int]] = {}
    result: dict[int, tuple[int, ...]] = {}
    for node in plan.nodes:
        found = set().union(*(above.get(port, set()) for port in ports_read(node)))
        if isinstance(node, CallNode):
            result[node.index] = tuple(sorted(found))
            found = found | {node.index}
        for port in ports_made(node):
            above[port] = found
    return result
