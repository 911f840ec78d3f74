"""The inline backend: one batch per poll, values as they are, exceptions as the caller wants them."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import pytest

from fanfold.backends.base import RecordRefused, RecordsWritten, WriteFailed, WriterClosed
from fanfold.backends.inline import InlineBackend
from fanfold.errors import SinkValueError
from fanfold.protocol import (
    BatchFinished,
    BatchPaused,
    RootResult,
    WorkerFailed,
    WorkerStarted,
)
from tests.backends import Session, call_plan


def test_values_stay_what_they_are():
    lock = threading.Lock()
    with Session(InlineBackend(), call_plan(lambda x: [x, lock])) as run:
        told = run.run([lock])
        assert told.values[0][0] is lock and told.values[0][1] is lock


def test_one_batch_is_run_per_poll():
    seen: list[int] = []
    with Session(InlineBackend(), call_plan(lambda x: seen.append(x))) as run:
        run.submit([1, 2])
        run.submit([3])
        run.backend.poll(None)
        assert seen == [1, 2]
        run.backend.poll(0)
        assert seen == [1, 2, 3]
        assert run.backend.poll(None) == [], "there is nobody to wait for"


def test_constructors_run_at_the_first_poll_and_again_after_a_restart():
    made: list[int] = []

    class Stage:
        def __init__(self) -> None:
            made.append(1)

        def __call__(self, x: Any) -> Any:
            return x

    with Session(InlineBackend(), call_plan(Stage, args=()), ready=False) as run:
        assert made == []
        run.wait(WorkerStarted)
        run.backend.restart(0)
        run.wait(WorkerStarted)
        assert len(made) == 2


def raise_(error: BaseException) -> Any:
    raise error


def test_a_constructor_that_raises_is_told():
    class Stage:
        def __init__(self) -> None:
            raise RuntimeError("no weights")

        def __call__(self, x: Any) -> Any:
            return x

    with Session(InlineBackend(), call_plan(Stage, args=()), ready=False) as run:
        (failed,) = run.wait(WorkerFailed)
        assert failed.failure.message == "RuntimeError: no weights"


def test_exceptions_fail_items_but_ctrl_c_is_the_users_own():
    with Session(InlineBackend(), call_plan(raise_)) as run:
        told = run.run([ValueError("a"), SystemExit("b")])
        assert told.failures == {0: ("raised", "ValueError: a"), 1: ("raised", "SystemExit: b")}
        run.submit([KeyboardInterrupt()])
        with pytest.raises(KeyboardInterrupt):
            run.backend.poll(None)


def test_direct_calls_get_the_exception_itself():
    error = ValueError("mine")
    with Session(InlineBackend(contain=()), call_plan(raise_)) as run:
        run.submit([error])
        with pytest.raises(ValueError) as caught:  # noqa: PT011  # it is the very object
            run.backend.poll(None)
        assert caught.value is error


def test_blocks_are_forgotten_when_they_are_released():
    backend = InlineBackend()
    with Session(backend, call_plan(lambda x: x)) as run:
        rows = backend.put([1])
        backend.release([rows.ref])
        with pytest.raises(KeyError):
            backend.read(("rows", rows.ref, 0, 1))
        told = run.run([1])
        run.release(told)


class Writer:
    def __init__(self, refused: str = "") -> None:
        self.refused = refused
        self.log: list[Any] = []

    def open(self) -> None:
        self.log.append("open")

    def write(self, result: RootResult, values: Sequence[Any]) -> None:
        if result.key == "bytes":
            error = SinkValueError("FF326", "no form for bytes.", "Use text.")
            error.sink = "write_jsonl('out')"
            raise error
        if result.key == self.refused:
            raise ValueError("refused")
        self.log.append((result.key, list(values)))

    def refuse(self, result: RootResult, output: int) -> str:
        self.log.append((result.key, "refused"))
        return f"sink {output}"

    def close(self) -> None:
        if self.refused == "close":
            raise OSError("cannot close")
        self.log.append("close")


def result(root: int, key: str, *columns: Any, ordinals: Any = None) -> RootResult:
    return RootResult(root, key, "done", columns, ordinals or {})


def test_records_are_written_with_one_value_or_a_list_for_each_output():
    writer = Writer()
    with Session(InlineBackend(), call_plan(lambda x: x), writer=writer) as run:
        rows = ("rows", run.backend.put([1, 2]).ref, 0, 2)
        one = ("rows", run.backend.put(["x"]).ref, 0, 1)
        run.backend.write([result(0, "a", one, rows, None, ordinals={1: ((0,), (1,))})])
        run.backend.close_writer()
        assert run.wait(RecordsWritten)[0].roots == (0,)
        run.wait(WriterClosed)
    assert writer.log == ["open", ("a", ["x", [1, 2], []]), "close"]


def test_what_the_writer_cannot_do_is_told():
    with Session(InlineBackend(), call_plan(lambda x: x), writer=Writer("b")) as run:
        run.backend.write([result(0, "a"), result(1, "b"), result(2, "c")])
        (first,) = run.wait(RecordsWritten)
        assert first.roots == (0,)
        assert run.wait(WriteFailed)[0].root == 1
        run.backend.write([result(2, "c")])
        run.backend.close_writer()
        run.wait(WriterClosed)
        assert [e for e in run.heard if isinstance(e, RecordsWritten)] == [first]
    with Session(InlineBackend(), call_plan(lambda x: x), writer=Writer("close")) as run:
        run.backend.close_writer()
        assert run.wait(WriteFailed)[0].root == -1


def test_a_root_that_the_writer_refuses_fails_alone():
    with Session(InlineBackend(), call_plan(lambda x: x), writer=Writer()) as run:
        run.backend.write([result(0, "a"), result(1, "bytes"), result(2, "c")])
        assert run.wait(RecordsWritten)[0].roots == (0, 2)
        (refused,) = run.wait(RecordRefused)
    assert (refused.root, refused.failure.code) == (1, "FF326")
    assert refused.failure.message == "no form for bytes. Use text."
    assert (refused.failure.key, refused.failure.call) == ("bytes", "write_jsonl('out')")


def test_a_root_of_which_a_value_cannot_be_read_fails_alone():
    class Strict:
        @property
        def name(self) -> str:
            raise ValueError("no name")

    writer = Writer()
    with Session(InlineBackend(), call_plan(lambda x: x), writer=writer) as run:
        rows = run.backend.put([Strict(), 1])
        one, other = (("rows", rows.ref, row, 1) for row in (1, 0))
        name = ("field", other, "name")
        run.backend.write(
            [result(0, "a", one), result(1, "b", one, name, one), result(2, "c", one)]
        )
        assert run.wait(RecordsWritten)[0].roots == (0, 2)
        (refused,) = run.wait(RecordRefused)
    assert writer.log[1:4] == [("a", [1]), ("b", "refused"), ("c", [1])]
    failure = refused.failure
    assert (refused.root, failure.kind, failure.key, failure.call) == (
        1,
        "unpicklable",
        "b",
        "sink 1",
    )
    assert failure.message == "a value of it cannot be loaded: ValueError: no name"
    assert "in name" in failure.traceback


def test_events_carry_time():
    with Session(InlineBackend(), call_plan(lambda x: x)) as run:
        run.run([1])
        assert run.wait(BatchFinished)[0].time_s > 0


# ------------------------------------------------------------------------------------------ room


def blobs(n: int) -> Any:
    for i in range(n):
        yield bytes([i]) * 1000


def test_a_generator_waits_for_room_and_other_batches_run_meanwhile():
    with Session(InlineBackend(), call_plan(blobs, expand=[[(0, ())]])) as run:
        first = run.submit([5], room=2000)
        second = run.submit([1])
        (pause,) = run.wait(BatchPaused)
        assert (pause.batch, pause.begun, pause.room) == (first, 1, 2000)
        assert run.finish(second).sealed == {1: [0]}
        run.backend.grant(0, first, 1000)
        run.wait(BatchPaused)
        run.backend.grant(0, first, 9000)
        third = run.submit([1])
        assert len(run.finish(first).children_of(0)) == 5
        assert not run.told(third).events, "what waited goes before what has not begun"
        run.finish(third)


def test_a_generator_that_waits_ends_when_it_is_trimmed():
    with Session(InlineBackend(), call_plan(blobs, expand=[[(0, ())]])) as run:
        batch = run.submit([5], room=1000)
        run.wait(BatchPaused)
        run.backend.trim(0, batch, 1)
        assert list(run.finish(batch).failures) == [0]
        run.backend.grant(0, batch, 1000)  # too late
        assert run.backend.poll(0) == []
