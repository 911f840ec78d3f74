"""Runs one stage's code: batches in, events out. Knows no transport, no membership, no outcome.

Owns the handling of what users' functions take, return, yield and raise. Where values are read from and
stored to, and how events travel, is given by the backend (:class:`Values`, ``emit``).
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Protocol

from fanfold.backends.children import is_children, kind_of, listed
from fanfold.columns import Column, get_field
from fanfold.extract import facts
from fanfold.failures import Failure, ItemFailure
from fanfold.plan import CallNode, CallStreams, Expansion, Plan, StageSpec, Stream
from fanfold.protocol import (
    BatchEvent,
    BatchFinished,
    BatchRaised,
    ChildrenReleased,
    ExpansionSealed,
    Rows,
    RunBatch,
    StreamRows,
    TasksFinished,
)

RELEASE_S: Final = 0.02
"""Children that have waited so long are released."""
RELEASE_CHILDREN: Final = 4096
RELEASE_BYTES: Final = 4 * 1024 * 1024
"""Bytes of arrays and strings, as far as they show, that are released together."""


class Unstorable(Exception):
    """Some rows cannot be stored: pairs of a row's number and what to say of it."""

    def __init__(self, rows: list[tuple[int, Failure]]) -> None:
        super().__init__(f"{len(rows)} values cannot be stored")
        self.rows = rows


class Values(Protocol):
    """A backend's store, as a worker sees it."""

    def read(self, columns: Sequence[Column]) -> list[list[Any]]:
        """The values of a batch's columns; a value that occurs twice is decoded once."""
        ...

    def put(self, stream: int, rows: Sequence[Any]) -> Rows:
        """Store rows as one block; ``stream`` is the port, for learning sizes.

        Raises:
            Unstorable: Names the rows that cannot be stored.
        """
        ...


class StageRunner:
    """One replica of a stage.

    Args:
        plan: The whole plan.
        stage: Which stage this replica holds.
        values: Where values are.
        emit: Takes each event as it happens.
        worker: The replica's name, for failures.
        contain: Exceptions of users' code that fail its items; others go through.
    """

    def __init__(
        self,
        plan: Plan,
        stage: int,
        values: Values,
        emit: Callable[[BatchEvent], None],
        *,
        worker: str = "",
        contain: tuple[type[BaseException], ...] = (BaseException,),
    ) -> None:
        self.plan = plan
        self.spec: StageSpec = plan.stages[stage]
        self._values = values
        self._emit = emit
        self.worker = worker
        self.contain = contain
        self._run: Callable[..., Any] | None = None

    def construct(self) -> None:
        """Make the stage's callable; a class is constructed here, once."""
        spec = self.spec
        target = spec.target(*spec.args, **dict(spec.kwargs)) if spec.is_class else spec.target
        self._run = target if spec.method is None else getattr(target, spec.method)

    def run(self, batch: RunBatch, *, wait_s: float = 0.0) -> None:
        """Run a batch; every event that the protocol asks for is emitted before this returns."""
        assert self._run is not None, "construct() comes first"
        call = self.plan.nodes[batch.call]
        assert isinstance(call, CallNode)
        columns = self._values.read(batch.columns)
        run = _BatchRun(self, batch, call, self.plan.streams[batch.call], self._run)
        started = time.perf_counter()
        try:
            if self.spec.batch_size is not None:
                finished = run.all_at_once(columns)
            else:
                run.one_by_one(columns)
                finished = True
        finally:
            busy_s = time.perf_counter() - started
        if finished:
            self._emit(
                BatchFinished(batch.batch, busy_s=busy_s, attempt=batch.attempt, wait_s=wait_s)
            )

    # The three below serve _BatchRun.

    def failure(self, error: BaseException) -> Failure:
        """The record of an exception that is contained; any other goes on."""
        if not isinstance(error, self.contain):
            raise error
        if isinstance(error, _ContractBroken):
            return self.contract(str(error))
        if isinstance(error, _NotDeterministic):
            return Failure(kind="not_deterministic", message=str(error), worker=self.worker)
        return Failure.from_exception(error, worker=self.worker)

    def contract(self, message: str) -> Failure:
        """The record of a value of the wrong shape."""
        if not issubclass(ValueError, self.contain):
            raise ValueError(message)
        return Failure(kind="contract", message=message, worker=self.worker)

    def emit(self, event: BatchEvent) -> None:
        self._emit(event)

    def store(self, stream: Stream, rows: Sequence[Any]) -> StreamRows:
        """Store a stream's rows and find their facts."""
        controls, missing = (
            facts(self.plan, stream, rows) if stream.controls or stream.checks else ((), ())
        )
        stored = self._values.put(stream.port, rows) if stream.stored and rows else None
        return StreamRows(stream.port, stored, controls, missing)


