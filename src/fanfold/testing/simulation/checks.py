"""What must hold of a simulated run: between its events, after each dispatch, and at its end.

Owns the list of violations. Knows of the engine only what an observed run tells, so that it survives whatever
the engine's insides become.
"""

from __future__ import annotations

import pickle
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from fanfold.columns import Column
from fanfold.dispatch.supply import BACKLOG_BATCHES
from fanfold.engine.statistics import CallCounts
from fanfold.errors import InternalError
from fanfold.extract import Untold, costs_of, grouped
from fanfold.outcomes import Outcome
from fanfold.plan import Plan
from fanfold.protocol import NO_GROUP
from fanfold.sizes import row_sizes
from fanfold.testing.comparison import compare, compare_failures
from fanfold.testing.interpreter import Interpretation
from fanfold.testing.observing import Observed, ObservedRun
from fanfold.testing.simulation.rates import Rates
from fanfold.testing.simulation.workers import SimulatedWorkers

VIOLATIONS: Final = {
    "case": "the case cannot be run: no pipeline can be made of it",
    "error": "the core raised an exception (its type follows the kind)",
    "invariant": "the engine's state is not what it must be after any event",
    "stand-still": "nothing is under way, and the run is not over",
    "endless": "there are far more events than the run can need",
    "dead": "an item was started that had ended, that a parent failure had reached, or that nobody needs",
    "probe": "more items of a parent without a result were started than the probe lets, while others' waited",
    "credit": "without credit more was begun than an item of the oldest root's deepest work for each worker",
    "idle": "a worker has nothing to do for two dispatches while items wait for it, and no queue is long",
    "rate": "a call began sooner than the stage's rate lets, or than its service wants to be asked",
    "linger": "a worker waits for a batch that is full, has lingered too long, or to which nothing can come",
    "limits": "a batch has more items, or more bytes, than its stage says, or items of several groups",
    "stopped": "the run was stopped, though no stage has a constructor that raises",
    "meaning": "an output item is not what the reference interpreter says",
    "failures": "a root's failures are not among those it can have, or one that is lost lists none",
    "roots": "a root did not end, or ended twice",
    "scale": "there were fewer or more replicas than may be, or one went that held work or was not ready",
    "recycle": "a worker had more than its stage lets it have, or was replaced too early or with a batch at it",
    "again": "items ran more often than batches that were lost or raised account for",
    "leak": "values are still held after the end",
}
"""By kind, what it means."""


@dataclass(frozen=True, slots=True)
class Violation:
    """A rule that a run broke."""

    kind: str
    """A key of :data:`VIOLATIONS`; an error's has the exception's type behind a colon."""
    text: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.text}"


class IdleWorkers:
    """Watches that no worker is idle while items wait for it."""

    def __init__(
        self, plan: Plan, run: ObservedRun, workers: SimulatedWorkers, rates: Rates
    ) -> None:
        self._plan, self._run, self._workers, self._rates = plan, run, workers, rates
        self._before: dict[int, str] = {}
        self._lingering = _LingeringWorkers(plan, run)

    def complaints(self, time_s: float) -> list[Violation]:
        """After a dispatch: workers that got nothing of what waits for them, for the second time in a row.

        Once may be right: a call is held back while one that reads its output has a long queue, and that may
        have become shorter in this very dispatch. Where no queue is long, none is held back.
        """
        before, self._before = self._before, self._left_idle(time_s)
        late = self._lingering.complaints(self._before, time_s)
        if late:
            return late
        self._before = {
            worker: name
            for worker, name in self._before.items()
            if name not in self._lingering.names
        }
        return [
            Violation("idle", f"worker {worker} is idle while items wait for {name}")
            for worker, name in self._before.items()
            if worker in before
        ]

    def _left_idle(self, time_s: float) -> dict[int, str]:
        """Workers that have nothing to do while items wait for them, with their stages' names."""
        idle = {
            worker: stage
            for worker, stage in self._workers.idle().items()
            if self._rates.allows(stage, time_s)
        }
        if not idle:
            return {}
        calls = self._run.statistics(time_s).calls
        waiting = {call.stage for call in calls if call.ready}
        if not waiting or max(call.ready for call in calls) > BACKLOG_BATCHES:
            return {}
        names = ((worker, self._plan.stages[stage].name) for worker, stage in idle.items())
        return {worker: name for worker, name in names if name in waiting}


class _LingeringWorkers:
    """Watches that none of those who wait for a fuller batch does so in vain."""

    def __init__(self, plan: Plan, run: ObservedRun) -> None:
        self._run = run
        self._stages = {s.name: s for s in plan.stages if s.linger_s is not None}
        self._since: dict[str, tuple[float, int]] = {}
        """By stage: when items were first seen to wait for an idle worker, and the batches until then."""
        self._before: set[str] = set()

    @property
    def names(self) -> Collection[str]:
        """The stages that linger."""
        return self._stages

    def complaints(self, idle: Mapping[int, str], time_s: float) -> list[Violation]:
        """After a dispatch: stages that keep items waiting for too long, for the second time in a row."""
        found: dict[str, str] = {}
        since: dict[str, tuple[float, int]] = {}
        for name in self._stages.keys() & set(idle.values()):
            calls = self._run.statistics(time_s).calls
            batches = sum(call.batches for call in calls if call.stage == name)
            begun_s, before = self._since.get(name, (time_s, batches))
            since[name] = (begun_s if before == batches else time_s, batches)
            if why := self._why_not(name, time_s - since[name][0], calls):
                found[name] = why
        self._since = since
        before_now, self._before = self._before, set(found)
        return [
            Violation("linger", f"items wait for {name}, which has an idle worker: {why}")
            for name, why in found.items()
            if name in before_now
        ]

    def _why_not(self, name: str, waited_s: float, calls: Sequence[CallCounts]) -> str:
        """Why a stage's items may not wait, if they may not."""
        stage = self._stages[name]
        assert stage.linger_s is not None and stage.batch_size is not None
        if stage.batch_by is None and any(
            call.ready >= stage.batch_size for call in calls if call.stage == name
        ):
            return "a batch is full"
        if waited_s > stage.linger_s:
            return f"they have waited for {waited_s} s"
        others = any(call.running or (call.ready and call.stage != name) for call in calls)
        if self._run.exhausted and not others:
            return "nothing more can come"
        return ""


