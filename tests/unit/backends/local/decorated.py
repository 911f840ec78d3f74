"""A module whose functions are decorated in place and use what cannot be pickled."""

from __future__ import annotations

import threading
from collections.abc import Callable

LOCK = threading.Lock()


class Wrapped:
    """Takes a function's place, as a stage does."""

    __wrapped__: Callable[..., object]

    def __init__(self, function: Callable[..., object]) -> None:
        self.__dict__.update(__wrapped__=function)


@Wrapped
def locked(x: int) -> int:
    with LOCK:
        return x + 1


@Wrapped
class Thing:
    """A class whose name stands for its wrapper."""
