"""The rules of failing fast, told how tasks and roots end."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fanfold.dispatch.stopping import NEVER, ON_REQUEST, Stopping, StopRules
from fanfold.engine.commands import StopRun
from fanfold.failures import Failure
from fanfold.plan import Plan
from tests.plans import fan_out_plan

PAGES, READ = 0, 2


def failure(root: int = 0, page: int = 0, kind: str = "raised", **more: Any) -> Failure:
    return Failure(
        kind=kind,
        message=more.pop("message", "ValueError: boom"),
        call="read",
        key=f"doc{root}",
        levels=("document", "page"),
        ordinals=(root, page),
        **more,
    )


def strict_plan() -> Plan:
    plan = fan_out_plan()
    stages = tuple(
        dataclasses.replace(stage, on_error="stop") if stage.name == "read" else stage
        for stage in plan.stages
    )
    return dataclasses.replace(plan, stages=stages)


def fail_all(stopping: Stopping, tasks: int, roots: int) -> list[int]:
    """The numbers of the tasks at which a stop was asked for."""
    asked = []
    for task in range(tasks):
        stopping.task_failed(READ, failure(task % roots, task))
        if stopping.take() is not None:
            asked.append(task + 1)
    return asked


def test_a_call_that_only_fails_stops_the_run_at_its_twentieth_task_and_says_so_once() -> None:
    assert fail_all(Stopping(fan_out_plan(), StopRules()), 100, 3) == [20]


def test_failures_under_two_roots_say_nothing_until_a_third_one_has_some() -> None:
    stopping = Stopping(fan_out_plan(), StopRules())
    assert fail_all(stopping, 100, 2) == []
    stopping.task_failed(READ, failure(2))
    assert stopping.take() is not None


@pytest.mark.parametrize(
    "otherwise",
    [
        lambda stopping: stopping.task_done(READ),
        lambda stopping: stopping.task_failed(READ, failure(kind="declared")),
    ],
    ids=["done", "declared"],
)
def test_one_task_that_ends_otherwise_clears_its_call_for_ever(
    otherwise: Callable[[Stopping], None],
) -> None:
    stopping = Stopping(fan_out_plan(), StopRules())
    assert fail_all(stopping, 19, 5) == []
    otherwise(stopping)
    assert fail_all(stopping, 100, 5) == []


def test_a_call_is_judged_by_its_own_tasks() -> None:
    stopping = Stopping(fan_out_plan(), StopRules())
    stopping.task_done(PAGES)
    assert fail_all(stopping, 20, 4) == [20]


@pytest.mark.parametrize("rules", [ON_REQUEST, NEVER], ids=["on request", "never"])
def test_runs_that_are_compared_suspect_no_call(rules: StopRules) -> None:
    assert fail_all(Stopping(fan_out_plan(), rules), 100, 10) == []


def test_a_strict_stage_stops_the_run_at_its_first_failure_that_was_not_declared() -> None:
    stopping = Stopping(strict_plan(), ON_REQUEST)
    stopping.task_failed(READ, failure(kind="declared"))
    stopping.task_failed(PAGES, failure(1))
    assert stopping.take() is None
    first = failure(2, 5, kind="contract")
    stopping.task_failed(READ, first)
    stopping.task_failed(READ, failure(3))
    stop = stopping.take()
    assert stop is not None and stop.failure == first
    assert stopping.take() is None


def test_a_strict_stage_is_not_listened_to_where_nothing_may_stop() -> None:
    stopping = Stopping(strict_plan(), NEVER)
    stopping.task_failed(READ, failure())
    assert stopping.take() is None


# -------------------------------------------------------------------------------------------- roots


def roots(rules: StopRules, statuses: str) -> list[int]:
    """After how many roots a stop was asked for; ``f`` is a failed one, ``r`` one that a sink refuses."""
    stopping = Stopping(fan_out_plan(), rules)
    assert stopping.counts_roots
    asked = []
    for number, status in enumerate(statuses, 1):
        name = {"f": "failed", "p": "partial", "x": "dropped"}.get(status, "done")
        stopping.root_ended(name, [failure(number)] if name in ("failed", "partial") else [])
        if status == "r":
            stopping.root_refused(failure(number, kind="contract"))
        if stopping.take() is not None:
            asked.append(number)
    return asked


@pytest.mark.parametrize(
    ("max_failed", "statuses", "asked"),
    [
        (0, "..f.f", [3]),
        (2, "ff..f.f", [5]),
        (2, "ffppppxxxx", []),
        (1, "f.r.", [3]),
        (Fraction(1, 10), "f" * 99, []),
        (Fraction(1, 10), "f" * 99 + ".", [100]),
        (Fraction(1, 10), "f" * 10 + "." * 90 + "f", [101]),
        (Fraction(1, 10), "f" * 10 + "." * 100 + "f", []),
        (Fraction(0), "." * 100 + "r", [101]),
        (Fraction(1), "f" * 300, []),
    ],
)
def test_more_failed_roots_than_allowed_stop_the_run(
    max_failed: int | Fraction, statuses: str, asked: list[int]
) -> None:
    assert roots(StopRules(max_failed=max_failed), statuses) == asked


def test_without_a_limit_roots_are_not_counted() -> None:
    assert not Stopping(fan_out_plan(), StopRules()).counts_roots


# -------------------------------------------------------------------------------------------- words


def stop_of(
    rules: StopRules, tell: Callable[[Stopping], None], plan: Plan | None = None
) -> StopRun:
    stopping = Stopping(plan or fan_out_plan(), rules)
    tell(stopping)
    stop = stopping.take()
    assert stop is not None
    return stop


TRACED = failure(7, 3, traceback="Traceback: here\n")


def test_each_stop_says_what_where_why_and_what_to_do() -> None:
    only = stop_of(
        StopRules(first_tasks=1, first_roots=1), lambda stopping: stopping.task_failed(READ, TRACED)
    )
    assert only.message == (
        "the first 1 tasks of call 'read' (<unknown>:0), under 1 roots, all failed, none of them with a "
        "declared failure. The first was document doc7, page 3: ValueError: boom.\nTraceback: here\n"
    )
    assert "mend it and run again" in only.hint and "ff.ItemFailure" in only.hint
    strict = stop_of(ON_REQUEST, lambda stopping: stopping.task_failed(READ, TRACED), strict_plan())
    assert strict.message == (
        "a task of call 'read' (<unknown>:0) failed, and stage 'read' has on_error=\"stop\". "
        "It was document doc7, page 3: ValueError: boom.\nTraceback: here\n"
    )
    assert 'on_error="fail"' in strict.hint
    many = stop_of(
        StopRules(max_failed=Fraction(1, 20), share_roots=1),
        lambda stopping: stopping.root_ended("failed", [TRACED]),
    )
    assert many.message == (
        "1 of 1 roots failed, which is more than max_failed=0.05 allows. "
        "The first was document doc7, page 3, at call 'read': ValueError: boom.\nTraceback: here\n"
    )
    assert "report" in many.hint


def test_the_first_failure_is_told_and_not_the_last() -> None:
    def fail_three(stopping: Stopping) -> None:
        for root in (4, 5, 6):
            stopping.task_failed(READ, failure(root))

    stop = stop_of(StopRules(first_tasks=3), fail_three)
    assert stop.failure.key == "doc4" and "document doc4" in stop.message
    # "the first 3 tasks": as many as have failed by then, also where the roots were too few before
    assert "the first 3 tasks" in stop.message and "under 3 roots" in stop.message


# ------------------------------------------------------------------------------------ whole histories

ENDS = st.lists(
    st.tuples(
        st.sampled_from((PAGES, READ)),
        st.integers(0, 3),
        st.sampled_from(("done", "declared", "raised", "raised", "raised", "worker_died")),
    ),
    max_size=40,
)


@given(ENDS, st.integers(1, 6), st.integers(1, 3))
def test_a_run_stops_where_the_rule_holds_first(
    ends: list[tuple[int, int, str]], first_tasks: int, first_roots: int
) -> None:
    stopping = Stopping(fan_out_plan(), StopRules(first_tasks=first_tasks, first_roots=first_roots))
    stopped_at = None
    for position, (call, root, kind) in enumerate(ends):
        if kind == "done":
            stopping.task_done(call)
        else:
            stopping.task_failed(call, failure(root, kind=kind))
        if stopping.take() is not None:
            stopped_at = position
            break

    def holds(length: int) -> bool:
        of_call = [end for end in ends[:length] if end[0] == ends[length - 1][0]]
        return (
            len(of_call) >= first_tasks
            and len({root for _, root, _ in of_call}) >= first_roots
            and all(kind not in ("done", "declared") for _, _, kind in of_call)
        )

    expected = next((n - 1 for n in range(1, len(ends) + 1) if holds(n)), None)
    assert stopped_at == expected
