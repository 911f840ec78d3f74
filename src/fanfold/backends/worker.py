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
   or a child fails that task as if it were raised; any other exception there breaks the contract. Of several
   in one task's results a parent failure decides.
"""

from __future__ import annotations

import os
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, Final, TypeAlias

from fanfold.backends.base import NO_RUN, RunFacts
from fanfold.backends.children import holds_exception, kind_of, listed
from fanfold.backends.delivery import BYTES_PER_CHILD, Delivery, Emit, Opening
from fanfold.backends.opening import (
    Collected,
    ContractBroken,
    apparent_bytes,
    as_raised,
    children_of,
    close,
    has_own_memory,
    opens_whole,
    snapshot,
)
from fanfold.backends.stage_plan import StagePlan
from fanfold.backends.values import Values
from fanfold.errors import UsageError
from fanfold.failures import Failure, ItemFailure, declared
from fanfold.plan import CallNode
from fanfold.protocol import BatchFinished, BatchRaised, RunBatch
from fanfold.secret import redacted, resolved
from fanfold.stage_context import Context, Counts, current

RELEASE_S: Final = 0.005
"""Children, and results of single items, that have waited so long are reported."""
Once: TypeAlias = Callable[[int, Callable[[], object]], object]
"""Given the number of a class and its set-up, calls it if nobody on this node has."""


Trimmed: TypeAlias = Callable[[int], int]
"""Given the number of a batch, which of its tasks need not run any more: a bit for each."""


def left_out() -> ItemFailure:
    """How a task ends that need not run any more. Nobody heeds it: its item has ended already."""
    return ItemFailure("it need not run any more", code="trimmed")


def nothing_trimmed(batch: int) -> int:
    """For workers whom nobody tells."""
    return 0


class NotDeterministic(Exception):
    """A new attempt gave fewer children than an earlier one had released."""


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
    ) -> None:
        self._plan = plan
        self._values = values
        self._emit = emit
        self._worker = worker
        self._facts = run
        self._contain = contain
        self._once = once
        self._clock = clock
        self._function: Callable[..., Any] | None = None
        self._instance: Any = None
        self._static: dict[int, Mapping[str, Any]] = {}
        self._contexts: dict[int, Context] = {}
        self._counts = Counts()
        self.trimmed: Trimmed = nothing_trimmed
        """Asked on the way which tasks need not run any more."""

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

    def run(self, batch: RunBatch, *, wait_s: float = 0.0) -> None:
        """Run a batch; every event that the protocol asks for is emitted before this returns.

        Args:
            batch: What to run.
            wait_s: How long this worker waited for it, for the report.

        Raises:
            BaseException: What users' code raised, if it is not among those to contain.
        """
        run = self._open(batch)
        batched = self._plan.stage.batch_size is not None
        with current(run.context):
            try:
                columns = self._values.read(batch.columns)
                results = run.call_once(columns, self.trimmed(batch.batch)) if batched else None
            except BaseException as error:
                if self._blame(run, error):
                    return
            else:
                if results is None:
                    run.one_by_one(columns)
                else:
                    run.deliver(results)
        self._finish(run, wait_s)

    def close(self) -> None:
        """Call the ``close()`` of what was constructed, if it has one; what that raises is only shown."""
        close = getattr(self._instance, "close", None)
        if callable(close):
            try:
                close()
            except Exception:
                show_failed_close(self._worker)

    def _open(self, batch: RunBatch) -> BatchRun:
        assert self._function is not None, "construct() comes first"
        call = self._plan.calls[batch.call]
        context = self._contexts[batch.call]
        context.begin(
            batch.attempt, batch.identity, 0 if self._plan.stage.batch_size is None else None
        )
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
        )

    def _blame(self, run: BatchRun, error: BaseException) -> bool:
        """A batch as a whole has raised: its one item fails. Of several it is not known who is guilty, and the
        same holds for inputs that cannot be unpickled: then the batch has ended, and this is true."""
        batch, failure = run.batch, self.failure(error)
        if batch.count > 1:
            counts = self._counts.take()
            raised = BatchRaised(
                batch.batch, failure, run.busy_s, attempt=batch.attempt, counts=counts
            )
            self._emit([raised])
            return True
        run.delivery.failed(0, failure)
        return False

    def _finish(self, run: BatchRun, wait_s: float) -> None:
        batch = run.batch
        finished = BatchFinished(
            batch.batch,
            run.busy_s,
            attempt=batch.attempt,
            wait_s=wait_s,
            counts=self._counts.take(),
        )
        run.delivery.flush(batch.count, finished)

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
        return Failure.from_exception(error, worker=self._worker)


def show_failed_close(worker: str) -> None:
    """Show the exception at hand where the worker's output goes: after the run nothing can fail any more."""
    sys.stderr.write(f"close() of worker {worker} raised:\n{redacted(traceback.format_exc())}")


