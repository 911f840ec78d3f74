"""Smaller cases: what can be left out of a sketch, and that a case with a fault of the engine gets small."""

from __future__ import annotations

import pytest

from fanfold.engine.held import HeldBlocks
from fanfold.testing.simulation import Case, draw_case
from fanfold.testing.simulation.campaign import campaign, failing_case
from fanfold.testing.simulation.shrinking import bypassed, reductions, shrink, without
from fanfold.testing.sketches import Sketch, StageSketch, Step

CALL = {"stage": 0, "static": {"salt": 1, "trouble": {}}}
CHAIN = Sketch(
    1,
    (StageSketch("number"),),
    (
        Step("call", (0,), 1, CALL),
        Step("call", (1,), 1, CALL),
        Step("record", (1, 2), 1),
    ),
    (3, 1),
    "tuple",
    ((1,), (2,)),
)


def test_without_a_step_all_that_needs_it_goes() -> None:
    smaller = without(CHAIN, 1)
    assert smaller is not None
    assert [step.op for step in smaller.steps] == ["call"]
    assert (smaller.outputs, smaller.structure) == ((1,), "single")


def test_without_all_outputs_nothing_is_left() -> None:
    assert without(CHAIN, 0) is None


def test_readers_of_a_bypassed_step_read_its_input() -> None:
    smaller = bypassed(CHAIN, 1)
    assert smaller is not None
    assert [(step.op, step.ports) for step in smaller.steps] == [("call", (0,)), ("record", (1, 1))]


@pytest.mark.parametrize("seed", range(5))
def test_a_reduction_changes_the_case(seed: int) -> None:
    case = draw_case(seed)
    assert all(smaller != case for smaller in reductions(case))


def test_the_number_of_tries_is_bounded() -> None:
    tried: list[Case] = []

    def fails(smaller: Case) -> bool:
        tried.append(smaller)
        return False

    assert shrink(draw_case(8), fails, tries=7) == draw_case(8)
    assert len(tried) == 7


def test_a_case_with_a_fault_of_the_engine_gets_small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(HeldBlocks, "discard", lambda blocks, streams: None)  # late blocks stay
    (seed,) = campaign(range(100), failures=1).failing
    file = failing_case(draw_case(seed), about="late blocks")
    assert file.violations[0].startswith("leak: ")
    assert len(file.case.faults) == 1
    assert file.case.faults[0].kind in ("late", "doubled")
    assert len(file.case.sketch.roots) == 1
    assert len(file.case.sketch.steps) <= 2
    assert file.log_sha256


def test_a_case_that_breaks_no_rule_is_not_kept() -> None:
    with pytest.raises(ValueError, match="breaks no rule"):
        failing_case(draw_case(3))
