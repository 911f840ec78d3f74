"""Runs one stage's code: batches in, events out. Knows no transport, no membership, no outcome.

Owns the handling of what users' functions take, return, yield and raise. Where values are read from and
stored to, and how events travel, is given by the backend (:class:`~fanfold.backends.values.Values`, ``emit``);
what a batch gives is collected and reported by :mod:`fanfold.backends.delivery`.

Rules
-----
1. A batched stage gets lists and returns one element per item. If it raises, or returns too few or too many,
   nobody knows who is guilty, and the batch ends with ``BatchRaised``; of a batch of one it is known.
2. Any other stage runs item by item. What has waited for :data:`RELEASE_S` is reported between items.
3. An iterator that it returns is run dry; its children are released while it runs. If it raises, the task
   fails after what it gave.
4. With several outputs each element, or child, is a tuple of so many.
5. Of each task's children the first ``skip`` were released by an earlier attempt, and are not again.
6. What a stage may ask of its surroundings (:mod:`fanfold.stage_context`) is there while its code runs.
7. An exception is never a value. An ``ItemFailure`` or ``ParentFailure`` in the place of an item, an output
   or a child fails that task as if it were raised, and so does a ``RetryLater``; any other exception there
   breaks the contract. Of several in one task's results a parent failure decides.
8. Where the service that a stage asks wants to be asked later, its task fails as *put off*, and so does every
   call that would begin before then: it is not made, and its record says so.
"""

from __future__ import annotations

import os
import sys
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final, TypeAlias

from fanfold.backends.base import NO_RUN, RunFacts
from fanfold.backends.batch_run import (
    BatchRun,
    NotDeterministic,
    Room,
    Trimmed,
    nothing_trimmed,
    unbounded,
)
from fanfold.backends.delivery import Delivery, Emit
from fanfold.backends.opening import (
    ContractBroken,
)
from fanfold.backends.own_memory import asked_bytes
from fanfold.backends.retry_after import NotBegun, Rest, asked_wait_s
from fanfold.backends.snapshots import FROZEN
from fanfold.backends.stage_plan import StagePlan
from fanfold.backends.values import Values
from fanfold.errors import UsageError
from fanfold.failures import Failure
from fanfold.plan import StageSpec
from fanfold.protocol import BatchEvent, BatchFinished, BatchPaused, BatchRaised, RunBatch
from fanfold.secret import redacted, resolved
from fanfold.stage_context import Context, Counts, current

WORTH_S: Final = 0.002
"""So long a batch has to take that handing its report over costs less than making it."""

Report: TypeAlias = Callable[[], Sequence[BatchEvent]]
"""Makes the events of a report."""
Later: TypeAlias = Callable[[Report], None]
"""Has a report made and emitted, soon."""
Once: TypeAlias = Callable[[int, Callable[[], object]], object]
"""Given the number of a class and its set-up, calls it if nobody on this node has."""


