"""How long the tests that make up cases look, and from which seed: in the header of every test run.

``FANFOLD_SEED=N`` replays a run; ``FANFOLD_EXAMPLES=N`` (of each property test) and ``FANFOLD_RUNS=N`` (of
simulation) look longer.
"""

from __future__ import annotations

from tests.model.profile import EXAMPLES, SEED
from tests.simulation.fresh import FIRST_SEED, RUNS


def pytest_report_header() -> list[str]:
    return [
        f"property tests: FANFOLD_SEED={SEED}, {EXAMPLES} examples each",
        f"simulation: FANFOLD_SEED={SEED}, {RUNS} runs from seed {FIRST_SEED} on",
    ]
