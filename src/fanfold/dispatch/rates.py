"""When calls of a rate-limited stage, or of one whose service is busy, may begin. Pure; time arrives as values.

Owns a pool's gate. What waits before it stays in the ready queue, at no worker, so it is neither busy nor holds
anything that was not granted. A rate is kept for the whole pool at the one place where its calls begin, so how
many replicas there are, and whether that changes, does not matter.

* With a rate, the gate opens for one call at a time. Openings are a full spacing apart; one that is used late,
  by :data:`LATE_S` at most, does not delay the next, or whoever looks seldom would lose pace. So in any time
  ``t`` at most ``rate * (t + LATE_S) + 1`` calls begin, and a pool that had nothing to do saves nothing up.
* A pool that was put off (:class:`fanfold.failures.RetryLater`) has its gate closed until then.
* Calls begin as soon as they are sent: a pool with a gate gets one call in a message, and nothing ahead. The
  price is that its workers wait for transport between two calls.
"""

from __future__ import annotations

from math import inf
from typing import Final, NamedTuple

from fanfold.failures import LONGEST_WAIT_S
from fanfold.protocol import BatchRaised, TasksFinished

LATE_S: Final = 0.01
"""An opening may be used so late without moving the next one."""


class Gate:
    """The gate of one pool.

    Args:
        rate: Calls per second that may begin; None: any number.
    """

    __slots__ = ("_closed_s", "_next_s", "_spacing_s")

    def __init__(self, rate: float | None) -> None:
        self._spacing_s = 0.0 if rate is None else 1 / rate
        self._next_s = self._closed_s = -inf

    @property
    def opens_s(self) -> float:
        """When a call may begin."""
        return max(self._next_s, self._closed_s)

    def begin(self, time_s: float) -> None:
        """A call begins."""
        late = time_s - self._next_s > LATE_S
        self._next_s = (time_s if late else self._next_s) + self._spacing_s

    def put_off(self, until_s: float) -> None:
        """No call is to begin before then."""
        self._closed_s = max(self._closed_s, until_s)


def gate(rate: float | None) -> Gate | None:
    """The gate of a pool with this rate, if it has one."""
    return None if rate is None else Gate(rate)


class Asked(NamedTuple):
    """What an event says of a service that wants to be asked later."""

    tasks: int
    """How many tasks of the batch were put off; 0: all of them."""
    until_s: float


def asked(event: TasksFinished | BatchRaised) -> Asked | None:
    """Whether tasks were put off, and until when; what nobody waits for is left out."""
    if isinstance(event, BatchRaised):
        failures = [event.failure]
    else:
        failures = [failure for _, failure in event.failures]
    waits = [f.after_s for f in failures if f.after_s is not None and f.after_s <= LONGEST_WAIT_S]
    tasks = 0 if isinstance(event, BatchRaised) else len(waits)
    return Asked(tasks, event.time_s + max(waits)) if waits else None
