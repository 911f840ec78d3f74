"""Every backend passes the conformance suite."""

from __future__ import annotations

from random import Random

from fanfold.backends.base import Backend
from fanfold.backends.inline import InlineBackend
from fanfold.backends.local.backend import LocalBackend
from fanfold.testing.conformance import BackendConformance
from fanfold.testing.memory import ROW_BYTES
from fanfold.testing.simulation import SimulatedWorkers, Timing
from fanfold.testing.twin import Twin


class TestTwin(BackendConformance):
    """The in-memory twin that other tests rely on."""

    waits_for_room = False
    own_objects = False

    def backend(self) -> Backend:
        return Twin(Random(7))


class TestSimulated(BackendConformance):
    """Workers in virtual time, whose batches take different times."""

    waits_for_room = False  # it waits, but what it releases at a time is drawn
    own_objects = False

    def value_bytes(self, size_bytes: int) -> int:
        return ROW_BYTES

    def backend(self) -> Backend:
        timing = Timing(item_s=(0.01, 0.1), start_s=0.5, spread="wide")
        return SimulatedWorkers(Random(7), timing, tracebacks=True)


class TestInline(BackendConformance):
    def backend(self) -> Backend:
        return InlineBackend()


class TestLocal(BackendConformance):
    crosses_processes = True
    survives_death = True

    def backend(self) -> Backend:
        return LocalBackend()


class TestThreads(BackendConformance):
    """Workers that are threads of this process."""

    def backend(self) -> Backend:
        return LocalBackend(workers="thread")
