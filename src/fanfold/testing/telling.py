"""What a worker tells of a batch, in an order and in portions that a random generator draws.

Owns the events of a batch from its first children to its end, as the protocol orders them. The users' code is
read by :mod:`fanfold.testing.usercode`, one item at a time, so that backends in memory and real ones have
nothing in common but the contract. Knows neither time nor workers.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from random import Random
from typing import Any, Final, NamedTuple

from fanfold.columns import get_field
from fanfold.failures import Failure
from fanfold.plan import CallNode, CallStreams, Expansion, Path, Plan, Stream
from fanfold.protocol import (
    NO_GROUP,
    BatchEvent,
    BatchFinished,
    BatchRaised,
    ChildrenReleased,
    ControlRows,
    ExpansionSealed,
    ItemRun,
    Rows,
    RunBatch,
    StreamRows,
    TasksFinished,
)
from fanfold.sizes import row_sizes
from fanfold.testing.memory import Blocks
from fanfold.testing.usercode import NOBODY, Made, Stages, is_bool

TRIMMED: Final = Failure(kind="declared", message="it need not run any more")
"""How a task ends that is left out; nobody may heed it."""


class Told(NamedTuple):
    """What is told of a batch; without ``whole`` its worker dies after these events."""

    events: list[BatchEvent]
    whole: bool = True


class Teller:
    """Runs batches, and tells of them.

    Args:
        plan: The compiled pipeline.
        blocks: Where values are stored.
        random: Draws the portions.
        tracebacks: Whether failures keep theirs, which differ from machine to machine.
    """

    def __init__(
        self, plan: Plan, blocks: Blocks, random: Random, *, tracebacks: bool = True
    ) -> None:
        self._plan, self._blocks, self._random = plan, blocks, random
        self.stages: Stages = Stages(plan, tracebacks=tracebacks)
        self._trimmed: dict[int, int] = {}
        self._put_off: dict[int, tuple[int, float]] = {}
        self.mishaps: Counter[str] = Counter()
        """Tasks that went wrong, by the kind of their failure; ``half`` if children were out by then."""

    def trim(self, batch: int, tasks: int) -> None:
        """Leave out tasks of a batch that has not begun."""
        self._trimmed[batch] = self._trimmed.get(batch, 0) | tasks

    def put_off(self, batch: int, first: int, after_s: float) -> None:
        """Have tasks of a batch from ``first`` on be put off, if they are neither left out nor go wrong."""
        self._put_off[batch] = first, after_s

    def to_run(self, batch: RunBatch) -> int:
        """How many tasks of a batch are not left out."""
        return batch.count - self._trimmed.get(batch.batch, 0).bit_count()

    def run(self, batch: RunBatch) -> Told:
        """Run the users' code over a batch and tell of it."""
        call = self._plan.nodes[batch.call]
        assert isinstance(call, CallNode)
        columns = [self._blocks.read(column) for column in batch.columns]
        rows = list(zip(*columns, strict=True))
        assert len(rows) == batch.count, "a batch has as many rows as it says"
        return self._tell(batch, call, self._made(batch, call, rows))

    def again(self, events: Sequence[BatchEvent]) -> list[BatchEvent]:
        """The same events once more, with blocks of their own."""
        return [self._copied(event) for event in events]

    def _copied(self, event: BatchEvent) -> BatchEvent:
        if not isinstance(event, (ChildrenReleased, TasksFinished)):
            return event
        streams = tuple(
            stream._replace(rows=self._blocks.put(self._values(stream.rows)))
            if stream.rows is not None
            else stream
            for stream in event.streams
        )
        return event._replace(streams=streams)

    def _values(self, rows: Rows) -> list[Any]:
        return self._blocks.read(("rows", rows.ref, 0, rows.count))

    def forget(self, events: Sequence[BatchEvent]) -> None:
        """Nobody will be told of these: what they carry goes with the worker."""
        for event in events:
            if isinstance(event, (ChildrenReleased, TasksFinished)):
                self._blocks.release(s.rows.ref for s in event.streams if s.rows is not None)

    def _made(self, batch: RunBatch, call: CallNode, rows: Sequence[tuple[Any, ...]]) -> list[Made]:
        """What became of each item, up to one that kills its worker."""
        made: list[Made] = []
        trimmed = self._trimmed.pop(batch.batch, 0)
        later, after_s = self._put_off.pop(batch.batch, (batch.count, 0.0))
        for task, (row, item) in enumerate(zip(rows, _who(batch), strict=True)):
            if trimmed >> task & 1:
                made.append(Made(failure=TRIMMED))
                continue
            if task >= later:
                made.append(Made(failure=_put_off(after_s, begun=task == later)))
                continue
            one = self.stages.run(call, row, item)
            if one.failure is not None:
                self.mishaps["half" if one.released else one.failure.kind] += 1
            made.append(one)
            if one.failure is not None and one.failure.kind == "worker_died":
                break
        return made

    def _tell(self, batch: RunBatch, call: CallNode, made: list[Made]) -> Told:
        batched = self._plan.stages[call.stage].batch_size is not None
        died = (
            bool(made) and made[-1].failure is not None and made[-1].failure.kind == "worker_died"
        )
        if died:
            made.pop()
            if batched:
                return Told([], whole=False)
        failed = [m.failure for m in made if m.failure is not None and not _declared(m)]
        if failed and batched:
            return Told([BatchRaised(batch.batch, failed[0], attempt=batch.attempt)])
        streams = self._plan.streams[call.index]
        events: list[BatchEvent] = []
        first = 0
        while first < len(made):
            count = self._random.randint(1, len(made) - first)
            part = made[first : first + count]
            for expansion in streams.expansions:
                events += self._release(batch, first, part, expansion)
            events.append(self._finish(batch, first, part, streams))
            first += count
        if not died:
            events.append(BatchFinished(batch.batch, attempt=batch.attempt))
        return Told(events, whole=not died)

    def _release(
        self, batch: RunBatch, first: int, made: Sequence[Made], expansion: Expansion
    ) -> list[BatchEvent]:
        """The children of some tasks, released in random portions, and the expansions sealed."""
        events: list[BatchEvent] = []
        sealed: list[int] = []
        children = [
            (task, row[batch.skip[task] if batch.skip else 0 :])
            for task, row in enumerate((_children(one, expansion) for one in made), first)
        ]
        left = [(task, list(rows)) for task, rows in children if rows]
        while left:
            counts, rows = [0] * batch.count, []
            for task, waiting in left:
                n = self._random.randint(0, len(waiting)) if len(waiting) > 1 else 1
                counts[task] = n
                rows += waiting[:n]
                del waiting[:n]
            left = [(task, waiting) for task, waiting in left if waiting]
            if rows:
                streams = tuple(
                    self._stream_rows(stream, [row[i] for row in rows], ())
                    for i, stream in enumerate(expansion.streams)
                )
                events.append(
                    ChildrenReleased(
                        batch.batch, expansion.node, 0, tuple(counts), streams, batch.attempt
                    )
                )
        for task, one in enumerate(made, first):
            if one.failure is None and _opened(one, expansion) is not None:
                sealed.append(task)
        if sealed:
            events.append(
                ExpansionSealed(batch.batch, expansion.node, tuple(sealed), batch.attempt)
            )
        return events

    def _finish(
        self, batch: RunBatch, first: int, made: Sequence[Made], streams: CallStreams
    ) -> TasksFinished:
        good = [one for one in made if one.failure is None]
        return TasksFinished(
            batch.batch,
            first,
            len(made),
            tuple(
                self._stream_rows(
                    stream, [one.outputs[stream.position] for one in good], stream.path
                )
                for stream in streams.items
            ),
            tuple(
                (task, one.failure)
                for task, one in enumerate(made, first)
                if one.failure is not None
            ),
            batch.attempt,
        )

    def _stream_rows(self, stream: Stream, values: list[Any], path: Path) -> StreamRows:
        assert not path, "whole outputs are delivered"
        return report(self._plan, stream, values, self._blocks.put)


