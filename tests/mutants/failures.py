"""Planted faults of failures: causes, parent failures, deaths, and what counts as whose."""

from __future__ import annotations

from typing import Final

from tests.mutants.mutant import Mutant

FAILURES: Final = (
    Mutant(
        "a cause is lost",
        "engine/settling.py",
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
        ("error:AssertionError", "error:ValueError", "meaning", "invariant"),
    ),
    Mutant(
        "a whole batch is blamed for an exception",
        "engine/machine.py",
        "elif batch.count == 1 or event.failure.after_s is not None:",
        "elif batch.count:",
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
    Mutant(
        "a parent failure reaches its item alone",
        "engine/machine.py",
        'if placed.scope == "parent" and chunk.parent is not None:',
        "if False:",
        ("meaning", "dead"),
    ),
    Mutant(
        "a parent failure reaches the grandparent",
        "engine/machine.py",
        "self.settling, batch.call, chunk.parent, chunk.parents_of(bit), placed",
        "self.settling, batch.call, chunk.parent, chunk.parent.items_of(\n"
        "                    chunk.parent.parents_of(chunk.parents_of(bit))\n"
        "                ) if chunk.parent.parent is not None else chunk.parents_of(bit), placed",
        (
            "meaning",
            "dead",
            "invariant",
        ),
        case="ruin-of-a-grandparent",
    ),
    Mutant(
        "a list that leaves failed members out outlives a parent failure",
        "engine/condemning.py",
        "for gather in program.condemned.get(call, ()):",
        "for gather in ():",
        ("meaning",),
    ),
    Mutant(
        "a list is suppressed though there may be no expansion",
        "engine/condemning.py",
        "certain = parent & (begun | chunk.terminal(expansion))",
        "certain = parent",
        ("meaning",),
        case="condemned-and-dropped",
    ),
    Mutant(
        "a list is done though a parent failure came before its first child",
        "engine/condemning.py",
        "chunk.given_up.setdefault(slot, []).append((parent, cause))",
        "chunk.given_up.setdefault(slot, [])",
        ("meaning",),
        case="given-up-before-any-child",
    ),
    Mutant(
        "a parent failure does not reach the list of copies",
        "engine/program.py",
        "calls = calls.union(*(depends[port] for port in ports_read(plan.nodes[expand])))",
        "calls = calls.union()",
        ("meaning",),
        case="parent-failure-and-list-of-copies",
    ),
)
