"""Planted faults of the transition tables: what follows from what."""

from __future__ import annotations

from typing import Final

from tests.mutants.mutant import Mutant

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
        "engine/gathers.py",
        "parents &= ~child.parents | child.whole(child.terminal(self.row))",
        "parents &= -1",
        ("invariant", "error:AssertionError"),
    ),
    Mutant(
        "a gather takes its neighbours' members for its own",
        "engine/gathers.py",
        "whole = chunk.whole(chunk.terminal(self.row))",
        "whole = chunk.parents",
        ("invariant", "meaning", "error:AssertionError"),
    ),
    Mutant(
        "siblings in another chunk are forgotten",
        "engine/gathers.py",
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
        ("error:LookupError", "error:KeyError", "meaning", "stand-still"),
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
    Mutant(
        "at_least is decided too early",
        "engine/gathers.py",
        "self._too_few(state, parent, affected & self.closed(parent))",
        "self._too_few(state, parent, affected)",
        ("meaning",),
        case="few-of-those-to-come",
    ),
    Mutant(
        "at_least is not asked at the end",
        "engine/gathers.py",
        "if self.enough is not None and hint:",
        "if False:",
        ("meaning",),
    ),
    Mutant(
        "a share is rounded down",
        "parts.py",
        "math.ceil((self.share or 0) * members)",
        "math.floor((self.share or 0) * members)",
        ("meaning",),
    ),
    Mutant(
        "a share counts dropped members",
        "engine/gathers.py",
        "members -= (items & gone.dropped).bit_count()",
        "members -= 0",
        ("meaning",),
        case="share-of-none",
    ),
    Mutant(
        "members= is ignored",
        "engine/wiring.py",
        "if node.members is not None:",
        "if False:",
        (
            "meaning",
            "failures",
        ),
    ),
    Mutant(
        "a member without a value is left out",
        "engine/gathers.py",
        "        (output,) = self.outputs\n"
        "        for offset in bit_positions(dropped & ~chunk.terminal(output)):",
        "        (output,) = self.outputs\n"
        "        super().drop(state, chunk, dropped)\n"
        "        for offset in bit_positions(dropped & ~chunk.terminal(output)):",
        ("meaning",),
    ),
    Mutant(
        "a mark is put in another place of the list",
        "engine/resolve.py",
        "mask |= extract(bad, shown) << total",
        "mask |= extract(bad, shown)",
        ("meaning", "error:ValueError", "error:StopIteration", "error:IndexError"),
        case="marks-of-two-chunks",
    ),
    Mutant(
        "a root does not wait for effects",
        "engine/program.py",
        "for returned in (*(output.port for output in plan.outputs), *program.effect_ports):",
        "for returned in (output.port for output in plan.outputs):",
        ("error:AssertionError",),
    ),
)