@dataclass(slots=True)
class _Pending:
    """Children of one expansion that were made and not yet released."""

    expansion: Expansion
    rows: list[list[Any]]
    """By stream."""
    counts: list[tuple[int, int]]
    sealed: list[int]
    since_s: float = 0.0
    size_bytes: int = 0


class _BatchRun:
    """One batch on its way through the user's code."""

    def __init__(
        self,
        runner: StageRunner,
        batch: RunBatch,
        call: CallNode,
        streams: CallStreams,
        function: Callable[..., Any],
    ) -> None:
        self.runner = runner
        self.batch = batch
        self.function = function
        self.streams = streams
        self.outputs = len(call.outputs)
        self.static = dict(call.static)
        self.positional = [i for i, item in enumerate(call.inputs) if item.keyword is None]
        self.keywords = {
            item.keyword: i for i, item in enumerate(call.inputs) if item.keyword is not None
        }
        self.failures: dict[int, Failure] = {}
        self.pending = [
            _Pending(e, [[] for _ in e.streams], [], []) for e in streams.expansions
        ]

    def _arguments(self, values: Sequence[Any]) -> tuple[list[Any], dict[str, Any]]:
        keywords = {name: values[i] for name, i in self.keywords.items()}
        return [values[i] for i in self.positional], {**keywords, **self.static}

    # ------------------------------------------------------------------------------ batched stages

    def all_at_once(self, columns: list[list[Any]]) -> bool:
        """Run a batched stage; False if it raised and the batch has ended with that."""
        count = self.batch.count
        args, kwargs = self._arguments(columns)
        started = time.perf_counter()
        try:
            returned = self.function(*args, **kwargs)
            results = returned if type(returned) is list else _as_list(returned)
        except BaseException as error:
            return self._not_done(self.runner.failure(error), started)
        if results is None or len(results) != count:
            what = kind_of(returned) if results is None else f"{len(results)} values"
            message = f"a batch of {count} items needs a sequence of {count} results, got {what}"
            return self._not_done(self.runner.contract(message), started)
        self._deliver(results)
        return True

    def _not_done(self, failure: Failure, started: float) -> bool:
        """Nothing of the batch is done, and who is guilty is not known unless it is the only one."""
        if self.batch.count == 1:
            self._finish_tasks({0: failure}, [])
            return True
        busy_s = time.perf_counter() - started
        self.runner.emit(
            BatchRaised(self.batch.batch, failure, busy_s=busy_s, attempt=self.batch.attempt)
        )
        return False

    def _deliver(self, results: list[Any]) -> None:
        """Check the results of all tasks, store what they made and report."""
        failures: dict[int, Failure] = {
            task: self.runner.failure(value)
            for task, value in enumerate(results)
            if isinstance(value, ItemFailure)
        }
        columns: list[list[Any]]
        if self.outputs == 1:
            columns = [results]
        else:
            columns = [[None] * len(results) for _ in range(self.outputs)]
            for task, value in enumerate(results):
                if task not in failures:
                    self._unpack(task, value, columns, failures)
        for expansion in self.streams.expansions:
            self._open_all(expansion, columns, failures)
        self._finish_tasks(failures, columns)

    def _unpack(
        self, task: int, value: Any, columns: list[list[Any]], failures: dict[int, Failure]
    ) -> None:
        """One task's tuple of outputs into the columns."""
        values = value if isinstance(value, tuple) else listed(value)
        if values is None or len(values) != self.outputs:
            got = kind_of(value) if values is None else f"{len(values)} values"
            failures[task] = self.runner.contract(
                f"the stage has {self.outputs} outputs, an item's result must be a tuple of "
                f"{self.outputs}, got {got}"
            )
            return
        failed = next((v for v in values if isinstance(v, ItemFailure)), None)
        if failed is not None:
            failures[task] = self.runner.failure(failed)
            return
        for column, part in zip(columns, values, strict=True):
            column[task] = part

    def _open_all(
        self, expansion: Expansion, columns: list[list[Any]], failures: dict[int, Failure]
    ) -> None:
        """The children of all tasks of a batch, released together."""
        tasks = [task for task in range(self.batch.count) if task not in failures]
        opened: list[tuple[int, list[list[Any]]]] = []
        for task in tasks:
            children = self._children(expansion, [column[task] for column in columns])
            if isinstance(children, Failure):
                failures[task] = children
            elif children is not None:
                opened.append((task, children))
        rows = [
            list(itertools.chain.from_iterable(children[i] for _, children in opened))
            for i in range(len(expansion.streams))
        ]
        counts = [(task, len(children[0])) for task, children in opened]
        self._release(
            _Pending(expansion, rows, counts, [task for task, _ in opened]), failures
        )

    def _children(
        self, expansion: Expansion, outputs: Sequence[Any]
    ) -> list[list[Any]] | Failure | None:
        """By stream, the children of one task; None if a field on the way is missing."""
        lists: list[list[Any]] = []
        for stream in expansion.streams:
            value = outputs[stream.position]
            for name in stream.path:
                try:
                    value = get_field(value, name)
                except LookupError:
                    return None
            children = listed(value)
            if children is None:
                return self.runner.contract(
                    f"to expand, a value must be a list, a tuple, an array or an iterator of children, "
                    f"got {kind_of(value)}"
                )
            lists.append(children)
        if len({len(children) for children in lists}) > 1:
            sizes = " and ".join(str(len(children)) for children in lists)
            return self.runner.contract(
                f"outputs that are expanded together must have equally many children, got {sizes}"
            )
        return lists

    # ------------------------------------------------------------------------------ one item at a time

    def one_by_one(self, columns: list[list[Any]]) -> None:
        """Run each item by itself; an item that fails harms no other."""
        results: list[Any] = []
        for task in range(self.batch.count):
            args, kwargs = self._arguments([column[task] for column in columns])
            try:
                value = self.function(*args, **kwargs)
                if isinstance(value, Iterator):
                    value = self._stream(task, value)
            except BaseException as error:
                self.failures[task] = self.runner.failure(error)
                value = None
            results.append(value)
        failures = self.failures
        for task, value in enumerate(results):
            if isinstance(value, ItemFailure) and task not in failures:
                failures[task] = self.runner.failure(value)
        columns_out: list[list[Any]] = [[None] * len(results) for _ in range(self.outputs)]
        for task, value in enumerate(results):
            if task in failures:
                continue
            if isinstance(value, _Streamed):
                for column, whole in zip(columns_out, value.columns, strict=True):
                    column[task] = whole
            elif self.outputs == 1:
                columns_out[0][task] = value
            else:
                self._unpack(task, value, columns_out, failures)
        for pending in self.pending:
            for task, value in enumerate(results):
                if task in failures or isinstance(value, _Streamed):
                    continue
                children = self._children(
                    pending.expansion, [column[task] for column in columns_out]
                )
                if isinstance(children, Failure):
                    failures[task] = children
                elif children is not None:
                    pending.counts.append((task, len(children[0])))
                    pending.sealed.append(task)
                    for rows, more in zip(pending.rows, children, strict=True):
                        rows += more
            self._release(pending, failures)
        self._finish_tasks(failures, columns_out)

    def _stream(self, task: int, children: Iterator[Any]) -> _Streamed:
        """Release an iterator's children while it runs; afterwards the task's expansion is sealed."""
        skip = self.batch.skip[task] if self.batch.skip else 0
        keep = bool(self.streams.items)
        whole: list[list[Any]] = [[] for _ in range(self.outputs)]
        count = 0
        for pending in self.pending:
            pending.since_s = time.perf_counter()
        try:
            for child in children:
                parts = (child,) if self.outputs == 1 else self._parts(child)
                if keep:
                    for column, part in zip(whole, parts, strict=True):
                        column.append(part)
                count += 1
                if count > skip:
                    self._add_child(task, parts)
        finally:
            close = getattr(children, "close", None)
            if close is not None:
                close()
        if count < skip:
            raise _NotDeterministic(skip, count)
        for pending in self.pending:
            if not pending.counts or pending.counts[-1][0] != task:
                pending.counts.append((task, 0))
            pending.sealed.append(task)
        return _Streamed(whole)

    def _parts(self, child: Any) -> Sequence[Any]:
        parts = child if isinstance(child, tuple) else listed(child)
        if parts is None or len(parts) != self.outputs:
            raise _ContractBroken(
                f"the stage has {self.outputs} outputs, a generator must yield tuples of "
                f"{self.outputs}, got {kind_of(child)}"
            )
        return parts

    def _add_child(self, task: int, parts: Sequence[Any]) -> None:
        for pending in self.pending:
            for rows, stream in zip(pending.rows, pending.expansion.streams, strict=True):
                rows.append(parts[stream.position])
            if pending.counts and pending.counts[-1][0] == task:
                pending.counts[-1] = (task, pending.counts[-1][1] + 1)
            else:
                pending.counts.append((task, 1))
            pending.size_bytes += sum(map(_apparent_bytes, parts))
            if (
                len(pending.rows[0]) >= RELEASE_CHILDREN
                or pending.size_bytes >= RELEASE_BYTES
                or time.perf_counter() - pending.since_s >= RELEASE_S
            ):
                self._release(pending, self.failures)

    # ------------------------------------------------------------------------------ reporting

    def _release(self, pending: _Pending, failures: dict[int, Failure]) -> None:
        """Store and report what is pending; a task whose children cannot be stored fails."""
        counts, sealed = pending.counts, pending.sealed
        while counts:
            try:
                streams = tuple(
                    self.runner.store(stream, rows)
                    for stream, rows in zip(pending.expansion.streams, pending.rows, strict=True)
                )
            except Unstorable as error:
                counts, sealed = self._without(pending, error, failures)
                continue
            self.runner.emit(
                ChildrenReleased(
                    self.batch.batch,
                    pending.expansion.node,
                    tuple(counts),
                    streams,
                    attempt=self.batch.attempt,
                    generation=self.batch.generation,
                )
            )
            break
        if sealed:
            self.runner.emit(
                ExpansionSealed(
                    self.batch.batch,
                    pending.expansion.node,
                    tuple(sealed),
                    attempt=self.batch.attempt,
                    generation=self.batch.generation,
                )
            )
        pending.rows = [[] for _ in pending.rows]
        pending.counts = []
        pending.sealed = []
        pending.size_bytes = 0
        pending.since_s = time.perf_counter()

    def _without(
        self, pending: _Pending, error: Unstorable, failures: dict[int, Failure]
    ) -> tuple[list[tuple[int, int]], list[int]]:
        """Take out the tasks that made rows which cannot be stored; they fail."""
        bad = {row: failure for row, failure in error.rows}
        kept: list[list[Any]] = [[] for _ in pending.rows]
        counts: list[tuple[int, int]] = []
        start = 0
        for task, count in pending.counts:
            guilty = next((bad[row] for row in range(start, start + count) if row in bad), None)
            if guilty is None and task not in failures:
                counts.append((task, count))
                for rows, source in zip(kept, pending.rows, strict=True):
                    rows += source[start : start + count]
            elif guilty is not None:
                failures[task] = replace(guilty, worker=self.runner.worker)
            start += count
        pending.rows, pending.counts = kept, counts
        pending.sealed = [task for task in pending.sealed if task not in failures]
        return pending.counts, pending.sealed

    def _finish_tasks(self, failures: dict[int, Failure], columns: list[list[Any]]) -> None:
        """Report all tasks; those whose values cannot be stored join the failed ones."""
        while True:
            try:
                streams = tuple(
                    self.runner.store(stream, _column(columns[stream.position], failures))
                    for stream in self.streams.items
                    if columns
                )
                break
            except Unstorable as error:
                tasks = [task for task in range(self.batch.count) if task not in failures]
                for row, failure in error.rows:
                    failures[tasks[row]] = replace(failure, worker=self.runner.worker)
        self.runner.emit(
            TasksFinished(
                self.batch.batch,
                0,
                self.batch.count,
                streams,
                tuple(sorted(failures.items())),
                attempt=self.batch.attempt,
                generation=self.batch.generation,
            )
        )


@dataclass(frozen=True, slots=True)
class _Streamed:
    """A task whose children were released while its generator ran; ``columns`` if anyone reads the whole."""

    columns: list[list[Any]]


class _ContractBroken(ValueError):
    """A generator yielded something of the wrong shape."""


class _NotDeterministic(Exception):
    def __init__(self, released: int, yielded: int) -> None:
        super().__init__(
            f"an earlier attempt yielded {released} children, this one only {yielded}"
        )


def _apparent_bytes(value: Any) -> int:
    """A lower bound of a value's size that costs nothing to find."""
    if isinstance(value, (bytes, str, bytearray)):
        return len(value)
    size = getattr(value, "nbytes", 0)
    return size if isinstance(size, int) else 0


def _column(values: list[Any], failures: dict[int, Failure]) -> list[Any]:
    if not failures:
        return values
    return [value for task, value in enumerate(values) if task not in failures]


def _as_list(returned: Any) -> list[Any] | None:
    """A batched stage's results as a list; None if they are no sequence, array or iterator."""
    if isinstance(returned, Iterator):
        return list(returned)
    return listed(returned) if is_children(returned) else None
