"""The seed and the number of examples of this run's property tests."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from typing import Any, Final

from hypothesis import HealthCheck, Phase, seed, settings

SEED: Final = int(os.environ.get("FANFOLD_SEED", random.SystemRandom().randrange(1_000_000)))
EXAMPLES: Final = int(os.environ.get("FANFOLD_EXAMPLES", "150"))


def looked_for(
    name: str, examples: int = EXAMPLES, *, start: int = SEED, shrink: bool = True
) -> Callable[[Any], Any]:
    """Decorate a property test: so many examples, no clock, and a seed of this run's and of the test's name."""
    phases = [Phase.generate, *([Phase.shrink] if shrink else [])]

    def decorate(test: Any) -> Any:
        bounded = settings(
            max_examples=examples,
            deadline=None,
            database=None,  # the seed alone tells what is tried
            phases=phases,
            print_blob=False,
            report_multiple_bugs=False,
            suppress_health_check=list[Any](HealthCheck),  # its metaclass hides what it holds
        )
        return seed(f"{start} {name}")(bounded(test))

    return decorate
