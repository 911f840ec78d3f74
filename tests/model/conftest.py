"""How long the property tests look, and from which seed.

``FANFOLD_SEED=N`` replays a run; ``FANFOLD_EXAMPLES=N`` looks longer (each test that many times).
"""

from __future__ import annotations

from tests.model.profile import EXAMPLES, SEED


def pytest_report_header() -> str:
    return f"property tests: FANFOLD_SEED={SEED}, {EXAMPLES} examples each"
