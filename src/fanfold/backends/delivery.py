"""What a batch gives: outputs and children are collected here, stored as blocks and told as events.

Owns the order and the grouping of a batch's events, and what becomes of tasks whose values cannot be stored.
Knows neither users' code nor how events travel.

A *flush* reports together: all children that were collected, the expansions that are sealed, and the tasks
that have ended since the last flush. Whoever carries events keeps those of one flush together, so that a
worker that dies has delivered all of it or nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any, Final, TypeAlias

from fanfold.backends.snapshots import FROZEN
from fanfold.backends.stage_plan import StagePlan
from fanfold.backends.values import Unstorable, Values
from fanfold.extract import told
from fanfold.failures import Failure
from fanfold.plan import CallStreams, Expansion, Stream
from fanfold.protocol import (
    BatchEvent,
    ChildrenReleased,
    ExpansionSealed,
    RunBatch,
    StreamRows,
    TasksFinished,
)

Emit: TypeAlias = Callable[[Sequence[BatchEvent]], None]
"""Takes the events of one flush."""

RELEASE_CHILDREN: Final = 4096
"""So many children, or so many bytes of them, are released together."""
RELEASE_BYTES: Final = 4 * 1024 * 1024
BYTES_PER_CHILD: Final = RELEASE_BYTES // RELEASE_CHILDREN
FIRST_CHILDREN: Final = 64
"""As long as nothing is known of their size, no more than so many."""


@dataclass(slots=True)
class Opening:
    """Children of one expansion that were made and not yet told of."""

    expansion: Expansion
    rows: list[list[Any]]
    """By stream: the children of all tasks in ``counts``, one task after the other."""
    counts: dict[int, int] = field(default_factory=dict)
    """By task, in order: how many more children."""
    sealed: list[int] = field(default_factory=list)

    @classmethod
    def of(cls, expansion: Expansion) -> Opening:
        """An opening without any children yet."""
        return cls(expansion, [[] for _ in expansion.streams])

    def add(self, task: int, children: Sequence[Sequence[Any]]) -> None:
        """All (further) children of a task, one sequence per stream; they are its last."""
        for rows, more in zip(self.rows, children, strict=True):
            rows.extend(more)
        if len(children[0]):
            self.counts[task] = len(children[0])
        self.sealed.append(task)

    def counted(self) -> tuple[int, tuple[int, ...]]:
        """The counts as reports have them: the first task, and a number for each from there on."""
        first, last = next(iter(self.counts)), next(reversed(self.counts))
        if last - first + 1 == len(self.counts):
            return first, tuple(self.counts.values())
        return first, tuple(self.counts.get(task, 0) for task in range(first, last + 1))

    def drop(self, task: int) -> None:
        """The children of a task are told to nobody."""
        start = 0
        for other, count in self.counts.items():
            if other == task:
                for rows in self.rows:
                    del rows[start : start + count]
                del self.counts[task]
                break
            start += count
        if task in self.sealed:
            self.sealed.remove(task)


class Delivery:
    """The outgoing side of one batch.

    Args:
        batch: The batch.
        plan: The stage's part of the plan.
        streams: What is to be delivered.
        outputs: How many outputs the call has.
        values: Where blocks go.
        emit: Where events go.
        worker: The replica's name, for failures.
    """

    def __init__(
        self,
        batch: RunBatch,
        plan: StagePlan,
        streams: CallStreams,
        outputs: int,
        values: Values,
        emit: Emit,
        worker: str = "",
    ) -> None:
        self._batch = batch
        self._plan = plan
        self._items = streams.items
        self._values = values
        self._emit = emit
        self._worker = worker
        self.first: int = 0
        """The first task that was not reported yet."""
        self.columns: list[list[Any]] = [[] for _ in range(outputs)]
        """By output: a value for each task from ``first`` on (anything, if the task failed)."""
        self.failures: dict[int, Failure] = {}
        """By task, all since the batch's start."""
        self.openings: list[Opening] = [Opening.of(expansion) for expansion in streams.expansions]
        self._settled: list[StreamRows] | None = None
        """What :meth:`settle` has stored."""
        self.released_bytes: int = 0
        """How much the children take that were reported so far."""

    @property
    def has_items(self) -> bool:
        """Whether anyone needs the whole values that tasks return."""
        return bool(self._items)

    @property
    def copies(self) -> bool:
        """Whether all that is stored, children and whole values, is copied then."""
        streams = (*self._items, *(s for one in self.openings for s in one.expansion.streams))
        return all(self._values.copies(stream.port) for stream in streams if stream.stored)

    def room(self) -> tuple[float, float]:
        """How much more should be released together with what was collected, in :data:`BYTES_PER_CHILD`, and
        what a child is taken for at least: what its kind took lately."""
        room, share = float(RELEASE_CHILDREN), 1.0
        for opening in self.openings:
            stored = [s.port for s in opening.expansion.streams if s.stored]
            usual = sum(map(self._values.row_bytes, stored))
            if stored:
                room = min(room, RELEASE_BYTES / usual if usual else FIRST_CHILDREN)
                share = max(share, 1 + usual / BYTES_PER_CHILD)
        waiting = max((len(opening.rows[0]) for opening in self.openings), default=0)
        return (room - waiting) * share, share

    def done(self, values: Sequence[Any]) -> None:
        """The next task has these outputs."""
        for column, value in zip(self.columns, values, strict=True):
            column.append(value)

    def failed(self, task: int, failure: Failure) -> None:
        """The next task has failed."""
        self.failures[task] = failure
        for column in self.columns:
            column.append(None)

    def settle(self, stop: int) -> None:
        """Make sure that what was collected for the tasks before ``stop`` can be told later, by another thread:
        what users' code can still change, or has a part in, is stored now."""
        if self._is_frozen():
            self.columns = [column.copy() for column in self.columns]
        else:
            self._settled = self._store(stop)

    def _is_frozen(self) -> bool:
        """Whether nothing that was collected can change any more, and no function of users is asked of it."""
        openings = self.openings
        streams = [*self._items, *(s for one in openings for s in one.expansion.streams)]
        return not any(stream.groups or stream.costs for stream in streams) and all(
            FROZEN.issuperset(map(type, values))
            for values in chain(self.columns, *(one.rows for one in openings))
        )

    def flush(self, stop: int, *last: BatchEvent) -> None:
        """Report what was collected: children, and the tasks before ``stop``; then ``last``."""
        events = self.events(stop, *last)
        if events:
            self._emit(events)

    def events(self, stop: int, *last: BatchEvent) -> list[BatchEvent]:
        """What there is to report: children, and the tasks before ``stop``; then ``last``."""
        stored = self._store(stop) if self._settled is None else self._settled
        self._settled = None
        batch, events = self._batch, list[BatchEvent]()
        for opening in self.openings:
            node = opening.expansion.node
            streams = tuple(stored.pop(0) for _ in opening.rows)
            if opening.counts:
                self.released_bytes += sum(s.rows.size_bytes for s in streams if s.rows is not None)
                events.append(
                    ChildrenReleased(
                        batch.batch,
                        node,
                        *opening.counted(),
                        streams,
                        attempt=batch.attempt,
                        generation=batch.generation,
                    )
                )
            if opening.sealed:
                events.append(
                    ExpansionSealed(
                        batch.batch,
                        node,
                        tuple(opening.sealed),
                        attempt=batch.attempt,
                        generation=batch.generation,
                    )
                )
        if stop > self.first:
            failures = self.failures
            events.append(
                TasksFinished(
                    batch.batch,
                    self.first,
                    stop - self.first,
                    tuple(stored),
                    tuple((t, failures[t]) for t in sorted(failures) if self.first <= t < stop),
                    attempt=batch.attempt,
                    generation=batch.generation,
                )
            )
        events += last
        self.openings = [Opening.of(opening.expansion) for opening in self.openings]
        self.columns = [[] for _ in self.columns]
        self.first = stop
        return events

    def _store(self, stop: int) -> list[StreamRows]:
        """The rows of all streams: of each opening in turn, then of the items. Where some cannot be stored,
        their tasks fail, and what is left is stored."""
        while True:
            made: list[StreamRows] = []
            opening: Opening | None = None
            try:
                for opening in self.openings:
                    for stream, rows in zip(opening.expansion.streams, opening.rows, strict=True):
                        made.append(self._stored(stream, rows))
                opening = None
                if stop > self.first:
                    for stream in self._items:
                        column = self._good(self.columns[stream.position])
                        made.append(self._stored(stream, column))
                return made
            except Unstorable as error:
                for one in made:
                    if one.rows is not None:
                        self._values.take_back(one.rows)
                self._exclude(error, opening)

    def _stored(self, stream: Stream, rows: Sequence[Any]) -> StreamRows:
        if not rows:
            return StreamRows(stream.port)
        kept = self._values.put(stream.port, rows) if stream.stored else None
        return told(self._plan, stream, rows, kept)

    def _good(self, column: list[Any]) -> list[Any]:
        """The values of tasks that did not fail."""
        if not self.failures:
            return column
        good = column.copy()
        for task in sorted(self.failures, reverse=True):
            if self.first <= task < self.first + len(column):
                del good[task - self.first]
        return good

    def _exclude(self, error: Unstorable, opening: Opening | None) -> None:
        """The tasks that made the rows which cannot be stored fail; ``opening`` is where, or the items."""
        if opening is None:
            count = len(self.columns[0])
            tasks = [t for t in range(self.first, self.first + count) if t not in self.failures]
        else:
            tasks = [task for task, count in opening.counts.items() for _ in range(count)]
        for row, failure in error.rows:
            task = tasks[row]
            self.failures.setdefault(task, replace(failure, worker=self._worker))
            for each in self.openings:
                each.drop(task)
