"""Workers that die: told at once and rightly, replaced, and nothing that they had delivered is lost."""

from __future__ import annotations

import contextlib
import itertools
import os
import select
import signal
from pathlib import Path

import pytest

from fanfold.backends.local.backend import LocalBackend
from fanfold.errors import SetupError
from fanfold.protocol import (
    BatchFinished,
    ChildrenReleased,
    WorkerDied,
    WorkerStarted,
)
from tests import backend_stages as s
from tests.backends import HANG_S, Session, call_plan, refs_of

CHILDREN = [[(0, ())]]


def gone(pid: int) -> bool:
    """Wait until a process has ended; False if it never does."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([descriptor], [], [], HANG_S)[0])
    finally:
        os.close(descriptor)


@pytest.mark.parametrize("target", [s.die, s.die_batched])
@pytest.mark.parametrize(
    ("how", "words"),
    [("abort", "was killed by SIGABRT"), ("exit", "exited with code 7"), ("kill", "SIGKILL")],
)
def test_a_death_is_told_with_its_cause_and_its_batch(how, words, target):
    plan = call_plan(target, batch_size=None if target is s.die else 8)
    with Session(LocalBackend(), plan) as run:
        fine = run.submit(["a", "b"])
        deadly = run.submit(["c", how])
        ahead = run.submit(["d"])
        (died,) = run.wait(WorkerDied)
        assert words in died.reason
        assert (died.worker, died.running) == (0, deadly)
        assert run.finish(fine).values == {0: "a", 1: "b"}
        assert run.told(ahead).events == [], "it had not begun"
        run.backend.restart(0)
        run.wait(WorkerStarted)
        assert run.run(["e"]).values == {0: "e"}


def test_sys_exit_and_item_failures_are_no_deaths():
    with Session(LocalBackend(), call_plan(s.die)) as run:
        told = run.run(["quit", "fail", "fine"])
        assert told.failures == {0: ("raised", "SystemExit: 3"), 1: ("declared", "as told")}
        assert told.values == {2: "fine"}


def test_a_death_between_batches_runs_nothing():
    with Session(LocalBackend(), call_plan(s.Counter, args=())) as run:
        ((_, pid),) = run.run([None]).values.values()
        os.kill(pid, signal.SIGKILL)
        (died,) = run.wait(WorkerDied)
        assert died.running is None and "SIGKILL" in died.reason


def test_a_batch_that_was_there_and_not_begun_is_not_what_killed_the_worker():
    with Session(LocalBackend(), call_plan(s.Counter, args=())) as run:
        ((_, pid),) = run.run([None]).values.values()
        os.kill(pid, signal.SIGSTOP)
        run.submit([None])
        run.backend.poll(0)
        os.kill(pid, signal.SIGKILL)
        (died,) = run.wait(WorkerDied)
        assert died.running is None


def test_blocks_of_a_new_life_are_not_taken_for_those_of_an_old_one():
    with Session(LocalBackend(), call_plan(s.die)) as run:
        old = run.run([b"o" * 30_000])
        assert old.values == {0: b"o" * 30_000}
        run.release(old)
        run.submit(["kill"])
        run.wait(WorkerDied)
        run.backend.restart(0)
        run.wait(WorkerStarted)
        new = run.run(["n" * 29_990])
        assert new.values == {0: "n" * 29_990}
        (before,), (after,) = refs_of(old.events), refs_of(new.events)
        assert before[:3] == after[:3] and before != after, "the same place, another block"


def test_a_restarted_worker_is_constructed_anew_and_may_die_again():
    plan = call_plan(s.die)
    with Session(LocalBackend(), plan) as run:
        for n in range(3):
            batch = run.submit(["kill"])
            (died,) = run.wait(WorkerDied)
            assert died.running == batch
            run.backend.restart(0)
            run.wait(WorkerStarted)
            assert run.run([str(n)]).values == {0: str(n)}


def test_what_a_dead_worker_delivered_is_still_read_and_its_place_kept():
    with Session(LocalBackend(), call_plan(s.die), replicas=2) as run:
        kept = [run.run(["x" * 30_000, str(n)]) for n in range(5)]
        run.submit(["abort"])
        run.wait(WorkerDied)
        run.backend.restart(0)
        run.wait(WorkerStarted)
        fresh = [run.run(["y" * 30_000]) for _ in range(5)]
        for n, told in enumerate(kept):
            again = run.told(told.events[0].batch)
            assert again.values == {0: "x" * 30_000, 1: str(n)}
        for told in fresh:
            assert run.told(told.events[0].batch).values == {0: "y" * 30_000}
        refs = [ref for told in (*kept, *fresh) for ref in refs_of(told.events)]
        assert len(set(refs)) == 10
        places = sorted((offset, offset + size) for _, offset, size, _ in refs)
        assert all(a[1] <= b[0] for a, b in itertools.pairwise(places)), "no overlap"


def test_children_of_a_generator_that_kills_its_worker_are_there_and_a_new_attempt_goes_on():
    with Session(LocalBackend(), call_plan(s.slow_then_die, expand=CHILDREN, items=False)) as run:
        batch = run.submit([5])
        (died,) = run.wait(WorkerDied)
        assert died.running == batch
        before = run.told(batch).children_of(0)
        assert before == list(range(len(before))) and before, "slow children are told one by one"
        run.backend.restart(0)
        run.wait(WorkerStarted)
        again = run.submit([7], skip=(len(before),), attempt=2)
        run.wait(WorkerDied)
        after = run.told(again).children_of(0)
        assert before + after == list(range(len(before) + len(after)))


def test_children_told_before_a_death_are_told_whole_or_not_at_all():
    plan = call_plan(s.die_after, expand=CHILDREN, items=False)
    with Session(LocalBackend(), plan) as run:
        batch = run.submit([["a", "b", "abort"], ["c"]])
        run.wait(WorkerDied)
        told = run.told(batch)
        assert told.sealed == {} and not told.of(BatchFinished)
        for event in told.of(ChildrenReleased):
            rows = event.streams[0].rows
            assert rows is not None and rows.count == sum(event.counts)


def test_a_worker_that_dies_in_its_constructor_after_a_restart_ran_nothing(tmp_path):
    flag = tmp_path / "flag"

    class Once:
        def __init__(self) -> None:
            if flag.exists():
                os.abort()
            flag.touch()

        def __call__(self, x: str) -> str:
            return s.die(x)

    with Session(LocalBackend(), call_plan(Once, args=())) as run:
        run.submit(["kill"])
        run.wait(WorkerDied)
        run.backend.restart(0)
        died = run.wait(WorkerDied)[-1]
        assert "before it was ready" in died.reason and died.running is None


@pytest.mark.parametrize("kind", ["plain", "own session", "orphan"])
def test_what_a_dead_worker_had_started_ends_with_it(kind, tmp_path):
    note = tmp_path / "pid"
    with Session(LocalBackend(), call_plan(s.with_child_and_die), replicas=2) as run:
        run.submit([f"{kind}:{note}"])
        run.wait(WorkerDied)
        assert gone(int(note.read_text()))
        assert run.backend.poll(0) == [], "its neighbour lives"


@pytest.mark.parametrize("kind", ["plain", "own session", "orphan"])
def test_what_a_worker_had_started_ends_with_the_run(kind):
    with Session(LocalBackend(), call_plan(s.with_child, s.die)) as run:
        (pid,) = run.run([kind]).values.values()
        run.submit(["kill"], worker=1, call=1)
        run.wait(WorkerDied)
        os.kill(pid, 0)  # another worker's death is no reason
    assert gone(pid)


def test_the_end_of_the_zygote_ends_the_run_with_a_sentence():
    with Session(LocalBackend(), call_plan(s.Counter, args=())) as run:
        ((_, worker),) = run.run([None]).values.values()
        zygote = int(Path(f"/proc/{worker}/stat").read_text().rpartition(")")[2].split()[1])
        os.kill(zygote, signal.SIGKILL)
        with pytest.raises(SetupError, match=r"FF405 .*was killed by SIGKILL"):
            run.wait(WorkerDied, 2)
        assert gone(worker)


def test_closing_does_not_wait_for_users_code(tmp_path):
    notes = [tmp_path / str(n) for n in range(2)]
    with Session(LocalBackend(), call_plan(s.touch_and_sleep), replicas=2) as run:
        for worker, note in enumerate(notes):
            run.submit([str(note)], worker=worker)
        while not all(note.exists() and note.read_text() for note in notes):
            run.backend.poll(0.01)
        pids = [int(note.read_text()) for note in notes]
    for pid in pids:
        with pytest.raises(ProcessLookupError), contextlib.suppress(PermissionError):
            os.kill(pid, 0)
