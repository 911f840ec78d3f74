"""Python's garbage collector while a run is in motion: less often, since a run makes few cycles.

The engine keeps many small objects alive for as long as roots are open and drops them without cycles. With
the interpreter's default threshold, collections that find nothing would take a good part of the driver's
time. Owns nothing else; what was set before is set again afterwards.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

ALLOCATIONS: Final = 50_000
"""Container objects made, less those freed, between two collections of the youngest generation."""


@contextmanager
def relaxed() -> Iterator[None]:
    """Collect less often inside the ``with`` block; never more often than before it."""
    before = gc.get_threshold()
    if 0 < before[0] < ALLOCATIONS:
        gc.set_threshold(ALLOCATIONS, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)
