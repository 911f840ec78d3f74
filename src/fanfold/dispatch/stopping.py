"""Fail fast on bugs, carry on with bad data: when failures stop a run before its end. Pure.

Owns the three rules and the words in which a stop is told. It hears how tasks and roots end, one after the
other; it knows no batches, queues or workers, and nothing of how a run is brought to its end.

Rules
-----
1. The first :data:`FIRST_TASKS` tasks of a call that end, under at least :data:`FIRST_ROOTS` roots, all fail
   without having been declared failures: that is a mistake in the stage. One task that ends otherwise shows
   that the stage works, and the call is never suspected again. Fewer roots say nothing: one bad document may
   have a thousand pages.
2. A task fails so at a stage with ``on_error="stop"``.
3. More roots have failed than ``max_failed`` allows: a number of them, or a share of those that have ended,
   once these are :data:`SHARE_ROOTS`.

A task fails when no attempt at it is left: what a retry cures counts nowhere. The first rule to hold decides.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Final

from fanfold.engine.commands import StopRun
from fanfold.failures import Failure
from fanfold.outcomes import Status
from fanfold.plan import Plan

FIRST_TASKS: Final = 20
FIRST_ROOTS: Final = 3
SHARE_ROOTS: Final = 100
"""A share of fewer roots than that says little."""


@dataclass(frozen=True, slots=True)
class StopRules:
    """Which failures stop a run.

    Args:
        first_tasks: So many tasks of a call that fail, and none that does not, stop the run; None: never.
        first_roots: The least number of roots that they must be under.
        max_failed: How many roots may fail: a whole number of them, or (a ``Fraction``) a share of those that
            have ended; None: any number.
        share_roots: A share counts once so many roots have ended.
        on_error: Whether stages with ``on_error="stop"`` are listened to.
    """

    first_tasks: int | None = FIRST_TASKS
    first_roots: int = FIRST_ROOTS
    max_failed: int | Fraction | None = None
    share_roots: int = SHARE_ROOTS
    on_error: bool = True


ON_REQUEST: Final = StopRules(first_tasks=None)
"""Stops where a stage of the plan asks for it, and only there."""
NEVER: Final = StopRules(first_tasks=None, on_error=False)


@dataclass(slots=True)
class _Beginning:
    """A call of which every task so far has failed."""

    tasks: int = 0
    roots: set[int] = field(default_factory=set)
    first: Failure | None = None


class Stopping:
    """The rules at work in one run.

    Args:
        plan: What is run.
        rules: Which failures stop it.
    """

    def __init__(self, plan: Plan, rules: StopRules) -> None:
        self._plan = plan
        self._rules = rules
        calls = plan.calls()
        self._enough = rules.first_tasks or 0
        self._suspect = {call.index: _Beginning() for call in calls} if self._enough else {}
        """By call: those that have done nothing but fail."""
        self._strict = {
            call.index
            for call in calls
            if rules.on_error and plan.stages[call.stage].on_error == "stop"
        }
        self.counts_roots: bool = rules.max_failed is not None
        """Whether the ends of roots matter at all."""
        self._ended = 0
        self._failed = 0
        self._first_root: Failure | None = None
        self._stop: StopRun | None = None
        self._stopped = False

    def task_done(self, call: int) -> None:
        """A task of a call ended and did not fail."""
        self._suspect.pop(call, None)

    def task_failed(self, call: int, failure: Failure) -> None:
        """A task of a call failed for good."""
        if failure.kind == "declared":
            self._suspect.pop(call, None)
            return
        if call in self._strict:
            self._decide(_strict(self._plan, call, failure))
        beginning = self._suspect.get(call)
        if beginning is None:
            return
        beginning.tasks += 1
        beginning.roots.add(failure.ordinals[0])
        beginning.first = first = beginning.first or failure
        roots = len(beginning.roots)
        if beginning.tasks >= self._enough and roots >= self._rules.first_roots:
            self._decide(_only_failures(self._plan, call, beginning.tasks, roots, first))

    def root_ended(self, status: str, failures: Sequence[Failure]) -> None:
        """A root ended; if it failed, ``failures`` has a reason at least."""
        self._ended += 1
        if status == Status.FAILED.value:
            self._root_failed(failures[0])
        self._count_roots()

    def root_refused(self, failure: Failure) -> None:
        """A root that had ended failed after all, since a sink refused it."""
        self._root_failed(failure)
        self._count_roots()

    def take(self) -> StopRun | None:
        """The command to stop the run, once, when a rule holds."""
        stop, self._stop = self._stop, None
        return stop

    def _root_failed(self, failure: Failure) -> None:
        self._failed += 1
        self._first_root = self._first_root or failure

    def _count_roots(self) -> None:
        limit, first = self._rules.max_failed, self._first_root
        if limit is None or first is None:
            return
        if isinstance(limit, Fraction):
            if self._ended < self._rules.share_roots:
                return
            passed = self._failed > limit * self._ended
        else:
            passed = self._failed > limit
        if passed:
            self._decide(_too_many(limit, self._failed, self._ended, first))

    def _decide(self, stop: StopRun) -> None:
        if not self._stopped:
            self._stop, self._stopped = stop, True


def _strict(plan: Plan, call: int, failure: Failure) -> StopRun:
    stage = plan.stages[plan.call(call).stage].name
    return StopRun(
        failure,
        f'a task of {_call(plan, call)} failed, and stage {stage!r} has on_error="stop". '
        f"It was {failure.where()}: {_told(failure)}",
        'Mend the stage, or what it was given, and run again. With on_error="fail" an error fails its own '
        "item only.",
    )


def _only_failures(plan: Plan, call: int, tasks: int, roots: int, first: Failure) -> StopRun:
    return StopRun(
        first,
        f"the first {tasks} tasks of {_call(plan, call)}, under {roots} roots, all failed, none of them with "
        f"a declared failure. The first was {first.where()}: {_told(first)}",
        "That looks like a mistake in the stage or in its settings, and not like bad data: mend it and run "
        "again. Where an item may well be bad, raise or return ff.ItemFailure for it.",
    )


def _too_many(limit: int | Fraction, failed: int, ended: int, first: Failure) -> StopRun:
    allowed = float(limit) if isinstance(limit, Fraction) else limit
    return StopRun(
        first,
        f"{failed} of {ended} roots failed, which is more than max_failed={allowed} allows. "
        f"The first was {first.where()}, at call {first.call!r}: {_told(first)}",
        "See what failed and why in the report; mend it, or allow more, and run again.",
    )


def _call(plan: Plan, call: int) -> str:
    node = plan.call(call)
    return f"call {node.name!r} ({node.where.short()})"


def _told(failure: Failure) -> str:
    trace = f"\n{failure.traceback.rstrip()}\n" if failure.traceback else ""
    return f"{failure.message.rstrip('.')}.{trace}"
