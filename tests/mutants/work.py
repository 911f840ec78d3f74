"""Planted faults of work and values: what is run, how often, what is not, and what is kept for it."""

from __future__ import annotations

from typing import Final

from tests.mutants.mutant import Mutant

WORK: Final = (
    Mutant(
        "a late result is let through",
        "engine/machine.py",
        "batch = self._ledger.end(batch_id)",
        "batch = self.batches.get(batch_id)",
        ("invariant", "error:KeyError"),
    ),
    Mutant(
        "a doubled result is let through",
        "engine/machine.py",
        "            if batch.finished != below(batch.count):\n",
        "            self.batches[event.batch] = batch\n            batch.refs = set()\n"
        "            if batch.finished != below(batch.count):\n",
        ("error:InternalError",),
    ),
    Mutant(
        "what a dead worker delivered is run again",
        "engine/machine.py",
        "entries = batch.unfinished()",
        "entries = batch.entries",
        ("invariant",),
    ),
    Mutant(
        "a lost batch is not run again",
        "engine/machine.py",
        "push_back([entry for entry in fresh if entry[1]])",
        "push_back([entry for entry in fresh if entry[1]][:-1])",
        ("stand-still",),
    ),
    Mutant(
        "a worker is left idle",
        "dispatch/core.py",
        "        for held in range(ahead):\n            for worker in pool.workers:",
        "        for held in range(ahead):\n            for worker in pool.workers[:1]:",
        ("idle",),
    ),
    Mutant(
        "a worker that was made anew gets nothing",
        "dispatch/core.py",
        "worker.ready = True",
        "worker.ready = not worker.restarts",
        ("idle", "stand-still"),
    ),
    Mutant(
        "a late result of a condemned sibling is let through",
        "engine/settling.py",
        "bits &= ~(lost.dropped | lost.failed | lost.suppressed)",
        "bits &= ~(lost.dropped | lost.failed)",
        ("invariant",),
    ),
)

DEAD_WORK: Final = (
    Mutant(
        "a condemned sibling is run",
        "engine/ready.py",
        "sequence, chunk, bits = self._runs.popleft()\n            live = bits & ~self.dead(chunk)",
        "sequence, chunk, bits = self._runs.popleft()\n            live = bits",
        ("dead", "invariant", "error:KeyError"),
    ),
    Mutant(
        "an item that was to run alone is run though it is dead",
        "engine/machine.py",
        "if not retry.bit & self.queues[call].dead(retry.chunk):",
        "if True:",
        ("dead",),
    ),
    Mutant(
        "children that come after a parent failure are run",
        "engine/machine.py",
        "            self._condemning.arrived(self.settling, chunk, new)",
        "            pass",
        ("dead",),
        case="children-after-a-parent-failure",
    ),
    Mutant(
        "work for two readers dies with the first",
        "engine/needs.py",
        "for needs in self._needs[level][part]:",
        "for needs in self._needs[level][part][:1]:",
        ("meaning",),
    ),
    Mutant(
        "work for two outputs of a call dies with the first",
        "engine/needs.py",
        "for part in together:\n            for needs",
        "for part in together[:1]:\n            for needs",
        ("meaning",),
    ),
    Mutant(
        "what the pipeline returns is taken for dead",
        "engine/needs.py",
        "return items\n\n\ndef _open",
        "return 0\n\n\ndef _open",
        ("meaning",),
    ),
    Mutant(
        "what later children will get is taken for dead",
        "engine/needs.py",
        "needed = items & ~chunk.terminal(expansion)",
        "needed = 0",
        ("meaning", "stand-still"),
        case="copies-to-later-children",
    ),
    Mutant(
        "what one child still needs is taken for dead",
        "engine/needs.py",
        "needed |= child.parents_of(child.items_of(items) & ~child.terminal(output))",
        "needed |= 0",
        ("meaning",),
    ),
    Mutant(
        "a merge leaves later ports alive",
        "engine/rules.py",
        "state.unneeded(chunk, later, done)",
        "pass",
        ("dead",),
    ),
    Mutant(
        "other inputs of a lost item stay alive",
        "engine/needs.py",
        "for slot in self.inputs:\n                self.backwards",
        "for slot in self.inputs[:0]:\n                self.backwards",
        ("dead",),
    ),
    Mutant(
        "members of a lost list stay alive",
        "engine/needs.py",
        "if children is not None and (parents := hint & self.lost(chunk)):",
        "if children is not None and (parents := 0):",
        ("dead",),
    ),
    Mutant(
        "later members of a lost list stay alive",
        "engine/needs.py",
        "if items := hint & chunk.items_of(self.members.lost(chunk.parent)):",
        "if items := 0:",
        ("dead",),
        case="members-that-came-late",
    ),
    Mutant(
        "what lost children had copies of stays alive",
        "engine/needs.py",
        "if lost is not None and parent is not None:",
        "if False:",
        ("dead",),
        case="copies-to-the-lost",
    ),
    Mutant(
        "what no child will have a copy of stays alive",
        "engine/needs.py",
        "ended = hint & (chunk.done[self.expansion] | failed)",
        "ended = 0",
        ("dead",),
    ),
)

PROBE: Final = (
    Mutant(
        "the probe holds nobody back",
        "engine/probe.py",
        "later = chunk.beyond(self._limit)",
        "return 0",
        ("probe",),
        case="more-than-the-probe",
    ),
    Mutant(
        "the probe lets twice as many through",
        "engine/machine.py",
        "plan.stages[plan.call(call).stage].probe, outputs[0], self.program.taken[call]",
        "2 * plan.stages[plan.call(call).stage].probe, outputs[0], self.program.taken[call]",
        ("probe",),
        case="more-than-the-probe",
    ),
    Mutant(
        "a call is trusted from the start",
        "engine/probe.py",
        "return self._trust >= TRUST",
        "return self._trust >= 0",
        ("probe",),
        case="more-than-the-probe",
    ),
    Mutant(
        "what the probe holds back is forgotten",
        "engine/ready.py",
        "room = self._take(chunk, live, room, taken, sequence)",
        "self.count -= live.bit_count()",
        ("stand-still",),
    ),
    Mutant(
        "workers wait for the first result",
        "engine/ready.py",
        "return next(iter(self._held.values()))[0] if self._held else None",
        "return None",
        ("idle",),
        case="held-back-and-nothing-else",
    ),
    Mutant(
        "a first result lets nobody through",
        "engine/ready.py",
        "        self._probe.results(count)\n        if not self._held:",
        "        self._probe.results(count)\n        if True:",
        ("probe",),
        case="first-result",
    ),
)

VALUES: Final = (
    Mutant(
        "a value is released while it is needed",
        "engine/rules.py",
        "        for slot in self.readers:\n            hint &= chunk.terminal(slot)\n",
        "",
        ("error:KeyError",),
    ),
    Mutant(
        "values are never released",
        "engine/held.py",
        "for slot, segments in chunk.segments.items():",
        "for slot, segments in ():",
        ("invariant", "leak"),
    ),
    Mutant(
        "the values of a late result are never released",
        "engine/held.py",
        "self._released += [stream.rows.ref for stream in streams if stream.rows is not None]",
        "self._released += []",
        ("leak",),
    ),
)
