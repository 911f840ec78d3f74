"""A parent failure condemns a call and a parent: siblings, lists, what is at workers, what comes later."""

from __future__ import annotations

from fanfold.engine.commands import TrimBatch
from fanfold.failures import Failure
from fanfold.protocol import RunBatch, TasksFinished
from tests.plans import fan_out_plan
from tests.scripted import Script

RUIN = Failure(kind="declared", message="ruin", scope="parent")


def reading(*pages: int, failed: str = "drop") -> tuple[Script, list[RunBatch]]:
    """Documents with so many pages; two batches of four pages are at the worker."""
    script = Script(fan_out_plan(batch_size=4, failed=failed))
    script.admit(len(pages))
    (batch,) = script.dispatch()
    script.expand_all(batch, list(pages))
    return script, [b for b in script.dispatch() if b.call == 2]


def ruin(script: Script, batch: RunBatch, task: int) -> None:
    streams = (script.rows(3, batch.count - 1),)
    event = TasksFinished(batch.batch, 0, batch.count, streams, ((task, RUIN),))
    script.event(event)
    script.end(batch)


def test_siblings_are_suppressed_and_lists_whatever_their_options() -> None:
    script, (first, _) = reading(10, 3)
    ruin(script, first, 0)
    (result,) = script.results
    assert (result.root, result.status) == (0, "failed")
    assert [f.message for f in result.failures] == ["ruin"]
    counts = script.core.machine.counts[2]
    assert (counts.failed, counts.suppressed) == (1, 9)


def test_batch_mates_of_other_parents_are_unharmed() -> None:
    script, (first, second) = reading(2, 2, 4)
    ruin(script, first, 1)
    assert [r.root for r in script.results] == [0]
    script.finish(second)
    joins = [batch for batch in script.dispatch() if batch.call == 4]
    for join in joins:
        script.finish(join)
    assert {r.root: r.status for r in script.results} == {0: "failed", 1: "done", 2: "done"}


def test_tasks_at_a_worker_are_trimmed_and_their_results_discarded() -> None:
    script, (first, second) = reading(7, 1)
    trimmed: list[TrimBatch] = []
    script.on_trim = trimmed.append
    ruin(script, first, 3)
    (trim,) = trimmed
    assert (trim.batch, trim.tasks) == (second.batch, 0b0111)
    script.finish(second, failures=dict.fromkeys(range(3), "it need not run any more"))
    (result,) = script.results
    assert [f.message for f in result.failures] == ["ruin"], "nobody heeds what was left out"
    (join,) = (batch for batch in script.dispatch() if batch.call == 4)
    assert join.count == 1


def test_values_of_condemned_siblings_are_discarded() -> None:
    script, (first, second) = reading(8, 1)
    ruin(script, first, 0)
    before = len(script.released)
    script.finish(second)  # it had begun already
    assert len(script.released) > before
    assert script.core.machine.counts[2].done == 0


def test_committed_siblings_stay() -> None:
    script, (first, second) = reading(8, 1)
    script.finish(first)
    ruin(script, second, 0)
    counts = script.core.machine.counts[2]
    assert (counts.done, counts.failed, counts.suppressed) == (4, 1, 3)


def test_at_the_root_level_it_is_an_item_failure() -> None:
    script = Script(fan_out_plan(batch_size=4))
    script.admit(2)
    (pages,) = script.dispatch()
    script.event(TasksFinished(pages.batch, 0, 2, (), ((0, RUIN),)))
    assert [(r.root, r.status) for r in script.results] == [(0, "failed")]
