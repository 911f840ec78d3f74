"""What may be begun in a simulated run where there is no credit left.

Owns an account of its own of what is at workers and what items have made, so that it can contradict the core's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from fanfold.dispatch.credits import size_bytes
from fanfold.engine.commands import Command, GrantRoom, StartBatch
from fanfold.plan import CallStreams, Plan
from fanfold.protocol import (
    BatchFinished,
    BatchPaused,
    BatchRaised,
    ChildrenReleased,
    Event,
    TasksFinished,
    WorkerDied,
)
from fanfold.testing.observing import ObservedRun
from fanfold.testing.simulation.checks import Violation

LITTLE: Final = 64
"""What is no more than this share of the budget is little beside it."""


class Budget:
    """Watches that nothing which makes values is begun without credit, but some of the oldest root.

    What values take, and what the core was told, is all that is looked at: how credit is reckoned is the
    core's affair, but where values take all of the budget there can be none. Then idle workers of one stage may
    get one item of the oldest root each, or more if what these make is known to be little beside the budget,
    and only while nothing of the root is ready at a stage nearer to the end.
    """

    def __init__(self, plan: Plan, run: ObservedRun, budget_bytes: int) -> None:
        self._run, self._budget_bytes = run, budget_bytes
        self._storing = {call.index for call in plan.calls() if _stores(plan.streams[call.index])}
        self._expanding = {c.index for c in plan.calls() if plan.streams[c.index].expansions}
        last = {call.stage: call.index for call in plan.calls()}
        self._depth = {call.index: last[call.stage] for call in plan.calls()}
        self._begun: list[_Held] = []
        """Since the last look."""
        self._held: dict[int, _Held] = {}
        """By number, all batches at workers."""
        self._largest: dict[int, float] = {}
        """By call: what an item made in the batch where that was most."""

    def heard(self, event: Event) -> None:
        """A worker tells something."""
        match event:
            case TasksFinished() | ChildrenReleased() if event.batch in self._held:
                self._held[event.batch].made += size_bytes(event.streams)
            case BatchPaused() if event.batch in self._held:
                self._held[event.batch].waits = True
            case BatchFinished() | BatchRaised() if event.batch in self._held:
                held = self._held.pop(event.batch)
                largest = self._largest.get(held.call, 0.0)
                self._largest[held.call] = max(largest, held.made / held.count)
            case WorkerDied():
                here = [n for n, held in self._held.items() if held.worker == event.worker]
                for number in here:
                    del self._held[number]
            case _:
                pass

    def answered(self, command: Command) -> None:
        """The core asks for something."""
        match command:
            case GrantRoom():
                if (held := self._held.get(command.batch)) is not None:
                    self._begun.append(
                        replace(held, count=1, waits=True)
                    )  # else it has begun just now
            case StartBatch():
                batch = command.batch
                held = _Held(batch.batch, batch.call, batch.count, command.worker)
                if batch.call in self._storing and batch.attempt == 1:
                    self._begun.append(held)  # what runs again has been let go once
                else:
                    self._held[batch.batch] = held
            case _:
                pass

    def complaints(self) -> list[Violation]:
        """After a dispatch: what it should not have begun."""
        run, begun = self._run, self._begun
        self._begun = []
        root, text = run.oldest_root, ""
        without = run.held_bytes >= self._budget_bytes
        if without and root is not None:
            text = next(filter(None, (self._why_not(one, begun, root) for one in begun)), "")
        for one in begun:
            held = self._held.setdefault(one.number, one)
            held.waits, held.without = False, without
        return [Violation("credit", f"{text}, with {run.held_bytes} bytes held")] if text else []

    def _why_not(self, one: _Held, begun: Sequence[_Held], root: int) -> str:
        """Why a batch may not begin or go on without credit, if it may not."""
        name, depth, run = f"batch {one.number}", self._depth[one.call], self._run
        if not run.works_for(root, [one.number]):
            return f"{name} is not of root {root}"
        little = self._largest.get(one.call, 0.0) * one.count * LITTLE <= self._budget_bytes
        if one.count > 1 and (one.call in self._expanding or not little):
            return f"{one.count} items were begun at once"
        at_work = [held for held in self._held.values() if not held.waits]
        others = [other for other in begun if other is not one]
        here = [held for held in at_work if held.worker == one.worker]
        if any(held.without for held in here) if one.waits else here:
            return f"{name} is not the only one at its worker"
        if any(other.worker == one.worker for other in others):
            return f"{name} is not the only one that was begun at its worker or went on"
        if any(self._depth[other.call] != depth for other in others):
            return f"{len(begun)} batches of several stages were begun or went on"
        deeper = (call for call, other in self._depth.items() if other > depth)
        if any(run.is_ready(call, root) for call in deeper):
            return f"{name} was begun while an item of root {root} was ready nearer to the end"
        return ""

    def admission(self, room: int) -> list[Violation]:
        """Before roots are admitted: whether there is room for them."""
        full = self._run.held_bytes >= self._budget_bytes
        if not room or not full or self._run.oldest_root is None:
            return []
        return [
            Violation("credit", f"room for {room} roots, with {self._run.held_bytes} bytes held")
        ]

    def at_the_end(self) -> list[Violation]:
        """What is still expected of workers that have nothing to do."""
        left = self._run.promised_bytes
        return [Violation("credit", f"{left} bytes are promised to nobody")] if left else []


@dataclass(slots=True)
class _Held:
    """A batch at a worker."""

    number: int
    call: int
    count: int
    worker: int
    made: int = 0
    """Bytes."""
    waits: bool = False
    """For room."""
    without: bool = False
    """It began, or went on last, where there was no credit."""


def _stores(streams: CallStreams) -> bool:
    """Whether values of a call are kept."""
    children = (stream for expansion in streams.expansions for stream in expansion.streams)
    return any(stream.stored for stream in (*streams.items, *children))
