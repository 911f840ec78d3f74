"""How long ready items have waited, and when a batch that is not full has to go. Pure; time arrives as values.

Owns the times at which items of lingering calls were first seen ready, in marks between runs of a queue rather
than on items. Whether anything more can come, and who is idle, is the core's to know.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Mapping
from operator import itemgetter
from typing import Protocol


class Marked(Protocol):
    """A queue of which must be known how old its parts are (:class:`fanfold.engine.ready.ReadyQueue`)."""

    def mark(self) -> int: ...
    def oldest(self) -> int | None: ...


class Lingering:
    """The calls whose batches may wait for more.

    Args:
        linger_s: By call: how long.
    """

    def __init__(self, linger_s: Mapping[int, float]) -> None:
        self._linger_s = linger_s
        self._marks: dict[int, deque[tuple[int, float]]] = {call: deque() for call in linger_s}
        """By call: everything up to this sequence number was ready at this time; ascending."""

    def look(self, queues: Mapping[int, Marked], time_s: float) -> None:
        """What is in the queues is ready by now."""
        for call, marks in self._marks.items():
            queue = queues[call]
            oldest, newest = queue.oldest(), queue.mark()
            while marks and (oldest is None or marks[0][0] < oldest):
                marks.popleft()
            if oldest is not None and (not marks or marks[-1][0] < newest):
                marks.append((newest, time_s))

    def due_s(self, call: int, oldest: int) -> float:
        """When a call's item with this sequence, which was looked at, has waited for long enough."""
        reached = bisect_left(self._marks[call], oldest, key=itemgetter(0))
        return self._marks[call][reached][1] + self._linger_s[call]
