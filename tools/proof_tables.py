"""The tables of the page about proof, made from the code that they tell of, so that they cannot fall behind.

Owns their form: Markdown with one row for each fault of workers, violation and planted fault.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from fanfold.testing.simulation import FAULTS, VIOLATIONS
from tests.mutants.table import MUTANTS, Mutant


def tables() -> Mapping[str, str]:
    """By the name of the file that the page includes: its text."""
    planted = ((one.name, _found_by(one)) for one in MUTANTS)
    return {
        "_faults.md": _table("fault", "what happens", _named(FAULTS.items())),
        "_violations.md": _table("violation", "what it says", _named(VIOLATIONS.items())),
        "_mutants.md": _table("planted fault", "found by simulation as, or by the test", planted),
    }


def _found_by(mutant: Mutant) -> str:
    ways = ", ".join(f"`{kind}`" for kind in mutant.found_by)
    if mutant.test:
        return f"`{mutant.test}`"
    return f"{ways} (the kept case `{mutant.case}`)" if mutant.case else ways


def _named(texts: Iterable[tuple[str, str]]) -> Iterable[tuple[str, str]]:
    return ((f"`{name}`", text) for name, text in texts)


def _table(first: str, second: str, rows: Iterable[tuple[str, str]]) -> str:
    lines = [f"| {first} | {second} |", "|---|---|", *(f"| {a} | {b} |" for a, b in rows)]
    return "\n".join(lines) + "\n"
