"""The backends that the conformance tests run on, by name."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from random import Random
from typing import Final

from fanfold.backends.base import Backend
from fanfold.backends.inline import InlineBackend
from fanfold.backends.local.backend import LocalBackend
from fanfold.testing.simulation import SimulatedWorkers
from fanfold.testing.twin import Twin

BACKENDS: Final[dict[str, Callable[[], Backend]]] = {
    "twin": lambda: Twin(Random(7)),
    "simulated": lambda: SimulatedWorkers(Random(7)),
    "inline": InlineBackend,
    "local": LocalBackend,
    "threads": partial(LocalBackend, workers="thread"),
}
