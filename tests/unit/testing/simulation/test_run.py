"""A simulated run: what each fault does, that it depends on its case alone, and what it complains of."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from typing import Any

import pytest

from fanfold.dispatch.core import Core
from fanfold.engine.commands import StopRun
from fanfold.failures import Failure
from fanfold.testing.simulation import (
    FAULTS,
    Case,
    Fault,
    SimulatedWorkers,
    Timing,
    draw_case,
    simulate,
)
from fanfold.testing.sketches import Sketch, StageSketch, Step

STATIC = {"salt": 1, "trouble": {}}
CALLED = Sketch(
    1,
    (StageSketch("numbers", batch_size=4),),
    (Step("call", (0,), 1, {"stage": 0, "static": STATIC}),),
    (1,),
    "single",
    tuple((n,) for n in range(12)),
)
"""Twelve roots through one call, in batches of four."""


def case(*faults: Fault, **options: Any) -> Case:
    return Case(5, CALLED, Timing(item_s=(0.01,)), tuple(faults), **options)


def log_of(one: Case) -> list[str]:
    lines: list[str] = []
    simulate(one, log=lines.append)
    return lines


def told(one: Case, name: str) -> list[str]:
    """The lines of a run's log that tell of such an event."""
    return [line for line in log_of(one) if f" {name}(" in line and not line.startswith(" ")]


def test_a_run_without_faults() -> None:
    simulated = simulate(case())
    assert simulated.violations == []
    assert not simulated.faults
    assert simulated.virtual_s == pytest.approx(0.12)
    assert len(told(case(), "BatchFinished")) == 3


@pytest.mark.parametrize("kind", FAULTS)
def test_a_fault_happens_and_the_run_keeps_its_meaning(kind: Any) -> None:
    at = 0 if kind in ("death_starting", "slow_start") else 1
    simulated = simulate(case(Fault(kind, at)), thorough=True)
    assert simulated.faults == {kind: 1}
    assert simulated.violations == []


@pytest.mark.parametrize(
    ("kind", "deaths", "starts"),
    [
        ("death_starting", 1, 1),
        ("death_before", 1, 2),
        ("death_while", 1, 2),
        ("death_after", 1, 2),
        ("late", 1, 2),
        ("hang", 0, 1),
        ("doubled", 0, 1),
        ("slow_start", 0, 1),
    ],
)
def test_who_dies_is_made_again(kind: Any, deaths: int, starts: int) -> None:
    one = case(Fault(kind, 0))
    assert len(told(one, "WorkerDied")) == deaths
    assert len(told(one, "WorkerStarted")) == starts


def test_what_is_late_comes_after_the_death() -> None:
    lines = log_of(replace(case(Fault("late", 0)), seed=2))
    (death,) = [i for i, line in enumerate(lines) if " WorkerDied(" in line]
    assert [line for line in lines[death:] if " TasksFinished(batch=0," in line]


def test_what_is_doubled_comes_twice() -> None:
    ends = [line for line in log_of(case(Fault("doubled", 0))) if " BatchFinished(batch=0," in line]
    assert len(ends) == 2


def test_what_hangs_and_what_starts_slowly_takes_very_long() -> None:
    for kind in ("hang", "slow_start"):
        assert simulate(case(Fault(kind, 0))).virtual_s > 1e6


def test_an_item_that_kills_its_workers_fails_alone() -> None:
    deadly = Step("call", (0,), 1, {"stage": 0, "static": {"salt": 1, "trouble": {2: "kill"}}})
    simulated = simulate(replace(case(), sketch=replace(CALLED, steps=(deadly,))), thorough=True)
    assert simulated.faults["item:worker_died"] > 2
    assert simulated.violations == []


def test_roots_come_as_the_source_gives_them() -> None:
    slow = replace(case(), timing=Timing(block=5, gap_s=10.0))
    arrivals = [line for line in log_of(slow) if "_Arrival" in line]
    assert [line.split()[0] for line in arrivals] == ["0.0", "10.0", "20.0"]


# ----------------------------------------------------------------------------------------- determinism


@pytest.mark.parametrize("seed", [3, 153])
def test_a_run_is_the_same_to_the_byte_in_another_process(seed: int) -> None:
    code = (
        "from fanfold.testing.simulation import draw_case, simulate\n"
        f"print(simulate(draw_case({seed}), log=len).log_sha256)"
    )
    digests = {simulate(draw_case(seed), log=len).log_sha256}
    for hash_seed in ("1", "2"):
        done = subprocess.run(
            [sys.executable, "-c", code],
            env=os.environ | {"PYTHONHASHSEED": hash_seed},
            capture_output=True,
            text=True,
            check=True,
        )
        digests.add(done.stdout.strip())
    assert len(digests) == 1
    assert simulate(draw_case(seed + 1), log=len).log_sha256 not in digests


def test_being_watched_changes_nothing() -> None:
    plain, watched = simulate(draw_case(153)), simulate(draw_case(153), thorough=True, log=len)
    assert (plain.events, plain.virtual_s) == (watched.events, watched.virtual_s)


# ------------------------------------------------------------------------------------------ complaints


def kinds(one: Case) -> set[str]:
    return {violation.kind for violation in simulate(one).violations}


def changed(monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, change: Any) -> None:
    original = getattr(owner, name)
    monkeypatch.setattr(owner, name, lambda *args, **named: change(original(*args, **named)))


def test_a_run_that_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    stop = [StopRun(Failure(kind="raised", message="no"), "no.")]
    changed(monkeypatch, Core, "handle", lambda commands: stop)
    assert kinds(case()) == {"stopped"}


def test_a_stand_still(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Core, "dispatch", lambda core, time_s: [])
    assert kinds(case()) == {"stand-still"}  # twelve items in a queue might be held back


def test_an_idle_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Core, "dispatch", lambda core, time_s: [])
    few = replace(CALLED, roots=CALLED.roots[:3])
    assert kinds(replace(case(), sketch=few, timing=Timing(block=1, gap_s=1.0))) == {"idle"}


def test_an_exception_of_the_core(monkeypatch: pytest.MonkeyPatch) -> None:
    changed(monkeypatch, Core, "dispatch", lambda commands: commands[7])
    (violation,) = simulate(case()).violations
    assert violation.kind == "error:IndexError"


def test_an_endless_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fanfold.testing.simulation.run.event_limit", lambda *args: 3)
    assert kinds(case()) == {"endless"}


def test_items_that_run_again(monkeypatch: pytest.MonkeyPatch) -> None:
    original = SimulatedWorkers._died

    def forgetful(workers: SimulatedWorkers, state: Any) -> None:
        original(workers, state)
        workers.items_lost.clear()

    monkeypatch.setattr(SimulatedWorkers, "_died", forgetful)
    one = case(Fault("death_while", 0))
    assert kinds(one) == {"again"}


def test_a_case_of_which_no_pipeline_can_be_made() -> None:
    broken = replace(CALLED, steps=(Step("gather", (0,), 1, {"failed": "fail"}),), stages=())
    (violation,) = simulate(replace(case(), sketch=broken)).violations
    assert violation.kind == "case"
    assert "FF" in violation.text
