"""How fast large children travel: pages of 1 MB from renderer to model, as bytes and as arrays.

Cases ``bytes`` and ``array``: renderers have their pages ready, so that what is measured is their way into the
hands of the model. ``mb_per_s`` counts from the first page rendered to the last one read; ``over_best_peer`` is
Fanfold's divided by the best peer's. Options: those of ``benchmarks/comparing.py``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from benchmarks.comparing import Case, Options, best_peer, compare, tell
from benchmarks.peers.logbook import FIRST_PAGE, MODEL
from benchmarks.peers.session import Run
from benchmarks.peers.work import Shape
from benchmarks.report import Report

PAGE_BYTES = 1_000_000
PAGES = 50
"""Per document."""
DOCUMENTS = 40
FORMS: tuple[Literal["bytes", "array"], ...] = ("bytes", "array")
OVER_BEST_PEER = 6.0


def run(report: Report, arguments: Sequence[str]) -> None:
    """Measure both forms."""
    options = Options.of(arguments)
    documents = 4 if options.quick else DOCUMENTS
    cases = [
        Case(
            form,
            Shape(
                counts=(PAGES,) * documents,
                page_bytes=PAGE_BYTES,
                form=form,
                recycled=True,
                batch=16,
            ),
        )
        for form in FORMS
    ]
    compared = compare(report, cases, options)
    for case in cases:
        rates = tell(report, compared, case.name, "mb_per_s", "MB/s", mb_per_s)
        if "fanfold" in rates and (best := best_peer(rates)):
            ratio = rates["fanfold"] / best
            report.add(case.name, "over_best_peer", ratio, "1", target=OVER_BEST_PEER)


def mb_per_s(run: Run) -> float:
    """Megabytes that the model was given, by the time from the first page to the last."""
    first = min(entry.start_s for entry in run.entries if entry.kind == FIRST_PAGE)
    read = [entry for entry in run.entries if entry.kind == MODEL]
    pages = sum(entry.items for entry in read)
    return pages * PAGE_BYTES / 1e6 / (max(entry.end_s for entry in read) - first)
