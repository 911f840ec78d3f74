"""What must hold of a simulated run's rates: no call begins sooner than it may.

Owns a second opinion on :mod:`fanfold.dispatch.rates`, from commands and events alone: calls that began are
counted, and of what services ask all is remembered.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import inf
from typing import Final

from fanfold.engine.commands import Command, StartBatch
from fanfold.plan import Plan
from fanfold.protocol import BatchRaised, Event, TasksFinished

LATE_S: Final = 0.01
"""So much sooner than a full spacing after the last call one may begin, if that was late."""
EXACT: Final = 1e-9
"""Times are sums of others; this is lost in them, as a share."""


class Rates:
    """Watches when calls begin.

    Args:
        plan: What is run.
    """

    def __init__(self, plan: Plan) -> None:
        self._stage_of = {call.index: plan.stages[call.stage] for call in plan.calls()}
        self._spacing_s = {
            stage.index: 1 / stage.rate_limit
            for stage in plan.stages
            if stage.rate_limit is not None
        }
        self._begun = dict.fromkeys(self._spacing_s, 0)
        self._pace_s = dict.fromkeys(self._spacing_s, -inf)
        """By stage: the latest start, had all calls begun at full pace from one that did begin."""
        self._until_s: dict[int, float] = {}
        """By stage: when its service wants to be asked again."""
        self._call_of: dict[int, int] = {}
        """By batch at a worker."""
        self._news: list[StartBatch] = []

    def answered(self, command: Command) -> None:
        """The core asks for something."""
        if isinstance(command, StartBatch):
            self._news.append(command)
            self._call_of[command.batch.batch] = command.batch.call

    def heard(self, event: Event) -> None:
        """A worker tells something, in time."""
        match event:
            case TasksFinished():
                failures = [failure for _, failure in event.failures]
            case BatchRaised():
                failures = [event.failure]
            case _:
                return
        for failure in failures:
            if failure.after_s is not None:
                stage = self._stage_of[self._call_of[event.batch]].index
                before_s = self._until_s.get(stage, -inf)
                self._until_s[stage] = max(before_s, event.time_s + failure.after_s)

    def allows(self, stage: int, time_s: float) -> bool:
        """Whether a call of a stage may begin for certain."""
        spacing_s = self._spacing_s.get(stage, 0.0)
        paced_s = self._pace_s[stage] + self._begun[stage] * spacing_s if spacing_s else -inf
        return time_s >= max(paced_s, self._until_s.get(stage, -inf)) * (1 + EXACT)

    def complaints(self, time_s: float) -> Iterator[str]:
        """After a dispatch: calls that should not have begun."""
        news, self._news = self._news, []
        for command in news:
            batch = command.batch
            stage = self._stage_of[batch.call]
            until_s = self._until_s.get(stage.index, -inf)
            if time_s < until_s * (1 - EXACT):
                yield f"{stage.name} was to be asked at {until_s} s and began at {time_s} s"
            spacing_s = self._spacing_s.get(stage.index)
            if spacing_s is None:
                continue
            calls = batch.count if stage.batch_size is None else 1
            for _ in range(calls):
                paced_s = self._pace_s[stage.index] + self._begun[stage.index] * spacing_s
                if time_s + LATE_S < paced_s * (1 - EXACT):
                    yield f"{stage.name} has a rate of {stage.rate_limit}/s, and began at {time_s} s"
                own_s = time_s - self._begun[stage.index] * spacing_s
                self._pace_s[stage.index] = max(self._pace_s[stage.index], own_s)
                self._begun[stage.index] += 1
