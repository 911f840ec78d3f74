"""How long small documents wait behind a giant: 30 of 5 pages behind one of 3,000, and 200 behind one of 5,000.

A document's *fair share* is the time in which it would be read if the model's replicas were shared equally by
all documents. ``small_p50_over_fair_share`` is how long the small ones took in the median, from the first
call of the model to their assembly, by that; ``span_s`` is what all of it took. Cases end in the schedule
that Fanfold was told. Options: those of ``benchmarks/comparing.py``.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import replace

from benchmarks.comparing import Case, Options, compare, tell
from benchmarks.peers.logbook import ASSEMBLED, MODEL
from benchmarks.peers.session import Run
from benchmarks.peers.work import Shape
from benchmarks.report import Report

SCHEDULES: tuple[str | None, ...] = ("fair", "fifo")
"""What Fanfold is told: its default first."""
ALONE = "it has no schedules to choose from; its figures are those of the first case"


def shapes(quick: bool) -> dict[str, Shape]:
    """The programs, the giant first."""
    share = 10 if quick else 1
    return {
        "30-behind-3000": Shape(
            counts=(3000 // share, *((5,) * 30)),
            batch=8,
            page_s=0.005,
            renderers=2,
            replicas=4,
        ),
        "200-behind-5000": Shape(
            counts=(5000 // share, *((5,) * (200 // share))),
            batch=32,
            batch_s=0.075,
            page_s=0.006,
            renderers=2,
            replicas=8,
        ),
    }


def run(report: Report, arguments: Sequence[str]) -> None:
    """Measure all cases."""
    options = Options.of(arguments)
    cases = list(_cases(options.quick))
    compared = compare(report, cases, options)
    for case in cases:
        fair = fair_share_s(case.shape)

        def ratio(run: Run, fair: float = fair) -> float:
            return statistics.median(small_s(run)) / fair

        tell(report, compared, case.name, "small_p50_over_fair_share", "1", ratio, better="lower")
        tell(report, compared, case.name, "span_s", "s", lambda run: max(_done_s(run).values()))


def fair_share_s(shape: Shape) -> float:
    """When the small documents would be read if replicas were shared equally, in full batches.

    >>> round(fair_share_s(Shape((3000, 5, 5), page_s=0.01, replicas=2)), 3)
    0.075
    """
    small = shape.counts[-1]
    page_s = shape.page_s + shape.batch_s / (shape.batch or 1)
    return len(shape.counts) * small * page_s / shape.replicas


def small_s(run: Run) -> list[float]:
    """When each of the small documents was assembled."""
    return [seconds for document, seconds in _done_s(run).items() if document]


def _done_s(run: Run) -> dict[int, float]:
    first = min(entry.start_s for entry in run.entries if entry.kind == MODEL)
    return {e.document: e.end_s - first for e in run.entries if e.kind == ASSEMBLED}


def _cases(quick: bool) -> Iterable[Case]:
    for name, shape in shapes(quick).items():
        for schedule in SCHEDULES:
            alone = "" if schedule == SCHEDULES[0] else ALONE
            full_name = f"{name}-{schedule}" if schedule else name
            yield Case(full_name, replace(shape, schedule=schedule), alone)
