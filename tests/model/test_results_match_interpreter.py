"""What a stream hands out for each root follows from the interpreter: status, value, failures, order.

The rules for records lie between the outcomes of items and a result, so they are stated here once more.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

import fanfold as ff
from fanfold.outcomes import Outcome, Status
from fanfold.plan import ExpandNode, Plan
from fanfold.testing.comparison import compare_failures, same_value
from fanfold.testing.interpreter import LOST, Interpretation, interpret
from fanfold.testing.sketches import Sketch, build, plan_of
from fanfold.testing.strategies import sketches
from tests.model.profile import EXAMPLES, looked_for


def status_of(plan: Plan, meaning: Interpretation, root: int) -> Status:
    """What becomes of a root (M27)."""
    dropped = partial = False
    for output in plan.outputs:
        level = plan.levels[plan.ports[output.port].level]
        for at, item in meaning.ports[output.port].items():
            if at[0] == root and item.outcome in LOST:
                if level.parent is None:
                    return Status.FAILED
                partial = True
            dropped |= at == (root,) and item.outcome is Outcome.DROPPED
        while level.expand is not None:
            node = plan.nodes[level.expand]
            assert isinstance(node, ExpandNode)
            for port in node.inputs:
                parents = meaning.ports[port].items()
                if any(at[0] == root and item.outcome in LOST for at, item in parents):
                    return Status.FAILED
            assert level.parent is not None
            level = plan.levels[level.parent]
    if dropped:
        return Status.DROPPED
    return Status.PARTIAL if partial else Status.DONE


def value_of(plan: Plan, meaning: Interpretation, root: int) -> Any:
    """A done root's outputs in the shape that the pipeline returned."""
    values: list[Any] = []
    for output in plan.outputs:
        items = [(at, item) for at, item in meaning.ports[output.port].items() if at[0] == root]
        done = [item.value for _, item in items if item.outcome is Outcome.DONE]
        values.append(done if plan.ports[output.port].level else done[0])
    match plan.structure:
        case "single":
            return values[0]
        case "tuple":
            return tuple(values)
        case "dict":
            return {output.name: v for output, v in zip(plan.outputs, values, strict=True)}


def check(sketch: Sketch, backend: str) -> None:
    pipeline = build(sketch)
    plan = plan_of(pipeline)
    items = [root[0] if sketch.sources == 1 else root for root in sketch.roots]
    results = list(pipeline.stream(ff.from_items(items), backend=backend))
    keys = [result.key for result in results]
    meaning = interpret(plan, sketch.roots, keys)
    assert len(results) == len(sketch.roots)
    for root, result in enumerate(results):
        expected = status_of(plan, meaning, root)
        assert result.status is expected, (root, result)
        if expected in (Status.DONE, Status.PARTIAL):
            assert same_value(value_of(plan, meaning, root), result.value)
        else:
            assert result.value is None
    listed = {root: result.failures for root, result in enumerate(results)}
    assert compare_failures(plan, meaning, listed) == []


@pytest.mark.parametrize(("backend", "examples"), [("inline", EXAMPLES), ("local", 25)])
def test_streamed_results(backend: str, examples: int) -> None:
    @looked_for(f"results {backend}", min(examples, EXAMPLES))
    @given(sketches())
    def search(sketch: Sketch) -> None:
        check(sketch, backend)

    search()
