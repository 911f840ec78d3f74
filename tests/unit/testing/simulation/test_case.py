"""Cases as data: through JSON and back, readable, and refused when they are none."""

from __future__ import annotations

import json

import pytest

from fanfold.testing.simulation import FAULTS, Case, CaseFile, Fault, draw_case


@pytest.mark.parametrize("seed", range(30))
def test_a_case_goes_through_json_and_back(seed: int) -> None:
    case = draw_case(seed)
    assert Case.from_json(case.to_json()) == case


def test_a_seed_is_a_case_and_seeds_differ() -> None:
    assert draw_case(11) == draw_case(11)
    assert len({draw_case(seed).to_json() for seed in range(50)}) == 50


def test_the_text_has_a_line_for_each_part() -> None:
    case = draw_case(4)
    lines = CaseFile(case, about="why").to_json().splitlines()
    for step in case.sketch.steps:
        assert sum(
            f'"op": "{step.op}", "ports": {json.dumps(step.ports)}' in line for line in lines
        )
    assert '  "about": "why",' in lines


def test_a_case_file_goes_through_json_and_back() -> None:
    file = CaseFile(draw_case(3), "why", ("meaning: x",), "abc", {"commit": "1f"})
    assert CaseFile.from_json(file.to_json()) == file


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[]", "a case file is a JSON object"),
        ("{", "Expecting"),
        ('{"case": {}}', "no simulation case: KeyError: 'seed'"),
    ],
)
def test_what_is_no_case_is_refused(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        CaseFile.from_json(text)


def test_an_unknown_fault_is_refused() -> None:
    data = draw_case(3).as_dict() | {"faults": [{"kind": "flood", "at": 1}]}
    with pytest.raises(ValueError, match="there is no fault 'flood'"):
        Case.from_dict(data)


def test_every_kind_of_fault_is_drawn() -> None:
    drawn = {fault.kind for seed in range(300) for fault in draw_case(seed).faults}
    assert drawn == FAULTS.keys()
    assert Fault("late", 2) != Fault("late", 3)