class BatchRun:
    """One batch on its way through the user's code."""

    def __init__(
        self,
        batch: RunBatch,
        call: CallNode,
        function: Callable[..., Any],
        static: Mapping[str, Any],
        context: Context,
        delivery: Delivery,
        failure: Callable[[BaseException], Failure],
        clock: Callable[[], float],
        trimmed: Trimmed,
    ) -> None:
        self.batch = batch
        self.context = context
        self.delivery = delivery
        self._function = function
        self._failure = failure
        self._clock = clock
        self._outputs = len(call.outputs)
        self._static = static
        self._positional = [i for i, item in enumerate(call.inputs) if item.keyword is None]
        self._keywords = {
            item.keyword: i for i, item in enumerate(call.inputs) if item.keyword is not None
        }
        self._whole = bool(delivery.has_items)
        self._due_s = clock() + RELEASE_S
        self._flush_s = 0.0
        self._ask_trimmed = trimmed
        self._trimmed = 0
        self.busy_s: float = 0.0
        """Time spent in the user's code."""

    def call(self, values: Sequence[Any]) -> Any:
        """What the user's function returns for these inputs."""
        positional = [values[i] for i in self._positional]
        if not (self._keywords or self._static):
            return self._function(*positional)
        keywords = {name: values[i] for name, i in self._keywords.items()}
        return self._function(*positional, **keywords, **self._static)

    # ------------------------------------------------------------------------------ batched stages

    def call_once(self, columns: Sequence[list[Any]], trimmed: int = 0) -> list[Any]:
        """Run a batched stage on lists; its results, one for each item.

        Args:
            columns: A list for each input.
            trimmed: Tasks that are left out, a bit for each; in their places are failures that nobody heeds.

        Raises:
            ContractBroken: It returned something else.
            BaseException: What the user's code raises.
        """
        count = self.batch.count
        kept = (
            [task for task in range(count) if not trimmed >> task & 1] if trimmed else range(count)
        )
        if not kept:
            return [left_out()] * count
        if len(kept) < count and not self.batch.identity:  # whose context tells of all its items
            columns = [[column[task] for task in kept] for column in columns]
        else:
            kept = range(count)
        started = self._clock()
        try:
            results = self.results_of(self.call(columns), len(kept))
        finally:
            self.busy_s = self._clock() - started
        if len(kept) == count:
            return results
        whole: list[Any] = [left_out()] * count
        for task, result in zip(kept, results, strict=True):
            whole[task] = result
        return whole

    def results_of(self, returned: Any, count: int) -> list[Any]:
        """What a batched stage returned for so many items, as a list.

        Raises:
            ContractBroken: It is something else, or not one result for each item.
        """
        results = listed(returned)
        if results is not None and len(results) == count:
            return results
        got = kind_of(returned) if results is None else f"{len(results)}"
        raise ContractBroken(
            f"it must return a list with one result for each item of its batch, here {count}, got {got}"
        )

    def deliver(self, results: list[Any]) -> None:
        """Take in the results of all tasks of a batched stage."""
        delivery = self.delivery
        if self._outputs == 1 and not self.batch.skip and not holds_exception(results):
            openings = delivery.openings
            if not openings or (
                set(map(type, results)) == {list}
                and all(map(opens_whole, openings))
                and not holds_exception(chain.from_iterable(results))
            ):
                # The way of tiny children: no Python for each of them, little for each parent.
                delivery.columns[0] = results
                for opening in openings:
                    opening.rows[0] = list(chain.from_iterable(results))
                    lengths = map(len, results)
                    opening.counts = {task: n for task, n in enumerate(lengths) if n}
                    opening.sealed = list(range(len(results)))
                return
        if self._outputs == 1 and not delivery.openings:
            delivery.columns[0] = results
            delivery.failures = {
                task: self._failure(as_raised(value))
                for task, value in enumerate(results)
                if issubclass(type(value), BaseException)  # isinstance asks the value itself
            }
            return
        for task, value in enumerate(results):
            try:
                self._finish(task, value)
            except BaseException as error:
                delivery.failed(task, self._failure(error))

    # ------------------------------------------------------------------------------ one item at a time

    def one_by_one(self, columns: Sequence[list[Any]]) -> None:
        """Run each item by itself; one that fails harms no other."""
        last = self.batch.count - 1
        started = self._clock()
        identified = bool(self.batch.identity)
        self._trimmed = self._ask_trimmed(self.batch.batch)
        for task, values in enumerate(zip(*columns, strict=True)):
            if identified:
                self.context.move(task)
            try:
                self.take(task, left_out() if self._trimmed >> task & 1 else self.call(values))
            except BaseException as error:
                self.fail(task, error)
            if task != last and self._clock() >= self._due_s:
                self._flush(task + 1)
        self.busy_s = self._clock() - started - self._flush_s

    def take(self, task: int, returned: Any) -> None:
        """Take in what the next task returned.

        Raises:
            BaseException: The task has failed.
        """
        if issubclass(type(returned), Iterator):
            self._stream(task, returned)
        else:
            self._finish(task, returned)

    def fail(self, task: int, error: BaseException) -> None:
        """The next task has failed.

        Raises:
            BaseException: ``error``, if it is not among those to contain.
        """
        self.delivery.failed(task, self._failure(error))

    def _flush(self, stop: int) -> None:
        """Report on the way."""
        started = self._clock()
        self.delivery.flush(stop)
        self._trimmed = self._ask_trimmed(self.batch.batch)
        now = self._clock()
        self._flush_s += now - started
        self._due_s = now + RELEASE_S

    def _finish(self, task: int, value: Any) -> None:
        """Take in what one task returned.

        Raises:
            ItemFailure, ParentFailure, ContractBroken, NotDeterministic: The task has failed.
        """
        outputs = self._unpacked(value, "return")
        opened: list[tuple[Opening, list[list[Any]]]] = []
        for opening in self.delivery.openings:
            children = children_of(opening, outputs)
            if children is not None:
                opened.append((opening, self._fresh(task, children)))
        for opening, children in opened:
            opening.add(task, children)
        self.delivery.done(outputs)

    def _unpacked(self, value: Any, verb: str) -> Sequence[Any]:
        """A value for each output."""
        if self._outputs == 1:
            values: Sequence[Any] = (value,)
        elif issubclass(type(value), BaseException):
            raise as_raised(value)
        elif isinstance(value, tuple) and len(value) == self._outputs:
            values = value
        else:
            got = f"a tuple of {len(value)}" if isinstance(value, tuple) else kind_of(value)
            raise ContractBroken(
                f"with {self._outputs} outputs it must {verb} a tuple of {self._outputs} for each "
                f"{'item' if verb == 'return' else 'child'}, got {got}"
            )
        for part in values:
            if issubclass(type(part), BaseException):
                raise as_raised(declared(values) or part)
        return values

    def _fresh(self, task: int, children: list[list[Any]]) -> list[list[Any]]:
        """The children that no earlier attempt released."""
        skip = self.batch.skip[task] if self.batch.skip else 0
        if not skip:
            return children
        self._check_skip(skip, len(children[0]))
        return [each[skip:] for each in children]

    def _check_skip(self, skip: int, count: int) -> None:
        if count < skip:
            raise NotDeterministic(
                f"an earlier attempt gave {skip} children, this one only {count}"
            )

    # ------------------------------------------------------------------------------ generators

    def _stream(self, task: int, children: Iterator[Any]) -> None:
        """Run an iterator dry and release its children on the way.

        Raises:
            BaseException: What it raises; the children that it gave before are collected or released.
        """
        delivery, clock = self.delivery, self._clock
        skip = self.batch.skip[task] if self.batch.skip else 0
        whole: list[list[Any]] = [[] for _ in range(self._outputs)]
        collected = Collected(task, delivery)
        targets, room, single = collected.targets, collected.room, self._outputs == 1
        given = 0
        try:
            for child in children:
                if single and not issubclass(type(child), BaseException):
                    parts: Sequence[Any] = (child,)
                else:
                    parts = self._unpacked(child, "yield")
                given += 1
                if has_own_memory(parts):
                    parts = tuple(
                        map(snapshot, parts)
                    )  # a generator may fill one buffer again and again
                if self._whole:
                    for column, part in zip(whole, parts, strict=True):
                        column.append(part)
                if given <= skip:
                    continue
                for append, position in targets:
                    append(parts[position])
                room -= 1 + apparent_bytes(parts[0]) / BYTES_PER_CHILD
                if room <= 0 or clock() >= self._due_s:
                    collected.settle()
                    self._flush(task)
                    if task in delivery.failures:
                        break  # something of it could not be stored
                    if self._trimmed >> task & 1:
                        raise left_out()
                    collected = Collected(task, delivery)
                    targets, room = collected.targets, collected.room
        finally:
            collected.settle()
            close(children)
        if task not in delivery.failures:
            self._check_skip(skip, given)
            collected.seal()
        delivery.done(whole)
