"""Running a plan: ``run``, ``stream``, ``call`` and ``check``, which the public ``Pipeline`` calls.

Owns the beginning and the end of a run: its parts are put together, and whatever happens, the backend is
closed, what had ended is written, and the report is there. What happens in between is the loop's.
"""

from __future__ import annotations

import atexit
import contextlib
import datetime
import os
import sys
import time
import warnings
import weakref
from collections.abc import Generator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from fanfold.backends.base import Backend, RunFacts, guilty_output, output_values, unread
from fanfold.backends.inline import InlineBackend
from fanfold.backends.standard_streams import occupy
from fanfold.columns import Column
from fanfold.data.sinks import SinkWriter, bind_sinks
from fanfold.data.sources import Source, from_items
from fanfold.dispatch.core import Core
from fanfold.dispatch.stopping import FIRST_TASKS, NEVER, StopRules
from fanfold.driver.admission import Admission, Duplicates, Opened, opened
from fanfold.driver.check import Check, Recorder, Sample, recording, resized, sweeps
from fanfold.driver.collector import relaxed
from fanfold.driver.delivery import Counted, Delivery, HandedOut, Order, Written, in_order
from fanfold.driver.interrupts import Interrupts
from fanfold.driver.loop import Loop
from fanfold.driver.memory import budget_bytes
from fanfold.driver.resources import Fitted, fewest, fit
from fanfold.driver.results import Result, makers, shaped
from fanfold.driver.settings import (
    as_source,
    failed_limit,
    make_backend,
    make_run_dir,
    new_run_name,
    whole_seed,
    worker_specs,
)
from fanfold.errors import FanfoldError, RunStopped, UsageError
from fanfold.failures import Failure, ItemFailure, ParentFailure
from fanfold.observe.failure_log import FailureLog
from fanfold.observe.progress import NoProgress, choose_progress
from fanfold.observe.report import Counters, FailureCounts, Report, Stopped, UntoldCounts, counted
from fanfold.outcomes import Status
from fanfold.plan import GatherNode, MergeNode, Plan
from fanfold.protocol import RootResult

COMMIT_ROOTS: Final = 16
"""A stream frees the values of so many results together."""

LOADING: Final = (Exception, SystemExit, GeneratorExit)
"""What fails a root when a value of it is loaded: not ``KeyboardInterrupt``, which is the user's own."""

__all__ = ["Check", "Report", "Result", "call", "check", "run", "stream"]


def run(
    plan: Plan,
    source: Any,
    sink: Any = None,
    *,
    backend: str | Backend = "local",
    run_dir: str | os.PathLike[str] | None = None,
    order: Order = "source",
    limit: int | None = None,
    max_failed: int | float | None = None,
    memory: int | str | None = None,
    progress: bool | None = None,
    duplicates: Duplicates = "error",
    seed: int = 0,
) -> Report:
    """Run the whole job: every item of a source, records into sinks.

    Args:
        plan: The compiled pipeline.
        source: A source, or an iterable of items.
        sink: One sink, or a dict or tuple of them as the pipeline returns its outputs; None: nothing is
            written.
        backend: ``"local"``, ``"inline"``, or a backend object.
        run_dir: Where ``report.json`` and ``failures.jsonl`` go; by default ``OUT/.fanfold/RUN``, and
            nowhere if there is no sink.
        order: Records in the order of the ``"source"``, or as they are ``"completed"``.
        limit: Take only so many items.
        max_failed: How many roots may fail before the run stops: a number, or a share (a float) of those that
            have ended, once these are 100; None for any number.
        memory: How much values may take, in bytes or as ``"8GB"``; None: half of what is available.
        progress: False: show none. Otherwise standard error shows it, live on a terminal.
        duplicates: Whether a key that comes again is an ``"error"``, or the ``"first"`` item counts.
        seed: What the seeds of items follow from (``ff.context().seed``).

    Raises:
        UsageError: The arguments do not fit together.
        RunStopped: Failures stopped the run; ``error.report`` tells what it had done.
        SetupError: A worker or the backend cannot be started.
        SourceError: The source cannot go on. What had ended before is written.
        SinkError: Records cannot be written (a value that a sink has no form for only fails its root).
        KeyboardInterrupt: Ctrl-C, SIGTERM or SIGHUP stopped the run, in an orderly way; ``error.report`` tells
            what it had done, with open roots as *unfinished*. A second one stops at once.
    """
    items = as_source(source)
    if limit is not None and (isinstance(limit, bool) or not hasattr(limit, "__index__")):
        raise UsageError(
            "FF428",
            f"limit={limit!r} is no number of items.",
            "Give a whole number, or None for all.",
        )
    if limit is not None and limit < 1:
        raise UsageError(
            "FF428",
            f"limit={limit} leaves nothing to run.",
            "Give a number of items, or None for all.",
        )
    writer = bind_sinks(plan, sink)
    in_order(order)
    rules = StopRules(max_failed=failed_limit(max_failed))
    _, name = make_backend(backend)  # a wrong name is told before anything is made on disk
    fitted = fit(plan, name)
    budget = budget_bytes(memory, fitted.declared_bytes)
    taken = opened(items if limit is None else items.take(limit))
    if writer is not None:
        for one in writer.sinks:
            one.check()
    run_name = new_run_name(datetime.datetime.now(datetime.UTC))
    folder = make_run_dir(run_dir, writer, run_name)
    where, name = make_backend(backend, None if folder is None else folder / "logs")
    seeded = whole_seed(seed)
    job = _Job(
        fitted,
        taken,
        where,
        name,
        writer,
        run_name,
        folder,
        seed=seeded,
        rules=rules,
        budget=budget,
    )
    delivery = Counted() if writer is None else Written(where, order, plan.levels[0].name)
    return job.run(delivery, progress=progress, duplicates=duplicates)