class StageRunner:
    """One replica of a stage.

    Args:
        plan: The stage's part of the plan.
        values: Where values are.
        emit: Takes the events of a batch, those of one flush together.
        worker: The replica's name, for failures.
        run: What is known of the run.
        contain: Exceptions of users' code that fail its items; others go through to who runs the batch.
        once: Calls a class's ``setup_on_node``, given the number of the class, unless that was done on this
            node before.
        clock: Seconds since whenever.
        later: Takes reports of batches that took long, and emits them before any other events. Another thread
            may do so, while users' code is at the next batch. Without it every report is emitted at once; with
            it :meth:`tell` is to be called when there is nothing to go on with.
        read: Gives a batch's inputs; by default they are read from ``values``.
    """

    def __init__(
        self,
        plan: StagePlan,
        values: Values,
        emit: Emit,
        *,
        worker: str = "",
        run: RunFacts = NO_RUN,
        contain: tuple[type[BaseException], ...] = (BaseException,),
        once: Once = lambda _, setup: setup(),
        clock: Callable[[], float] = time.perf_counter,
        later: Later | None = None,
        read: Callable[[RunBatch], list[list[Any]]] | None = None,
    ) -> None:
        self._plan = plan
        self._values = values
        self._emit = emit
        self._worker = worker
        self._facts = run
        self._contain = contain
        self._once = once
        self._later = later
        self._prepared: BatchRun | None = None
        self._read = read or (lambda batch: self._values.read(batch.columns))
        self._report: Report | None = None
        """Of the last batch, not told yet."""
        self._clock = clock
        self._rest = Rest(clock)
        self._function: Callable[..., Any] | None = None
        self._instance: Any = None
        self._static: dict[int, Mapping[str, Any]] = {}
        self._simple: set[int] = set()
        """Calls with one output that is nothing but items: no function of users tells anything of it."""
        self._contexts: dict[int, Context] = {}
        self._counts = Counts()
        self._paused: dict[int, tuple[BatchRun, float]] = {}
        """By batch: those that wait for room, with the time that the worker had waited for them."""
        self.trimmed: Trimmed = nothing_trimmed
        """Asked on the way which tasks need not run any more."""
        self.room: Room = unbounded
        """Asked on the way how much may be released."""

    @property
    def stage(self) -> StageSpec:
        """What it is a replica of."""
        return self._plan.stage

    def construct(self) -> None:
        """Make the stage's callable; a class is set up on the node and constructed here, once.

        Raises:
            SetupError: A secret is not known (FF440).
            BaseException: Whatever the constructor raises.
        """
        spec = self._plan.stage
        target: Any = spec.target
        self._static = {
            index: resolved(dict(call.static), os.environ)
            for index, call in self._plan.calls.items()
        }
        self._simple = {
            index
            for index, streams in self._plan.streams.items()
            if len(self._plan.calls[index].outputs) == 1
            and not streams.expansions
            and not any(stream.groups or stream.costs for stream in streams.items)
        }
        self._contexts = {
            index: self._context(call.name) for index, call in self._plan.calls.items()
        }
        if spec.is_class:
            with current(self._context("")):
                if (setup := getattr(target, "setup_on_node", None)) is not None:
                    self._once(self._plan.class_number, setup)
                args, kwargs = resolved((spec.args, dict(spec.kwargs)), os.environ)
                self._instance = target = target(*args, **kwargs)
        self._function = target if spec.method is None else getattr(target, spec.method)

    def _context(self, call: str) -> Context:
        return Context(
            run=self._facts.name,
            call=call,
            worker=self._worker,
            run_seed=self._facts.seed,
            counts=self._counts,
        )

    def run(self, batch: RunBatch, *, wait_s: float = 0.0) -> bool:
        """Run a batch to its end, or until a generator has used up its room. Every event that the protocol asks
        for is emitted before this returns, but for the last report of a batch that took long (``later``).

        Args:
            batch: What to run.
            wait_s: How long this worker waited for it, for the report.

        Returns:
            Whether it has ended. If not, :meth:`resume` goes on with it.

        Raises:
            BaseException: What users' code raised, if it is not among those to contain.
        """
        self._hand_over()
        run = self._open(batch)
        batched = self._plan.stage.batch_size is not None
        with current(run.context):
            try:
                columns = self._read(batch)
                results = run.call_once(columns, self.trimmed(batch.batch)) if batched else None
            except BaseException as error:
                if self._blame(run, error):
                    return True
            else:
                if results is None:
                    run.begin(columns)
                    return self._go_on(run, wait_s)
                if self._may_wait(run, results):
                    self._report = partial(_delivered, run, [*results], self._finished(run, wait_s))
                    return True
                run.deliver(results)
        self._finish(run, wait_s)
        return True

    def resume(self, batch: int) -> bool:
        """Go on with a batch that has paused, as :meth:`run` does."""
        self._hand_over()
        run, wait_s = self._paused.pop(batch)
        with current(run.context):
            run.retake()
            return self._go_on(run, wait_s)

    def tell(self) -> None:
        """Emit what was not told yet."""
        if (report := self._report) is not None:
            self._report = None
            self._emit(report())

    def _hand_over(self) -> None:
        """Users' code is about to run: what was not told yet is told meanwhile."""
        if self._later is not None and (report := self._report) is not None:
            self._report = None
            self._later(report)

    def _go_on(self, run: BatchRun, wait_s: float) -> bool:
        if run.advance():
            self._finish(run, wait_s)
            return True
        self._paused[run.batch.batch] = run, wait_s
        self._emit([BatchPaused(run.batch.batch, run.begun, run.room, attempt=run.batch.attempt)])
        return False

    def close(self) -> None:
        """Call the ``close()`` of what was constructed, if it has one; what that raises is only shown."""
        paused, self._paused = self._paused, {}
        for run, _ in paused.values():
            run.leave()
        close = getattr(self._instance, "close", None)
        if callable(close):
            try:
                close()
            except Exception:
                show_failed_close(self._worker)

    def prepare(self, batch: RunBatch) -> None:
        """Do what can be done of a batch before it begins; another thread may, while users' code runs."""
        self._prepared = self._made(batch)

    def _open(self, batch: RunBatch) -> BatchRun:
        """A batch that begins."""
        run, self._prepared = self._prepared, None
        if run is None or run.batch is not batch:
            run = self._made(batch)
        run.start()
        run.context.begin(
            batch.attempt, batch.identity, 0 if self._plan.stage.batch_size is None else None
        )
        return run

    def _made(self, batch: RunBatch) -> BatchRun:
        assert self._function is not None, "construct() comes first"
        call = self._plan.calls[batch.call]
        context = self._contexts[batch.call]
        delivery = Delivery(
            batch,
            self._plan,
            self._plan.streams[batch.call],
            len(call.outputs),
            self._values,
            self._emit,
            self._worker,
        )
        return BatchRun(
            batch,
            call,
            self._function,
            self._static[batch.call],
            context,
            delivery,
            self.failure,
            self._clock,
            self.trimmed,
            self.room,
            self._rest.check,
        )

    def _blame(self, run: BatchRun, error: BaseException) -> bool:
        """A batch as a whole has raised: its one item fails. Of several it is not known who is guilty, and the
        same holds for inputs that cannot be unpickled: then the batch has ended, and this is true."""
        batch, failure = run.batch, self.failure(error)
        if batch.count > 1:
            raised = BatchRaised(
                batch.batch,
                failure,
                run.busy_s,
                attempt=batch.attempt,
                counts=self._counts.take(),
                own_bytes=asked_bytes(self.stage),
            )
            self._emit([raised])
            return True
        run.delivery.failed(0, failure)
        return False

    def _may_wait(self, run: BatchRun, results: list[Any]) -> bool:
        """Whether all that is to be done about results can be done later, by another thread: they cannot
        change, and no code of users is asked about them."""
        return (
            self._is_late(run)
            and run.batch.call in self._simple
            and FROZEN.issuperset(map(type, results))
        )

    def _is_late(self, run: BatchRun) -> bool:
        """Whether a batch is told of later."""
        return self._later is not None and run.busy_s >= WORTH_S

    def _finish(self, run: BatchRun, wait_s: float) -> None:
        finished = self._finished(run, wait_s)
        if not self._is_late(run):
            run.delivery.flush(run.begun, finished)
            return
        run.delivery.settle(run.begun)
        self._report = partial(run.delivery.events, run.begun, finished)

    def _finished(self, run: BatchRun, wait_s: float) -> BatchFinished:
        batch = run.batch
        return BatchFinished(
            batch.batch,
            run.busy_s,
            attempt=batch.attempt,
            wait_s=wait_s,
            counts=self._counts.take(),
            own_bytes=asked_bytes(self.stage),
        )

    def failure(self, error: BaseException) -> Failure:
        """The record of an error that is contained; any other goes through.

        Raises:
            BaseException: ``error``, if it is not contained.
            UsageError: A broken contract that is not contained.
        """
        if isinstance(error, ContractBroken):
            if not issubclass(ContractBroken, self._contain):
                raise UsageError(
                    "FF407", f"stage {self._plan.stage.name!r}: {error}.", "Change what it returns."
                )
            return Failure(kind="contract", message=str(error), worker=self._worker)
        if not isinstance(error, self._contain):
            raise error
        if isinstance(error, NotDeterministic):
            return Failure(kind="not_deterministic", message=str(error), worker=self._worker)
        failure = Failure.from_exception(error, worker=self._worker)
        after_s = self._heed(error)
        if after_s is None:
            return failure
        begun = not isinstance(error, NotBegun)
        return replace(failure, kind="put_off", after_s=after_s, attempts=int(begun))

    def _heed(self, error: BaseException) -> float | None:
        """Begin a pause, if an exception asks for one; how long it is to be."""
        after_s = asked_wait_s(error)
        if after_s is not None and not isinstance(error, NotBegun):
            self._rest.begin(after_s)
        return after_s


def _delivered(run: BatchRun, results: list[Any], finished: BatchFinished) -> Sequence[BatchEvent]:
    """The report of a batch with these results, which have not been taken in yet."""
    run.deliver(results)
    return run.delivery.events(run.begun, finished)


def show_failed_close(worker: str) -> None:
    """Show the exception at hand where the worker's output goes: after the run nothing can fail any more."""
    sys.stderr.write(f"close() of worker {worker} raised:\n{redacted(traceback.format_exc())}")
