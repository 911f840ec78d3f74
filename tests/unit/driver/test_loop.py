"""The loop against a core and a backend that do what a test says."""

import importlib
from typing import Any

import pytest

from fanfold.backends.base import (
    RecordRefused,
    RecordsWritten,
    WorkerSpec,
    WriteFailed,
    WriterClosed,
)
from fanfold.backends.inline import InlineBackend
from fanfold.data.sources import from_items
from fanfold.driver.admission import Admission, opened
from fanfold.driver.delivery import Counted, Delivery, Written
from fanfold.driver.interrupts import Interrupts
from fanfold.driver.loop import DEATHS_AT_START, Loop
from fanfold.engine.commands import (
    FinishRoots,
    RecycleWorker,
    ReleaseBlocks,
    RestartWorker,
    StartBatch,
    StopRun,
)
from fanfold.engine.statistics import Statistics
from fanfold.errors import InternalError, RunStopped, SetupError, SinkError, SourceError
from fanfold.failures import Failure
from fanfold.observe.progress import NoProgress
from fanfold.protocol import (
    BatchFinished,
    RootRefused,
    RootResult,
    RootsAdmitted,
    RootsCommitted,
    RunBatch,
    SourceExhausted,
    WorkerDied,
    WorkerFailed,
    WorkerStarted,
)
from tests.plans import fan_out_plan


class FakeCore:
    """Every admitted root is a batch; every batch that finishes ends its root."""

    def __init__(self, *, room: int = 100) -> None:
        self.seen: list[object] = []
        self.waiting: list[int] = []
        self.keys: list[str] = []
        self.committed = 0
        self.exhausted = False
        self.ended: dict[str, int] = {}
        self._room = room
        self.due_s: float | None = None
        self.reply: dict[type, list[object]] = {}

    def handle(self, event):
        self.seen.append(event)
        if type(event) in self.reply:
            return self.reply[type(event)]
        match event:
            case RootsAdmitted():
                self.waiting += range(len(self.keys), len(self.keys) + len(event.keys))
                self.keys += event.keys
            case SourceExhausted():
                self.exhausted = True
            case BatchFinished():
                failures = (Failure(kind="raised", message="x"),) if event.batch == 1 else ()
                status = "failed" if failures else "done"
                self.ended[status] = self.ended.get(status, 0) + 1
                result = RootResult(event.batch, self.keys[event.batch], status, (), {}, failures)
                return [FinishRoots((result,))]
            case RootsCommitted():
                self.committed += len(event.roots)
                return [ReleaseBlocks(event.roots)]
        return []

    def dispatch(self, time_s: float):
        batches, self.waiting = self.waiting, []
        return [StartBatch(0, RunBatch(batch, 0, 1, ())) for batch in batches]

    def room(self) -> int:
        return self._room

    @property
    def finished(self) -> bool:
        return self.exhausted and self.committed == len(self.keys)

    def statistics(self, time_s: float) -> Statistics:
        return Statistics(roots=dict(self.ended), admitted=len(self.keys))


class FakeBackend(InlineBackend):
    """Finishes every batch at once, and says what it is told to say first."""

    def __init__(self, *events) -> None:
        super().__init__()
        self.events: list[Any] = [*events]
        self.restarted: list[int] = []
        self.recycled: list[int] = []
        self.released: list[object] = []
        self.written: list[int] = []
        self.timeouts: list[float | None] = []

    def submit(self, worker, batch) -> None:
        self.events.append(BatchFinished(batch.batch))

    def recycle(self, worker) -> None:
        self.recycled.append(worker)

    def restart(self, worker) -> None:
        self.restarted.append(worker)

    def release(self, refs) -> None:
        self.released += refs

    def write(self, results) -> None:
        self.written += [r.root for r in results]
        self.events.append(RecordsWritten(tuple(r.root for r in results)))

    def close_writer(self) -> None:
        self.events.append(WriterClosed())

    def poll(self, timeout_s):
        self.timeouts.append(timeout_s)
        events, self.events = self.events, []
        return events

    def worker_log_tail(self, worker, limit_bytes=4096) -> str:
        return "last words"


