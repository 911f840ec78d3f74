"""One parent of 100,000 children of 1 KB: when the first reaches its consumer, and how many do in a second.

Cases ``memory`` (as much of it as a run has by default) and ``1000-in-flight`` (a budget of so many children).
``first_child_ms`` is from the first child made to the call of the model that has it; ``children_per_s`` counts
from there to the last. Systems whose stages return lists have their first child at the end. Options: those of
``benchmarks/comparing.py``.
"""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.comparing import Case, Options, compare, tell
from benchmarks.peers.logbook import FIRST_PAGE, MODEL
from benchmarks.peers.session import Run
from benchmarks.peers.work import Shape
from benchmarks.report import Report

CHILDREN = 100_000
CHILD_BYTES = 1_024
IN_FLIGHT = 1_000
CHILDREN_PER_S = 300_000
FIRST_CHILD_MS = 10


def run(report: Report, arguments: Sequence[str]) -> None:
    """Measure both cases."""
    options = Options.of(arguments)
    children = 3_000 if options.quick else CHILDREN
    whole = Shape(counts=(children,), page_bytes=CHILD_BYTES, batch=256)
    bounded = Shape(
        counts=(children,),
        page_bytes=CHILD_BYTES,
        batch=256,
        memory_bytes=IN_FLIGHT * CHILD_BYTES,
    )
    cases = [
        Case("memory", whole),
        Case("1000-in-flight", bounded, alone="it cannot be bounded to a megabyte"),
    ]
    compared = compare(report, cases, options)
    for case in cases:
        tell(
            report,
            compared,
            case.name,
            "first_child_ms",
            "ms",
            first_child_ms,
            target=FIRST_CHILD_MS,
            better="lower",
        )
        tell(
            report,
            compared,
            case.name,
            "children_per_s",
            "1/s",
            children_per_s,
            target=CHILDREN_PER_S,
        )


def first_child_ms(run: Run) -> float:
    """From the first child made to the first call of the model."""
    return 1000 * (_began(run, MODEL) - _began(run, FIRST_PAGE, end=True))


def children_per_s(run: Run) -> float:
    """Children by the time from the first one made to the last one read."""
    read = [entry for entry in run.entries if entry.kind == MODEL]
    seconds = max(entry.end_s for entry in read) - _began(run, FIRST_PAGE)
    return sum(entry.items for entry in read) / seconds


def _began(run: Run, kind: int, *, end: bool = False) -> float:
    return min(e.end_s if end else e.start_s for e in run.entries if e.kind == kind)
