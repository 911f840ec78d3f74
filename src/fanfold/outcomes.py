"""The terminal states: what became of an item at a port, and what became of a root.

Owns the two enumerations that the plan, the engine, the interpreter and the report share.
"""

from __future__ import annotations

import enum


class Outcome(enum.Enum):
    """The terminal state of one item at one port (each item of each port ends at most once)."""

    DONE = "done"
    """It has a value; ``None`` and ``[]`` are values."""
    DROPPED = "dropped"
    """A filter, split or merge left it out."""
    FAILED = "failed"
    """It failed here."""
    SUPPRESSED = "suppressed"
    """It was not computed because of another item's failure."""


class Status(enum.Enum):
    """What became of a root item (a document, a video)."""

    DONE = "done"
    PARTIAL = "partial"
    """Records were written, but some child-level output item failed."""
    DROPPED = "dropped"
    FAILED = "failed"
    UNFINISHED = "unfinished"
    """The run stopped before the root ended."""