def loop(
    core, backend, *, items: Any = range(3), delivery: Delivery | None = None, **changes
) -> Loop:
    noted: list[Failure] = []
    source = items if hasattr(items, "take") else from_items(items)
    made = Loop(
        core,
        backend,
        [WorkerSpec(0, 0, "Ocr[0]")],
        Admission(fan_out_plan(), opened(source), backend, lambda: 0.0),
        delivery or Counted(),
        clock=lambda: 0.0,
        on_failures=noted.extend,
        progress=changes.pop("progress", NoProgress()),
        interrupts=changes.pop("interrupts", Interrupts()),
        inline=changes.pop("inline", True),
    )
    made.noted = noted  # type: ignore[attr-defined]
    return made


def test_a_run_goes_to_its_end_and_every_failure_is_told_once():
    core, backend, delivery = FakeCore(), FakeBackend(), Counted()
    running = loop(core, backend, delivery=delivery)
    running.run()
    assert core.finished
    assert delivery.statuses == {"done": 2, "failed": 1}
    assert len(running.noted) == 1  # type: ignore[attr-defined]
    assert sorted(backend.released) == [0, 1, 2]  # type: ignore[type-var]


def test_an_empty_source_is_a_run_too():
    core = FakeCore()
    loop(core, FakeBackend(), items=[]).run()
    assert [type(event) for event in core.seen] == [SourceExhausted]


def test_roots_are_committed_only_when_they_are_written():
    core, backend = FakeCore(), FakeBackend()
    delivery = Written(backend, "source", "document")
    running = loop(core, backend, delivery=delivery)
    running.run()
    assert backend.written == [0, 1, 2]
    assert core.committed == 3
    running.close_writer()


def test_nothing_is_pulled_without_room():
    core = FakeCore(room=0)
    running = loop(core, FakeBackend(), inline=False)
    running.step()
    assert core.keys == []


def test_it_waits_only_when_nothing_can_be_done():
    core, backend = FakeCore(room=2), FakeBackend()
    running = loop(core, backend, inline=False)
    running.step()
    assert backend.timeouts == [0.0], "more can be admitted"
    core._room = 0
    running.step()
    assert backend.timeouts[1] > 0  # type: ignore[operator]


def test_it_waits_no_longer_than_a_batch_may_linger():
    core, backend = FakeCore(room=0), FakeBackend()
    running = loop(core, backend, inline=False)
    core.due_s = 0.05
    running.step()
    core.due_s = -1.0
    running.step()
    assert backend.timeouts == [0.05, 0.0]


def test_a_source_that_fails_stops_the_run_when_its_roots_are_done():
    def items():
        yield from range(2)
        raise ValueError("x")

    core, delivery = FakeCore(), Counted()
    with pytest.raises(SourceError, match="FF316"):
        loop(core, FakeBackend(), items=items(), delivery=delivery).run()
    assert sum(delivery.statuses.values()) == 2


def stopping() -> FakeCore:
    """A run that ends when a worker cannot be made."""
    core = FakeCore()
    core.reply[WorkerFailed] = [StopRun(Failure(kind="raised", message="x"), "x.")]
    return core


def test_a_run_that_does_not_need_a_worker_goes_on_without_it():
    failure = Failure(kind="raised", message="no memory")
    core = FakeCore()
    loop(core, FakeBackend(WorkerFailed(0, failure))).run()
    assert core.finished


def test_a_worker_that_cannot_be_made_is_told_with_stage_traceback_and_output():
    failure = Failure(kind="raised", message="ImportError: torch", traceback="Traceback: here")
    with pytest.raises(SetupError, match="FF423 stage 'Ocr'") as told:
        loop(stopping(), FakeBackend(WorkerFailed(0, failure))).run()
    parts = ("worker Ocr[0]", "ImportError: torch", "Traceback: here", "last words", "What to do: ")
    positions = [str(told.value).find(part) for part in parts]
    assert -1 not in positions and positions == sorted(positions)


def test_of_a_module_that_is_not_found_it_says_how_modules_are_found():
    with pytest.raises(ImportError) as missing:
        importlib.import_module("fanfold.no_such_module")
    failure = Failure.from_exception(missing.value)
    with pytest.raises(SetupError, match="FF423 stage 'Ocr'") as told:
        loop(stopping(), FakeBackend(WorkerFailed(0, failure))).run()
    assert "sys.path" in told.value.hint and "constructor" not in told.value.hint


def test_a_worker_is_replaced_when_the_core_says_so():
    core, backend = FakeCore(room=0), FakeBackend(WorkerStarted(0))
    core.reply[WorkerStarted] = [RecycleWorker(0)]
    loop(core, backend, inline=False).step()
    assert (backend.recycled, backend.restarted) == ([0], [])


