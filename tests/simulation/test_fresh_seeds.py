"""Cases that nobody has seen before keep every rule.

The seeds are in the header of the test run; ``FANFOLD_SEED`` replays them.
"""

from __future__ import annotations

import pytest

from fanfold.testing.simulation.campaign import campaign
from tests.simulation.fresh import FIRST_SEED, RUNS

PARTS = 5
"""Each is a test of its own, so that none looks stuck on a slow machine."""


@pytest.mark.parametrize("part", range(PARTS))
def test_no_rule_is_broken(part: int) -> None:
    seeds = range(FIRST_SEED, FIRST_SEED + RUNS)[part::PARTS]
    summary = campaign(seeds, thorough=True, failures=1)
    assert summary.failing == [], (
        f"see it again, and smaller: ./dev sim --seed {summary.failing[0]} --runs 1"
    )
    assert summary.runs == len(seeds)
