"""Planted faults of workers that are replaced from time to time: too early, too late, or with work in hand."""

from __future__ import annotations

from typing import Final

from tests.mutants.mutant import Mutant

RECYCLING: Final = (
    Mutant(
        "a worker that is to be replaced is given more",
        "dispatch/pool.py",
        "return self.ready and not (self.leaving or self.retiring)",
        "return self.ready and not self.retiring",
        ("recycle",),
    ),
    Mutant(
        "a worker is replaced while it runs a batch",
        "dispatch/recycling.py",
        "if worker.batches or worker.paused or not wanted",
        "if worker.paused or not wanted",
        ("recycle",),
    ),
    Mutant(
        "a worker is replaced while a generator waits at it",
        "dispatch/recycling.py",
        "if worker.batches or worker.paused or not wanted",
        "if worker.batches or not wanted",
        ("recycle",),
        case="a-generator-at-a-worker-that-is-replaced",
    ),
    Mutant(
        "what a worker was sent is counted on after its death",
        "dispatch/recycling.py",
        "        if worker.number in self._lives:\n            self._renew(worker)",
        "        pass",
        ("recycle",),
    ),
    Mutant(
        "how large a worker is does not matter",
        "dispatch/recycling.py",
        "if above is not None and own_bytes > above:",
        "if False:",
        ("recycle",),
    ),
    Mutant(
        "a generator at a worker that is to be replaced waits until its children are wanted",
        "dispatch/core.py",
        "if worker.open and self._supply.paused(self.machine.batches[batch].call):",
        "if self._supply.paused(self.machine.batches[batch].call):",
        ("stand-still",),
        case="a-generator-paused-at-a-worker-that-leaves",
    ),
    Mutant(
        "a worker that is to be replaced does not help the oldest root either",
        "dispatch/carrying.py",
        "chosen = [worker for worker in idle if not worker.retiring][:1]",
        "chosen = []",
        ("stand-still",),
        case="the-oldest-root-at-a-worker-that-leaves",
    ),
)
