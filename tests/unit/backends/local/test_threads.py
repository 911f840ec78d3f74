"""Worker threads and their driver, by the backend's contract alone."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from fanfold.backends.local import lifeline
from fanfold.backends.local.backend import LocalBackend
from fanfold.backends.local.threads import Bell, Lease, RunIsOver
from fanfold.plan import Plan
from fanfold.protocol import BatchFinished, TasksFinished, WorkerFailed, WorkerStarted
from fanfold.stage_context import context
from tests import backend_stages as s
from tests.backends import HANG_S, Session, call_plan, refs_of


def session(target: Callable[..., Any], **options: Any) -> Session:
    return Session(LocalBackend(), call_plan(target, workers="thread", **options))


def threads_of_workers() -> list[str]:
    return [t.name for t in threading.enumerate() if t.name.endswith("]")]


def test_values_are_the_same_objects_and_no_process_is_started():
    lock = threading.Lock()
    before = lifeline.children()
    with session(lambda x: [x, lock]) as run:
        told = run.run([lock])
        assert told.values[0][0] is lock and told.values[0][1] is lock
        assert lifeline.children() == before
        (started,) = [e for e in run.heard if isinstance(e, WorkerStarted)]
        assert started.pid == os.getpid()
        run.release(told)


def test_a_constructor_runs_in_its_thread_and_shares_memory_with_the_program():
    seen: list[str] = []

    class Stage:
        def __init__(self) -> None:
            seen.append(threading.current_thread().name)

        def __call__(self, x: Any) -> str:
            return threading.current_thread().name

    plan = call_plan(Stage, args=(), workers="thread")
    with Session(LocalBackend(), plan, replicas=2) as run:
        assert sorted(seen) == ["Stage[0]", "Stage[1]"]
        assert run.run([1], worker=1).values == {0: "Stage[1]"}
    assert threads_of_workers() == []


def mixed(*kinds: Any, first: Callable[..., Any] = s.identity) -> Plan:
    """Calls of which each reads what the one before it gives."""
    plan = call_plan(first, *(s.identity for _ in kinds[1:]))
    stages = tuple(
        replace(stage, workers=kind) for stage, kind in zip(plan.stages, kinds, strict=True)
    )
    calls = plan.calls()
    nodes = tuple(
        replace(node, inputs=(replace(node.inputs[0], port=calls[i - 1].outputs[0]),))
        if i
        else node
        for i, node in enumerate(calls)
    )
    return replace(plan, stages=stages, nodes=nodes)


@pytest.mark.parametrize("kinds", [("thread", "process"), ("process", "thread")])
def test_values_go_between_threads_and_processes(kinds):
    with Session(LocalBackend(), mixed(*kinds)) as run:
        for _ in range(3):
            first = run.run([b"x" * 100_000, {"a": 1}])
            (ref,) = refs_of(first.events)
            second = run.finish(run.send(("rows", ref, 0, 2), 2, worker=1, call=1))
            assert second.values == {0: b"x" * 100_000, 1: {"a": 1}}
            run.release(first)
            run.release(second)


def test_what_a_process_cannot_be_sent_fails_where_it_is_made():
    with Session(LocalBackend(), mixed("thread", "process", first=s.unpicklable)) as run:
        told = run.run(["a", "lock"])
        assert told.values == {0: "a"}
        assert told.failures[1][0] == "unpicklable" and "lock" in told.failures[1][1]


def test_a_constructor_that_raises_is_told():
    class Stage:
        def __init__(self) -> None:
            raise RuntimeError("no weights")

        def __call__(self, x: Any) -> Any:
            return x

    plan = call_plan(Stage, args=(), workers="thread")
    with Session(LocalBackend(), plan, ready=False) as run:
        (failed,) = run.wait(WorkerFailed)
        assert failed.failure.message == "RuntimeError: no weights"
    assert threads_of_workers() == []


def test_system_exit_fails_its_item_and_the_thread_lives():
    def leave(x: int) -> int:
        if x == 1:
            raise SystemExit(3)
        return x

    with session(leave) as run:
        told = run.run([0, 1, 2])
        assert told.failures == {1: ("raised", "SystemExit: 3")}
        assert told.values == {0: 0, 2: 2}


def test_close_is_called_at_the_end_in_its_thread_and_what_it_raises_is_shown(capsys):
    closed: list[str] = []

    class Stage:
        def __call__(self, x: Any) -> Any:
            return x

        def close(self) -> None:
            closed.append(threading.current_thread().name)
            raise ValueError("cannot close")

    with session(Stage, args=()) as run:
        run.run([1])
        assert closed == []
    assert closed == ["Stage[0]"]
    assert "close() of worker Stage[0] raised" in capsys.readouterr().err


def test_a_thread_in_users_code_is_left_behind_and_ends_at_its_next_report():
    begun, go_on, closed = threading.Event(), threading.Event(), threading.Event()

    class Endless:
        def __call__(self, x: Any) -> Iterator[int]:
            begun.set()
            go_on.wait(HANG_S)
            while True:  # ends when what it gives is reported to nobody
                yield 1

        def close(self) -> None:
            closed.set()

    with session(Endless, args=(), expand=[[(0, ())]], items=False) as run:
        run.submit([1])
        assert begun.wait(HANG_S)
    assert threads_of_workers() == ["Endless[0]"], "it cannot be killed"
    (thread,) = [t for t in threading.enumerate() if t.name == "Endless[0]"]
    go_on.set()
    thread.join(HANG_S)
    assert not thread.is_alive() and closed.is_set()


def test_batches_that_wait_are_not_begun_after_the_end():
    begun, go_on = threading.Event(), threading.Event()
    seen: list[int] = []

    def slow(x: int) -> int:
        seen.append(x)
        begun.set()
        go_on.wait(HANG_S)
        return x

    with session(slow) as run:
        run.submit([1])
        run.submit([2])
        assert begun.wait(HANG_S)
        go_on.set()
        (thread,) = [t for t in threading.enumerate() if t.name == "slow[0]"]
        run.backend.close()
        thread.join(HANG_S)
    assert seen in ([1], [1, 2])


def test_batches_of_an_asynchronous_stage_are_under_way_together():
    class Meet:
        def __init__(self) -> None:
            self.here = 0
            self.all_here = asyncio.Event()

        async def __call__(self, x: int) -> Any:
            self.here += 1
            if self.here == 3:
                self.all_here.set()
            await self.all_here.wait()
            return x, context().worker

    plan = call_plan(Meet, args=(), workers="thread", asynchronous=True, max_in_flight=3)
    with Session(LocalBackend(), plan) as run:
        batches = [run.submit([n]) for n in range(3)]
        assert [run.finish(b).values for b in batches] == [{0: (n, "Meet[0]")} for n in range(3)]
    assert threads_of_workers() == []


def test_an_asynchronous_stage_is_cancelled_and_closed_at_the_end():
    told: list[str] = []
    begun = threading.Event()

    class Waits:
        async def __call__(self, x: int) -> int:
            begun.set()
            try:
                await asyncio.Event().wait()
            finally:
                told.append("cancelled")
            return x

        async def close(self) -> None:
            told.append("closed")

    plan = call_plan(Waits, args=(), workers="thread", asynchronous=True)
    with Session(LocalBackend(), plan) as run:
        run.submit([1])
        assert begun.wait(HANG_S)
        threads = [t for t in threading.enumerate() if t.name == "Waits[0]"]
    threads[0].join(HANG_S)
    assert told == ["cancelled", "closed"]


def test_blocks_in_a_threads_arena_are_used_again():
    plan = mixed("thread", "process")
    with Session(LocalBackend(arena_limit_bytes=8_000_000), plan) as run:
        for n in range(20):
            told = run.run([bytes([n]) * 3_000_000])
            assert told.failures == {}, "20 × 3 MB do not fit 8 MB at once"
            run.release(told)


def test_a_bell_tells_what_it_was_told_in_order_and_nothing_after_its_end():
    bell = Bell()
    for batch in range(3):
        bell.tell(batch % 2, [BatchFinished(batch)])
    heard = bell.hear()
    assert [worker for worker, _ in heard] == [0, 1, 0]
    told = [event for _, events in heard for event in events if isinstance(event, BatchFinished)]
    assert [event.batch for event in told] == [0, 1, 2]
    assert all(event.time_s > 0 for event in told)
    assert bell.hear() == []
    bell.close()
    with pytest.raises(RunIsOver):
        bell.tell(0, [TasksFinished(0, 0, 1, ())])


def test_a_lease_ends_with_its_last_user():
    ended: list[int] = []
    lease = Lease(lambda: ended.append(1))
    lease.enter()
    lease.leave()
    assert ended == []
    lease.leave()
    assert ended == [1]
