"""Cases that broke a rule once, before something was mended, and never may again."""

from __future__ import annotations

from pathlib import Path

import pytest

from fanfold.testing.simulation import CaseFile, simulate

CASES = sorted((Path(__file__).parent / "cases").glob("*.json"))


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_a_kept_case_breaks_no_rule(path: Path) -> None:
    kept = CaseFile.from_json(path.read_text(encoding="utf-8"))
    assert kept.about, "a kept case says what it showed"
    assert simulate(kept.case, thorough=True).violations == []