def stream(
    plan: Plan,
    items: Any,
    *,
    backend: str | Backend = "local",
    order: Order = "source",
    max_failed: int | float | None = None,
    memory: int | str | None = None,
    duplicates: Duplicates = "error",
    seed: int = 0,
    first_tasks: int | None = FIRST_TASKS,
) -> Generator[Result, None, None]:
    """Results as roots end; lazy at both ends. Closing the iterator stops the run.

    The run moves only while a result is asked for, and admits only as many items as it has room for.

    Args:
        plan: The compiled pipeline.
        items: A source, or an iterable of items, which may be endless.
        backend: ``"local"``, ``"inline"``, or a backend object.
        order: Results in the order of the ``"source"``, or as they are ``"completed"``.
        max_failed: As for :func:`run`.
        memory: As for :func:`run`.
        duplicates: Whether a key that comes again is an ``"error"``, or the ``"first"`` item counts.
        seed: What the seeds of items follow from (``ff.context().seed``).
        first_tasks: So many tasks of a call that does nothing but fail stop the run; None: no number does.
            Only runs that are compared with others need another number.

    Raises:
        UsageError: The arguments do not fit together.
        RunStopped: Failures stopped the run; raised after the results of all roots that had ended.
        FanfoldError: While iterating: as :func:`run`.
    """
    items = as_source(items)
    where, name = make_backend(backend)
    fitted = fit(plan, name)
    source = opened(items)
    delivery = HandedOut(order, plan.levels[0].name)
    rules = StopRules(first_tasks=first_tasks, max_failed=failed_limit(max_failed))
    budget = budget_bytes(memory, fitted.declared_bytes)
    job = _Job(fitted, source, where, name, seed=whole_seed(seed), rules=rules, budget=budget)
    results = job.stream(delivery, duplicates)
    _open_streams.add(results)
    return results


_open_streams: weakref.WeakSet[Generator[Result, None, None]] = weakref.WeakSet()


@atexit.register
def _close_streams() -> None:
    """A program may end between two results; what is left of it then is too little to close a backend."""
    for results in tuple(_open_streams):
        with contextlib.suppress(ValueError):  # another thread is in it just now
            results.close()


def call(plan: Plan, values: Sequence[Any]) -> Any:
    """Run one root here, in this thread, and return its outputs; exceptions of stages come through.

    An exception that the pipeline itself provides for (``ItemFailure`` and ``ParentFailure`` where a gather
    marks or drops failed members, or a merge goes on to the next port) has its effect as in a run.

    Args:
        plan: The compiled pipeline.
        values: One for each positional parameter.

    Raises:
        ItemFailure, ParentFailure: The root failed in a stage that declared it so.
        ItemFailure: A gathered list has too few members that are done, or lacks one.
    """
    contain = (ItemFailure, ParentFailure) if _provides_for_failures(plan) else ()
    source = opened(from_items([values[0] if len(values) == 1 else tuple(values)]))
    job = _Job(fewest(plan), source, InlineBackend(contain=contain), "inline", rules=NEVER)
    results = job.stream(HandedOut("source", plan.levels[0].name), "error", contain)
    (result,) = results
    if result.status is Status.FAILED:
        failure = result.failures[0]
        kind = ParentFailure if failure.scope == "parent" else ItemFailure
        raise kind(failure.message, code=failure.code)
    return result.value


