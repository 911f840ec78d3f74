"""The loop: the only one, and the only place of a run that reads the clock.

Owns the order in which a run's parts get their turn. It decides nothing: which work goes where is the core's
decision, how it gets there the backend's, what is admitted and delivered that of the source's and the sink's
side. One turn of it is :meth:`Loop.step`.
"""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Callable, Sequence
from typing import Final, Protocol

from fanfold.backends.base import (
    Backend,
    BackendEvent,
    RecordRefused,
    RecordsWritten,
    WorkerSpec,
    WriteFailed,
    WriterClosed,
)
from fanfold.driver.admission import Admission
from fanfold.driver.delivery import Delivery
from fanfold.driver.interrupts import Interrupts
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
from fanfold.engine.statistics import Statistics
from fanfold.errors import FanfoldError, InternalError, RunStopped, SetupError, SinkError
from fanfold.failures import Failure
from fanfold.observe.progress import Progress
from fanfold.protocol import (
    BatchFinished,
    BatchRaised,
    ChildrenReleased,
    Count,
    DriverEvent,
    Event,
    RootRefused,
    RootResult,
    RootsCommitted,
    SourceExhausted,
    StreamRows,
    TasksFinished,
    WorkerDied,
    WorkerFailed,
    WorkerStarted,
)

_CODE: Final = re.compile(r"FF\d{3}")

WAIT_S: Final = 0.2
"""A signal that arrives while the loop waits for workers is noticed within this time."""
_HINT_NO_MODULE: Final = (
    "Workers find modules where the program that starts the run does: they get its sys.path and its working "
    "folder. Install the module, or put its folder on PYTHONPATH."
)
DEATHS_AT_START: Final = 3
"""A worker that dies so often in a row before it is ready will not come up."""


class CoreLike(Protocol):
    """Engine and dispatch, as the loop uses them (:class:`fanfold.dispatch.core.Core`)."""

    def handle(self, event: Event | DriverEvent) -> list[Command]: ...
    def dispatch(self, time_s: float) -> list[Command]: ...
    def room(self) -> int: ...
    @property
    def due_s(self) -> float | None: ...
    @property
    def finished(self) -> bool: ...
    def statistics(self, time_s: float) -> Statistics: ...


