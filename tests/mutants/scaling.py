"""Planted faults of replicas that follow the work: who gets more, who lets go, and with what in hand."""

from __future__ import annotations

from typing import Final

from tests.mutants.mutant import Mutant

_TESTS: Final = "tests/unit/dispatch/test_scaling.py::"

SCALING: Final = (
    Mutant(
        "a worker that is to go is given more",
        "dispatch/pool.py",
        "return self.ready and not (self.leaving or self.retiring)",
        "return self.ready and not self.leaving",
        test=f"{_TESTS}test_a_replica_that_is_to_go_gets_nothing_more_and_goes_when_it_has_ended_what_it_has",
    ),
    Mutant(
        "a worker goes with a batch in hand",
        "dispatch/scaling.py",
        "            if not worker.batches and not worker.paused:\n",
        "            if not worker.paused:\n",
        test=f"{_TESTS}test_a_replica_that_is_to_go_gets_nothing_more_and_goes_when_it_has_ended_what_it_has",
    ),
    Mutant(
        "a worker is started before another has gone",
        "dispatch/scaling.py",
        "            while stage.owed and stage.cores <= self._free():\n",
        "            while stage.owed:\n",
        test=f"{_TESTS}test_a_replica_is_started_when_another_has_gone",
    ),
    Mutant(
        "a worker that died when it was to go is started again",
        "dispatch/core.py",
        "if self._scaling is None or not self._scaling.died(worker, event.reason, event.time_s):",
        "if True:",
        test=f"{_TESTS}test_one_that_dies_before_it_has_gone_is_not_started_again_but_its_work_is_done",
    ),
    Mutant(
        "stages get beyond their most",
        "dispatch/scaling.py",
        "            if counts[index] < most and costs[index] <= left and uses[index] > 0\n",
        "            if costs[index] <= left and uses[index] > 0\n",
        ("scale", "error:IndexError"),
    ),
    Mutant(
        "a start need not pay",
        "dispatch/scaling.py",
        "if self._lasts_s(time_s) * gain / (1 + gain) > PAYS * slowest_s:",
        "if gain > 0:",
        test=f"{_TESTS}test_near_the_end_nothing_is_started_that_does_not_pay",
    ),
)
