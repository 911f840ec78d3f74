"""How long an item is put off before it fails: as long as the service that its stage asks may be busy. Pure.

Owns the bounds, and what is remembered of items that were put off. When they are tried again is the business of
:mod:`fanfold.dispatch.rates`.
"""

from __future__ import annotations

from typing import Final

from fanfold.engine.chunks import Chunk
from fanfold.failures import LONGEST_WAIT_S, Failure

PATIENCE_S: Final = 600.0
"""An item that was put off so long ago for the first time fails when it is put off again, but"""
PATIENCE_TIMES: Final = 10
"""not before it was put off so often: a service may think for minutes before it refuses."""
SWEPT: Final = 1_000
"""Items remembered before those that have ended are forgotten."""


class Patience:
    """The items that have been put off."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, Chunk, int], tuple[float, int]] = {}
        """By call, chunk and offset: when the item was first put off, and how often it has been."""
        self._sweep = SWEPT

    def lasts(self, call: int, chunk: Chunk, offset: int, failure: Failure, time_s: float) -> bool:
        """Whether a task ended because it was put off, and is to be tried again.

        Args:
            call: Its call.
            chunk: Where its item is.
            offset: The item's place there.
            failure: What was reported of it.
            time_s: Now.
        """
        if failure.after_s is None or failure.after_s > LONGEST_WAIT_S:
            return False
        if not failure.attempts:
            return True  # it was not even begun
        item = call, chunk, offset
        first_s, times = self._known.get(item, (time_s, 0))
        self._known[item] = first_s, times + 1
        if len(self._known) > self._sweep:
            self._forget()
        return times + 1 < PATIENCE_TIMES or time_s - first_s < PATIENCE_S

    def _forget(self) -> None:
        """Items of roots that have ended are not put off again."""
        self._known = {
            item: known for item, known in self._known.items() if not item[1].ended >> item[2] & 1
        }
        self._sweep = max(SWEPT, 2 * len(self._known))
