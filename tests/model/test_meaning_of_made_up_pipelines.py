"""Made-up pipelines with every option have a meaning, and one that is exact where it has to be.

The engine has no part in this: the interpreter is looked at by itself, and beside the smallest executor that
has an order of things.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from fanfold.outcomes import Outcome
from fanfold.plan import GatherNode, MergeNode, Output, Plan
from fanfold.testing.cases import LOST, Item
from fanfold.testing.comparison import compare, compare_failures
from fanfold.testing.interpreter import Interpretation, interpret
from fanfold.testing.sketches import Sketch, build, plan_of
from fanfold.testing.strategies import sketches
from tests.model.naive import Naive
from tests.model.profile import EXAMPLES, looked_for


def ways(meaning: Interpretation) -> Iterator[tuple[int, tuple[int, ...], Item]]:
    for port, items in meaning.ports.items():
        for at, item in items.items():
            yield from ((port, at, one) for one in (item, *item.otherwise))


def condemned(meaning: Interpretation) -> bool:
    """Whether some item below the root level is a parent failure."""
    return any(
        cause.scope == "parent" and len(cause.ordinals) > 1
        for _, _, item in ways(meaning)
        for cause in item.causes
    )


def recovers(plan: Plan) -> bool:
    """Whether something can be done that depends on what was lost."""
    return any(
        node.failed != "fail" if isinstance(node, GatherNode) else node.failed == "next"
        for node in plan.nodes
        if isinstance(node, (GatherNode, MergeNode))
    )


def check(plan: Plan, meaning: Interpretation) -> None:
    uncertain, certain_loss = condemned(meaning), not recovers(plan)
    for port, items in meaning.ports.items():
        for at, item in items.items():
            assert at[1:] or not item.optional, "roots exist"
            if certain_loss and not at[1:] and item.otherwise:  # a parent failure may go unheard
                assert {one.outcome for one in (item, *item.otherwise)} & set(LOST)
            assert uncertain or not (item.otherwise or item.optional)
            for one in (item, *item.otherwise):
                assert bool(one.causes) == (one.outcome in LOST)
                strange = [cause for cause in one.causes if cause.ordinals[0] != at[0]]
                assert not strange, f"{plan.ports[port].name} is lost because of another root"


def test_every_made_up_pipeline_has_a_meaning() -> None:
    seen: Counter[str] = Counter()

    @looked_for("meaning", max(EXAMPLES, 100))
    @given(sketches())
    def search(sketch: Sketch) -> None:
        plan = plan_of(build(sketch))
        meaning = interpret(plan, sketch.roots)
        check(plan, meaning)
        seen["effects"] += bool(plan.effects)
        seen["condemned"] += condemned(meaning)
        seen["several ways"] += any(i.otherwise for p in meaning.ports.values() for i in p.values())
        gathers = [node for node in plan.nodes if isinstance(node, GatherNode)]
        seen["at_least"] += any(node.at_least is not None for node in gathers)
        seen["members"] += any(node.members is not None for node in gathers)
        seen["too few"] += any(
            cause.kind == "too_few" for _, _, item in ways(meaning) for cause in item.causes
        )
        seen["done"] += any(item.outcome is Outcome.DONE for _, at, item in ways(meaning) if at[1:])

    search()
    assert all(seen.values()), f"something is never made up: {seen}"


def test_whatever_the_order_of_things_what_comes_of_it_is_among_what_may() -> None:
    @looked_for("naive", max(EXAMPLES, 100))
    @given(sketches(), st.integers(0, 2**16))
    def search(sketch: Sketch, order: int) -> None:
        plan = plan_of(build(sketch))
        meaning = interpret(plan, sketch.roots)
        run = Naive(plan, sketch.roots, Random(order))
        run.run()
        every = replace(plan, outputs=tuple(Output(None, port.index) for port in plan.ports))
        assert compare(every, meaning, run.seen) == []
        assert compare_failures(every, meaning, run.failures) == []

    search()