def check(
    plan: Plan,
    source: Any,
    n: int = 3,
    *,
    sweep: Sequence[int] | Mapping[str, Sequence[int]] = (),
    profile: str | os.PathLike[str] | None = None,
) -> Check:
    """A dry run of the first ``n`` items, in this thread: what goes into and out of each stage.

    Args:
        plan: The compiled pipeline.
        source: A source, or an iterable of items.
        n: How many items.
        sweep: Batch sizes to try besides, for all batched stages or by stage.
        profile: Where to write how long the stages took.

    Raises:
        UsageError: ``n`` is not positive, or the sweep does not fit the pipeline.
        SourceError: The source cannot be read.
    """
    if n < 1:
        raise UsageError("FF426", f"check() needs at least one item, not {n}.")
    source = as_source(source)
    tries = list(sweeps(plan, sweep))
    if tries:
        source = Sample(source.take(n))  # which perhaps can be read but once
    recorder = Recorder(plan)
    report = _dry_run(recording(plan, recorder), source.take(n))
    more = [Recorder(plan) for _ in tries]
    for sizes, another in zip(tries, more, strict=True):
        _dry_run(recording(resized(plan, sizes), another), source.take(n))
    found = recorder.result(report, *more)
    if profile is not None:
        found.profile.write(profile)
    return found


def _dry_run(plan: Plan, source: Source[Any]) -> Report:
    job = _Job(fewest(plan), opened(source), InlineBackend(), "inline", rules=NEVER)
    return job.run(Counted(), progress=False, duplicates="first")


def _provides_for_failures(plan: Plan) -> bool:
    return any(
        (isinstance(node, GatherNode) and node.failed != "fail")
        or (isinstance(node, MergeNode) and node.failed == "next")
        for node in plan.nodes
    )


