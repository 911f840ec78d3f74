"""Worker processes and their driver, by the backend's contract alone."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from fanfold import secret
from fanfold.backends.base import RecordsWritten, WriteFailed, WriterClosed
from fanfold.backends.local.backend import ARENA_DIR_VARIABLE, LocalBackend
from fanfold.backends.local.process import THREAD_VARIABLES
from fanfold.columns import constant_blob
from fanfold.errors import DefinitionError, SetupError, SourceError
from fanfold.protocol import (
    BatchFinished,
    RootResult,
    TasksFinished,
    WorkerDied,
    WorkerFailed,
    WorkerStarted,
)
from fanfold.stage_context import context
from tests import backend_stages as s
from tests.backends import HANG_S, Session, call_plan, refs_of


def session(
    target: Callable[..., Any], *, backend: LocalBackend | None = None, **options: Any
) -> Session:
    """A session with one worker; options of :func:`call_plan`."""
    return Session(backend or LocalBackend(), call_plan(target, **options))


@pytest.fixture(params=["memory", "directory", "variable"])
def backend(request, tmp_path, monkeypatch):
    """Values in anonymous memory, in mapped files, and in those named by the environment."""
    if request.param == "memory":
        monkeypatch.delenv(ARENA_DIR_VARIABLE, raising=False)
        return LocalBackend()
    if request.param == "directory":
        return LocalBackend(arena_dir=str(tmp_path))
    monkeypatch.setenv(ARENA_DIR_VARIABLE, str(tmp_path))
    return LocalBackend()


# ------------------------------------------------------------------------------ values


def test_values_go_round(backend):
    numpy = pytest.importorskip("numpy")
    image = numpy.arange(3_000_000, dtype="uint8").reshape(1_000, 3_000)
    values = [1, "ü", None, {"a": (1.5, [b"x"])}, b"z" * 3_000_000, image]
    with Session(backend, call_plan(s.identity)) as run:
        for _ in range(3):
            told = run.run(values)
            assert [told.values[i] for i in range(5)] == values[:5]
            assert (told.values[5] == image).all() and told.values[5].dtype == image.dtype
            run.release(told)


def test_a_value_goes_from_worker_to_worker_and_never_through_the_driver():
    plan = call_plan(s.make_not_here, s.values_of)
    with Session(LocalBackend(), plan) as run:
        batch = run.submit([os.getpid()])
        run.wait(BatchFinished)
        (ref,) = refs_of(e for e in run.heard if isinstance(e, TasksFinished))
        told = run.finish(run.send(("rows", ref, 0, 1), 1, worker=1, call=1))
        assert told.values == {0: [0, 1, 2]}
        with pytest.raises(AssertionError, match="unpickled in the driver"):
            run.told(batch)  # which reads the values here


def test_blocks_that_are_released_are_used_again():
    backend = LocalBackend(arena_limit_bytes=8_000_000)
    with session(s.large, backend=backend, batch_size=None) as run:
        for _ in range(20):
            told = run.run([3_000_000])
            assert told.failures == {}, "20 × 3 MB do not fit 8 MB at once"
            run.release(told)


def test_a_value_that_does_not_fit_fails_its_task_and_the_worker_lives():
    with session(s.large, backend=LocalBackend(arena_limit_bytes=1_000_000)) as run:
        told = run.run([10, 5_000_000, 20])
        assert told.failures[1][0] == "too_large"
        assert (len(told.values[0]), len(told.values[2])) == (10, 20)
        assert run.run([30]).values == {0: bytes(30)}


def test_a_value_that_cannot_be_pickled_fails_its_task_and_the_worker_lives():
    with session(s.unpicklable) as run:
        told = run.run(["a", "lock", "lambda"])
        assert told.failures[1][0] == "unpicklable" and "lock" in told.failures[1][1]
        assert told.values[0] == "a" and told.values[2]() == "lambda"
        assert run.run(["b"]).values == {0: "b"}


def test_an_input_that_cannot_be_unpickled_fails_the_task_that_reads_it():
    plan = call_plan(s.make_unreadable, s.identity)
    with Session(LocalBackend(), plan) as run:
        run.submit([0, 1, 2])
        run.wait(BatchFinished)
        (ref,) = refs_of(e for e in run.heard if isinstance(e, TasksFinished))
        many = run.finish(run.send(("rows", ref, 0, 3), 3, worker=1, call=1))
        assert many.raised == ("raised", "ValueError: cannot be read")
        alone = run.finish(run.send(("rows", ref, 1, 1), 1, worker=1, call=1))
        assert alone.failures == {0: ("raised", "ValueError: cannot be read")}


def test_a_sources_value_that_cannot_be_pickled_is_told_in_words():
    with session(s.identity) as run, pytest.raises(SourceError, match=r"FF408 item 1 .*inline"):
        run.backend.put([1, threading.Lock()])


# ------------------------------------------------------------------------------ workers


def test_batches_at_a_worker_run_in_order_and_their_constructor_once():
    with session(s.Counter, args=(10,)) as run:
        batches = [run.submit([None, None]) for _ in range(5)]
        counts = [run.finish(b).values[i][0] for b in batches for i in range(2)]
        assert counts == list(range(11, 21))


def test_replicas_are_processes_of_their_own():
    with Session(LocalBackend(), call_plan(s.Counter, args=()), replicas=3) as run:
        pids = {run.run([None], worker=w).values[0][1] for w in range(3)}
        assert len(pids) == 3 and os.getpid() not in pids
        started = [e for e in run.heard if isinstance(e, WorkerStarted)]
        assert {e.pid for e in started} == pids


def test_constructors_run_in_parallel(tmp_path):
    class Meets:
        """Returns when it is not alone: one after the other, none would ever be made."""

        def __init__(self) -> None:
            (tmp_path / str(os.getpid())).touch()
            while len(os.listdir(tmp_path)) < 3:
                time.sleep(0.001)

        def __call__(self, x: Any) -> Any:
            return x

    with Session(LocalBackend(), call_plan(Meets, args=()), replicas=3) as run:
        assert run.run([1], worker=2).values == {0: 1}


def test_the_driver_never_waits_for_a_worker_to_read():
    with session(s.Counter, args=()) as run:
        ((_, pid),) = run.run([None]).values.values()
        os.kill(pid, signal.SIGSTOP)
        blob = constant_blob("x" * 1_000_000)
        batches = [run.send(("const", blob, 2), 2) for _ in range(8)]  # 8 MB, and nobody reads
        assert run.backend.poll(0) == []
        os.kill(pid, signal.SIGCONT)
        for batch in batches:
            assert len(run.finish(batch).values) == 2


def test_a_worker_has_the_drivers_path_folder_and_environment_and_its_own_session(
    monkeypatch, tmp_path
):
    monkeypatch.setenv("FANFOLD_TEST", "here")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path / "somewhere"))
    with session(s.whereabouts, cpus=3) as run:
        (found,) = run.run([None]).values.values()
    assert found["environ"]["FANFOLD_TEST"] == "here"
    assert {found["environ"][name] for name in THREAD_VARIABLES} == {"3"}
    assert found["cwd"] == str(tmp_path) and str(tmp_path / "somewhere") in found["path"]
    assert found["session"] == found["pid"] != os.getsid(0)
    assert (found["stdin"], found["threads"], found["interrupt"]) == ("", 1, True)


def test_a_worker_imports_its_own_stages_code_and_nobody_elses(tmp_path, monkeypatch):
    (tmp_path / "heavy_model.py").write_text("def infer(x):\n    return x\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    import heavy_model  # type: ignore[import-not-found]  # made just now

    plan = call_plan(s.whereabouts, heavy_model.infer)
    with Session(LocalBackend(), plan) as run:
        (found,) = run.run([None]).values.values()
        assert run.run([4], worker=1, call=1).values == {0: 4}
    assert "heavy_model" not in found["modules"] and "tests.backend_stages" in found["modules"]


def test_functions_without_a_name_work():
    n = 5

    class Local:
        def __init__(self, by: int) -> None:
            self.by = by

        def __call__(self, xs: list[int]) -> list[Any]:
            return [(x * self.by + n, self) for x in xs]

    with session(Local, args=(2,), batch_size=4) as run:
        told = run.run([1, 2])
        assert [told.values[i][0] for i in range(2)] == [7, 9]
        assert isinstance(told.values[0][1], Local), "their values are of the class that is here"


def test_workers_start_while_another_thread_holds_a_lock():
    lock, held, done = threading.Lock(), threading.Event(), threading.Event()

    def hold() -> None:
        with lock:
            held.set()
            done.wait(HANG_S)

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait(HANG_S)
    try:
        with session(s.identity) as run:
            assert run.run([1]).values == {0: 1}
    finally:
        done.set()
        thread.join()


def test_a_run_survives_the_thread_that_started_it():
    made: list[Session] = []
    thread = threading.Thread(target=lambda: made.append(session(s.identity)))
    thread.start()
    thread.join()
    with made[0] as run:
        assert run.run([1]).values == {0: 1}


def test_output_goes_to_a_log_and_no_pipe_fills_up(tmp_path):
    for log_dir in (None, tmp_path / "logs"):
        with session(s.speak, backend=LocalBackend(log_dir=log_dir)) as run:
            run.run(["hello"])
            tail = run.backend.worker_log_tail(0)
            assert {"print hello", "error hello", "raw hello"} <= set(tail.splitlines())
    assert "print hello" in (tmp_path / "logs" / "speak[0].log").read_text()
    with session(s.shout, batch_size=None) as run:
        for _ in range(3):
            assert run.run([200_000]).values == {0: 200_000}
        tail = run.backend.worker_log_tail(0, 1_000)
        assert len(tail) == 1_000 and set(tail) <= {"e", "o"}


def test_a_log_is_told_without_its_colours():
    with session(s.speak) as run:
        run.run(["\x1b[1;32mgreen\x1b[0m\x1b[K"])
        assert "print green" in run.backend.worker_log_tail(0).splitlines()


def test_a_constructor_that_raises_is_told_and_its_end_is_no_death():
    with Session(LocalBackend(), call_plan(s.Unmakeable, args=("raise",)), ready=False) as run:
        (failed,) = run.wait(WorkerFailed)
        assert failed.failure.message == "RuntimeError: no weights"
        assert "in __init__" in failed.failure.traceback
        assert run.backend.poll(0.3) == []


@pytest.mark.parametrize(("how", "words"), [("abort", "SIGABRT"), ("exit", "code 7")])
def test_a_constructor_that_kills_its_process_is_a_death_that_ran_nothing(how, words):
    with Session(LocalBackend(), call_plan(s.Unmakeable, args=(how,)), ready=False) as run:
        (died,) = run.wait(WorkerDied)
        assert words in died.reason and "before it was ready" in died.reason
        assert died.running is None
        assert "about to fail" in run.backend.worker_log_tail(0)


def test_a_stage_that_cannot_be_sent_is_named():
    lock = threading.Lock()
    with pytest.raises(DefinitionError, match="FF406 stage '<lambda>' cannot be sent"):
        session(lambda x: lock)


def test_poll_waits_no_longer_than_told_and_tells_nothing_of_its_own_affairs():
    with session(s.identity) as run:
        assert run.backend.poll(0.0) == []
        assert run.backend.poll(0.05) == []
        run.submit([1])
        assert run.backend.poll(HANG_S), "only news end the waiting"


def test_closing_twice_and_without_a_start_is_harmless():
    LocalBackend().close()
    run = session(s.identity)
    run.backend.close()
    run.backend.close()


@pytest.mark.parametrize("how", ["return", "raise", "exit"])
def test_a_fork_of_a_worker_that_comes_back_out_of_its_stage_is_no_second_worker(how):
    with session(s.forks) as run:
        assert run.run([how, how]).values == {0: "parent", 1: "parent"}
        assert run.run([how]).values == {0: "parent"}


def test_programs_that_a_worker_executes_do_not_get_its_descriptors():
    with session(s.inheritable) as run:
        assert run.run([None]).values == {0: []}


def test_a_worker_without_an_output_ends_all_the_same():
    with session(s.spoils_output) as run:
        (started,) = [e for e in run.heard if isinstance(e, WorkerStarted)]
        assert run.run([1]).values == {0: 1}
    with pytest.raises(ProcessLookupError):
        os.kill(started.pid, 0)


# ------------------------------------------------------------------------------ the writer


def results(*keys: str, column: Any = None) -> list[RootResult]:
    columns = () if column is None else (column,)
    return [RootResult(i, key, "done", columns) for i, key in enumerate(keys)]


def test_records_are_written_in_a_process_of_their_own(tmp_path):
    writer = s.FileWriter(str(tmp_path / "out"))
    with Session(LocalBackend(), call_plan(s.identity), writer=writer) as run:
        rows = run.backend.put(["v"])
        run.backend.write(results("a", "b", column=("rows", rows.ref, 0, 1)))
        (written,) = run.wait(RecordsWritten)
        assert written.roots == (0, 1)
        run.backend.close_writer()
        run.wait(WriterClosed)
        first, second, last = (tmp_path / "out").read_text().splitlines()
    assert first.startswith("a ['v'] ") and second.startswith("b ['v'] ") and last == "closed"
    assert int(first.split()[-1]) != os.getpid()


@pytest.mark.parametrize(("refused", "root"), [("b", 1), ("open", -1), ("close", -1)])
def test_what_the_writer_cannot_do_is_told(tmp_path, refused, root):
    writer = s.FileWriter(str(tmp_path / "out"), refused)
    with Session(LocalBackend(), call_plan(s.identity), writer=writer) as run:
        run.backend.write(results("a", "b", "c"))
        run.backend.close_writer()
        (failed,) = run.wait(WriteFailed)
        assert failed.root == root
        written = [r for e in run.heard if isinstance(e, RecordsWritten) for r in e.roots]
        assert written == {"b": [0], "open": [], "close": [0, 1, 2]}[refused]


def test_a_writer_that_failed_writes_nothing_more_but_closes(tmp_path):
    writer = s.FileWriter(str(tmp_path / "out"), "b")
    with Session(LocalBackend(), call_plan(s.identity), writer=writer) as run:
        for each in results("a", "b", "c"):
            run.backend.write([each])
        run.backend.close_writer()
        run.wait(WriterClosed)
        written = [r for e in run.heard if isinstance(e, RecordsWritten) for r in e.roots]
    assert written == [0]
    assert [line.split()[0] for line in (tmp_path / "out").read_text().splitlines()] == [
        "a",
        "closed",
    ]


def test_the_writers_death_ends_the_run(tmp_path):
    writer = s.FileWriter(str(tmp_path / "out"))
    with Session(LocalBackend(), call_plan(s.identity), writer=writer) as run:
        run.backend.write(results("a", "die"))
        with pytest.raises(SetupError, match=r"FF404 .*SIGABRT"):
            run.wait(WriteFailed)


def test_ctrl_c_while_a_source_is_read_is_no_fault_of_its_values():
    class Interrupted:
        def __reduce__(self) -> Any:
            raise KeyboardInterrupt

    with session(s.identity) as run, pytest.raises(KeyboardInterrupt):
        run.backend.put([1, Interrupted()])


# ------------------------------------------------------------------------------ asynchronous stages


class Meet:
    """Answers when so many have come; one of them may be the end of all."""

    def __init__(self, together: int) -> None:
        self.together = together
        self.here = 0
        self.all_here = asyncio.Event()

    async def __call__(self, x: Any) -> Any:
        self.here += 1
        if self.here == self.together:
            self.all_here.set()
        await self.all_here.wait()
        if x == "die":
            os._exit(9)
        return x, context().worker


def meeting(together: int) -> Session:
    plan = call_plan(Meet, args=(together,), asynchronous=True, max_in_flight=8)
    return Session(LocalBackend(), plan)


def test_batches_of_an_asynchronous_stage_are_under_way_together():
    with meeting(3) as run:
        batches = [run.submit([n]) for n in range(3)]
        assert [run.finish(b).values for b in batches] == [{0: (n, "Meet[0]")} for n in range(3)]


def test_of_batches_that_were_under_way_together_none_is_to_blame():
    with meeting(2) as run:
        batches = [run.submit([1]), run.submit(["die"])]
        (died,) = run.wait(WorkerDied)
        assert died.running in batches
        assert not died.alone


def test_who_was_alone_is_to_blame():
    with meeting(1) as run:
        batch = run.submit(["die"])
        (died,) = run.wait(WorkerDied)
        assert (died.running, died.alone) == (batch, True)
        run.backend.restart(0)
        run.wait(WorkerStarted)
        assert run.run([1]).values == {0: (1, "Meet[0]")}


async def sweeping(x: Any) -> Any:
    """Waits for ever, or cancels whatever there is in the loop."""
    if x == "wait":
        await asyncio.Event().wait()
    if x == "sweep":
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()
    return x


@pytest.mark.parametrize("workers", ["process", "thread"])
def test_a_stage_that_cancels_all_tasks_of_its_loop_cancels_its_own_calls_alone(workers):
    plan = call_plan(sweeping, asynchronous=True, max_in_flight=2, workers=workers)
    with Session(LocalBackend(), plan) as run:
        first = run.submit(["wait", "sweep", 2, 3])
        others = [run.submit([n, n + 1]) for n in (4, 6)]
        told = run.finish(first)
        ((task, (kind, message)),) = told.failures.items()
        assert (task, kind) == (0, "raised") and "it was cancelled" in message
        assert told.values == {1: "sweep", 2: 2, 3: 3}
        found = [run.finish(batch).values for batch in others]
        assert found == [{0: n, 1: n + 1} for n in (4, 6)]
        assert not [event for event in run.heard if isinstance(event, WorkerDied)]


# ------------------------------------------------------------------------------ the end of workers


class Closes:
    def __init__(self, folder: Any, hangs: bool = False) -> None:
        self.folder, self.hangs = folder, hangs

    def __call__(self, x: Any) -> Any:
        while x == "busy":
            (self.folder / "busy").touch()
            time.sleep(0.001)
        return x

    def close(self) -> None:
        (self.folder / f"closing {os.getpid()}").touch()
        while self.hangs:
            time.sleep(0.001)
        (self.folder / f"closed {os.getpid()}").touch()


def names(folder: Any) -> list[str]:
    return sorted(file.name.partition(" ")[0] for file in folder.iterdir())


def test_idle_workers_are_closed_and_busy_ones_killed(tmp_path):
    plan = call_plan(Closes, args=(tmp_path,))
    with Session(LocalBackend(), plan, replicas=2) as run:
        run.submit(["busy"])
        deadline = time.monotonic() + HANG_S
        while not (tmp_path / "busy").exists():
            run.backend.poll(0.01)  # which also sends
            assert time.monotonic() < deadline
    assert names(tmp_path) == ["busy", "closed", "closing"]


def test_a_close_that_hangs_does_not_hold_up_the_end(tmp_path, monkeypatch):
    with Session(LocalBackend(), call_plan(Closes, args=(tmp_path, True))) as run:
        (started,) = [e for e in run.heard if isinstance(e, WorkerStarted)]
    assert names(tmp_path) == ["closing"]
    with pytest.raises(ProcessLookupError):
        os.kill(started.pid, 0)


def test_a_workers_last_words_are_shown_without_secrets(monkeypatch):
    monkeypatch.setattr(secret, "_hidden", {})
    monkeypatch.setenv("TOKEN", "hunter2")

    def tells(x: Any, *, token: str) -> Any:
        print(f"my token is {token}")
        return x

    plan = call_plan(tells, static={"token": secret.Secret("TOKEN")})
    with Session(LocalBackend(), plan) as run:
        run.run([1])
        assert run.backend.worker_log_tail(0) == "my token is <secret TOKEN>\n"
