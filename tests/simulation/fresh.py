"""The seeds that this test run simulates."""

from __future__ import annotations

import os
from typing import Final

from tests.model.profile import SEED

RUNS: Final = int(os.environ.get("FANFOLD_RUNS", "2000"))
FIRST_SEED: Final = SEED * 100_000
"""Test runs with different seeds simulate different cases."""
