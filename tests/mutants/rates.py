"""Planted faults of rates and pauses: what begins too soon, and what is lost while its service is busy."""

from __future__ import annotations

from typing import Final

from tests.mutants.mutant import Mutant

_RATES: Final = "tests/unit/dispatch/test_rates.py::"

RATES: Final = (
    Mutant(
        "a rate is exceeded",
        "dispatch/rates.py",
        "(time_s if late else self._next_s) + self._spacing_s",
        "(time_s if late else self._next_s) + self._spacing_s / 2",
        ("rate",),
    ),
    Mutant(
        "a pool that had nothing to do saves calls up",
        "dispatch/rates.py",
        "late = time_s - self._next_s > LATE_S",
        "late = time_s - self._next_s > 1e9",
        ("rate",),
    ),
    Mutant(
        "calls begin though their service wants a pause",
        "dispatch/rates.py",
        "self._closed_s = max(self._closed_s, until_s)",
        "pass",
        ("rate",),
    ),
    Mutant(
        "an item that is put off is lost",
        "engine/machine.py",
        "        queue.push_back(fresh)\n",
        "        queue.push_back(fresh[1:])\n",
        ("stand-still",),
    ),
    Mutant(
        "nobody looks again when a call may begin",
        "dispatch/core.py",
        "            self._look_again(pool.opens_s)\n",
        "            pass\n",
        ("stand-still", "idle"),
    ),
    Mutant(
        "an item is put off for ever",
        "engine/patience.py",
        "return times + 1 < PATIENCE_TIMES or time_s - first_s < PATIENCE_S",
        "return True",
        test=_RATES + "test_an_item_fails_when_it_was_put_off_often_and_for_long",
    ),
    Mutant(
        "to be put off costs an attempt",
        "engine/machine.py",
        "self._again(batch, chunk, bit, errors=batch.errors)",
        "self._again(batch, chunk, bit, errors=batch.errors + 1)",
        test=_RATES + "test_no_attempt_is_used_up",
    ),
)
