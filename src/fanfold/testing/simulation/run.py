"""One simulated run: a case on the actual engine and dispatch, in virtual time, judged.

Owns the loop and when each check is made; what the checks are is
:mod:`fanfold.testing.simulation.checks`'s. A run depends on its case alone: no clock, no chance but the case's
seed, no order of hashes.
"""

from __future__ import annotations

import hashlib
import traceback
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import PurePath
from random import Random
from typing import Any, Final

from fanfold.driver.resources import most_of
from fanfold.engine.commands import AddWorker, Command, RecycleWorker, RetireWorker
from fanfold.plan import Plan
from fanfold.protocol import DriverEvent, Event
from fanfold.testing.interpreter import Interpretation, interpret
from fanfold.testing.memory import ROW_BYTES
from fanfold.testing.observing import ObservedRun
from fanfold.testing.simulation.budget import Budget
from fanfold.testing.simulation.case import Case
from fanfold.testing.simulation.checks import (
    IdleWorkers,
    Violation,
    broken_invariants,
    event_limit,
    items_run_again,
    over_the_limits,
    started_wrongly,
    unequal,
)
from fanfold.testing.simulation.rates import Rates
from fanfold.testing.simulation.recycled import Lives
from fanfold.testing.simulation.scales import Scales
from fanfold.testing.simulation.timeline import Timeline
from fanfold.testing.simulation.workers import Heard, SimulatedWorkers
from fanfold.testing.sketches import build, plan_of

WAKES_IN_A_ROW: Final = 20
"""So often the core may ask in vain to be woken at one moment."""
THOROUGH_EVENTS: Final = 60
"""So many events are followed by a check of all invariants; of longer runs, evenly spread ones."""


@dataclass(frozen=True, slots=True)
class _Arrival:
    """The source has so many more roots."""

    count: int


@dataclass(frozen=True, slots=True)
class _Commit:
    """This root's records are written."""

    root: int


@dataclass(frozen=True, slots=True)
class _Wake:
    """A batch has lingered long enough."""


@dataclass(slots=True)
class Simulated:
    """What a simulated run did."""

    violations: list[Violation] = field(default_factory=list)
    """At most the first that ended it, or all that was found at its end."""
    events: int = 0
    recycled: int = 0
    """How often a worker was replaced as its stage asks."""
    compared: bool = False
    """Whether its end was held against the interpreter's meaning; not where that is not whole."""
    moved: int = 0
    """How often a worker was added or retired because of the work."""
    faults: Counter[str] = field(default_factory=Counter)
    """What went wrong on purpose, by kind: with workers, and with ``item:`` before it, with items."""
    virtual_s: float = 0.0
    log_sha256: str = ""
    """Digest of the log, if one was kept."""


def simulate(
    case: Case, *, thorough: bool = False, log: Callable[[str], object] | None = None
) -> Simulated:
    """Simulate a case, and judge the run.

    Args:
        case: What to run.
        thorough: Check all invariants after each event, however many there are.
        log: Told each event and each answer, a line each; the digest of the lines is in the result.

    Example:
        >>> from fanfold.testing.simulation import draw_case
        >>> simulate(draw_case(3)).violations
        []
    """
    run = _Run(case, thorough, log)
    try:
        run.go()
    except Violated as found:
        run.simulated.violations.append(found.violation)
    except Exception as error:  # whatever an engine with a fault runs into
        kind = f"error:{type(error).__name__}"
        run.simulated.violations.append(Violation(kind, f"{error}{_last_line(error)}"))
    run.conclude()
    return run.simulated


class Violated(Exception):
    """The run broke a rule that it cannot go on without."""

    def __init__(self, violation: Violation) -> None:
        super().__init__(violation.text)
        self.violation = violation


