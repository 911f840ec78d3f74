"""Made-up runs stop exactly where a rule of failing fast holds for the first time, with nothing broken."""

from __future__ import annotations

from collections.abc import Iterable
from random import Random

import pytest

from fanfold.backends.base import BackendEvent
from fanfold.dispatch.stopping import StopRules
from fanfold.engine.commands import Command, StartBatch
from fanfold.failures import Failure
from fanfold.protocol import Event, TasksFinished
from fanfold.testing.observing import ObservedRun
from fanfold.testing.simulation import draw_case
from fanfold.testing.sketches import build, plan_of
from fanfold.testing.twin import Twin

SEEDS = 80
RULES = {
    "a call that only fails": StopRules(first_tasks=3, first_roots=2),
    "failed roots": StopRules(first_tasks=None, max_failed=1),
    "all": StopRules(first_tasks=2, first_roots=1, max_failed=2),
}


class Watched:
    """A run that knows from outside, after each event, whether it should have been stopped by now."""

    def __init__(self, seed: int, rules: StopRules) -> None:
        case = draw_case(seed)
        self.plan = plan_of(build(case.sketch))
        self.rules = rules
        self.call_of: dict[int, int] = {}
        self.worked: set[str] = set()
        self.time_s = 0.0
        self.roots = len(case.sketch.roots)
        self.backend = Twin(Random(seed), deaths=1)
        self.run = ObservedRun(
            self.plan,
            self.backend,
            case.sketch.roots,
            span=case.span,
            listener=self.note,
            rules=rules,
        )

    @property
    def stopped(self) -> bool:
        return self.run.observed.stopped is not None

    def note(self, command: Command) -> None:
        if isinstance(command, StartBatch):
            self.call_of[command.batch.batch] = command.batch.call

    def to_the_end(self) -> None:
        while not self.run.over:
            if self.run.admitted < self.roots:
                self.run.admit(1, self.time_s)
                self.judge()
            elif not self.roots:
                self.run.admit(0, self.time_s)
            self.run.dispatch(self.time_s)
            self.commit()
            if not self.run.over:
                due_s = self.run.due_s
                more_comes = self.run.admitted < self.roots or due_s is not None
                events = self.backend.poll(0 if more_comes else None)
                if not events and due_s is not None:
                    self.time_s = max(self.time_s, due_s)
                self.take_in(events)

    def take_in(self, events: Iterable[Event | BackendEvent]) -> None:
        for event in events:
            assert not isinstance(event, BackendEvent), "there is no writer"
            if self.stopped:
                return
            self.time_s = max(self.time_s, event.time_s)
            self.hear(event)
            self.run.take_in(event)
            self.judge()
            self.commit()

    def commit(self) -> None:
        while self.run.ended and not self.stopped:
            roots, self.run.ended = self.run.ended, []
            self.run.commit(roots, self.time_s)

    def hear(self, event: Event) -> None:
        if isinstance(event, TasksFinished) and event.count > len(event.failures):
            self.worked.add(self.plan.call(self.call_of[event.batch]).name)

    def judge(self) -> None:
        self.run.check()
        assert self.stopped == (self.only_fails() or self.too_many())

    def only_fails(self) -> bool:
        if self.rules.first_tasks is None:
            return False
        found: dict[str, list[Failure]] = {}
        listed = [f for fs in self.run.observed.failures.values() for f in fs]
        for failure in [*listed, *self.run.open_failures()]:
            found.setdefault(failure.call, []).append(failure)
        return any(
            len(found.get(call.name, ())) >= self.rules.first_tasks
            and len({f.ordinals[0] for f in found[call.name]}) >= self.rules.first_roots
            and all(f.kind != "declared" for f in found[call.name])
            and call.name not in self.worked
            for call in self.plan.calls()
        )

    def too_many(self) -> bool:
        limit = self.rules.max_failed
        failed = [r for r in self.run.observed.results.values() if r.status == "failed"]
        return limit is not None and len(failed) > limit


@pytest.mark.parametrize("rules", RULES.values(), ids=RULES)
def test_a_run_stops_where_a_rule_holds_first(rules: StopRules) -> None:
    stopped = 0
    for seed in range(SEEDS):
        watched = Watched(seed, rules)
        watched.to_the_end()
        stopped += watched.stopped
    assert 0 < stopped < SEEDS
