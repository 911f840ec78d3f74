"""What the in-memory twin tells of single batches; runs on it are in tests/model."""

from __future__ import annotations

from random import Random
from typing import Any

from fanfold.backends.base import WorkerSpec
from fanfold.failures import ItemFailure, ParentFailure
from fanfold.protocol import BatchFinished, RunBatch, TasksFinished, WorkerStarted
from fanfold.testing.twin import Twin
from tests.backends import call_plan


def judged(xs: list[int]) -> list[Any]:
    return [ParentFailure("no") if x == 1 else ItemFailure("bad") if x == 2 else x for x in xs]


def test_failures_are_told_with_their_scope() -> None:
    twin = Twin(Random(1))
    twin.start(call_plan(judged, batch_size=4), [WorkerSpec(0, 0, "judged[0]")], None)
    given = twin.put([0, 1, 2, 3])
    twin.submit(0, RunBatch(0, 0, 4, (("rows", given.ref, 0, 4),)))
    events: list[Any] = []
    while not events or not isinstance(events[-1], BatchFinished):
        events += twin.poll(None)
    assert isinstance(events[0], WorkerStarted)
    failures = [
        one for event in events if isinstance(event, TasksFinished) for one in event.failures
    ]
    assert [(task, failure.scope) for task, failure in failures] == [(1, "parent"), (2, "item")]