class _Job:
    """One run, from its parts to its report."""

    def __init__(
        self,
        fitted: Fitted,
        source: Opened,
        backend: Backend,
        backend_name: str,
        writer: SinkWriter | None = None,
        name: str | None = None,
        run_dir: Path | None = None,
        *,
        rules: StopRules,
        budget: int | None = None,
        seed: int = 0,
    ) -> None:
        for note in fitted.notes:
            warnings.warn(note, stacklevel=4)  # at the line that calls the pipeline's method
        occupy()  # before logs and sinks are opened: nobody may print into them
        self._fitted = fitted
        self._plan = fitted.plan
        self._source = source
        self._rules = rules
        self._budget = budget
        self._backend = backend
        self._backend_name = backend_name
        self._writer = writer
        self._started = datetime.datetime.now(datetime.UTC)
        self._start_s = time.monotonic()
        self._counts = FailureCounts()
        self._counters = Counters()
        self._untold = UntoldCounts({call.index: call.name for call in self._plan.calls()})
        self._log: FailureLog | None = None
        self._reports = False
        self.name = name or new_run_name(self._started)
        self._facts = RunFacts(self.name, seed, budget)
        self.run_dir = run_dir

    def run(self, delivery: Delivery, *, progress: bool | None, duplicates: Duplicates) -> Report:
        """To the end. However it ends, the backend is closed and the report is written."""
        self._reports = True
        shown = choose_progress(progress, sys.stderr, self._plan.levels[0].name, time.monotonic())
        if self.run_dir is not None:
            self._log = FailureLog(self.run_dir / "failures.jsonl")
        with Interrupts() as interrupts, relaxed():
            core, admission, loop = self._parts(delivery, duplicates, interrupts, shown)
            stop: FanfoldError | KeyboardInterrupt | None = None
            try:
                self._start()
                try:
                    loop.run()
                except (FanfoldError, KeyboardInterrupt) as error:
                    stop = error
                    self._close_writer(loop, early=True)
                    self._note_failures(core.open_failures())
                else:
                    self._close_writer(loop, early=False)
            except (FanfoldError, KeyboardInterrupt) as error:
                stop = stop or error
            finally:
                shown.close()
                self._backend.close()
                if self._log is not None:
                    self._log.close()
            report = self._report(core, loop, admission, delivery, stop)
        if isinstance(stop, KeyboardInterrupt):
            # Python's own exception and no subclass of it: only so does it exit as interrupted programs do.
            interrupt = KeyboardInterrupt(f"the run was interrupted by {stop}")
            interrupt.report = report  # type: ignore[attr-defined]
            raise interrupt from None
        if stop is not None:
            stop.report = report
            raise stop
        return report

    def stream(
        self,
        delivery: HandedOut,
        duplicates: Duplicates,
        contain: tuple[type[BaseException], ...] = LOADING,
    ) -> Generator[Result, None, None]:
        """One result after the other; the backend is closed when the iterator ends or is closed."""
        # Between two results the program has the thread, so its signals are its own.
        _, _, loop = self._parts(delivery, duplicates, Interrupts(), NoProgress())
        try:
            self._start()
            handed: list[int] = []
            stop: RunStopped | None = None
            while True:
                while delivery.ready:
                    result = delivery.ready.popleft()
                    yield self._result(result, loop, contain)
                    handed.append(result.root)
                    if len(handed) == COMMIT_ROOTS or not delivery.ready:
                        loop.commit(handed)
                        handed.clear()
                if stop is not None:
                    raise stop
                if loop.finished:
                    loop.heed_stop()  # by a root that was handed out last
                    return
                try:
                    loop.step()
                except RunStopped as error:
                    stop = error
                    delivery.stop()
        finally:
            self._backend.close()

    def _result(
        self, result: RootResult, loop: Loop, contain: tuple[type[BaseException], ...]
    ) -> Result:
        """A root's values, read here; those of a user's class may refuse, and then the root fails."""

        def read(columns: Sequence[Column]) -> list[list[Any]]:
            return [self._backend.read(column) for column in columns]

        status = Status(result.status)
        if status not in (Status.DONE, Status.PARTIAL):
            return Result(result.key, status, None, result.failures)
        try:
            values = output_values(result, read)
        except contain as error:
            where = makers(self._plan, guilty_output(result, read, contain))
            failure = loop.refuse(result.root, unread(result, error, where))
            return Result(result.key, Status.FAILED, None, (*result.failures, failure))
        return Result(result.key, status, shaped(self._plan, values), result.failures)

    # ------------------------------------------------------------------------------ parts

    def _parts(
        self, delivery: Delivery, duplicates: Duplicates, interrupts: Interrupts, shown: Any
    ) -> tuple[Core, Admission, Loop]:
        self._workers = worker_specs(self._fitted, self._facts)
        core = Core(
            self._plan,
            self._workers,
            time.monotonic(),
            rules=self._rules,
            budget_bytes=self._budget,
            cores=self._fitted.cores,
        )
        admission = Admission(
            self._plan,
            self._source,
            self._backend,
            time.monotonic,
            duplicates,
            on_unreadable=self._note_unreadable,
        )
        loop = Loop(
            core,
            self._backend,
            self._workers,
            admission,
            delivery,
            clock=time.monotonic,
            on_failures=self._note_failures,
            on_counts=self._counters.add,
            on_untold=self._untold.add,
            progress=shown,
            interrupts=interrupts,
            inline=isinstance(self._backend, InlineBackend),
        )
        return core, admission, loop

    def _start(self) -> None:
        self._backend.start(self._plan, self._workers, self._writer)

    def _note_failures(self, failures: Sequence[Failure]) -> None:
        self._counts.add(failures)
        if self._log is not None:
            self._log.add(failures)

    def _note_unreadable(self, failure: Failure) -> None:
        """What the source cannot read is no root: a report tells of it; where there is none, a warning."""
        if self._reports:
            self._note_failures([failure])
        else:
            warnings.warn(
                f"{failure.call} left out {failure.where()}: {failure.message}", stacklevel=2
            )

    # ------------------------------------------------------------------------------ the end

    def _close_writer(self, loop: Loop, *, early: bool) -> None:
        """What had ended is written also when the run stops early, if it can be."""
        if self._writer is not None:
            loop.close_writer(early=early)

    def _report(
        self,
        core: Core,
        loop: Loop,
        admission: Admission,
        delivery: Delivery,
        stop: FanfoldError | KeyboardInterrupt | None,
    ) -> Report:
        now_s = time.monotonic()
        statistics = core.statistics(now_s)
        # What counts is what was committed: a root that ended but was not written is not done.
        statistics.roots = dict(delivery.statuses)
        report = Report(
            run=self.name,
            pipeline=self._plan.name,
            backend=self._backend_name,
            started=self._started.isoformat(timespec="milliseconds"),
            ended=datetime.datetime.now(datetime.UTC).isoformat(timespec="milliseconds"),
            wall_s=round(now_s - self._start_s, 6),
            first_worker_s=self._since_start(loop.first_worker_s),
            first_root_s=self._since_start(loop.first_root_s),
            root_level=self._plan.levels[0].name,
            duplicates=admission.skipped,
            unreadable=admission.unreadable,
            failures=self._counts.groups(),
            stopped=_stopped(stop),
            outputs=tuple(sink.target for sink in self._writer.sinks) if self._writer else (),
            run_dir=None if self.run_dir is None else str(self.run_dir),
            notes=(*self._fitted.notes, *statistics.notes, *self._untold.notes()),
            **counted(statistics, self._counters),
        )
        if self.run_dir is not None:
            report.write(self.run_dir / "report.json")
        return report

    def _since_start(self, time_s: float | None) -> float | None:
        return None if time_s is None else round(time_s - self._start_s, 6)


def _stopped(stop: FanfoldError | KeyboardInterrupt | None) -> Stopped | None:
    if stop is None:
        return None
    if isinstance(stop, FanfoldError):
        return Stopped(stop.code, stop.message, stop.hint)
    return Stopped("FF427", f"interrupted by {stop}")
