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
        "dispatch/carrying.py",
        "if self._machine.works_for(root, [batch]):",
        "if self._machine.root_of(batch) >= root:",
        ("credit",),
        case="a-younger-roots-generator",
    ),
    Mutant(
        "without credit items of any root begin",
        "engine/machine.py",
        "self.queues[call].take_some(among, limit, probed=probed)",
        "self.queues[call].take_some(lambda _, items: items, limit, probed=probed)",
        ("credit",),
    ),
    Mutant(
        "the oldest root's generator goes on without credit while items of it are ready",
        "dispatch/carrying.py",
        "            if waiting or calls:\n                return",
        "            pass",
        ("credit",),
    ),
    Mutant(
        "without credit a worker gets an item while it holds another",
        "dispatch/carrying.py",
        "if worker.ready and not worker.batches]",
        "if worker.ready]",
        ("credit",),
    ),
    Mutant(
        "without credit a full batch begins",
        "dispatch/credits.py",
        "return max(1, min(wanted, int(self._kept // workers / largest)))",
        "return wanted",
        ("credit",),
    ),
    Mutant(
        "without credit as many items begin as usually make little",
        "dispatch/credits.py",
        "max(per_item, self._largest.get(promise.call, 0.0))",
        "self._usual[promise.call]",
        test="tests/unit/dispatch/test_credits.py",
    ),
    Mutant(
        "without credit the probe lets everything through",
        "engine/ready.py",
        "wanted &= ~self._probe.held_back(chunk, wanted)",
        "pass",
        test="tests/unit/engine/test_paused_batches.py",
    ),
    Mutant(
        "what is near the end finds no memory left",
        "dispatch/credits.py",
        "self._kept + budget_bytes // ROOMS * behind // len(storing)",
        "self._kept",
        test="tests/unit/dispatch/test_core_budget.py",
    ),
    Mutant(
        "a giant takes the room in which others begin",
        "dispatch/credits.py",
        "self.free_bytes - self._most_free - self._room)",
        "self.free_bytes - self._most_free)",
        test="tests/unit/dispatch/test_credits.py",
    ),
    Mutant(
        "a generator is granted room before its turn",
        "dispatch/core.py",
        "if batch in worker.batches[1:]:",
        "if False:",
        test="tests/unit/dispatch/test_core_budget.py",
    ),
    Mutant(
        "small values stay however little memory there is",
        "engine/held.py",
        "            self.tight = True\n",
        "            pass\n",
        test="tests/unit/engine/test_held.py",
    ),
    Mutant(
        "small values that had been read stay when memory gets short",
        "engine/settling.py",
        "            self._let_all_go_early()",
        "            pass",
        test="tests/unit/engine/test_held.py",
    ),
    Mutant(
        "values go early though not all of their readers have ended",
        "engine/settling.py",
        "self.schedule(rule, chunk, members)\n",
        "self.release_early(chunk, rule.slot, members & chunk.done[rule.slot])\n",
        test="tests/unit/engine/test_held.py",
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
        "        self._promised -= promise.left\n        self._generating -= promise.generates\n",
        "        self._generating -= promise.generates\n",
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
