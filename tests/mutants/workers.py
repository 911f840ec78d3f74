"""Planted faults of worker processes: what is told late, and what two threads take in."""

from __future__ import annotations

from typing import Final

from tests.mutants.mutant import Mutant

WORKERS: Final = (
    Mutant(
        "what a stage changes in its next call is told as it is then",
        "backends/delivery.py",
        "        if self._is_frozen():\n",
        "        if True:\n",
        test="tests/unit/backends/test_worker_later.py::test_what_a_stage_changes_in_its_next_call_is_told_as_it_was",
    ),
    Mutant(
        "room that comes just before a batch pauses is missed",
        "backends/local/inbox.py",
        "if batch in self._unheard or batch in self._granted:",
        "if batch in self._unheard:",
        test="tests/unit/backends/local/test_inbox.py::test_room_that_comes_just_before_a_batch_pauses_is_not_missed",
    ),
    Mutant(
        "what the store keeps as it is may be written to again",
        "backends/batch_run.py",
        "if kind not in plain and (self._whole or not (released and copies)):",
        "if kind not in plain and (self._whole or not released):",
        test="tests/unit/backends/test_worker_copies.py::test_what_is_released_as_it_comes_is_copied_once",
    ),
    Mutant(
        "reports wait for code that lets nobody else run",
        "backends/local/companion.py",
        "                self._alone = ALONE\n",
        "                pass\n",
        test="tests/unit/backends/local/test_companion.py::test_code_that_lets_nobody_else_run_has_its_reports_told_before",
    ),
)
