"""The planted faults: what each one is, the text that plants it, and what must find it.

Owns the list; ``tools/mutants.py`` plants them, one at a time, in a copy of the sources. A fault is planted by
text: ``old`` stands exactly once in the file, or in one file of the folder, named by ``where`` below
``src/fanfold``. When a change of the sources makes an entry's text go, plant the fault anew in the new text;
when it makes the fault impossible, take the entry out. New rules of the engine come with their own entries.

``found_by`` names the kinds of violations (:data:`fanfold.testing.simulation.VIOLATIONS`) by which the fault
may show first.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class Mutant:
    """One planted fault."""

    name: str
    """A sentence that tells the fault."""
    where: str
    old: str
    new: str
    found_by: tuple[str, ...]


MEMBERSHIP: Final = (
    Mutant(
        "a gather is reordered",
        "engine/resolve.py",
        'inner(members, refs) if members else ("cat", ())',
        'inner(members[::-1], refs) if members else ("cat", ())',
        ("meaning",),
    ),
    Mutant(
        "a child is dropped",
        "engine/machine.py",
        "            if not closed and 0 not in counts:\n",
        "            counts = (*counts[:-1], counts[-1] - 1)\n"
        "            if not closed and 0 not in counts:\n",
        ("meaning",),
    ),
    Mutant(
        "children are taken in twice",
        "engine/machine.py",
        "                total = sum(counts)\n                taken += total\n",
        "                add(chunk, bits, counts, row)\n"
        "                total = sum(counts)\n                taken += 2 * total\n",
        ("meaning",),
    ),
    Mutant(
        "an item gets its neighbour's value",
        "engine/resolve.py",
        "row = first + (items & (low - 1)).bit_count()",
        "row = first",
        ("meaning",),
    ),
    Mutant(
        "a broadcast goes to a sibling's children",
        "engine/resolve.py",
        'return ("spread", inner(parents, refs), tuple(counts))',
        'return ("spread", inner(parents, refs), tuple(counts[::-1]))',
        ("meaning",),
    ),
    Mutant(
        "an ordinal is off by one",
        "engine/roots.py",
        "return tuple(reversed(path))",
        "return (*path[:0:-1], path[0] + (len(path) > 1))",
        ("meaning", "failures"),
    ),
    Mutant(
        "a generator's new attempt releases everything again",
        "engine/machine.py",
        "skip = () if attempt == 1 else self._released(call, entries[0])",
        "skip = ()",
        ("meaning",),
    ),
    Mutant(
        "a ready item is forgotten",
        "engine/rules.py",
        "self.queue.push(chunk, ready & ~chunk.ended)",
        "self.queue.push(chunk, (ready & (ready - 1) or ready) & ~chunk.ended)",
        ("stand-still",),
    ),
)

OUTCOMES: Final = (
    Mutant(
        "a failed member passes",
        "engine/wiring.py",
        'stop_on_loss=node.failed == "fail"',
        "stop_on_loss=False",
        ("meaning",),
    ),
    Mutant(
        "a gather does not wait for all members",
        "engine/rules.py",
        "parents &= ~child.parents | child.whole(child.terminal(self.row))",
        "parents &= -1",
        ("invariant", "error:AssertionError"),
    ),
    Mutant(
        "a gather takes its neighbours' members for its own",
        "engine/rules.py",
        "whole = chunk.whole(ended)",
        "whole = chunk.whole(ended) or (chunk.parents if ended else 0)",
        ("invariant", "error:AssertionError"),
    ),
    Mutant(
        "siblings in another chunk are forgotten",
        "engine/rules.py",
        "elsewhere = whole & chunk.shared()",
        "elsewhere = 0",
        ("invariant", "error:AssertionError"),
    ),
    Mutant(
        "a call does not wait for all inputs",
        "engine/rules.py",
        "done &= chunk.done[slot]",
        "done = hint & chunk.done[slot]",
        ("invariant", "error:KeyError"),
    ),
    Mutant(
        "an expansion that failed counts as dropped",
        "engine/rules.py",
        "dropped=hint & lost.dropped,\n                failed=hint & (lost.failed | lost.suppressed),",
        "dropped=hint & (lost.dropped | lost.failed | lost.suppressed),",
        ("meaning",),
    ),
    Mutant(
        "a drop beats a failure",
        "engine/rules.py",
        "dropped &= known & ~suppressed",
        "dropped &= known\n        suppressed &= ~dropped",
        ("meaning",),
    ),
    Mutant(
        "a split keeps what it should drop",
        "engine/rules.py",
        "        if here:\n            state.settle_done(chunk, slot, here)",
        "        here = here or hint\n        if here:\n            state.settle_done(chunk, slot, here)",
        ("meaning", "error:KeyError"),
    ),
    Mutant(
        "an illegal label is taken for none",
        "engine/placing.py",
        "facts.illegal |= bit",
        "facts.illegal |= 0",
        ("meaning",),
    ),
    Mutant(
        "a missing field is not noticed",
        "engine/placing.py",
        "facts.labels[0] |= here",
        "facts.labels[0] |= 0",
        ("error:LookupError", "error:KeyError", "meaning"),
    ),
    Mutant(
        "a merge goes on after a failure",
        "engine/rules.py",
        "if self.next_on_loss:",
        "if True:",
        ("meaning",),
    ),
    Mutant(
        "a merge stops at a failure",
        "engine/rules.py",
        "if self.next_on_loss:",
        "if False:",
        ("meaning",),
    ),
    Mutant(
        "a merge forgets its default",
        "engine/rules.py",
        "if self.default:",
        "if False:",
        ("meaning",),
    ),
    Mutant(
        "a root ends before all that it returns",
        "engine/rules.py",
        "for slot in self.slots:",
        "for slot in self.slots[:1]:",
        ("invariant", "error:AssertionError"),
    ),
)

FAILURES: Final = (
    Mutant(
        "a cause is lost",
        "engine/machine.py",
        "lost.causes.append((bits & unexplained, cause))",
        "lost.causes.append((bits & unexplained & (bits - 1), cause))",
        ("invariant",),
    ),
    Mutant(
        "a cause is taken from another item",
        "engine",
        "            if bits & bit:\n                return failure",
        "            return failure",
        ("meaning",),
    ),
    Mutant(
        "a failure is not listed",
        "engine/roots.py",
        "results = tuple(self._results)",
        "results = tuple(r._replace(failures=r.failures[1:]) for r in self._results)",
        ("failures",),
    ),
    Mutant(
        "a failed task is taken for done",
        "engine/machine.py",
        "for task, failure in event.failures:",
        "for task, failure in event.failures[:-1]:",
        ("error:AssertionError", "meaning", "invariant"),
    ),
    Mutant(
        "a whole batch is blamed for an exception",
        "engine/machine.py",
        "if batch.count == 1:",
        "if batch.count:",
        ("meaning",),
    ),
    Mutant(
        "a first death is blamed on an item",
        "engine/machine.py",
        "if batch.alone and deaths >= DEATHS_LIMIT:",
        "if deaths:",
        ("meaning",),
    ),
    Mutant(
        "an item that kills its workers is tried for ever",
        "engine/machine.py",
        "if batch.alone and deaths >= DEATHS_LIMIT:",
        "if deaths < 0:",
        ("endless",),
    ),
)

WORK: Final = (
    Mutant(
        "a late result is let through",
        "engine/machine.py",
        "batch = self._end_batch(batch_id)",
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
        "self.queues[batch.call].push_back(entries)",
        "self.queues[batch.call].push_back(entries[:-1])",
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
        "engine/machine.py",
        "for slot, segments in chunk.segments.items():",
        "for slot, segments in ():",
        ("invariant", "leak"),
    ),
    Mutant(
        "the values of a late result are never released",
        "engine/machine.py",
        "        refs = tuple(s.rows.ref for s in streams if s.rows is not None)\n        if refs:",
        "        refs = tuple(s.rows.ref for s in streams if s.rows is not None)\n        if not refs:",
        ("leak",),
    ),
)

MUTANTS: Final = (*MEMBERSHIP, *OUTCOMES, *FAILURES, *WORK, *VALUES)
