"""Counts that the core keeps while it runs; the report and the progress display read them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass(slots=True)
class CallCounts:
    """One call: outcomes of its items, and what it ran."""

    name: str
    stage: str
    level: str
    done: int = 0
    dropped: int = 0
    failed: int = 0
    suppressed: int = 0
    ready: int = 0
    """Items waiting in its ready queue now."""
    running: int = 0
    """Items at workers now."""
    batches: int = 0
    executed: int = 0
    """Items run, each attempt counted."""
    capacity: int = 0
    """Items that the batches could have held; ``executed / capacity`` is the fill. 0: not batched."""
    busy_s: float = 0.0


@dataclass(slots=True)
class WorkerTimes:
    """How one worker spent its time since the run's start, in seconds."""

    worker: int
    name: str
    state: str = "starting"
    starting_s: float = 0.0
    busy_s: float = 0.0
    idle_s: dict[str, float] = field(default_factory=dict)
    """By reason: ``no input`` (nothing ready for it), ``downstream full`` (its consumers are behind), ``rate
    limit`` (no call may begin yet), ``finished`` (nothing can come any more), ``parked`` (it was not there,
    since others had its cores)."""
    restarts: int = 0
    """How often it has died and was replaced."""
    recycled: int = 0
    """How often it was replaced as its stage asks (``recycle_after``, ``recycle_above``)."""


@dataclass(slots=True)
class Statistics:
    """Everything countable about a run."""

    calls: list[CallCounts] = field(default_factory=list)
    levels: dict[str, int] = field(default_factory=dict)
    """Items per level so far, the root level included."""
    roots: dict[str, int] = field(default_factory=dict)
    """Ended roots by status."""
    admitted: int = 0
    open_roots: int = 0
    workers: list[WorkerTimes] = field(default_factory=list)
    budget_bytes: int | None = None
    """How much values may take; None: as much as it comes to."""
    peak_bytes: int = 0
    """The most that they have taken, as far as their sizes are known."""
    pauses: int = 0
    """How often a generator has waited for memory."""
    notes: Sequence[str] = ()
    """What else the report is to say."""
