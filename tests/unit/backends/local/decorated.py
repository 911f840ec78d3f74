"""A module whose functions are decorated in place and use what cannot be pickled."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable

LOCK = threading.Lock()


class Wrapped:
    """Takes a function's place, as a stage does."""

    def __init__(self, function: Callable[..., object]) -> None:
        functools.update_wrapper(self, function)
        self._function = function

    def __call__(self, *args: object) -> object:
        return self._function(*args)


@Wrapped
def locked(x: int) -> int:
    with LOCK:
        return x + 1


@Wrapped
class Thing:
    """A class whose name stands for its wrapper."""