def _put_off(after_s: float, *, begun: bool) -> Failure:
    """What is told of a task that is to be tried again later."""
    message = "the service wants to be asked later"
    return Failure(kind="put_off", message=message, attempts=int(begun), after_s=after_s)


def _who(batch: RunBatch) -> list[ItemRun]:
    """The items of a batch, one by one."""
    return [
        ItemRun(key, above, first + offset, 1)
        for key, above, first, mask in batch.identity
        for offset in range(mask.bit_length())
        if mask >> offset & 1
    ] or [NOBODY] * batch.count


def report(
    plan: Plan, stream: Stream, values: Sequence[Any], put: Callable[[Sequence[Any]], Rows]
) -> StreamRows:
    """What is told of a stream's values: masks, labels and missing fields; the values if they are stored."""
    controls = []
    for index, path in stream.controls:
        control = plan.controls[index]
        labels = [0] * len(control.labels)
        illegal: list[tuple[int, str]] = []
        for row, value in enumerate(values):
            found, part = _follow(value, path)
            if not found:
                continue  # the field's own item fails
            legal = is_bool(part) if control.kind == "mask" else True
            here = [i for i, label in enumerate(control.labels) if legal and part == label]
            if here:
                labels[here[0]] |= 1 << row
            elif not legal or (control.kind == "label" and not control.rest):
                illegal.append((row, repr(part)))
        controls.append(ControlRows(index, tuple(labels), tuple(illegal), path))
    missing = []
    for index, path in stream.checks:
        lacking = 0
        for row, value in enumerate(values):
            found, part = _follow(value, path)
            if found and not _follow(part, (plan.checks[index].name,))[0]:
                lacking |= 1 << row
        if lacking:
            missing.append((index, lacking, "something else", path))
    stored = put(values) if stream.stored else None
    sizes = row_sizes(values) if stream.sized else ()
    groups = []
    for call, path in stream.groups:
        parts = [_follow(value, path) for value in values]
        by = plan.groupers[call]
        told = {row: _group(by, part) for row, (found, part) in enumerate(parts) if found}
        rows = {g: sum(1 << row for row in told if told[row] == g) for g in told.values()}
        groups.append((call, path, tuple(rows.items())))
    costs = []
    for call, path in stream.costs:
        parts = [_follow(value, path) for value in values]
        cost = plan.costers[call]
        told_costs = tuple(_cost(cost, part) if found else 0.0 for found, part in parts)
        costs.append((call, path, told_costs))
    facts = tuple(controls), tuple(missing), sizes, tuple(groups), tuple(costs)
    return StreamRows(stream.port, stored, *facts)


