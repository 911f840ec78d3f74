"""Planted faults of batch forming: what shares a batch, and what waits for more."""

from __future__ import annotations

from typing import Final

from tests.mutants.mutant import Mutant

BATCHES: Final = (
    Mutant(
        "a batch lingers though nothing can come",
        "dispatch/core.py",
        "if self._is_full(pool, call) or not self._can_come(call):",
        "if self._is_full(pool, call):",
        ("linger",),
    ),
    Mutant(
        "a full batch lingers",
        "dispatch/core.py",
        "if self._is_full(pool, call) or not self._can_come(call):",
        "if not self._can_come(call):",
        ("linger",),
    ),
    Mutant(
        "a batch lingers for as long as more can come",
        "dispatch/core.py",
        "        if time_s >= due_s:\n",
        "        if time_s >= due_s + 1e9:\n",
        ("linger", "endless"),
    ),
    Mutant(
        "nobody looks again when a batch has lingered",
        "dispatch/core.py",
        "            self.due_s = due_s\n",
        "            pass\n",
        test="tests/unit/dispatch/test_linger.py"
        "::test_a_trickle_goes_when_its_oldest_item_has_waited_long_enough",
    ),
    Mutant(
        "a batch lingers for what is paused",
        "dispatch/core.py",
        "or (machine.queues[c].count and not self._paused(c))",
        "or machine.queues[c].count",
        test="tests/unit/dispatch/test_linger.py::test_a_producer_that_is_paused_counts_as_nothing",
    ),
    Mutant(
        "what a batch left counts as old as what went",
        "engine/ready.py",
        "if runs and runs[-1][1] is chunk and runs[-1][0] > self._marked:",
        "if runs and runs[-1][1] is chunk:",
        test="tests/unit/dispatch/test_linger.py"
        "::test_what_a_batch_left_has_waited_since_it_came_and_no_longer",
    ),
    Mutant(
        "a batch holds more bytes than it may",
        "engine/measured.py",
        "                self._left_bytes -= ends[fitting - 1]\n",
        "",
        ("limits",),
    ),
    Mutant(
        "an item that is too large takes others along",
        "engine/measured.py",
        "self.room, self.count = 0, 1",
        "self.room, self.count = self.room - 1, 1",
        ("limits", "error:ValueError"),
    ),
    Mutant(
        "what was passed over is forgotten",
        "engine/measured.py",
        "self._runs.extendleft(reversed(passed))",
        "passed.clear()",
        ("invariant", "stand-still", "idle"),
    ),
    Mutant(
        "what was passed over goes behind all others",
        "engine/measured.py",
        "self._runs.extendleft(reversed(passed))",
        "self._runs.extend(passed)",
        test="tests/unit/engine/test_measured.py"
        "::test_what_was_passed_over_comes_before_what_was_not_looked_at",
    ),
    Mutant(
        "a broadcast value weighs nothing",
        "engine/weights.py",
        "weights += (weight, *(0,) * (count - 1))",
        "weights += (0,) * count",
        ("limits",),
    ),
    Mutant(
        "the sizes of a report are read from its beginning",
        "engine/weights.py",
        "first = row + low_offset(ranks)",
        "first = low_offset(ranks)",
        test="tests/unit/engine/test_measured.py::test_a_list_weighs_what_is_in_it",
    ),
    Mutant(
        "a list weighs what its largest child does",
        "engine/weights.py",
        "known[offset] += sum(islice(weights, count))",
        "known[offset] = max(islice(weights, count))",
        test="tests/unit/engine/test_measured.py::test_a_list_weighs_what_is_in_it",
    ),
)