def test_a_worker_that_dies_is_restarted_but_not_for_ever():
    core, backend = FakeCore(room=0), FakeBackend()
    core.reply[WorkerDied] = [RestartWorker(0)]
    running = loop(core, backend, inline=False)
    for _ in range(2):
        backend.events += [WorkerDied(0, "was killed")] * (DEATHS_AT_START - 1)
        backend.events.append(WorkerStarted(0))
        running.step()
    assert backend.restarted == [0] * 2 * (DEATHS_AT_START - 1)
    backend.events += [WorkerDied(0, "was killed by SIGSEGV")] * DEATHS_AT_START
    with pytest.raises(SetupError, match=r"FF422 worker Ocr.0. died 3 times .*SIGSEGV"):
        running.step()


def test_deaths_in_work_are_the_cores_business():
    core, backend = FakeCore(room=0), FakeBackend()
    backend.events += [WorkerDied(0, "was killed", running=n) for n in range(5)]
    loop(core, backend, inline=False).step()
    assert len(core.seen) == 5


def test_the_core_may_stop_the_run():
    core = FakeCore()
    failure = Failure(kind="raised", message="x")
    core.reply[RootsAdmitted] = [StopRun(failure, "too many failures.", "Allow more.")]
    with pytest.raises(RunStopped, match=r"FF421 .*: too many failures. Allow more.") as told:
        loop(core, FakeBackend()).run()
    assert (told.value.hint, told.value.failure) == ("Allow more.", failure)
    assert told.value.exit_code == 1


def test_what_happened_before_a_stop_is_taken_in_and_nothing_is_begun_after_it():
    class Stopping(FakeCore):
        """Stops at the failure of root 1."""

        def handle(self, event):
            commands = super().handle(event)
            if not isinstance(event, BatchFinished) or event.batch != 1:
                return commands
            self.waiting.append(99)
            return [*commands, StopRun(Failure(kind="raised", message="x"), "x failed.")]

    core, backend = Stopping(), FakeBackend()
    delivery = Written(backend, "source", "document")
    running = loop(core, backend, delivery=delivery)
    with pytest.raises(RunStopped, match="FF421"):
        running.run()
    assert backend.written == [0, 1, 2], "root 2 was told of in the same poll"
    assert core.waiting == [99]
    running.close_writer(early=True)
    assert delivery.statuses == {"done": 2, "failed": 1}


def test_the_core_hears_of_a_root_that_the_sink_refuses_and_may_stop_the_run_then():
    core, backend = FakeCore(), Refusing()
    core.reply[RootRefused] = [StopRun(Failure(kind="contract", message="bytes"), "bytes.")]
    running = loop(core, backend, delivery=Written(backend, "source", "document"))
    with pytest.raises(RunStopped, match=r"FF421 .*: bytes"):
        running.run()
    (heard,) = [event for event in core.seen if isinstance(event, RootRefused)]
    assert (heard.root, heard.failure.levels) == (0, ("document",))
    assert core.committed == 3


@pytest.mark.parametrize(
    ("message", "code"),
    [("FF326 the record of 'a' cannot be written", "FF326"), ("OSError: full", "FF331")],
)
def test_a_record_that_cannot_be_written_ends_the_run(message, code):
    backend = FakeBackend(WriteFailed(0, message))
    with pytest.raises(SinkError) as told:
        loop(FakeCore(), backend).run()
    assert told.value.code == code


def test_a_run_that_stops_early_writes_what_had_ended():
    core, backend = FakeCore(), FakeBackend()
    delivery = Written(backend, "source", "document")
    running = loop(core, backend, delivery=delivery)
    delivery.finish([RootResult(2, "c", "done", ()), RootResult(1, "b", "done", ())])
    running.close_writer(early=True)
    assert backend.written == [1, 2]
    assert delivery.statuses == {"done": 2}


class Refusing(FakeBackend):
    """Refuses the first root."""

    def write(self, results) -> None:
        for root in [r.root for r in results]:
            refused = Failure(kind="contract", message="bytes", key=str(root), ordinals=(root,))
            self.events.append(
                RecordRefused(root, refused) if root == 0 else RecordsWritten((root,))
            )


class Shown(NoProgress):
    """Notes what is to be shown after each turn."""

    def __init__(self) -> None:
        self.due_s = 0.0
        self.roots: list[dict[str, int]] = []

    def _draw(self, statistics: Statistics, time_s: float) -> None:
        self.roots.append(statistics.roots)


