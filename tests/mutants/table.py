"""The planted faults: what each one is, the text that plants it, and what must find it.

Owns the list; ``tools/mutants.py`` plants them, one at a time, in a copy of the sources. A fault is planted by
text: ``old`` stands exactly once in the file, or in one file of the folder, named by ``where`` below
``src/fanfold``. When a change of the sources makes an entry's text go, plant the fault anew in the new text;
when it makes the fault impossible, take the entry out. New rules of the engine come with their own entries.

``found_by`` names the kinds of violations (:data:`fanfold.testing.simulation.VIOLATIONS`) by which the fault
may show first: in one of some hundred made-up cases or, where these meet it too seldom, in the kept ``case``.
"""

from __future__ import annotations

from typing import Final

from tests.mutants.batches import BATCHES
from tests.mutants.failures import FAILURES
from tests.mutants.membership import MEMBERSHIP
from tests.mutants.memory import MEMORY
from tests.mutants.mutant import Mutant as Mutant
from tests.mutants.outcomes import OUTCOMES
from tests.mutants.rates import RATES
from tests.mutants.recycling import RECYCLING
from tests.mutants.scaling import SCALING
from tests.mutants.work import DEAD_WORK, PROBE, VALUES, WORK
from tests.mutants.workers import WORKERS

MUTANTS: Final = (
    *MEMBERSHIP,
    *OUTCOMES,
    *FAILURES,
    *WORK,
    *BATCHES,
    *RATES,
    *DEAD_WORK,
    *PROBE,
    *VALUES,
    *MEMORY,
    *RECYCLING,
    *SCALING,
    *WORKERS,
)
