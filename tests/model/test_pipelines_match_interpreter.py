"""Made-up pipelines mean the same to the engine, under any completion order, as to the interpreter.

The seed is in the header of the test run; ``FANFOLD_SEED`` replays it.
"""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from hypothesis import given, note
from hypothesis import strategies as st

from fanfold.engine.chunks import SPAN
from fanfold.testing.comparison import compare, compare_failures
from fanfold.testing.interpreter import interpret
from fanfold.testing.observing import run_observed
from fanfold.testing.sketches import Sketch, build, plan_of
from fanfold.testing.strategies import sketches
from fanfold.testing.twin import Twin
from tests.model.profile import SEED, looked_for
from tests.model.shuffled import ShuffledInline

SPANS = (1, 3, 8, SPAN)
"""Items per chunk of the engine's state: tiny ones put every rule to work across chunks."""


def check(sketch: Sketch, backend: Any, span: int = SPAN) -> None:
    """Run a sketch and require its meaning, each root's failures among the possible, no block left."""
    plan = plan_of(build(sketch))
    meaning = interpret(plan, sketch.roots)
    observed = run_observed(plan, backend, sketch.roots, span=span, checked=True)
    note(f"FANFOLD_SEED={SEED}")
    assert observed.stopped is None
    assert sorted(observed.ended) == list(range(len(sketch.roots)))
    assert compare(plan, meaning, observed.items) == []
    assert compare_failures(plan, meaning, observed.failures) == []


@pytest.mark.parametrize("deaths", [0, 1])
@pytest.mark.parametrize("span", SPANS)
def test_on_the_twin(span: int, deaths: int) -> None:
    @looked_for(f"twin {span} {deaths}")
    @given(sketches(), st.integers(0, 2**16))
    def search(sketch: Sketch, order: int) -> None:
        twin = Twin(Random(order), deaths)
        check(sketch, twin, span)
        assert twin.blocks_left == 0

    search()


def test_with_the_workers_own_code() -> None:
    @looked_for("worker")
    @given(sketches(), st.integers(0, 2**16))
    def search(sketch: Sketch, order: int) -> None:
        backend = ShuffledInline(Random(order))
        check(sketch, backend)
        assert backend.blocks_left == 0

    search()
