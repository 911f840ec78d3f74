"""How busy the workers of the expensive stage are: time in its function by the time that they had.

Cases ``1ms``, ``5ms``, ``20ms`` and ``1s`` are batches of 8 that take so long at one replica; ``5ms-single``
are single items; ``5ms-loaded`` is a driver whose source keeps it busy for 2 ms for each batch; ``unequal``
are four replicas of which one is four times slower. ``busy_share`` counts from the first call to the last.
Options: those of ``benchmarks/comparing.py``.
"""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.comparing import Case, Options, compare, tell
from benchmarks.peers.logbook import MODEL
from benchmarks.peers.session import Run
from benchmarks.peers.work import Shape
from benchmarks.report import Report

BATCH = 8
BUSY_SHARE = 0.97
BATCHES = {"1ms": (0.001, 2000), "5ms": (0.005, 600), "20ms": (0.02, 150), "1s": (1.0, 4)}
"""By case: seconds a batch, and how many."""
SLOW_FACTOR = 4.0


def shapes(quick: bool) -> dict[str, Shape]:
    """The programs by case."""
    share = 0.03 if quick else 1.0
    found: dict[str, Shape] = {}
    for name, (seconds, batches) in BATCHES.items():
        documents = max(3, int(batches * share))
        found[name] = Shape(counts=(BATCH,) * documents, batch=BATCH, batch_s=seconds)
    documents = max(3, int(100 * share))
    found["5ms-single"] = Shape(counts=(BATCH,) * documents, batch=None, page_s=0.005)
    documents = max(3, int(500 * share))
    found["5ms-loaded"] = Shape(
        counts=(BATCH,) * documents, batch=BATCH, batch_s=0.005, source_s=0.002
    )
    documents = max(20, int(400 * share))
    found["unequal"] = Shape(
        counts=(BATCH,) * documents,
        batch=BATCH,
        batch_s=0.02,
        replicas=4,
        slow_factor=SLOW_FACTOR,
    )
    return found


def run(report: Report, arguments: Sequence[str]) -> None:
    """Measure all cases."""
    options = Options.of(arguments)
    cases = [Case(name, shape) for name, shape in shapes(options.quick).items()]
    compared = compare(report, cases, options)
    for case in cases:
        tell(report, compared, case.name, "busy_share", "1", busy_share, target=BUSY_SHARE)


def busy_share(run: Run) -> float:
    """Time in the function by the time from the first call's start to the last one's end, at all replicas."""
    calls = [entry for entry in run.entries if entry.kind == MODEL]
    span = max(call.end_s for call in calls) - min(call.start_s for call in calls)
    workers = len({call.process for call in calls})
    return sum(call.seconds for call in calls) / (workers * span)
