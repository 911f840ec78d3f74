"""What the tests of the conformance suite have in common: a backend, and how a run on it is compared.

Owns nothing that a backend has to do; that is :mod:`fanfold.testing.conformance`'s.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

from fanfold.backends.base import Backend
from fanfold.outcomes import Outcome
from fanfold.plan import Plan
from fanfold.testing.comparison import Seen, compare, compare_failures
from fanfold.testing.interpreter import interpret
from fanfold.testing.observing import Observed, run_observed
from fanfold.testing.sketches import plan_of


class ConformanceKit(ABC):
    """Runs pipelines on a backend, and compares."""

    crosses_processes: ClassVar[bool] = False
    """Values leave the process that made them, so they are pickled."""
    survives_death: ClassVar[bool] = False
    """A worker's process may end without taking the run with it."""

    waits_for_room: ClassVar[bool] = True
    """A generator releases at most one child beyond its room, then waits."""

    own_objects: ClassVar[bool] = True
    """Each worker constructs an object of a class stage for itself; else a stage has one for all workers."""

    @abstractmethod
    def backend(self) -> Backend:
        """A new backend, not started."""

    def value_bytes(self, size_bytes: int) -> int:
        """What a value that has so many bytes is said to take, at most."""
        return size_bytes + 1_000

    def run(self, pipeline: Any, roots: Sequence[Any], **extra: Any) -> tuple[Plan, Observed]:
        """Run a pipeline on the backend without comparing it."""
        rows = [root if isinstance(root, tuple) else (root,) for root in roots]
        plan = plan_of(pipeline)
        return plan, run_observed(plan, self.backend(), rows, **extra)

    def check(self, pipeline: Any, roots: Sequence[Any], **extra: Any) -> list[list[Any]]:
        """Run it, require the interpreter's meaning, and tell each output's items in order."""
        return self.checked(pipeline, roots, **extra)[0]

    def checked(
        self, pipeline: Any, roots: Sequence[Any], **extra: Any
    ) -> tuple[list[list[Any]], Observed]:
        """The same, and all that was observed."""
        rows = [root if isinstance(root, tuple) else (root,) for root in roots]
        keys = [f"key {position}" for position in range(len(rows))]
        plan, observed = self.run(pipeline, rows, keys=keys, **extra)
        assert observed.stopped is None, observed.stopped
        meaning = interpret(plan, rows, keys)
        assert compare(plan, meaning, observed.items) == []
        assert compare_failures(plan, meaning, observed.failures) == []
        found = [
            [told(item) for _, item in sorted(observed.items[output.port].items())]
            for output in plan.outputs
        ]
        return found, observed


def told(item: Seen) -> Any:
    """The value of an item that is done; of others the outcome, and the cause's message if there is one."""
    if item.outcome is Outcome.DONE:
        return item.value
    if item.failure is None:
        return item.outcome.value
    return item.outcome.value, item.failure.message
