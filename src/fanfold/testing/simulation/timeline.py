"""Virtual time: what is going to happen, in order.

Owns the order of things that happen at the same time: drawn, so that nothing may rely on it. Knows nothing of
what they are.
"""

from __future__ import annotations

import heapq
from random import Random
from typing import Generic, TypeVar

T = TypeVar("T")


class Timeline(Generic[T]):
    """Things to come.

    Args:
        random: Orders what happens at the same time.

    Example:
        >>> timeline = Timeline[str](Random(0))
        >>> timeline.add(2.0, "later")
        >>> timeline.add(1.0, "sooner")
        >>> timeline.next_s, timeline.pop(), timeline.now_s
        (1.0, 'sooner', 1.0)
    """

    def __init__(self, random: Random) -> None:
        self._random = random
        self._things: list[tuple[float, float, int, T]] = []
        self._count = 0
        self.now_s: float = 0.0

    def add(self, time_s: float, thing: T, tie: float | None = None) -> None:
        """It will happen at ``time_s``, which is not past.

        Things with the same ``tie`` keep the order in which they were added; without one, it is drawn.
        """
        assert time_s >= self.now_s, "nothing happens in the past"
        self._count += 1
        order = self._random.random() if tie is None else tie
        heapq.heappush(self._things, (time_s, order, self._count, thing))

    def pop(self) -> T:
        """The next thing; it is now.

        Raises:
            IndexError: Nothing will happen any more.
        """
        self.now_s, _, _, thing = heapq.heappop(self._things)
        return thing

    @property
    def next_s(self) -> float | None:
        """When the next thing happens, if one will."""
        return self._things[0][0] if self._things else None