def broken_invariants(run: ObservedRun) -> list[Violation]:
    """What the engine itself says of its state."""
    try:
        run.check()
    except InternalError as error:
        return [Violation("invariant", str(error))]
    return []


def started_wrongly(run: ObservedRun) -> list[Violation]:
    """What should not have been started in the last dispatch."""
    dead = [Violation("dead", text) for text in run.dead_work()]
    return dead or [Violation("probe", text) for text in run.beyond_the_probe()]


def over_the_limits(plan: Plan, run: ObservedRun, workers: SimulatedWorkers) -> Iterator[Violation]:
    """Batches of the last dispatch that hold too much."""
    for batch in run.started:
        stage = plan.stages[plan.call(batch.call).stage]
        if stage.batch_size is not None and batch.count > stage.batch_size:
            yield Violation("limits", f"{stage.name} was sent {batch.count} items at once")
        if stage.batch_by is not None and batch.count > 1:
            values = workers.read(_defaults_marked(batch.columns[0]))
            told = [value for value in values if not isinstance(value, _Default)]
            groups = [
                *(group for group, _ in grouped(stage.batch_by, told, Untold("batch_by"))),
                *{value for value in values if isinstance(value, _Default)},
            ]
            if len(groups) > 1 or NO_GROUP in groups:
                yield Violation("limits", f"{stage.name} was sent items of the groups {groups}")
        if stage.batch_cost is not None and batch.count > 1:
            values = workers.read(_defaults_marked(batch.columns[0]))
            total = sum(
                costs_of(
                    stage.batch_cost,
                    [value for value in values if not isinstance(value, _Default)],
                    Untold("batch_cost"),
                )
            )
            if total > (stage.max_batch_cost or 0):
                yield Violation("limits", f"{stage.name} was sent items that cost {total} at once")
        if stage.batch_bytes is not None and batch.count > 1:
            rows = sorted(set().union(*map(_rows_read, batch.columns)))
            values = [workers.read(("rows", ref, row, 1))[0] for ref, row in rows]
            size = sum(row_sizes([value])[0] for value in values)
            if size > stage.batch_bytes:
                yield Violation("limits", f"{stage.name} was sent {size} bytes at once")


class _Default(NamedTuple):
    """In the place of a merge's default, which costs nothing and is a group of its own."""

    pickled: bytes


def _defaults_marked(column: Any) -> Any:
    """A column with marks in the places of the defaults of merges."""
    if not isinstance(column, tuple):
        return column
    if column and column[0] == "const":
        return ("const", pickle.dumps(_Default(column[1])), column[2])
    return tuple(map(_defaults_marked, column))


def _rows_read(column: Column) -> set[tuple[Any, int]]:
    """The rows that a column is made of, each once."""
    match column:
        case ("rows", ref, first, n):
            return {(ref, row) for row in range(first, first + n)}
        case ("pick", ref, first, mask):
            return {(ref, first + i) for i in range(mask.bit_length()) if mask >> i & 1}
        case ("cat", columns) | ("record", _, columns, _):
            return set[tuple[Any, int]]().union(*map(_rows_read, columns))
        case ("weave", _, a, b):
            return _rows_read(a) | _rows_read(b)
        case ("spread" | "field" | "lists", inner, _):
            return _rows_read(inner)
    return set()


def event_limit(meaning: Interpretation, workers: int, faults: int) -> int:
    """More events than a run can need: a handful for each item and attempt, worker and fault."""
    items = sum(len(items) for items in meaning.ports.values())
    return 40 * items + 20 * workers + 50 * (faults + 1)


def unequal(plan: Plan, meaning: Interpretation, observed: Observed) -> list[Violation]:
    """Where the run differs from the reference interpreter."""
    roots = sorted({at[0] for items in meaning.ports.values() for at in items if len(at) == 1})
    found = [Violation("meaning", text) for text in compare(plan, meaning, observed.items)]
    found += [
        Violation("failures", text) for text in compare_failures(plan, meaning, observed.failures)
    ]
    if sorted(observed.ended) != roots:
        found.append(Violation("roots", f"{observed.ended} ended, of {len(roots)}"))
    return found


def items_run_again(
    plan: Plan, meaning: Interpretation, workers: SimulatedWorkers
) -> list[Violation]:
    """Calls at which more items ran than can have been ready, and lost batches account for."""
    found = []
    for call in plan.calls():
        items = meaning.ports[call.outputs[0]].values()
        ready = sum(
            any(one.outcome in (Outcome.DONE, Outcome.FAILED) for one in (item, *item.otherwise))
            for item in items
        )
        started, lost = workers.items_started[call.index], workers.items_lost[call.index]
        if started > ready + lost and meaning.whole:
            text = f"{started} items ran at {call.name}; {ready} were ready, {lost} may run again"
            found.append(Violation("again", text))
    return found