class _Run:
    def __init__(self, case: Case, thorough: bool, log: Callable[[str], object] | None) -> None:
        self._case, self._thorough, self._log = case, thorough, log
        self._digest = hashlib.sha256()
        self._random = Random(case.seed)
        self._timeline = Timeline[Any](self._random)
        self._workers = SimulatedWorkers(self._random, case.timing, case.faults, self._timeline)
        self._budget: Budget | None = None
        self._waiting = 0
        """Roots that the source has and nobody admitted yet."""
        self._woken, self._woken_s = 0, -1.0
        """How often in a row the core was woken, and when something happened last."""
        self.simulated = Simulated()

    # ------------------------------------------------------------------------------------- the loop

    def go(self) -> None:
        """Run to the end; judge on the way and at the end."""
        roots = self._case.sketch.roots
        try:
            plan = plan_of(build(self._case.sketch))
            meaning = interpret(plan, roots)
        except Exception as error:
            text = f"{type(error).__name__}: {error}"
            raise Violated(Violation("case", text)) from error
        self._plan = plan
        self._rates = Rates(plan)
        self._limit = event_limit(meaning, self._workers_of(plan), len(self._case.faults))
        budget_bytes = None if self._case.budget is None else self._case.budget * ROW_BYTES
        self._run = ObservedRun(
            plan,
            self._workers,
            roots,
            span=self._case.span,
            listener=self._answered,
            cores=self._case.cores,
            look_s=self._case.look_s,
            budget_bytes=budget_bytes,
        )
        if budget_bytes is not None:
            self._budget = Budget(plan, self._run, budget_bytes)
        plan = self._plan = self._run.plan
        self._lives = Lives(plan, self._run)
        self._scales = Scales(plan, self._run)
        self._idle = IdleWorkers(plan, self._run, self._workers, self._rates)
        self._sow(len(roots))
        while not self._run.over:
            self._turn()
        while self._timeline.next_s is not None:
            self._happen()  # late news, such as the end of a batch, lets blocks go
        self._judge(plan, meaning)

    def _turn(self) -> None:
        """One turn of a driver's loop: give work out, wait, take in what happened, admit."""
        run, timeline = self._run, self._timeline
        run.dispatch(timeline.now_s)
        self._commit_later()
        self._demand([Violation("rate", text) for text in self._rates.complaints(timeline.now_s)])
        self._demand([Violation("recycle", text) for text in self._lives.complaints()])
        self._demand([Violation("scale", text) for text in self._scales.complaints()])
        if self._budget is not None:
            self._demand(self._budget.complaints())
        if self._is_checked():
            self._demand(started_wrongly(run))
            self._demand(list(over_the_limits(self._plan, run, self._workers)))
        if run.over:
            return
        if self._budget is None:  # else workers may be idle for want of credit
            self._demand(self._idle.complaints(timeline.now_s))
        due_s = run.due_s
        if due_s is not None and (timeline.next_s is None or due_s < timeline.next_s):
            timeline.add(max(due_s, timeline.now_s), _Wake())
        if timeline.next_s is None:
            self._demand([Violation("stand-still", "nothing will happen, and the run is not over")])
        self._happen()
        until_s = timeline.now_s + self._case.timing.poll_s
        while not run.over and timeline.next_s is not None and timeline.next_s < until_s:
            self._happen()
        if not run.over:
            self._admit()

    def _happen(self) -> None:
        """The next thing on the timeline."""
        thing, now_s = self._timeline.pop(), self._timeline.now_s
        self.simulated.events += 1
        if self.simulated.events > self._limit:
            text = f"more than {self._limit} events, and the run is not over"
            self._demand([Violation("endless", text)])
        match thing:
            case Heard():
                event = self._workers.heard(thing)
                if event is not None:
                    self._note(event)
                    if not thing.late:
                        self._rates.heard(event)
                    self._lives.heard(event)
                    self._scales.heard(event)
                    if self._budget is not None:
                        self._budget.heard(event)
                    self._run.take_in(event)
            case _Arrival():
                self._waiting += thing.count
                self._note(thing)
                if not thing.count:
                    self._run.admit(0, now_s)
            case _Commit():
                self._note(thing)
                self._run.commit([thing.root], now_s)
            case _Wake():
                self._note(thing)
        again = isinstance(thing, _Wake) and now_s == self._woken_s
        self._woken, self._woken_s = self._woken + 1 if again else 0, now_s
        if self._woken > WAKES_IN_A_ROW:
            self._demand([Violation("endless", f"it is to be woken at {now_s} s for ever")])
        self._commit_later()
        if self._is_checked():
            self._demand(broken_invariants(self._run))

    def _sow(self, roots: int) -> None:
        """The source's blocks, and when they come."""
        timing, time_s = self._case.timing, 0.0
        for first in range(0, roots, timing.block):
            self._timeline.add(time_s, _Arrival(min(timing.block, roots - first)))
            time_s += timing.gap_s
        if not roots:
            self._timeline.add(0.0, _Arrival(0))

    def _admit(self) -> None:
        """Admit what the source has, as far as there is room."""
        while self._waiting and (room := self._run.room()) > 0:
            if self._budget is not None:
                self._demand(self._budget.admission(room))
            before = self._run.admitted
            self._run.admit(self._waiting, self._timeline.now_s)
            self._waiting -= self._run.admitted - before
            self._commit_later()

    def _commit_later(self) -> None:
        ended, self._run.ended = self._run.ended, []
        for root in ended:
            delay_s = self._case.timing.commit_s * self._random.choice((0.0, 1.0, 2.0))
            self._timeline.add(self._timeline.now_s + delay_s, _Commit(root))

    # ------------------------------------------------------------------------------------ judgement

    def _is_checked(self) -> bool:
        """All events of a short run are; of a longer one, fewer and fewer the longer it gets."""
        events = self.simulated.events
        return self._thorough or events % (1 + events // THOROUGH_EVENTS) == 0

    @staticmethod
    def _demand(violations: list[Violation]) -> None:
        if violations:
            raise Violated(violations[0])

    def _judge(self, plan: Plan, meaning: Interpretation) -> None:
        run, found = self._run, self.simulated.violations
        if run.observed.stopped is not None:
            found.append(Violation("stopped", f"the run was stopped: {run.observed.stopped}"))
            return
        self.simulated.compared = meaning.whole
        found += broken_invariants(run)
        found += unequal(plan, meaning, run.observed)
        found += items_run_again(plan, meaning, self._workers)
        if self._budget is not None:
            found += self._budget.at_the_end()
        if self._workers.blocks_left:
            found.append(Violation("leak", f"{self._workers.blocks_left} blocks are left"))

    def conclude(self) -> None:
        """Put down what is counted."""
        simulated = self.simulated
        simulated.virtual_s = self._timeline.now_s
        simulated.faults.update(self._workers.injected)
        simulated.faults.update(
            {f"item:{kind}": count for kind, count in self._workers.mishaps.items()}
        )
        if self._log is not None:
            for violation in simulated.violations:
                self._write(f"violation {violation}")
            simulated.log_sha256 = self._digest.hexdigest()

    def _workers_of(self, plan: Plan) -> int:
        return sum(max(most_of(stage), self._case.cores or 0) for stage in plan.stages)

    def _note(self, thing: Event | DriverEvent | _Arrival | _Commit | _Wake) -> None:
        if self._log is not None:
            self._write(f"{self._timeline.now_s!r} {thing!r}")

    def _answered(self, command: Command) -> None:
        self._rates.answered(command)
        self._lives.answered(command, carried=self._budget is not None)
        self._scales.answered(command)
        self.simulated.moved += isinstance(command, (AddWorker, RetireWorker))
        self.simulated.recycled += isinstance(command, RecycleWorker)
        if self._budget is not None:
            self._budget.answered(command)
        if self._log is not None:
            self._write(f"  {command!r}")

    def _write(self, line: str) -> None:
        assert self._log is not None
        self._log(line)
        self._digest.update(line.encode() + b"\n")


def _last_line(error: BaseException) -> str:
    """Where it was raised: the module and the function, which say more than many a message."""
    *_, last = traceback.extract_tb(error.__traceback__)
    return f" (in {last.name}, {PurePath(last.filename).name})"
