"""One batch on its way through a stage's code: items in, outputs and children out to a delivery.

Owns the calls of the users' function, and what becomes of what it returns, yields and raises, item by item; the
rules are at the top of :mod:`fanfold.backends.worker`, which owns the replica. A generator that has used up its
room is left where it is, and gone on with later.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from math import inf
from typing import Any, Final, TypeAlias

from fanfold.backends.children import holds_exception, kind_of, listed
from fanfold.backends.delivery import Delivery, Opening
from fanfold.backends.opening import (
    NOTHING,
    SIZED,
    Collected,
    ContractBroken,
    as_raised,
    children_of,
    close,
    gives_children,
    opens_whole,
    take_alike,
)
from fanfold.backends.snapshots import FROZEN, snapshot
from fanfold.failures import Failure, ItemFailure, declared
from fanfold.plan import CallNode
from fanfold.protocol import RunBatch
from fanfold.sizes import value_size
from fanfold.stage_context import Context, current

RELEASE_S: Final = 0.005
"""Children, and results of single items, that have waited so long are reported."""
SLICE_S: Final = 0.0002
"""Children that come faster are taken several at a time, as many as come within so long."""
SLICE_CHILDREN: Final = 1024
Trimmed: TypeAlias = Callable[[int], int]
"""Given the number of a batch, which of its tasks need not run any more: a bit for each."""
Room: TypeAlias = Callable[[int], int | None]
"""Given the number of a batch, how many bytes of children it may release in all; None: there is no bound."""


def left_out() -> ItemFailure:
    """How a task ends that need not run any more. Nobody heeds it: its item has ended already."""
    return ItemFailure("it need not run any more", code="trimmed")


def nothing_trimmed(batch: int) -> int:
    """For workers whom nobody tells."""
    return 0


def unbounded(batch: int) -> int | None:
    """The room of every batch, for workers whom nobody tells."""
    return None


class NotDeterministic(Exception):
    """A new attempt gave fewer children than an earlier one had released."""


class BatchRun:
    """One batch on its way through the user's code."""

    def __init__(
        self,
        batch: RunBatch,
        call: CallNode,
        function: Callable[..., Any],
        static: Mapping[str, Any],
        context: Context,
        delivery: Delivery,
        failure: Callable[[BaseException], Failure],
        clock: Callable[[], float],
        trimmed: Trimmed,
        room: Room,
        check_rest: Callable[[], None] = lambda: None,
    ) -> None:
        self.batch = batch
        self.context = context
        self.delivery = delivery
        self._function = function
        self._failure = failure
        self._clock = clock
        self._outputs = len(call.outputs)
        self._static = static
        self._positional = [i for i, item in enumerate(call.inputs) if item.keyword is None]
        self._keywords = {
            item.keyword: i for i, item in enumerate(call.inputs) if item.keyword is not None
        }
        self._whole = bool(delivery.has_items)
        self._due_s = 0.0
        self._flush_s = 0.0
        self._check_rest = check_rest
        self._ask_trimmed = trimmed
        self._trimmed = 0
        self._ask_room = room
        self._room = batch.room
        self._collected = 0.0
        """Bytes that earlier tasks gave, as far as one can tell, and that were not released yet."""
        self.begun: int = batch.count
        """Tasks that are run: all, unless one waits for room; then those after it are given back."""
        self._task = 0
        """The task at hand, where they are run one by one."""
        self._steps: Iterator[None] = iter(())
        self._is_left = False
        self.busy_s: float = 0.0
        """Time spent in the user's code."""

    def start(self) -> None:
        """From now on things wait to be told of."""
        self._due_s = self._clock() + RELEASE_S

    def call(self, values: Sequence[Any]) -> Any:
        """What the user's function returns for these inputs.

        Raises:
            NotBegun: The service that the stage asks wants a pause.
            BaseException: What the user's code raises.
        """
        self._check_rest()
        positional = [values[i] for i in self._positional]
        if not (self._keywords or self._static):
            return self._function(*positional)
        keywords = {name: values[i] for name, i in self._keywords.items()}
        return self._function(*positional, **keywords, **self._static)

    # ------------------------------------------------------------------------------ batched stages

    def call_once(self, columns: Sequence[list[Any]], trimmed: int = 0) -> list[Any]:
        """Run a batched stage on lists; its results, one for each item.

        Args:
            columns: A list for each input.
            trimmed: Tasks that are left out, a bit for each; in their places are failures that nobody heeds.

        Raises:
            ContractBroken: It returned something else.
            BaseException: What the user's code raises.
        """
        count = self.batch.count
        kept = (
            [task for task in range(count) if not trimmed >> task & 1] if trimmed else range(count)
        )
        if not kept:
            return [left_out()] * count
        if len(kept) < count and not self.batch.identity:  # whose context tells of all its items
            columns = [[column[task] for task in kept] for column in columns]
        else:
            kept = range(count)
        started = self._clock()
        try:
            results = self.results_of(self.call(columns), len(kept))
        finally:
            self.busy_s = self._clock() - started
        if len(kept) == count:
            return results
        whole: list[Any] = [left_out()] * count
        for task, result in zip(kept, results, strict=True):
            whole[task] = result
        return whole

    def results_of(self, returned: Any, count: int) -> list[Any]:
        """What a batched stage returned for so many items, as a list.

        Raises:
            ContractBroken: It is something else, or not one result for each item.
        """
        results = listed(returned)
        if results is not None and len(results) == count:
            return results
        got = kind_of(returned) if results is None else f"{len(results)}"
        raise ContractBroken(
            f"it must return a list with one result for each item of its batch, here {count}, got {got}"
        )

    def deliver(self, results: list[Any]) -> None:
        """Take in the results of all tasks of a batched stage."""
        delivery = self.delivery
        if self._outputs == 1 and not self.batch.skip and not holds_exception(results):
            openings = delivery.openings
            if not openings or (
                set(map(type, results)) == {list}
                and all(map(opens_whole, openings))
                and not holds_exception(chain.from_iterable(results))
            ):
                # The way of tiny children: no Python for each of them, little for each parent.
                delivery.columns[0] = results
                for opening in openings:
                    opening.rows[0] = list(chain.from_iterable(results))
                    lengths = map(len, results)
                    opening.counts = {task: n for task, n in enumerate(lengths) if n}
                    opening.sealed = list(range(len(results)))
                return
        if self._outputs == 1 and not delivery.openings:
            delivery.columns[0] = results
            delivery.failures = {
                task: self._failure(as_raised(value))
                for task, value in enumerate(results)
                if issubclass(type(value), BaseException)  # isinstance asks the value itself
            }
            return
        for task, value in enumerate(results):
            try:
                self._finish(task, value)
            except BaseException as error:
                delivery.failed(task, self._failure(error))

    # ------------------------------------------------------------------------------ one item at a time

    def begin(self, columns: Sequence[list[Any]]) -> None:
        """Have :meth:`advance` run each item by itself."""
        self._steps = self._one_by_one(columns)

    def advance(self) -> bool:
        """Run items until the batch has ended, or one of them waits for room; whether it has ended."""
        started, self._flush_s = self._clock(), 0.0
        ended = True
        for _ in self._steps:
            ended, self.begun = False, self._task + 1
            break
        self.busy_s += self._clock() - started - self._flush_s
        return ended

    @property
    def room(self) -> int:
        """The room that it knows of, in all."""
        return self._room or 0

    def retake(self) -> None:
        """Other batches had their turn: tell the context again what is run."""
        batch = self.batch
        self.context.begin(batch.attempt, batch.identity, 0)
        if batch.identity:
            self.context.move(self._task)

    def leave(self) -> None:
        """Close the generator that waits; what it raises is its own."""
        self._is_left = True
        with current(self.context):
            self.retake()
            with contextlib.suppress(Exception):
                close(self._steps)

    def _one_by_one(self, columns: Sequence[list[Any]]) -> Iterator[None]:
        """Run each item by itself; one that fails harms no other. Yields where it waits for room."""
        identified = bool(self.batch.identity)
        self._trimmed = self._ask_trimmed(self.batch.batch)
        for task, values in enumerate(zip(*columns, strict=True)):
            if task == self.begun:
                break
            self._task = task
            if identified:
                self.context.move(task)
            try:
                returned: Any = left_out() if self._trimmed >> task & 1 else self.call(values)
                if gives_children(returned):
                    yield from self._stream(task, returned)
                else:
                    self._finish(task, returned)
            except BaseException as error:
                if self._is_left:
                    raise
                self.fail(task, error)
            if task != self.begun - 1 and self._clock() >= self._due_s:
                self._flush(task + 1)

    def take(self, task: int, returned: Any) -> None:
        """Take in what the next task returned, all of it.

        Raises:
            BaseException: The task has failed.
        """
        if gives_children(returned):
            self._room = None  # here it cannot be waited for
            for _ in self._stream(task, returned):
                continue
        else:
            self._finish(task, returned)

    def fail(self, task: int, error: BaseException) -> None:
        """The next task has failed.

        Raises:
            BaseException: ``error``, if it is not among those to contain.
        """
        self.delivery.failed(task, self._failure(error))

    def _flush(self, stop: int) -> None:
        """Report on the way."""
        started = self._clock()
        self.delivery.flush(stop)
        self._collected = 0.0
        self._trimmed = self._ask_trimmed(self.batch.batch)
        now = self._clock()
        self._flush_s += now - started
        self._due_s = now + RELEASE_S

    def _finish(self, task: int, value: Any) -> None:
        """Take in what one task returned.

        Raises:
            ItemFailure, ParentFailure, ContractBroken, NotDeterministic: The task has failed.
        """
        outputs = self._unpacked(value, "return")
        opened: list[tuple[Opening, list[list[Any]]]] = []
        for opening in self.delivery.openings:
            children = children_of(opening, outputs)
            if children is not None:
                opened.append((opening, self._fresh(task, children)))
        for opening, children in opened:
            opening.add(task, children)
        self.delivery.done(outputs)

    def _unpacked(self, value: Any, verb: str) -> Sequence[Any]:
        """A value for each output."""
        if self._outputs == 1:
            values: Sequence[Any] = (value,)
        elif issubclass(type(value), BaseException):
            raise as_raised(value)
        elif isinstance(value, tuple) and len(value) == self._outputs:
            values = value
        else:
            got = f"a tuple of {len(value)}" if isinstance(value, tuple) else kind_of(value)
            raise ContractBroken(
                f"with {self._outputs} outputs it must {verb} a tuple of {self._outputs} for each "
                f"{'item' if verb == 'return' else 'child'}, got {got}"
            )
        for part in values:
            if issubclass(type(part), BaseException):
                raise as_raised(declared(values) or part)
        return values

    def _fresh(self, task: int, children: list[list[Any]]) -> list[list[Any]]:
        """The children that no earlier attempt released."""
        skip = self.batch.skip[task] if self.batch.skip else 0
        if not skip:
            return children
        self._check_skip(skip, len(children[0]))
        return [each[skip:] for each in children]

    def _check_skip(self, skip: int, count: int) -> None:
        if count < skip:
            raise NotDeterministic(
                f"an earlier attempt gave {skip} children, this one only {count}"
            )

    # ------------------------------------------------------------------------------ generators

    def _stream(self, task: int, children: Iterator[Any]) -> Iterator[None]:
        """Run an iterator dry and release its children on the way. Yields where it waits for room.

        Raises:
            BaseException: What it raises; the children that it gave before are collected or released.
        """
        delivery, clock = self.delivery, self._clock
        skip = self.batch.skip[task] if self.batch.skip else 0
        whole: list[list[Any]] = [[] for _ in range(self._outputs)]
        collected = Collected(task, delivery)
        left, copies = self._left(), delivery.copies
        # Nothing is to be done with a child of these types, and tiny ones come by the million.
        plain = FROZEN if self._outputs == 1 else frozenset[type]()
        given, before, before_s = 0, 0, clock()
        now_s = before_s
        child: Any = NOTHING
        try:
            while (child := next(children, NOTHING) if child is NOTHING else child) is not NOTHING:
                given += 1
                kind = type(child)
                if kind in plain:
                    parts: Sequence[Any] = (child,)
                    size = len(child) if kind in SIZED else 0
                else:
                    parts = self._child(child)
                    size = sum(map(value_size, parts))
                child, released = NOTHING, False
                if given > skip:
                    collected.count(size)
                    now_s = clock()
                    released = (
                        collected.taken >= left or collected.room <= 0 or now_s >= self._due_s
                    )
                if kind not in plain and (self._whole or not (released and copies)):
                    parts = [snapshot(part, deep=copies) for part in parts]
                if self._whole:
                    for column, part in zip(whole, parts, strict=True):
                        column.append(part)
                if given <= skip:
                    continue
                for append, position in collected.targets:
                    append(parts[position])
                if released:
                    collected.settle()
                    self._flush(task)
                    if task in delivery.failures:
                        break  # something of it could not be stored
                    while not (left := self._left()) and not self._trimmed >> task & 1:
                        yield
                        self._trimmed = self._ask_trimmed(self.batch.batch)
                    if self._trimmed >> task & 1:
                        raise left_out()
                    collected = Collected(task, delivery)
                    before, before_s = given, clock()
                elif kind in plain and not self._whole and (rows := collected.only) is not None:
                    in_time = SLICE_S * (given - before) / max(now_s - before_s, 1e-9)
                    most = int(min(in_time, SLICE_CHILDREN, collected.fitting(size, left) - 1))
                    before, before_s, start = given, now_s, len(rows)
                    largest = int(max(size, collected.usual))
                    child = take_alike(children, kind, rows, most, largest)
                    given += len(rows) - start
                    collected.count(size, len(rows) - start)
        finally:
            self._collected += collected.taken
            collected.settle()
            close(children)
        if task not in delivery.failures:
            self._check_skip(skip, given)
            collected.seal()
        delivery.done(whole)

    def _child(self, child: Any) -> Sequence[Any]:
        """What a generator has given, a value for each output."""
        if self._outputs > 1 or issubclass(type(child), BaseException):
            return self._unpacked(child, "yield")
        return (child,)

    def _left(self) -> float:
        """How many bytes may be released yet; nothing: it has to be waited for."""
        if self._room is not None:
            self._room = self._ask_room(self.batch.batch)
        if self._room is None:
            return inf
        return max(0.0, self._room - self.delivery.released_bytes - self._collected)
