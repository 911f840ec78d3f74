"""The core as the driver sees it: engine and dispatch behind one door. Pure.

Owns which worker gets which batch and when roots are admitted. Decides from the engine's queues and the
workers' states alone; time arrives with the events.

Policy
------
* A call's ready items go out first in first out; of several calls of one stage the one whose head has
  waited longest is served first.
* An idle worker takes what is there, up to a full batch. A second batch is sent ahead to a busy worker only
  when no replica is idle and it would be full (or nothing more can come).
* Where a stage lingers (``linger_s``) an idle worker waits too, until the batch is full, its oldest item has
  waited so long, or nothing more can come: the source is exhausted or there is no room, and no call above runs
  anything or has anything ready that is not paused. :attr:`Core.due_s` says when to look again.
* A stage that takes one item at a time gets several in one message when they are short (about
  :data:`~fanfold.dispatch.pool.MESSAGE_S` of work), each of which still runs, fails and is reported by itself.
* A call pauses while one that consumes its output has a long queue (:mod:`fanfold.dispatch.supply`). What is
  queued can run, so the pause ends; it keeps intermediate values few where a fast stage feeds a slow one. A
  generator at a worker that is to be replaced goes on all the same, since the queue may wait for that worker.
* Nothing that makes values begins without credit (:mod:`fanfold.dispatch.credits`), but for the deepest work of
  the oldest open root (:mod:`fanfold.dispatch.carrying`). Stages nearer to the end of a pipeline come first,
  since they let values go.
* Calls of a stage with a rate, or whose service wants a pause, begin as :mod:`fanfold.dispatch.rates` says.
* Which replicas there are, where their number follows the work, is :mod:`fanfold.dispatch.scaling`'s to say.
* Items that must run alone (after an exception or a death) get a worker with nothing else at it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from fanfold.dispatch.carrying import Carrying
from fanfold.dispatch.credits import Credits, Spilling, size_bytes
from fanfold.dispatch.feeding import level
from fanfold.dispatch.linger import Lingering
from fanfold.dispatch.pool import (
    AHEAD,
    DOWNSTREAM_FULL,
    FINISHED,
    NO_INPUT,
    RATE_LIMIT,
    Pool,
    Worker,
    WorkerLike,
)
from fanfold.dispatch.rates import asked, gate
from fanfold.dispatch.recycling import Recycling
from fanfold.dispatch.scaling import LOOK_S, Scaling
from fanfold.dispatch.stopping import ON_REQUEST, Stopping, StopRules
from fanfold.dispatch.supply import Supply
from fanfold.engine.chunks import SPAN
from fanfold.engine.commands import (
    Command,
    FinishRoots,
    GrantRoom,
    RestartWorker,
    RetireWorker,
    SpillBlocks,
    StartBatch,
    StopRun,
    TrimBatch,
)
from fanfold.engine.machine import Machine
from fanfold.engine.statistics import Statistics
from fanfold.failures import Failure
from fanfold.plan import Plan
from fanfold.protocol import (
    BatchFinished,
    BatchPaused,
    BatchRaised,
    BlocksSpilled,
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

OPEN_ROOTS: Final = 64
"""Roots open beyond what the calls at the root level can hold at their workers."""

PLENTY: Final = 2
"""While values take less than this share of the budget, small ones stay until their roots end."""


class Core:
    """Engine and dispatch of one run.

    Args:
        plan: What to run.
        workers: All replicas that there may be. Those beyond a stage's fewest are parked.
        start_s: The time now, on the clock of the events to come.
        span: Items in a full chunk of the engine's state; only tests choose another.
        rules: Which failures stop the run before its end.
        budget_bytes: How much memory values may take; None: as much as it comes to.
        cores: What the stages whose replicas follow the work have together; None: all keep to their fewest.
        look_s: How far apart looks at that work are; only tests choose another.
    """

    def __init__(
        self,
        plan: Plan,
        workers: Sequence[WorkerLike],
        start_s: float = 0.0,
        *,
        span: int = SPAN,
        rules: StopRules = ON_REQUEST,
        budget_bytes: int | None = None,
        cores: int | None = None,
        look_s: float = LOOK_S,
    ) -> None:
        self.plan = plan
        self.machine = Machine(plan, span=span)
        self._stopping = Stopping(plan, rules)
        self._pools: dict[int, Pool] = {}
        for stage in plan.stages:
            calls = tuple(call.index for call in plan.calls() if call.stage == stage.index)
            queues = tuple(self.machine.queues[call] for call in calls)
            self._pools[stage.index] = Pool(
                stage.index,
                calls,
                stage.batch_size,
                stage.max_in_flight,
                queues,
                lingers=stage.linger_s is not None,
                gate=gate(stage.rate_limit),
            )
        self._workers = {
            w.worker: Worker(w.worker, w.stage, w.name, since_s=start_s) for w in workers
        }
        for worker in self._workers.values():
            self._pools[worker.stage].join(worker, plan.stages[worker.stage])
        self._recycling = Recycling(plan, self._pools)
        self._worker_of: dict[int, Worker] = {}
        self._pool_of_call = {call: pool for pool in self._pools.values() for call in pool.calls}
        self._deepest_first = sorted(self._pools.values(), key=lambda p: max(p.calls), reverse=True)
        """What frees values comes before what makes more of them."""
        self._carrying = Carrying(self.machine, self._deepest_first, self._recycling)
        held = self.machine.held
        self._credits = (
            None if budget_bytes is None else Credits(plan, budget_bytes, lambda: held.size_bytes)
        )
        if budget_bytes is not None:
            held.plenty_bytes = budget_bytes // PLENTY
        self._lacking = False
        """Whether something was not begun for want of credit since this dispatch began."""
        self._spilling = Spilling()
        self._pauses = 0
        self._supply = Supply(plan, self.machine, self._pool_of_call)
        self._scaling = (
            None
            if cores is None
            else Scaling(plan, self._pools, cores, self._supply, start_s, look_s)
        )
        linger_s = {
            call.index: wait_s
            for call in plan.calls()
            if (wait_s := plan.stages[call.stage].linger_s) is not None
        }
        self._lingering = Lingering(linger_s) if linger_s else None
        self.due_s: float | None = None
        """When to dispatch again though nothing happens: a batch has lingered enough, or a call may begin."""
        self._dropped = False
        """Whether this dispatch met a queue that held nothing but items whose roots have ended."""
        self._window = self._open_roots()

    # ------------------------------------------------------------------------------ the door

    def handle(self, event: Event | DriverEvent) -> list[Command]:
        """Take one event in; return what must be done now, in order."""
        match event:  # the frequent ones first
            case TasksFinished():
                self._tasks_finished(event)
            case BatchFinished():
                self._batch_ended(event)
            case ChildrenReleased() | ExpansionSealed() | RootsAdmitted() | RootsCommitted():
                pass
            case BatchRaised():
                self._heed_put_off(event)
                self._batch_ended(event)
            case WorkerStarted():
                worker = self._workers[event.worker]
                if self._scaling is not None:
                    self._scaling.started(worker, event.time_s)
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
                self._supply.exhausted = True
                return []
            case BatchPaused():
                self._batch_paused(event)
            case BlocksSpilled():
                self._spilling.answered()
        if self._credits is not None:
            match event:
                case TasksFinished() | ChildrenReleased():
                    self._credits.made(event.batch, size_bytes(event.streams))
                case RootsAdmitted():
                    self._credits.admitted(len(event.keys), size_bytes(event.streams))
        commands = self._heeded(self.machine.handle(event))
        if trimmed := self.machine.take_trimmed():
            for number, tasks in trimmed.items():
                if number in self._worker_of:
                    worker = self._worker_of[number]
                    commands.append(TrimBatch(worker.number, number, tasks))
                    worker.resume(number, event.time_s)
        return commands

    def dispatch(self, time_s: float) -> list[Command]:
        """Give work to workers; call it after the events of one poll were handled."""
        commands = [] if self._scaling is None else self._scale(self._scaling, time_s)
        commands += self._recycling.replaced(self._supply.is_wanted, time_s)
        if self._lingering is not None:
            self._lingering.look(self.machine.queues, time_s)
        self._dropped = True
        # A queue that is found to hold nothing of use may have held back a pool that was served before it.
        while self._dropped:
            self._dropped = self._lacking = False
            self.due_s = None
            for pool in self._deepest_first:
                if self._credits is not None and self._credits.hungry:
                    self._feed(pool, self._credits, time_s, commands)
                self._serve(pool, time_s, commands)
        if self._lacking and self._credits is not None:
            self._spill(self._credits, commands)
            self._carry_oldest(self._credits, time_s, commands)
        return commands

    def room(self) -> int:
        """How many roots may be admitted now; 0 until a fair number of places is free."""
        roots = self.machine.roots
        free = min(
            self._window - (roots.admitted - roots.ended),
            8 * self._window - (roots.admitted - roots.committed),
        )
        if free < self._window // 4 and roots.admitted > roots.ended:
            return 0
        if self._credits is not None:
            return self._credits.roots(free) or (1 if roots.admitted == roots.ended else 0)
        return free

    @property
    def promised_bytes(self) -> int:
        """What batches at workers are expected to make yet, if memory is bounded."""
        return 0 if self._credits is None else self._credits.promised_bytes

    @property
    def finished(self) -> bool:
        """The source is exhausted and every root is committed."""
        roots = self.machine.roots
        return self._supply.exhausted and roots.committed == roots.admitted

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
            workers=[w.times(time_s) for w in self._workers.values() if w.lived],
            budget_bytes=None if self._credits is None else self._credits.budget_bytes,
            peak_bytes=machine.held.peak_bytes,
            pauses=self._pauses,
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

    def _tasks_finished(self, event: TasksFinished) -> None:
        if event.failures:
            self._heed_put_off(event)
        if event.count > len(event.failures):
            batch = self.machine.batches.get(event.batch)
            if batch is not None:
                self._stopping.task_done(batch.call)

    def _heed_put_off(self, event: TasksFinished | BatchRaised) -> None:
        wait, batch = asked(event), self.machine.batches.get(event.batch)
        if wait is not None and batch is not None:
            self._pool_of_call[batch.call].put_off(wait.until_s)
            if self._credits is not None:
                self._credits.put_off(event.batch, wait.tasks or batch.count)

    def _batch_ended(self, event: BatchFinished | BatchRaised) -> None:
        worker = self._worker_of.pop(event.batch, None)
        if self._credits is not None:
            self._credits.ended(event.batch)
        if worker is None:
            return
        worker.let_go(event.batch)
        if event.own_bytes:
            self._recycling.grown(worker, event.own_bytes)
        pool = self._pools[worker.stage]
        if not worker.batches:
            worker.enter(NO_INPUT, event.time_s)
            pool.noted = ""
        batch = self.machine.batches.get(event.batch)
        if batch is not None:
            pool.learn(batch.count, event.busy_s)

    def _batch_paused(self, event: BatchPaused) -> None:
        worker = self._worker_of.get(event.batch)
        if worker is None or event.batch not in worker.batches or self._credits is None:
            return
        # What it has not begun it has given back, also if it goes on by now.
        self._recycling.sent(worker, event.begun - self.machine.batches[event.batch].count)
        if not self._credits.paused(event.batch, event.begun, event.room):
            return
        worker.pause(event.batch)
        self._pauses += 1
        if not worker.batches:
            worker.enter(NO_INPUT, event.time_s)
            self._pools[worker.stage].noted = ""

    def _worker_died(self, event: WorkerDied) -> list[Command]:
        commands: list[Command] = []
        worker = self._workers[event.worker]
        self._recycling.died(worker)
        for batch in worker.die(event.time_s):
            self._worker_of.pop(batch, None)
            if self._credits is not None:
                self._credits.ended(batch)
            commands += self.machine.lose_batch(
                batch,
                running=batch == event.running,
                reason=event.reason,
                blamed=event.alone,
            )
        if self._scaling is None or not self._scaling.died(worker, event.time_s):
            commands.append(RestartWorker(event.worker))
        return commands

    def _scale(self, scaling: Scaling, time_s: float) -> list[Command]:
        commands = scaling.turn(time_s)
        for command in commands:
            if isinstance(command, RetireWorker):
                self._recycling.died(self._workers[command.worker])
        if commands:
            self._window = self._open_roots()
        return commands

    def _open_roots(self) -> int:
        """How many roots may be open with the workers that there are."""
        return OPEN_ROOTS + sum(
            4 * (pool.batch_size or 1) * pool.max_in_flight * len(pool.workers)
            for pool in self._pools.values()
            if any(level(self.plan, call) == 0 for call in pool.calls)
        )

    # ------------------------------------------------------------------------------ policy

    def _serve(self, pool: Pool, time_s: float, commands: list[Command]) -> None:
        held = pool.held
        for worker in pool.workers:
            if len(worker.batches) < held and worker.open:
                break
        else:
            return  # nobody could take anything, and nobody is idle
        waiting = again = alone = 0
        for queue in pool.queues:
            waiting += queue.count
            if queue.alone:
                again += len(queue.alone)
                alone += sum(not retry.company for retry in queue.alone)
        if again:
            self._serve_again(pool, time_s, commands, 1 if alone else pool.max_in_flight)
        if waiting:
            # Nothing is sent ahead while items wait to run alone, or no worker would ever be free for them.
            self._serve_batches(pool, time_s, commands, 1 if alone else held)
        if pool.gate is not None or pool.has_idle():
            reason = self._why_idle(pool, time_s) if waiting or again else NO_INPUT
            if reason == RATE_LIMIT:
                self._look_again(pool.opens_s)
            self._note_idle(pool, reason, time_s)

    def _why_idle(self, pool: Pool, time_s: float) -> str:
        """Why those of its workers have nothing to do who still have nothing."""
        if pool.closed(time_s) and any(queue.count or queue.alone for queue in pool.queues):
            return RATE_LIMIT
        if not pool.lingers and any(queue.count for queue in pool.queues):
            return DOWNSTREAM_FULL
        return NO_INPUT

    def _serve_again(self, pool: Pool, time_s: float, commands: list[Command], most: int) -> None:
        """Items that must run alone go to workers that hold nothing, others to those below ``most``."""
        for worker in pool.workers:
            if not worker.open or worker.alone:
                continue
            if worker.batches or not self._start_again(pool, worker, time_s, commands, False):
                while len(worker.batches) < most:
                    if not self._start_again(pool, worker, time_s, commands, True):
                        break

    def _start_again(
        self, pool: Pool, worker: Worker, time_s: float, commands: list[Command], company: bool
    ) -> bool:
        takes = (self.machine.take_alone(call, company=company) for call in pool.calls)
        started = None if pool.closed(time_s) else next(filter(None, takes), None)
        if started is not None:
            self._start(worker, started, time_s, commands, alone=not company)
        return started is not None

    def _serve_batches(
        self, pool: Pool, time_s: float, commands: list[Command], ahead: int
    ) -> None:
        """Each worker gets a batch before any gets one more; ``ahead`` is how many one may hold."""
        for held in range(ahead):
            for worker in pool.workers:
                if not worker.open or worker.alone or len(worker.batches) != held:
                    continue
                started = None
                while started is None:  # a queue may hold nothing but items whose roots have ended
                    chosen = self._next_call(pool, time_s, idle=held < pool.max_in_flight)
                    if chosen is None:
                        return
                    if (
                        held >= pool.max_in_flight
                        and not self._is_full(pool, chosen)
                        and self._supply.more_to_come(chosen)
                    ):
                        break
                    limit = self._recycling.limit(worker, self._limit(pool, chosen))
                    if self._credits is not None:
                        limit = self._credits.items(chosen, limit)
                    started = self.machine.take(chosen, limit)
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
        overdraft: bool = False,
    ) -> None:
        if self._credits is not None:
            room = self._credits.begin(run.batch, run.call, run.count, overdraft=overdraft)
            if room is not None:
                run = run._replace(room=room)
        self._pools[worker.stage].begin(time_s)
        worker.take(run.batch, time_s, alone=alone)
        self._recycling.sent(worker, run.count)
        self._worker_of[run.batch] = worker
        commands.append(StartBatch(worker.number, run))

    def _feed(self, pool: Pool, credits: Credits, time_s: float, commands: list[Command]) -> None:
        """Generators that have little room left, or wait for it, get more: those of older roots first."""
        batches = [
            batch
            for batch in credits.hungry
            if batch in self._worker_of and self._worker_of[batch].stage == pool.stage
        ]
        for batch in sorted(batches, key=self.machine.root_of) if len(batches) > 1 else batches:
            worker = self._worker_of[batch]
            if batch in worker.batches[1:]:
                continue  # it has not begun
            # A worker that takes nothing new has to end what it holds: those who want less may wait for it.
            if worker.open and self._supply.paused(self.machine.batches[batch].call):
                continue  # its children are not wanted yet
            room = credits.more(batch)
            if not room:
                self._lacking = True
                return
            self._grant(batch, room, time_s, commands)

    def _grant(self, batch: int, room: int, time_s: float, commands: list[Command]) -> None:
        worker = self._worker_of[batch]
        commands.append(GrantRoom(worker.number, batch, room))
        worker.resume(batch, time_s)

    def _spill(self, credits: Credits, commands: list[Command]) -> None:
        """What is not read soon leaves memory, if there is enough of it."""
        held = self.machine.held
        wanted = self._spilling.wanted(credits, held.made_bytes)
        if wanted and (refs := self.machine.waiting_blocks(wanted)):
            self._spilling.asked()
            commands.append(SpillBlocks(refs))

    def _carry_oldest(self, credits: Credits, time_s: float, commands: list[Command]) -> None:
        for worker, work in self._carrying.moves(credits, time_s):
            if isinstance(work, RunBatch):
                self._start(worker, work, time_s, commands, overdraft=True)
            else:
                room = credits.overdraw(work, len(self._pools[worker.stage].workers))
                self._grant(work, room, time_s, commands)

    def _next_call(self, pool: Pool, time_s: float, *, idle: bool) -> int | None:
        """The call whose oldest item has waited longest, if it is not paused, has credit and does not linger.

        Args:
            pool: Whose calls.
            time_s: Now.
            idle: It is for a worker that has nothing to do.
        """
        oldest = chosen = None
        if pool.closed(time_s):
            return None
        for call, queue in zip(pool.calls, pool.queues, strict=True):
            head = queue.head()
            if head is None or (oldest is not None and head > oldest) or self._supply.paused(call):
                continue
            if self._credits is not None and not self._credits.items(call, 1):
                self._lacking = True
                continue
            if not (pool.lingers and self._lingers(pool, call, time_s, idle=idle)):
                oldest, chosen = head, call
        return chosen

    def _is_full(self, pool: Pool, call: int) -> bool:
        """Whether the next batch of a call needs nothing more."""
        return self.machine.queues[call].fills(pool.batch_size or 1)

    def _lingers(self, pool: Pool, call: int, time_s: float, *, idle: bool) -> bool:
        """Whether the next batch of a call still waits for more; if a worker is idle, notes until when."""
        if self._is_full(pool, call) or not self._supply.can_come(call, self.room):
            return False
        oldest = self.machine.queues[call].oldest()
        assert self._lingering is not None and oldest is not None, "ready items linger"
        due_s = self._lingering.due_s(call, oldest)
        if time_s >= due_s:
            return False
        if idle:
            self._look_again(due_s)
        return True

    def _look_again(self, due_s: float) -> None:
        if self.due_s is None or due_s < self.due_s:
            self.due_s = due_s

    def _limit(self, pool: Pool, call: int) -> int:
        """How many items to send at once."""
        if pool.batch_size is not None:
            return pool.batch_size
        share = -(-self.machine.queues[call].count // (AHEAD * max(1, len(pool.workers))))
        return max(1, min(pool.message_items(), share))

    def _note_idle(self, pool: Pool, reason: str, time_s: float) -> None:
        if self._supply.exhausted and self.machine.roots.ended == self.machine.roots.admitted:
            reason = FINISHED
        if reason == pool.noted:
            return
        pool.noted = reason
        for worker in pool.workers:
            if worker.ready and not worker.batches and worker.state != reason:
                worker.enter(reason, time_s)
