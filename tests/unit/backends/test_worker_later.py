"""Reports of batches that took long: told while the next batch runs, they say what was true before it."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from typing import Any

import numpy as np
import pytest

from fanfold.backends.worker import WORTH_S, Report
from fanfold.protocol import (
    BatchEvent,
    BatchFinished,
    ChildrenReleased,
    RunBatch,
    TasksFinished,
)
from tests.backends import CALL, Rig, call_plan

LONG_S = 2 * WORTH_S
CHILDREN = [[(0, ())]]


class Later:
    """A runner whose reports are made when somebody asks for it."""

    def __init__(self, target: Any, *, step_s: float = LONG_S, **options: Any) -> None:
        self.reports: list[Report] = []
        self.rig = Rig(call_plan(target, **options), step_s=step_s, later=self.reports.append)
        put = self.rig.values.put
        self.rig.values.put = lambda port, rows: put(port, deepcopy(rows))  # type: ignore[method-assign]

    def run(self, column: Sequence[Any]) -> list[BatchEvent]:
        """Run a batch; what was told at once."""
        self.rig.run(column)
        return [event for events in self.rig.flushes for event in events]

    def values(self, events: Sequence[BatchEvent]) -> list[Any]:
        """The values that these events tell of, as whoever reads them has them."""
        found: list[Any] = []
        for event in events:
            if isinstance(event, (TasksFinished, ChildrenReleased)):
                for stream in event.streams:
                    assert stream.rows is not None
                    found += self.rig.values.read(
                        [("rows", stream.rows.ref, 0, stream.rows.count)]
                    )[0]
        return found


def doubles(xs: list[int]) -> list[int]:
    return [2 * x for x in xs]


def test_a_batch_that_took_long_is_told_when_the_next_begins() -> None:
    later = Later(doubles, batch_size=2)
    assert later.run([1, 2]) == []
    assert later.reports == []
    assert later.run([3, 4]) == []
    (report,) = later.reports
    told = report()
    assert later.values(told) == [2, 4]
    assert isinstance(told[-1], BatchFinished)


def test_a_batch_that_was_short_is_told_at_once() -> None:
    later = Later(doubles, batch_size=2, step_s=WORTH_S / 10)
    assert later.values(later.run([1, 2])) == [2, 4]
    later.run([3, 4])
    assert later.reports == []


def test_what_nobody_comes_after_is_told_when_there_is_nothing_to_go_on_with() -> None:
    later = Later(doubles, batch_size=2)
    later.run([1, 2])
    later.rig.runner.tell()
    (events,) = later.rig.flushes
    assert later.values(events) == [2, 4]
    later.rig.runner.tell()
    assert len(later.rig.flushes) == 1, "once"


def test_without_anyone_to_tell_later_it_is_told_at_once() -> None:
    rig = Rig(call_plan(doubles, batch_size=2), step_s=LONG_S)
    rig.run([1, 2])
    assert len(rig.flushes) == 1


class Reuses:
    """Gives the same objects for every batch, as models do that write into buffers of their own."""

    def __init__(self, form: str) -> None:
        self.form = form
        self.list: list[int] = []
        self.array = np.zeros(1, dtype=np.int64)

    def __call__(self, xs: list[int]) -> list[Any]:
        self.list[:] = xs
        self.array[:] = xs
        given: dict[str, list[Any]] = {
            "list": self.list,
            "lists": [self.list],
            "array": [self.array],
        }
        return given[self.form]


@pytest.mark.parametrize(("form", "first"), [("list", 1), ("lists", [1]), ("array", 1)])
def test_what_a_stage_changes_in_its_next_call_is_told_as_it_was(form: str, first: Any) -> None:
    later = Later(Reuses, args=(form,), batch_size=1)
    later.run([1])
    later.run([2])
    (report,) = later.reports
    assert later.values(report()) == [first]


def test_children_that_a_stage_changes_in_its_next_call_are_told_as_they_were() -> None:
    later = Later(Reuses, args=("lists",), batch_size=1, expand=CHILDREN, items=False)
    later.run([1])
    later.run([2])
    (report,) = later.reports
    assert later.values(report()) == [1]


def test_a_batch_that_was_prepared_runs_as_any_other_and_no_other_runs_in_its_place() -> None:
    rig = Rig(call_plan(doubles, batch_size=2))
    expected = RunBatch(0, CALL, 2, (("rows", rig.values.put(0, [1, 2]).ref, 0, 2),))
    rig.runner.prepare(expected)
    assert rig.run([5, 6]).values == {0: 10, 1: 12}  # it is another batch of that number
    rig.flushes.clear()
    rig.runner.prepare(expected)
    rig.runner.run(expected)
    (events,) = rig.flushes
    assert isinstance(events[-1], BatchFinished)
    (told,) = (event for event in events if isinstance(event, TasksFinished))
    assert told.streams[0].rows is not None
    assert rig.values.read([("rows", told.streams[0].rows.ref, 0, 2)]) == [[2, 4]]


def double(x: int) -> int:
    return 2 * x


def test_how_long_items_have_waited_counts_from_their_batchs_beginning() -> None:
    rig = Rig(call_plan(double))
    batch = RunBatch(0, CALL, 3, (("rows", rig.values.put(0, [1, 2, 3]).ref, 0, 3),))
    rig.runner.prepare(batch)
    rig.time_s += 100
    rig.runner.run(batch)
    assert len(rig.flushes) == 1
