"""What happens to roots that ended: written, handed out, or just counted; in source order if asked.

Owns the order of records and the counting of roots by status (a root counts when its records are
committed). Results hold references, not values; whoever delivers has them read where they are needed.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal

from fanfold.backends.base import Backend
from fanfold.errors import UsageError
from fanfold.failures import Failure
from fanfold.protocol import RootResult

Order = Literal["source", "completed"]


class SourceOrder:
    """Lets results through in the order of their roots.

    >>> order = SourceOrder()
    >>> late, early = RootResult(1, "b", "done", ()), RootResult(0, "a", "done", ())
    >>> [r.key for r in order.pass_on([late])], [r.key for r in order.pass_on([early])]
    ([], ['a', 'b'])
    """

    def __init__(self) -> None:
        self._next = 0
        self._waiting: dict[int, RootResult] = {}

    def pass_on(self, results: Sequence[RootResult]) -> list[RootResult]:
        """Those whose turn it is, now that ``results`` have ended."""
        waiting = self._waiting
        for result in results:
            waiting[result.root] = result
        ready: list[RootResult] = []
        while self._next in waiting:
            ready.append(waiting.pop(self._next))
            self._next += 1
        return ready

    def rest(self) -> list[RootResult]:
        """All that still wait for their turn, when there will be no more."""
        left = sorted(self._waiting.values())
        self._waiting.clear()
        return left


class CompletedOrder:
    """Lets results through as they come."""

    def pass_on(self, results: Sequence[RootResult]) -> list[RootResult]:
        """All of them."""
        return list(results)

    def rest(self) -> list[RootResult]:
        """None: nothing waits here."""
        return []


def in_order(order: Order) -> SourceOrder | CompletedOrder:
    """The ordering named so.

    Raises:
        UsageError: There is none.
    """
    if order == "source":
        return SourceOrder()
    if order == "completed":
        return CompletedOrder()
    raise UsageError("FF420", f"order={order!r} is unknown.", 'Use "source" or "completed".')


class Delivery(ABC):
    """Takes the roots that ended and says when they are committed."""

    def __init__(self) -> None:
        self.statuses: dict[str, int] = {}
        """Committed roots by status."""
        self._refused: dict[str, int] = {}
        """Roots that were refused, by the status that they had ended with."""

    def corrected(self, ended: Mapping[str, int]) -> dict[str, int]:
        """Ended roots by status, of which those that were refused have failed."""
        roots = dict(ended)
        for status, number in self._refused.items():
            roots[status] -= number
            roots["failed"] = roots.get("failed", 0) + number
        return roots

    @abstractmethod
    def finish(self, results: Sequence[RootResult]) -> Sequence[int]:
        """These roots ended. Returns those that are committed by now."""

    @abstractmethod
    def written(self, roots: Sequence[int]) -> Sequence[int]:
        """The backend's writer committed these. Returns those that are committed by now."""

    @abstractmethod
    def refused(self, root: int, failure: Failure) -> Failure:
        """A value of this root cannot go where it should: it failed, and is committed as such. Returns the
        complete failure."""

    def stop(self) -> None:  # noqa: B027  most have nothing to let go of
        """No root will end any more: let go of what waits for its turn."""

    def _count(self, results: Sequence[RootResult]) -> None:
        statuses = self.statuses
        for result in results:
            statuses[result.status] = statuses.get(result.status, 0) + 1


class Counted(Delivery):
    """No sink: nothing to write."""

    def finish(self, results: Sequence[RootResult]) -> Sequence[int]:
        """They are committed at once."""
        self._count(results)
        return [result.root for result in results]

    def written(self, roots: Sequence[int]) -> Sequence[int]:
        """Nothing is written here."""
        return ()

    def refused(self, root: int, failure: Failure) -> Failure:
        """Nothing is written here."""
        return failure


class Written(Delivery):
    """To the sinks, through the backend's writer."""

    def __init__(self, backend: Backend, order: Order, level: str) -> None:
        super().__init__()
        self._backend = backend
        self._level = level
        """Name of the root level, for failures."""
        self._order = in_order(order)
        self._open: dict[int, str] = {}
        """Status by root of what is being written."""

    def finish(self, results: Sequence[RootResult]) -> Sequence[int]:
        """Sent to the writer when their turn comes."""
        self._send(self._order.pass_on(results))
        return ()

    def written(self, roots: Sequence[int]) -> Sequence[int]:
        """They count now."""
        for root in roots:
            status = self._open.pop(root)
            self.statuses[status] = self.statuses.get(status, 0) + 1
        return roots

    def refused(self, root: int, failure: Failure) -> Failure:
        """It counts as failed, whatever it was."""
        status = self._open.pop(root)
        self._refused[status] = self._refused.get(status, 0) + 1
        self.statuses["failed"] = self.statuses.get("failed", 0) + 1
        return replace(failure, levels=(self._level,))

    def stop(self) -> None:
        """Write also what waited for a root before it."""
        self._send(self._order.rest())

    def _send(self, results: list[RootResult]) -> None:
        if results:
            self._open.update((result.root, result.status) for result in results)
            self._backend.write(results)


class HandedOut(Delivery):
    """To whoever iterates over a stream, one at a time."""

    def __init__(self, order: Order, level: str) -> None:
        super().__init__()
        self._level = level
        """Name of the root level, for failures."""
        self._order = in_order(order)
        self.ready: deque[RootResult] = deque()

    def finish(self, results: Sequence[RootResult]) -> Sequence[int]:
        """They wait in :attr:`ready` until they are taken."""
        self.ready.extend(self._order.pass_on(results))
        return ()

    def stop(self) -> None:
        """What waited for a root before it is ready as well."""
        self.ready.extend(self._order.rest())

    def written(self, roots: Sequence[int]) -> Sequence[int]:
        """Nothing is written here."""
        return ()

    def refused(self, root: int, failure: Failure) -> Failure:
        """It is handed out as failed."""
        return replace(failure, levels=(self._level,))
