"""Worker processes that are replaced: what they leak goes, what they made stays."""

from __future__ import annotations

import os
import signal
import threading
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import fanfold as ff
from fanfold.backends.local.backend import LocalBackend
from fanfold.errors import SetupError
from fanfold.protocol import WorkerDied, WorkerStarted
from tests.backends import Session, call_plan

MB = 1_000_000
LEAKED: list[bytes] = []


def leak(item: int) -> tuple[int, int]:
    LEAKED.append(b"x" * 20 * MB)
    return item, len(LEAKED)


def whereabouts(item: Any) -> tuple[int, Any]:
    return os.getpid(), item


class Numbered:
    """Knows how many objects were made before it in a folder."""

    def __init__(self, folder: str) -> None:
        self.folder = Path(folder)
        self.number = len(os.listdir(folder))
        (self.folder / str(self.number)).write_text(str(os.getpid()))

    def __call__(self, item: Any) -> tuple[int, Any]:
        return self.number, item


class NeverEnds(Numbered):
    """The first one; the second one asks whether it has ended."""

    def __init__(self, folder: str) -> None:
        super().__init__(folder)
        self.alone = True
        if self.number:
            before = int((self.folder / str(self.number - 1)).read_text())
            try:
                os.kill(before, 0)
            except ProcessLookupError:
                return
            self.alone = False

    def __call__(self, item: Any) -> tuple[int, bool]:
        return self.number, self.alone

    def close(self) -> None:
        if self.number == 0:
            threading.Event().wait()


class KilledAtItsEnd(Numbered):
    def close(self) -> None:
        os.kill(os.getpid(), signal.SIGKILL)


def run(stage: Any, items: int) -> tuple[list[Any], ff.Report]:
    """What becomes of so many items, in order, and the report."""
    pipeline = ff.pipeline(lambda item: stage(item))
    found = list(pipeline.stream(range(items)))
    assert [result.status for result in found] == [ff.Status.DONE] * items
    return [result.value for result in found], pipeline.run(range(items), progress=False)


def test_a_stage_that_leaks_is_replaced_by_size_and_nothing_is_lost() -> None:
    values, report = run(ff.stage(leak, recycle_above="150MB"), 25)
    assert [item for item, _ in values] == list(range(25))
    assert 2 <= max(leaked for _, leaked in values) <= 10
    (worker,) = report.workers
    assert worker.recycled >= 2 and worker.restarts == 0
    assert f"recycled: {worker.recycled} workers" in str(report)
    assert [call.executed for call in report.calls] == [25]


def test_a_stage_that_leaks_is_replaced_by_count() -> None:
    values, report = run(ff.stage(leak, recycle_after=3), 10)
    assert [item for item, _ in values] == list(range(10))
    assert [leaked for _, leaked in values] == [1, 2, 3] * 3 + [1]
    assert [worker.recycled for worker in report.workers] == [3]


def test_a_size_that_a_worker_has_from_the_start_is_refused() -> None:
    with pytest.raises(SetupError, match=r"FF436 stage 'leak' has recycle_above='1MB'"):
        run(ff.stage(leak, recycle_above="1MB"), 1)


def test_whatever_an_old_one_does_at_its_end_is_no_death(tmp_path: Path) -> None:
    stage = ff.stage(KilledAtItsEnd, recycle_after=2)(str(tmp_path))
    pipeline = ff.pipeline(lambda item: stage(item))
    report = pipeline.run(range(6), progress=False)
    assert report.ok
    assert [(w.recycled, w.restarts) for w in report.workers] == [(2, 0)]


@pytest.mark.parametrize(
    "scarce",
    [{}, {"memory": 1}, {"gpus": Fraction(1, 2)}, {"recycle_above": 10**12}],
    ids=["nothing", "memory", "gpus", "size"],
)
def test_another_is_made_while_the_old_one_ends_or_if_they_hold_what_is_scarce_after_it(
    scarce: dict[str, Any], tmp_path: Path
) -> None:
    """This one never ends, so it is killed after the five seconds that a ``close()`` has."""
    plan = call_plan(NeverEnds, args=(str(tmp_path),), **scarce)
    with Session(LocalBackend(), plan) as session:
        assert session.run([5]).values == {0: (0, True)}
        session.backend.recycle(0)
        session.wait(WorkerStarted)
        with pytest.raises(ProcessLookupError):  # it is given work when the old one has ended
            os.kill(int((tmp_path / "0").read_text()), 0)
        assert session.run([6]).values == {0: (1, bool(scarce))}


def test_what_the_old_one_made_is_there_and_its_place_is_not_used_again() -> None:
    with Session(LocalBackend(), call_plan(whereabouts)) as session:
        before = session.run(list(range(100)))
        for _ in range(3):
            session.backend.recycle(0)
            session.wait(WorkerStarted)
            after = session.run(list(range(100)))
            assert after.values[0][0] != before.values[0][0]
        again = session.told(0)
        assert again.values == before.values
        assert [item for _, item in again.values.values()] == list(range(100))
        assert not [event for event in session.heard if isinstance(event, WorkerDied)]


def test_a_new_one_that_dies_is_replaced_as_any() -> None:
    with Session(LocalBackend(), call_plan(whereabouts)) as session:
        session.run([1])
        session.backend.recycle(0)
        (started,) = session.wait(WorkerStarted)
        os.kill(started.pid, signal.SIGKILL)
        (died,) = session.wait(WorkerDied)
        assert died.worker == 0 and "SIGKILL" in died.reason
        session.backend.restart(0)
        session.wait(WorkerStarted)
        assert session.run([2]).values[0][1] == 2
