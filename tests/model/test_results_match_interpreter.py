"""What a stream hands out for each root follows from the interpreter: status, value, failures, order.

The rules for records lie between the outcomes of items and a result, so they are stated here once more.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

import fanfold as ff
from fanfold.driver.run import stream
from fanfold.outcomes import Outcome, Status
from fanfold.plan import ExpandNode, Plan, ports_made
from fanfold.testing.cases import LOST, Item
from fanfold.testing.comparison import compare_failures, same_value
from fanfold.testing.interpreter import Interpretation, interpret
from fanfold.testing.sketches import Sketch, build, plan_of
from fanfold.testing.strategies import sketches
from tests.model.profile import EXAMPLES, looked_for


def items_below(meaning: Interpretation, port: int, root: int) -> list[Item]:
    """The items of a port under one root."""
    return [item for at, item in meaning.ports[port].items() if at[0] == root]


def is_lost(item: Item) -> set[bool]:
    """Whether an item is lost, both if a parent failure may or may not get ahead of it."""
    return {one.outcome in LOST for one in (item, *item.otherwise)}


def any_lost(items: list[Item]) -> set[bool]:
    """Whether any of the items is lost; both if that depends on the order of things."""
    ways = [is_lost(item) for item in items]
    if {True} in ways:
        return {True}
    return {False, True} if any(True in way for way in ways) else {False}


def expansions_of(plan: Plan, port: int) -> list[int]:
    """The ports whose expansions make a port's items."""
    found: list[int] = []
    level = plan.levels[plan.ports[port].level]
    while level.expand is not None and level.parent is not None:
        node = plan.nodes[level.expand]
        assert isinstance(node, ExpandNode)
        found += node.inputs
        level = plan.levels[level.parent]
    return found


def statuses_of(plan: Plan, meaning: Interpretation, root: int) -> set[Status]:
    """What may become of a root (M27, M28); more than one thing only after a parent failure."""
    outputs = [output.port for output in plan.outputs]
    effects = [port for index in plan.effects for port in ports_made(plan.nodes[index])]
    at_root = [port for port in outputs if plan.ports[port].level == 0]
    opened = [port for output in outputs for port in expansions_of(plan, output)]
    behind = [port for port in outputs if plan.ports[port].level]
    behind += [more for port in effects for more in (port, *expansions_of(plan, port))]
    fails = any_lost([i for port in at_root + opened for i in items_below(meaning, port, root)])
    mars = any_lost([i for port in behind for i in items_below(meaning, port, root)])
    found = {Status.FAILED} if True in fails else set()
    if False in fails:
        dropped = any(meaning.ports[port][root,].outcome is Outcome.DROPPED for port in at_root)
        ends = {True: Status.PARTIAL, False: Status.DONE}
        found |= {Status.DROPPED} if dropped else {ends[marred] for marred in mars}
    return found


def is_exact(plan: Plan, meaning: Interpretation, root: int) -> bool:
    """Whether all output items of a root are one thing only."""
    items = [i for output in plan.outputs for i in items_below(meaning, output.port, root)]
    return not any(item.otherwise or item.optional for item in items)


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
    results = list(stream(plan, ff.from_items(items), backend=backend, first_tasks=None))
    keys = [result.key for result in results]
    meaning = interpret(plan, sketch.roots, keys)
    assert len(results) == len(sketch.roots)
    for root, result in enumerate(results):
        assert result.status in statuses_of(plan, meaning, root), (root, result)
        if result.status not in (Status.DONE, Status.PARTIAL):
            assert result.value is None
        elif is_exact(plan, meaning, root):
            assert same_value(value_of(plan, meaning, root), result.value)
    listed = {root: result.failures for root, result in enumerate(results)}
    assert compare_failures(plan, meaning, listed) == []


@pytest.mark.parametrize(("backend", "examples"), [("inline", EXAMPLES), ("local", 25)])
def test_streamed_results(backend: str, examples: int) -> None:
    @looked_for(f"results {backend}", min(examples, EXAMPLES))
    @given(sketches())
    def search(sketch: Sketch) -> None:
        check(sketch, backend)

    search()
