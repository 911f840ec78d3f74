"""Every planted fault fits into today's sources and is found by simulation, as its entry says."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from fanfold.testing.simulation import FAULTS, VIOLATIONS
from tests.mutants.table import MUTANTS, Mutant
from tools.environment import ROOT
from tools.mutants import CASES, DoesNotFit, main, place, plant, search
from tools.proof_tables import tables


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_planted_fault_is_found(mutant: Mutant) -> None:
    found = search(mutant)
    assert found.found, f"{mutant.name}: {found.violation or found.output}"


def test_entries_are_well_formed() -> None:
    names = [mutant.name for mutant in MUTANTS]
    assert len(set(names)) == len(names)
    for mutant in MUTANTS:
        assert bool(mutant.found_by) != bool(mutant.test)
        assert not mutant.case or (CASES / f"{mutant.case}.json").is_file()
        assert (ROOT / mutant.test.partition("::")[0]).exists()
        assert {kind.partition(":")[0] for kind in mutant.found_by} <= VIOLATIONS.keys()
        place(mutant, ROOT / "src")


def test_a_change_that_is_no_fault_is_not_found() -> None:
    harmless = Mutant(
        "a remark", "engine/rules.py", "class RootRule:", "class RootRule:  #", ("meaning",)
    )
    found = search(harmless, runs=20)
    assert (found.found, found.violation, found.runs) == (False, "", 20)


def test_another_kind_of_violation_than_the_entrys_does_not_count() -> None:
    (lost,) = [mutant for mutant in MUTANTS if mutant.name == "a ready item is forgotten"]
    found = search(dataclasses.replace(lost, found_by=("leak",)))
    assert found.violation.startswith("stand-still: ")
    assert not found.found


@pytest.mark.parametrize("old", ["no such text anywhere", "self"])
def test_a_fault_whose_text_is_not_there_once_is_refused(old: str, tmp_path: Path) -> None:
    (tmp_path / "fanfold").symlink_to(ROOT / "src" / "fanfold")
    with pytest.raises(DoesNotFit, match="'a fault' cannot be planted: its text is"):
        plant(Mutant("a fault", "engine", old, "", ("meaning",)), tmp_path)


def test_the_tables_of_the_documentation_have_every_fault() -> None:
    made = tables()
    assert all(f"| {mutant.name} | `" in made["_mutants.md"] for mutant in MUTANTS)
    assert all(f"| `{kind}` | " in made["_faults.md"] for kind in FAULTS)
    assert all(f"| `{kind}` | " in made["_violations.md"] for kind in VIOLATIONS)


def test_a_name_that_no_fault_has_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["nothing of the kind"]) == 2
    assert "no fault is named so" in capsys.readouterr().err
