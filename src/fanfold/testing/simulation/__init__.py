"""Deterministic simulation: made-up cases on the actual engine and dispatch, in virtual time, judged.

One integer is one case, and one case is one run, the same to the byte wherever it is repeated. A run is
judged by the engine's invariants after its events, by liveness (no stand-still, no endless run, no worker
idle beside work), and at its end by the reference interpreter, by how often items ran, and by the values
that are left. ``python -m fanfold.testing.simulation`` runs many.
"""

from fanfold.testing.simulation.case import FAULTS, Case, CaseFile, Fault, Timing
from fanfold.testing.simulation.checks import VIOLATIONS, Violation
from fanfold.testing.simulation.drawing import draw_case
from fanfold.testing.simulation.run import Simulated, simulate
from fanfold.testing.simulation.workers import SimulatedWorkers

__all__ = [
    "FAULTS",
    "VIOLATIONS",
    "Case",
    "CaseFile",
    "Fault",
    "Simulated",
    "SimulatedWorkers",
    "Timing",
    "Violation",
    "draw_case",
    "simulate",
]
