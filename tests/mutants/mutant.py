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
    """Kinds of violations by which simulation may show it first; none if a test finds it."""
    case: str = ""
    """The kept case that shows it, for what fresh ones meet too seldom to tell within a minute."""
    test: str = ""
    """The test that must fail instead, for what no simulation is needed for."""