def test_progress_shows_a_root_that_the_sink_refused_as_failed():
    core, backend, shown = FakeCore(), Refusing(), Shown()
    delivery = Written(backend, "source", "document")
    loop(core, backend, delivery=delivery, progress=shown).run()
    assert {"done": 2, "failed": 1} in shown.roots  # all have ended, none is written yet
    assert shown.roots[-1] == {"done": 1, "failed": 2} == delivery.statuses


def test_a_root_that_the_sink_refuses_fails_and_the_run_goes_on():
    core, backend = FakeCore(), Refusing()
    delivery = Written(backend, "source", "document")
    running = loop(core, backend, delivery=delivery)
    running.run()
    assert core.committed == 3
    assert delivery.statuses == {"failed": 2, "done": 1}  # the core's own failure is root 1
    noted = running.noted  # type: ignore[attr-defined]
    assert sorted(failure.kind for failure in noted) == ["contract", "raised"]


class BrokenWriter(FakeBackend):
    """Commits one root, and cannot commit the next."""

    def write(self, results) -> None:
        for root in [r.root for r in results]:
            self.written.append(root)
            if len(self.written) == 1:
                self.events.append(RecordsWritten((root,)))
            elif len(self.written) == 2:
                self.events.append(WriteFailed(root, "full"))


def test_nothing_is_waited_for_from_a_writer_that_failed():
    core, backend = FakeCore(), BrokenWriter()
    delivery = Written(backend, "completed", "document")
    running = loop(core, backend, delivery=delivery)
    with pytest.raises(SinkError, match="FF331"):
        running.run()
    delivery.finish([RootResult(3, "d", "done", ())])
    polls = len(backend.timeouts)
    running.close_writer(early=True)
    assert len(backend.timeouts) == polls + 1


def test_what_is_committed_while_the_sinks_close_counts():
    core, backend = FakeCore(), BrokenWriter()
    delivery = Written(backend, "completed", "document")
    running = loop(core, backend, delivery=delivery)
    delivery.finish([RootResult(root, f"k{root}", "done", ()) for root in range(3)])
    with pytest.raises(SinkError, match="FF331"):
        running.close_writer(early=True)
    assert delivery.statuses == {"done": 1}


def test_a_writer_that_is_gone_is_not_waited_for():
    class Gone(FakeBackend):
        def poll(self, timeout_s):
            raise SetupError("FF404", "the process that writes records was killed.")

        def close_writer(self) -> None:
            raise AssertionError("there is no writer")

    running = loop(FakeCore(), Gone())
    with pytest.raises(SetupError, match="FF404"):
        running.run()
    running.close_writer(early=True)


def test_sinks_that_cannot_be_closed_are_told():
    backend = FakeBackend(WriteFailed(-1, "FF328 out cannot be completed"))
    running = loop(FakeCore(), backend)
    with pytest.raises(SinkError, match="FF328"):
        running.close_writer()


def test_a_signal_stops_it_between_two_turns():
    interrupts = Interrupts()
    interrupts.pending = "Ctrl-C"
    with pytest.raises(KeyboardInterrupt):
        loop(FakeCore(), FakeBackend(), interrupts=interrupts).run()


def test_a_signal_stops_the_wait_for_sinks_that_do_not_close():
    interrupts = Interrupts()

    class Stuck(FakeBackend):
        def close_writer(self) -> None:
            interrupts.pending = "Ctrl-C"

        def poll(self, timeout_s):
            raise AssertionError("nothing will come")

    with pytest.raises(KeyboardInterrupt):
        loop(FakeCore(), Stuck(), interrupts=interrupts).close_writer()


def test_a_signal_that_stopped_the_run_does_not_keep_what_had_ended_from_being_written():
    interrupts = Interrupts()
    interrupts.pending = "Ctrl-C"
    backend = FakeBackend()
    delivery = Written(backend, "completed", "document")
    running = loop(FakeCore(), backend, delivery=delivery, interrupts=interrupts)
    delivery.finish([RootResult(0, "a", "done", ())])
    running.close_writer(early=True)
    assert delivery.statuses == {"done": 1}


def test_a_run_that_stands_still_in_this_thread_is_no_endless_loop():
    with pytest.raises(InternalError, match="FF910"):
        loop(FakeCore(room=0), FakeBackend()).run()
