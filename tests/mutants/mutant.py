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
    found_by: tuple[str, ...]
