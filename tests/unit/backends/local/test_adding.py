"""Processes and threads that are added and let go while a run goes on."""

from __future__ import annotations

import dataclasses
import os
import signal
import threading
import time
from pathlib import Path
from typing import Any, Literal

import pytest

import fanfold as ff
from fanfold.backends.local.backend import LocalBackend
from fanfold.driver import resources
from fanfold.driver.machine import Machine
from fanfold.plan import Plan
from fanfold.protocol import WorkerDied, WorkerStarted
from tests.backends import Session, call_plan

Kind = Literal["process", "thread"]
KINDS: tuple[Kind, ...] = ("process", "thread")


def whereabouts(item: int) -> tuple[int, int]:
    return threading.get_native_id(), item


class Lives:
    def __init__(self, folder: str) -> None:
        self.folder = Path(folder)
        self.name = f"{os.getpid()}-{threading.get_native_id()}"

    def __call__(self, item: int) -> tuple[str, int]:
        return self.name, item

    def close(self) -> None:
        (self.folder / f"closed-{self.name}").touch()


@pytest.fixture
def four_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resources, "this_machine", lambda: Machine(4, None))


def scarce(plan: Plan) -> Plan:
    """The same with a stage of which two may be too many at a time."""
    (stage,) = plan.stages
    return dataclasses.replace(plan, stages=(dataclasses.replace(stage, memory=1_000_000),))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("made", [call_plan, lambda target: scarce(call_plan(target))])
def test_one_that_was_let_go_comes_again_and_what_it_made_is_there(kind: Kind, made: Any) -> None:
    with Session(LocalBackend(workers=kind), made(whereabouts), replicas=2) as session:
        first = session.run(list(range(100)), worker=1)
        wheres = {first.values[0][0]}
        for _ in range(3):
            session.backend.retire(1)
            assert session.run([7], worker=0).values[0][1] == 7  # the others go on
            session.backend.add(1)
            session.wait(WorkerStarted)
            again = session.run(list(range(100)), worker=1)
            wheres.add(again.values[0][0])
        assert len(wheres) == 4
        assert [item for _, item in session.told(0).values.values()] == list(range(100))
        assert not [event for event in session.heard if isinstance(event, WorkerDied)]


@pytest.mark.parametrize("kind", KINDS)
def test_what_one_made_that_was_let_go_can_be_freed(kind: Kind) -> None:
    with Session(LocalBackend(workers=kind), call_plan(whereabouts), replicas=2) as session:
        told = [session.run([n], worker=1) for n in range(70)]
        session.backend.retire(1)
        for one in told:
            session.release(one)
        session.backend.add(1)
        session.wait(WorkerStarted)
        assert session.run([3], worker=1).values[0][1] == 3


def test_one_that_was_killed_and_not_restarted_can_be_added() -> None:
    with Session(LocalBackend(), call_plan(whereabouts), replicas=2) as session:
        pid = session.run([1], worker=1).values[0][0]
        os.kill(pid, signal.SIGKILL)
        session.wait(WorkerDied)
        session.backend.add(1)
        session.wait(WorkerStarted)
        assert session.run([2], worker=1).values[0][1] == 2


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.usefixtures("four_cores")
def test_a_run_starts_as_many_as_have_work(kind: Kind, tmp_path: Path) -> None:
    lives = ff.stage(Lives, replicas="auto", workers=kind)(str(tmp_path))

    @ff.pipeline(level="document")
    def pipeline(n: ff.Port[int]) -> ff.Port[Any]:
        return lives(n)

    results = list(pipeline.stream(range(40)))
    assert [result.value[1] for result in results] == list(range(40))
    report = pipeline.run(range(40), progress=False)
    assert [worker.name for worker in report.workers] == [f"Lives[{n}]" for n in range(4)]
    assert not sum(worker.restarts for worker in report.workers)
    single = pipeline.run(range(1), progress=False)
    assert [worker.name for worker in single.workers] == ["Lives[0]"]


class Single:
    """There is room for one."""

    def __init__(self, folder: str) -> None:
        self.folder = Path(folder)
        if not ff.context().worker.endswith("[0]"):
            (self.folder / ff.context().worker).touch()
            raise MemoryError("no room for another")

    def __call__(self, item: int) -> int:
        while item == 0 and len(list(self.folder.iterdir())) < 2:
            time.sleep(0.01)
        return item


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.usefixtures("four_cores")
def test_a_run_goes_on_without_replicas_that_cannot_be_made(kind: Kind, tmp_path: Path) -> None:
    single = ff.stage(Single, replicas=(1, 3), workers=kind)(str(tmp_path))

    @ff.pipeline(level="document")
    def pipeline(n: ff.Port[int]) -> ff.Port[Any]:
        return single(n)

    report = pipeline.run(range(400), progress=False)
    assert report.roots["done"] == 400
    (note,) = report.notes
    assert note.startswith("stage 'Single' has no more than") and "no room for another" in note


@pytest.mark.usefixtures("four_cores")
def test_a_run_keeps_to_the_fewest_and_the_most(tmp_path: Path) -> None:
    lives = ff.stage(Lives, replicas=(2, 3))(str(tmp_path))

    @ff.pipeline(level="document")
    def pipeline(n: ff.Port[int]) -> ff.Port[Any]:
        return lives(n)

    report = pipeline.run(range(40), progress=False)
    assert [worker.name for worker in report.workers] == [f"Lives[{n}]" for n in range(3)]
    assert [w.name for w in pipeline.run([1], progress=False).workers] == ["Lives[0]", "Lives[1]"]
    assert [w.name for w in pipeline.run([1], backend="inline", progress=False).workers] == [
        "Lives[0]",
        "Lives[1]",
    ]
