"""Planted faults of the memory budget: what begins without credit, what waits for it, and who is paid back."""

from __future__ import annotations

from typing import Final

from tests.mutants.mutant import Mutant

MEMORY: Final = (
    Mutant(
        "credit is not asked for",
        "dispatch/credits.py",
        "return max(0, min(wanted, int(free / usual)))",
        "return wanted",
        ("credit",),
    ),
    Mutant(
        "roots are admitted without credit",
        "dispatch/core.py",
        "return self._credits.roots(free) or (1 if roots.admitted == roots.ended else 0)",
        "return free",
        ("credit",),
    ),
    Mutant(
        "the oldest root waits for credit",
        "dispatch/core.py",
        "self._carry_oldest(self._credits, time_s, commands)",
        "pass",
        ("stand-still",),
    ),
    Mutant(
        "a generator of any root goes on without credit",
        "dispatch/core.py",
        "if self.machine.root_of(batch) == root:",
        "if self.machine.root_of(batch) >= root:",
        ("credit",),
        case="a-younger-roots-generator",
    ),
    Mutant(
        "the oldest root goes on without credit while something of it is at a worker",
        "dispatch/core.py",
        "if self.machine.works_for(root, [b for w in self._workers.values() for b in w.batches]):",
        "if False:",
        ("credit",),
        case="more-of-the-oldest-root",
    ),
    Mutant(
        "a generator that waits is never gone on with",
        "dispatch/core.py",
        "commands.append(GrantRoom(worker.number, batch, room))",
        "if batch not in worker.paused:\n"
        "            commands.append(GrantRoom(worker.number, batch, room))",
        ("stand-still",),
    ),
    Mutant(
        "tasks that a generator gave back are forgotten",
        "engine/machine.py",
        "self.queues[batch.call].push_back(self._ledger.give_back(batch, event.begun))",
        "self._ledger.give_back(batch, event.begun)",
        test="tests/unit/engine/test_paused_batches.py",
    ),
    Mutant(
        "a pause is believed though room was on its way",
        "dispatch/credits.py",
        "if promise is None or room < promise.room:",
        "if promise is None:",
        test="tests/unit/dispatch/test_credits.py",
    ),
    Mutant(
        "what has arrived stays promised",
        "dispatch/credits.py",
        "self._promised -= paid",
        "pass",
        ("credit",),
    ),
    Mutant(
        "promises end with nobody's being paid back",
        "dispatch/credits.py",
        "        self._promised -= promise.left\n        if promise.items <= 0:\n",
        "        if promise.items <= 0:\n",
        ("credit",),
    ),
    Mutant(
        "promises of a worker that died are kept",
        "dispatch/core.py",
        "            if self._credits is not None:\n                self._credits.ended(batch)\n"
        "            commands += self.machine.lose_batch(",
        "            commands += self.machine.lose_batch(",
        ("credit",),
    ),
    Mutant(
        "a generator that waited at a dead worker is forgotten",
        "engine/machine.py",
        "entries = begun  # they",
        "entries = []  # they",
        test="tests/unit/engine/test_paused_batches.py",
    ),
    Mutant(
        "a generator that waited at a dead worker begins from the start",
        "engine/machine.py",
        "(chunk, bits & self._begun(batch.call, chunk)) for",
        "(chunk, 0) for",
        test="tests/unit/engine/test_paused_batches.py",
    ),
    Mutant(
        "a generator that waits is kept though its root has ended",
        "engine/ledger.py",
        "tasks |= batch.tasks_of(chunk, bits & chunk.ended)",
        "pass",
        ("leak",),
        case="a-generator-of-an-ended-root",
    ),
)