class Loop:
    """One run in motion.

    Args:
        core: Decides.
        backend: Started already; carries out.
        workers: What the backend was started with.
        admission: Gives roots.
        delivery: Takes roots that ended.
        clock: Monotonic seconds.
        on_failures: Told of failures once each, as their root ends.
        on_counts: Told what stages have counted.
        on_untold: Told of items of which the function of an option told nothing: the call, the option, of how
            many, and one of them in words.
        progress: Shown when it is due.
        interrupts: Asked between turns whether the run should stop.
        inline: The backend runs users' code in this thread, in ``poll``.
    """

    def __init__(
        self,
        core: CoreLike,
        backend: Backend,
        workers: Sequence[WorkerSpec],
        admission: Admission,
        delivery: Delivery,
        *,
        clock: Callable[[], float],
        on_failures: Callable[[Sequence[Failure]], None],
        progress: Progress,
        interrupts: Interrupts,
        inline: bool = False,
        on_counts: Callable[[Sequence[Count]], None] = lambda _: None,
        on_untold: Callable[[int, str, int, str], None] = lambda *_: None,
    ) -> None:
        self._core = core
        self._backend = backend
        self._workers = {spec.worker: spec for spec in workers}
        self._admission = admission
        self._delivery = delivery
        self._clock = clock
        self._on_failures = on_failures
        self._on_counts = on_counts
        self._on_untold = on_untold
        self._progress = progress
        self._interrupts = interrupts
        self._inline = inline
        self._deaths = dict.fromkeys(self._workers, 0)
        self._committed: list[int] = []
        self._moved = True
        self._dispatched = False
        """Nothing has happened since work was last given out."""
        self._exhausted = False
        self._write_error: SinkError | None = None
        self._writer_lost = False
        self._source_error: FanfoldError | None = None
        self._stop: RunStopped | None = None
        """Why the core has the run stopped; raised when all that had happened by then is taken in."""
        self.first_worker_s: float | None = None
        self.first_root_s: float | None = None

    @property
    def finished(self) -> bool:
        """Every root is committed and no more will come.

        Raises:
            FanfoldError: That is so because the source failed. What it gave before was finished all the same.
        """
        if self._core.finished and self._source_error is not None:
            raise self._source_error
        return self._core.finished

    def run(self) -> None:
        """Take turns until the run is finished.

        Raises:
            RunStopped: Failures stopped it.
            FanfoldError: The run cannot go on.
            KeyboardInterrupt: It was asked to stop.
        """
        while not self.finished:
            self.step()

    def step(self) -> None:
        """One turn: admit, dispatch, wait for what workers report, deliver.

        Raises:
            RunStopped: Failures stopped the run. What had happened until then was taken in.
            FanfoldError: The run cannot go on.
            KeyboardInterrupt: It was asked to stop.
        """
        self._interrupts.check()
        self._moved = False
        more = self._admit()
        self.heed_stop()
        if self._moved or not self._dispatched:
            self._dispatch()
        if self._core.finished:
            return
        # Wait only if nothing can be done without news.
        events = self._poll(0.0 if more or self._committed else self._patience_s())
        for event in events:
            self._moved = True
            match event:
                case RecordsWritten() | RecordRefused() | WriteFailed():
                    self._committed += self._hear_writer(event)
                case WriterClosed():
                    raise InternalError("FF911", "the sinks were closed before the run's end.")
                case WorkerFailed():
                    if self._core.handle(event):
                        raise self._cannot_start(event)
                case _:
                    self._note(event)
                    self._carry_out(self._core.handle(event))
        self._commit()
        self.heed_stop()
        self._dispatch()
        if self._inline and not (self._moved or more):
            if self._core.due_s is None:
                raise InternalError(
                    "FF910",
                    "the run stands still: nothing runs, nothing can be admitted, not finished.",
                )
            time.sleep(self._patience_s())  # its backend has nobody to wait for
        now_s = self._clock()
        if now_s >= self._progress.due_s:
            statistics = self._core.statistics(now_s)
            statistics.roots = self._delivery.corrected(statistics.roots)
            self._progress.show(statistics, now_s)

    def commit(self, roots: Sequence[int]) -> None:
        """These roots were handed out; their values may go."""
        self._committed += roots
        self._dispatched = False
        self._commit()

    def refuse(self, root: int, failure: Failure) -> Failure:
        """A root that had ended failed after all, where its values were to go. Returns the complete failure."""
        failure = self._delivery.refused(root, failure)
        self._on_failures([failure])
        self._carry_out(self._core.handle(RootRefused(root, failure, self._clock())))
        return failure

    def close_writer(self, *, early: bool = False) -> None:
        """Have the sinks closed when all is written, and wait until they are.

        A writer that failed writes nothing more, but closes; one that is gone is not waited for.

        Args:
            early: The run stops: what waits for a root before it is written too.

        Raises:
            SinkError: Records cannot be written, or the sinks not be closed.
            KeyboardInterrupt: A signal came that had not stopped the run before.
        """
        if self._writer_lost:
            return
        stopping = self._interrupts.pending is not None
        known = self._write_error
        if early and known is None:
            self._delivery.stop()
        self._backend.close_writer()
        while True:
            if not stopping:
                self._interrupts.check()
            for event in self._hear(WAIT_S):
                match event:
                    case RecordsWritten() | RecordRefused() | WriteFailed():
                        with contextlib.suppress(
                            SinkError
                        ):  # told below, once the sinks are closed
                            self._hear_writer(event)
                        if self._writer_lost:
                            break
                    case WriterClosed():
                        self._writer_lost = True
            if self._writer_lost:
                break
        if self._write_error is not None and self._write_error is not known:
            raise self._write_error

    # ------------------------------------------------------------------------------ the turns

    def _admit(self) -> bool:
        """Admit what there is room for; whether more could be admitted at once."""
        if self._exhausted:
            return False
        room = self._core.room()
        if room <= 0:
            return False
        self._interrupts.immediate = True  # the source is the user's: it may wait for ever
        event = None
        try:
            event = self._admission.pull(room)
        except FanfoldError as error:
            self._source_error = error
        finally:
            self._interrupts.immediate = False
        if event is not None:
            self._moved = True
            self._note_untold(event.streams)
            self._carry_out(self._core.handle(event))
        if self._admission.exhausted or self._source_error is not None:
            self._moved = self._exhausted = True
            self._carry_out(self._core.handle(SourceExhausted(self._clock())))
            return False
        return True

    def _dispatch(self) -> None:
        self._carry_out(self._core.dispatch(self._clock()))
        self._dispatched = True
        self._commit()

    def _poll(self, timeout_s: float) -> Sequence[Event | BackendEvent]:
        if not self._inline:
            return self._hear(timeout_s)
        self._interrupts.immediate = True
        try:
            return self._hear(timeout_s)
        finally:
            self._interrupts.immediate = False

    def _hear(self, timeout_s: float) -> Sequence[Event | BackendEvent]:
        try:
            return self._backend.poll(timeout_s)
        except SetupError:  # a process that the backend cannot do without is gone
            self._writer_lost = True
            raise

    def _hear_writer(self, event: RecordsWritten | RecordRefused | WriteFailed) -> Sequence[int]:
        """The roots that are committed by now.

        Raises:
            SinkError: The writer failed; it commits nothing more.
        """
        match event:
            case RecordsWritten():
                return self._delivery.written(event.roots)
            case RecordRefused():
                self.refuse(event.root, event.failure)
                return (event.root,)
            case WriteFailed():
                self._writer_lost = event.root < 0
                self._write_error = self._cannot_write(event)
                raise self._write_error

    def _patience_s(self) -> float:
        due_s = self._progress.due_s
        if self._core.due_s is not None:
            due_s = min(due_s, self._core.due_s)
        return max(0.0, min(WAIT_S, due_s - self._clock()))

    def _commit(self) -> None:
        while self._committed:
            roots, self._committed = tuple(self._committed), []
            self._moved = True
            self._admission.committed(roots)
            self._carry_out(self._core.handle(RootsCommitted(roots, self._clock())))

    def _carry_out(self, commands: Sequence[Command]) -> None:
        for command in commands:
            match command:
                case StartBatch():
                    self._moved = True
                    self._backend.submit(command.worker, command.batch)
                case TrimBatch():
                    self._backend.trim(command.worker, command.batch, command.tasks)
                case GrantRoom():
                    self._backend.grant(command.worker, command.batch, command.room)
                case SpillBlocks():
                    self._backend.spill(command.refs)
                case ReleaseBlocks():
                    self._backend.release(command.refs)
                case FinishRoots():
                    self._finish(command.results)
                case RestartWorker():
                    self._moved = True
                    self._backend.restart(command.worker)
                case RecycleWorker():
                    self._moved = True
                    self._backend.recycle(command.worker)
                case AddWorker():
                    self._moved = True
                    self._backend.add(command.worker)
                case RetireWorker():
                    self._backend.retire(command.worker)
                case StopRun():
                    self._stop = RunStopped(
                        "FF421", f"the run was stopped: {command.message}", command.hint
                    )
                    self._stop.failure = command.failure

    def heed_stop(self) -> None:
        """See to it that a run does not go on, or end well, when something was to stop it.

        Raises:
            RunStopped: Something was.
        """
        if self._stop is not None:
            raise self._stop

    def _finish(self, results: Sequence[RootResult]) -> None:
        if self.first_root_s is None:
            self.first_root_s = self._clock()
        failures = [failure for result in results for failure in result.failures]
        if failures:
            self._on_failures(failures)
        self._committed += self._delivery.finish(results)

    # ------------------------------------------------------------------------------ workers

    def _note(self, event: Event) -> None:
        """What the loop itself must know of a worker."""
        match event:
            case TasksFinished() | ChildrenReleased():
                self._note_untold(event.streams)
            case BatchFinished() | BatchRaised():
                if event.counts:
                    self._on_counts(event.counts)
            case WorkerStarted():
                self._deaths[event.worker] = 0
                if self.first_worker_s is None:
                    self.first_worker_s = self._clock()
            case WorkerDied() if event.running is None:
                self._deaths[event.worker] += 1
                if self._deaths[event.worker] >= DEATHS_AT_START:
                    name = self._workers[event.worker].name
                    raise SetupError(
                        "FF422",
                        f"worker {name} died {DEATHS_AT_START} times in a row without running anything: "
                        f"{event.reason}.\n{self._log(event.worker)}",
                        "Try the stage on its own: construct it in a script and see what happens.",
                    )

    def _note_untold(self, streams: Sequence[StreamRows]) -> None:
        for stream in streams:
            for one in stream.untold:
                self._on_untold(*one)

    def _cannot_start(self, event: WorkerFailed) -> SetupError:
        worker, failure = event.worker, event.failure
        if event.told is not None:
            error = SetupError(*event.told)
            if failure.traceback:
                error.add_note(f"In {failure.worker}:\n{failure.traceback.rstrip()}")
            return error
        spec = self._workers[worker]
        stage = spec.name.rpartition("[")[0]
        trace = f"\n{failure.traceback.rstrip()}\n" if failure.traceback else ""
        return SetupError(
            "FF423",
            f"stage {stage!r} cannot be started (worker {spec.name}): {failure.message}."
            f"{trace}{self._log(worker)}",
            _HINT_NO_MODULE
            if failure.exception.rpartition(".")[2] == "ModuleNotFoundError"
            else "Mend what the last lines of the traceback show, or what the stage needs on this machine: a "
            "stage is loaded and its constructor runs in each worker, before the first item.",
        )

    def _log(self, worker: int) -> str:
        tail = self._backend.worker_log_tail(worker).rstrip()
        return f"The worker's last output:\n{tail}\n" if tail else ""

    def _cannot_write(self, event: WriteFailed) -> SinkError:
        code, _, message = event.message.partition(" ")
        if _CODE.fullmatch(code):  # one of Fanfold's own, raised where the records are written
            return SinkError(code, message)
        trace = f"\n{event.traceback.rstrip()}\n" if event.traceback else ""
        return SinkError(
            "FF331",
            f"a record could not be written: {event.message}.{trace}",
            "Records committed before stay.",
        )
