"""A stage's runner and room: where generators wait, what is given back, how they go on and how they end."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

import fanfold as ff
from fanfold.backends.inline import MemoryValues
from fanfold.protocol import BatchFinished, BatchPaused, ChildrenReleased, ItemRun, Rows, RunBatch
from tests.backends import CALL, Rig, Told, call_plan

CHILDREN = [[(0, ())]]
SIZE = 1000


def blobs(n: int) -> Iterator[bytes]:
    for i in range(n):
        yield bytes([i]) * SIZE


class Rooms(Rig):
    """A runner whose batches have the room that a test grants."""

    def __init__(self, function: Callable[..., Any] = blobs, **options: Any) -> None:
        step_s = options.pop("step_s", 0.0)
        super().__init__(call_plan(function, expand=CHILDREN, **options), step_s=step_s)
        self.granted: dict[int, int] = {}
        self.trims: dict[int, int] = {}
        self.runner.room = self.granted.get
        self.runner.trimmed = lambda batch: self.trims.get(batch, 0)
        self._next = 0

    def begin(self, values: Sequence[Any], room: int, **fields: Any) -> tuple[int, bool]:
        """Run a batch; its number, and whether it has ended."""
        number, self._next = self._next, self._next + 1
        self.granted[number] = room
        given = ("rows", self.values.put(0, list(values)).ref, 0, len(values))
        batch = RunBatch(number, CALL, len(values), (given,), room=room, **fields)
        return number, self.runner.run(batch)

    def grant(self, number: int, more: int) -> bool:
        """Grant room and go on; whether it has ended."""
        self.granted[number] += more
        return self.runner.resume(number)

    def told(self, number: int) -> Told:
        told = Told()
        for event in (event for events in self.flushes for event in events):
            if event.batch == number:
                told.take(event, self._read)
        return told

    def firsts(self, number: int, task: int = 0) -> list[int]:
        """By the first byte of each, the children of a task."""
        return [child[0] for child in self.told(number).children_of(task)]


def test_a_generator_waits_after_the_child_that_uses_up_its_room() -> None:
    rig = Rooms()
    batch, ended = rig.begin([9], 2 * SIZE + 1)
    assert not ended and rig.firsts(batch) == [0, 1, 2]
    assert rig.told(batch).of(BatchPaused) == [BatchPaused(batch, 1, 2 * SIZE + 1)]
    assert rig.told(batch).of(BatchFinished) == []
    assert not rig.grant(batch, SIZE), "one was beyond the room"
    assert rig.firsts(batch) == [0, 1, 2, 3]
    assert rig.grant(batch, 100 * SIZE)
    told = rig.told(batch)
    assert rig.firsts(batch) == list(range(9))
    assert told.sealed == {1: [0]} and len(told.of(BatchFinished)) == 1


def test_room_that_came_in_time_is_no_pause() -> None:
    rig = Rooms()
    rig.runner.room = lambda batch: 100 * SIZE
    batch, ended = rig.begin([9], SIZE)
    assert ended and rig.told(batch).of(BatchPaused) == []


def test_without_a_bound_nothing_waits() -> None:
    rig = Rooms()
    assert rig.run([40]).of(BatchPaused) == []


def test_tasks_after_the_one_that_waits_are_given_back_for_good() -> None:
    rig = Rooms()
    batch, ended = rig.begin([1, 4, 2, 2], 2 * SIZE)
    assert not ended
    (pause,) = rig.told(batch).of(BatchPaused)
    assert pause.begun == 2
    assert rig.grant(batch, 100 * SIZE)
    told = rig.told(batch)
    assert (sorted(told.values), told.sealed) == ([0, 1], {1: [0, 1]})
    assert [rig.firsts(batch, task) for task in range(4)] == [[0], [0, 1, 2, 3], [], []]


def test_a_room_is_for_all_tasks_of_a_batch() -> None:
    rig = Rooms()
    batch, ended = rig.begin([2, 2, 2], 3 * SIZE)
    assert not ended
    (pause,) = rig.told(batch).of(BatchPaused)
    assert pause.begun == 2


def test_it_goes_on_as_who_it_was_though_another_batch_ran_in_between() -> None:
    seen: list[tuple[str, Any, int, int]] = []

    def telling(n: int) -> Iterator[bytes]:
        for i in range(n):
            context = ff.context()
            seen.append((context.key, context.ordinals, context.attempt, i))
            yield bytes(SIZE)

    rig = Rooms(telling)
    first, _ = rig.begin([1, 3], SIZE + 1, identity=(ItemRun("a", (), 0, 0b11),))
    second, _ = rig.begin([2], SIZE, attempt=2, skip=(0,), identity=(ItemRun("b", (), 5, 1),))
    assert not rig.grant(first, SIZE)
    assert rig.grant(second, 9 * SIZE)
    assert rig.grant(first, 9 * SIZE)
    who = [(key, attempt, i) for key, _, attempt, i in seen]
    assert who == [("a", 1, 0), ("a", 1, 0), ("b", 2, 0), ("a", 1, 1), ("b", 2, 1), ("a", 1, 2)]
    assert [at for key, at, _, _ in seen if key == "b"] == [(5,), (5,)]


def test_children_that_an_earlier_attempt_released_take_no_room() -> None:
    rig = Rooms()
    batch, ended = rig.begin([6], 2 * SIZE, attempt=2, skip=(3,))
    assert not ended and rig.firsts(batch) == [3, 4]
    assert rig.grant(batch, 9 * SIZE)
    assert rig.firsts(batch) == [3, 4, 5]


def closing(closed: list[str], error: BaseException | None = None) -> Callable[[int], Any]:
    def generator(n: int) -> Iterator[bytes]:
        try:
            yield from blobs(n)
        finally:
            closed.append(ff.context().call)
            if error is not None:
                raise error

    return generator


@pytest.mark.parametrize("error", [None, ValueError("in the end")])
def test_the_end_of_the_worker_closes_those_that_wait(error: BaseException | None) -> None:
    closed: list[str] = []
    rig = Rooms(closing(closed, error))
    batch, _ = rig.begin([9], SIZE)
    other, _ = rig.begin([9], SIZE)
    assert closed == []
    before = len(rig.flushes)
    rig.runner.close()
    assert closed == ["generator", "generator"], "and what they ask for is there"
    events = [event for events in rig.flushes[before:] for event in events]
    assert not [event for event in events if isinstance(event, BatchFinished)]
    assert {batch, other} == {0, 1}


def test_one_that_is_trimmed_while_it_waits_is_closed_and_its_batch_ends() -> None:
    closed: list[str] = []
    rig = Rooms(closing(closed))
    batch, ended = rig.begin([9, 1], SIZE)
    assert not ended
    rig.trims[batch] = 0b1
    assert rig.runner.resume(batch)
    assert closed == ["generator"]
    told = rig.told(batch)
    assert rig.firsts(batch) == [0]
    assert list(told.failures) == [0] and told.values == {}
    assert len(told.of(BatchFinished)) == 1


def test_one_that_goes_on_without_more_room_waits_again() -> None:
    rig = Rooms()
    batch, _ = rig.begin([9], SIZE)
    assert not rig.runner.resume(batch)
    assert rig.firsts(batch) == [0]
    assert [pause.begun for pause in rig.told(batch).of(BatchPaused)] == [1, 1]


def test_one_that_raises_after_it_waited_fails_with_what_it_gave() -> None:
    def breaking(n: int) -> Iterator[bytes]:
        yield from blobs(n)
        raise ValueError("at the end")

    rig = Rooms(breaking)
    batch, _ = rig.begin([3], SIZE)
    assert rig.grant(batch, 9 * SIZE)
    assert rig.firsts(batch) == [0, 1, 2]
    assert rig.told(batch).failures == {0: ("raised", "ValueError: at the end")}


def test_the_time_of_a_batch_is_that_of_its_turns() -> None:
    rig = Rooms()

    def working(n: int) -> Iterator[bytes]:
        for _ in range(n):
            rig.time_s += 1.0
            yield bytes(SIZE)

    rig.runner._function = working
    batch, _ = rig.begin([4], 2 * SIZE)
    rig.time_s += 1000.0  # it waits
    rig.grant(batch, SIZE)
    rig.time_s += 1000.0
    rig.grant(batch, 9 * SIZE)
    (finished,) = rig.told(batch).of(BatchFinished)
    assert finished.busy_s == pytest.approx(4.0)


class Measured(MemoryValues):
    """Knows how large rows were, as a store of blocks does."""

    usual = 0

    def put(self, port: int, rows: Sequence[Any]) -> Rows:
        if port:
            self.usual = sum(map(len, rows)) // len(rows)
        return super().put(port, rows)

    def row_bytes(self, port: int) -> int:
        return self.usual


@pytest.mark.parametrize(
    ("size", "most"), [(1_000_000, 5), (100_000, 42), (1_024, 4_096), (10, 4_096)]
)
def test_so_many_children_are_released_together_as_make_some_megabytes(
    size: int, most: int
) -> None:
    def many(n: int) -> Iterator[bytes]:
        for _ in range(n):
            yield bytes(size)

    rig = Rooms(many)
    rig.values = rig.runner._values = Measured()
    _, ended = rig.begin([3 * most], 1 << 40)
    released = [
        sum(event.counts)
        for events in rig.flushes
        for event in events
        if isinstance(event, ChildrenReleased)
    ]
    assert ended and max(released) == most, released
