"""What a planted fault is: the text that plants it, and what must find it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Mutant:
    """One planted fault."""

    name: str
    """A sentence that tells the fault."""
    where: str
    old: str
    new: str
    found_by: tuple[str, ...] = ()
    """Kinds of violations by which simulation may show it first."""
    test: str = ""
    """A file of property tests or kept cases that must fail instead, for what random cases meet too seldom."""