def _group(by: Callable[[Any], Any], value: Any) -> Any:
    """A value's group; none if the user's function tells none."""
    try:
        return by(value)
    except Exception:
        return NO_GROUP


def _cost(cost: Callable[[Any], Any], value: Any) -> float:
    """What a value costs; infinitely much if the user's function does not tell."""
    try:
        return float(cost(value))
    except Exception:
        return math.inf


def _follow(value: Any, path: Path) -> tuple[bool, Any]:
    """Whether the path leads somewhere, and to what."""
    try:
        for name in path:
            value = get_field(value, name)
    except LookupError:
        return False, None
    return True, value


def _declared(made: Made) -> bool:
    return made.failure is not None and made.failure.kind == "declared"


def _opened(made: Made, expansion: Expansion) -> list[Any] | None:
    """What is expanded, for each stream; None if a field is missing."""
    opened = []
    for stream in expansion.streams:
        found, value = _follow(made.outputs[stream.position], stream.path)
        if not found:
            return None
        opened.append(value)
    return opened


def _children(made: Made, expansion: Expansion) -> list[tuple[Any, ...]]:
    """A row for each child; also those that a generator gave before it failed."""
    if made.released is not None:
        positions = [stream.position for stream in expansion.streams]
        return [tuple(row[position] for position in positions) for row in made.released]
    opened = None if made.failure is not None else _opened(made, expansion)
    return [] if opened is None else list(zip(*opened, strict=True))
