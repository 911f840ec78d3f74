"""The semantic cases hold in the interpreter and on every backend."""

from __future__ import annotations

from typing import Any

import pytest

from fanfold.backends.base import Backend
from fanfold.errors import DefinitionError
from fanfold.testing.comparison import compare
from fanfold.testing.interpreter import interpret
from fanfold.testing.observing import run_observed
from fanfold.testing.sketches import plan_of
from tests.conformance.backends import BACKENDS
from tests.conformance.semantic_cases import Case, differences, load, pipeline_of

CASES = load()
RUNNING = [case for case in CASES if "outputs" in case.expect]
REFUSED = [case for case in CASES if case.expect == {"error": "compile"}]


def by_id(case: Any) -> str:
    return case.id if isinstance(case, Case) else str(case)


def test_every_case_is_accounted_for() -> None:
    accounted = [case.id for case in RUNNING + REFUSED]
    assert sorted(accounted) == sorted(case.id for case in CASES)


@pytest.mark.parametrize("case", RUNNING, ids=by_id)
def test_the_interpreter_gives_the_cases_meaning(case: Case) -> None:
    plan = plan_of(pipeline_of(case))
    assert differences(case, plan, interpret(plan, case.roots()).ports) == []


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("case", RUNNING, ids=by_id)
def test_a_run_gives_the_cases_meaning(case: Case, backend: str) -> None:
    plan = plan_of(pipeline_of(case))
    made: Backend = BACKENDS[backend]()
    observed = run_observed(plan, made, case.roots())
    assert differences(case, plan, observed.items) == []
    assert compare(plan, interpret(plan, case.roots()), observed.items) == []


@pytest.mark.parametrize("case", REFUSED, ids=by_id)
def test_what_makes_no_sense_is_refused_by_the_compiler(case: Case) -> None:
    with pytest.raises(DefinitionError):
        plan_of(pipeline_of(case))
