"""How much memory values take, whatever documents expand to: the peak by the budget that a run was given.

Cases: ``one-giant`` (one document of 600 pages of 6 MB), ``many-small`` (the same pages in documents of one),
``uneven`` (a document of 3,000 pages of 100 KB beside 300 of one), ``tiny`` (one of 600,000 pages of 500
bytes), ``first-slow`` (records of 100 KB, written in order, wait for the first), ``gathered`` (lists of 60
pages of 10 MB, twice the budget, are put together).

``peak_over_budget`` counts what Fanfold's values take; users' own memory is apart from it, and one page per
worker may go beyond. ``growth_over_budget`` is by how much all processes of a system grew since its workers
were there, users' own memory and all: that can be told of each system. Options: those of
``benchmarks/comparing.py``.
"""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.comparing import Case, Options, compare, tell
from benchmarks.peers.logbook import STARTED
from benchmarks.peers.session import Run
from benchmarks.peers.work import Shape
from benchmarks.report import Report

BUDGET_BYTES = 256 * 1024 * 1024
LIMIT_S = 60
QUICK_BUDGET_BYTES = 80 * 1024 * 1024
"""Ray refuses object stores that are smaller."""


def shapes(quick: bool) -> dict[str, Shape]:
    """The programs by case."""
    budget = QUICK_BUDGET_BYTES if quick else BUDGET_BYTES
    share = 20 if quick else 1
    large = 6_000_000
    return {
        "one-giant": Shape(
            counts=(600 // share,), page_bytes=large, batch=4, page_s=0.005, memory_bytes=budget
        ),
        "many-small": Shape(
            counts=(1,) * (600 // share),
            page_bytes=large,
            batch=4,
            page_s=0.005,
            renderers=2,
            memory_bytes=budget,
        ),
        "uneven": Shape(
            counts=(3000 // share, *((1,) * (300 // share))),
            page_bytes=100_000,
            batch=16,
            page_s=0.001,
            renderers=2,
            memory_bytes=budget,
        ),
        "tiny": Shape(
            counts=(600_000 // share,),
            page_bytes=500,
            batch=1024,
            memory_bytes=budget,
        ),
        "first-slow": Shape(
            counts=(1,) * (5000 // share),
            first_s=5.0 / share,
            replicas=2,
            record_bytes=100_000,
            memory_bytes=budget,
        ),
        "gathered": Shape(
            counts=(60 // (6 if quick else 1),) * 2,
            page_bytes=10_000_000,
            batch=4,
            gathers="pages",
            memory_bytes=budget,
        ),
    }


def run(report: Report, arguments: Sequence[str]) -> None:
    """Measure all cases."""
    options = Options.of(arguments, repeat=1)  # a peak needs no median
    cases = [Case(name, shape, limit_s=LIMIT_S) for name, shape in shapes(options.quick).items()]
    compared = compare(report, cases, options, sample=True)
    for case in cases:
        budget = case.shape.memory_bytes or BUDGET_BYTES
        workers = case.shape.renderers + case.shape.replicas + 1
        beyond = workers * max(case.shape.page_bytes, case.shape.record_bytes)
        own = compared.of(case.name).get("fanfold", [])
        if own:
            peak = max(sample.arena_bytes for run in own for sample in run.samples)
            report.add(
                case.name,
                "peak_over_budget",
                peak / budget,
                "1",
                target=(budget + beyond) / budget,
                better="lower",
            )

        def growth(run: Run, budget: int = budget) -> float:
            return grown_bytes(run) / budget

        tell(report, compared, case.name, "growth_over_budget", "1", growth, better="lower")
        tell(report, compared, case.name, "wall_s", "s", lambda run: run.wall_s, better="lower")


def grown_bytes(run: Run) -> int:
    """By how much all processes of a system grew since the model was ready to work."""
    ready = min(entry.end_s for entry in run.entries if entry.kind == STARTED)
    before = [sample.pss_bytes for sample in run.samples if sample.time_s <= ready]
    after = [sample.pss_bytes for sample in run.samples if sample.time_s > ready]
    return max(after, default=0) - (before[-1] if before else run.samples[0].pss_bytes)
