"""How full batches are: items per call of the model by its batch size.

Cases: ``long-tailed`` (documents of 1 to 150 pages and four replicas, each call of which costs most for being
a call), ``growing`` (documents of 1, 2, 3, 5, 7, … pages, one model that is slower than rendering),
``slow-producer`` (a page each 5 ms for a model that takes 64 of them within 50 ms; its batches may wait for a
second). What could be reached is told as the target where all could be full but the last. Options: those of
``benchmarks/comparing.py``.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

from benchmarks.comparing import Case, Options, compare, tell
from benchmarks.peers.logbook import MODEL
from benchmarks.peers.session import Run
from benchmarks.peers.work import Shape
from benchmarks.report import Report


def long_tailed(documents: int) -> tuple[int, ...]:
    """Numbers of pages as they are in corpora: most documents are short, a few are long."""
    draw = random.Random(32)
    return tuple(
        min(150, max(1, round(draw.lognormvariate(math.log(12), 1)))) for _ in range(documents)
    )


def primes(count: int) -> tuple[int, ...]:
    """1, and the first prime numbers."""
    found: list[int] = []
    candidate = 2
    while len(found) < count - 1:
        if all(candidate % prime for prime in found):
            found.append(candidate)
        candidate += 1
    return (1, *found)


def shapes(quick: bool) -> dict[str, Shape]:
    """The programs by case."""
    return {
        "long-tailed": Shape(
            counts=long_tailed(16 if quick else 64),
            batch=32,
            render_s=0.001,
            batch_s=0.15,
            page_s=0.002,
            renderers=4,
            replicas=4,
            linger_s=0.5,
        ),
        "growing": Shape(
            counts=primes(8 if quick else 24),
            batch=16,
            render_s=0.001,
            batch_s=0.04,
            linger_s=0.5,
        ),
        "slow-producer": Shape(
            counts=(64,) * (2 if quick else 16),
            batch=64,
            render_s=0.005,
            batch_s=0.05,
            linger_s=1.0,
        ),
    }


def run(report: Report, arguments: Sequence[str]) -> None:
    """Measure all cases."""
    options = Options.of(arguments)
    cases = [Case(name, shape) for name, shape in shapes(options.quick).items()]
    compared = compare(report, cases, options)
    for case in cases:
        pages, size = sum(case.shape.counts), case.shape.batch or 1

        def batch_fill(run: Run, size: int = size) -> float:
            calls = [entry.items for entry in run.entries if entry.kind == MODEL]
            return sum(calls) / len(calls) / size

        best = pages / (math.ceil(pages / size) * size) if case.shape.replicas == 1 else None
        tell(report, compared, case.name, "batch_fill", "1", batch_fill, target=best)
        tell(report, compared, case.name, "span_s", "s", span_s)


def span_s(run: Run) -> float:
    """From the first call of the model to its last: full batches are no good if they come late."""
    calls = [entry for entry in run.entries if entry.kind == MODEL]
    return max(call.end_s for call in calls) - min(call.start_s for call in calls)
