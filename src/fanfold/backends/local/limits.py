"""How many files a run needs open at a time, and whether this process may have so many.

Owns that reckoning; how a limit is raised is :mod:`fanfold.backends.local.lifeline`'s.
"""

from __future__ import annotations

from typing import Final

from fanfold.backends.local import lifeline
from fanfold.errors import SetupError

DESCRIPTORS_PER_WORKER: Final = 3
"""Its arena, its channel and its log."""
DESCRIPTORS_APART: Final = 64
"""For everything else that this process has open."""


def allow_descriptors(workers: int, processes: int) -> None:
    """Make sure that so many workers can have all the files that they need open.

    Raises:
        SetupError: They cannot (FF409).
    """
    wanted = DESCRIPTORS_APART + DESCRIPTORS_PER_WORKER * (processes + 2) + workers - processes
    allowed = lifeline.allow_descriptors(wanted)
    if 0 <= allowed < wanted:
        raise SetupError(
            "FF409",
            f"{workers} workers need about {wanted} open files, and this process may have {allowed}.",
            "Raise the limit (ulimit -n, or LimitNOFILE of the service), or use fewer replicas.",
        )
