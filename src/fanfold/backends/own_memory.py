"""How much memory a worker process takes by itself, for stages that have theirs replaced when it is too much.

Owns that measure: what is resident, without what is shared. Values lie in shared memory, so they do not count,
and neither do files that are mapped, such as a model's weights.
"""

from __future__ import annotations

import os
import sys
from typing import Final

from fanfold.errors import SetupError
from fanfold.plan import StageSpec
from fanfold.sizes import size_in_words

_STATM: Final = "/proc/self/statm"


def own_bytes() -> int:
    """What this process takes by itself; where the system tells no more, the most that it has taken so far."""
    try:
        with open(_STATM, "rb") as file:
            _, resident, shared, *_ = file.read().split()
    except OSError:
        import resource  # only where there is no better

        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak if sys.platform == "darwin" else peak * 1024
    return (int(resident) - int(shared)) * os.sysconf("SC_PAGE_SIZE")


def asked_bytes(stage: StageSpec) -> int:
    """The same for a stage that asks; 0 for others, for whom nothing is measured."""
    return 0 if stage.recycle_above is None else own_bytes()


def refuse_grown(stage: StageSpec) -> None:
    """Refuse a replica that is too large as soon as it is made: it would be replaced after every batch.

    Raises:
        SetupError: It is (FF436).
    """
    above = stage.recycle_above
    if above is not None and (size := own_bytes()) > above:
        raise SetupError(
            "FF436",
            f"stage {stage.name!r} has recycle_above={size_in_words(above)!r}, and a worker takes "
            f"{size_in_words(size)} when it has just been made: each would be replaced after every batch.",
            "Give more: what the stage needs at its start, and what it may grow by.",
        )
