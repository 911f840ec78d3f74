"""What an exception says of when a service is to be asked again, and how a worker heeds it.

Owns the reading of :class:`fanfold.failures.RetryLater` and of HTTP answers with a ``Retry-After`` header,
which exceptions of HTTP clients carry. No client is imported: what looks like an answer is read as one.
"""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable
from email.utils import parsedate_to_datetime
from typing import Any, Final

from fanfold.failures import LONGEST_WAIT_S, RetryLater

LEAST_WAIT_S: Final = 0.1
"""A service that says "at once" is left in peace for so long."""
ERRORS_FROM: Final = 400
"""HTTP statuses from here on are errors; below, the header is about something else."""


class NotBegun(RetryLater):
    """A call that a worker did not begin, because the service had asked for a pause."""


class Rest:
    """A worker's pause.

    Args:
        clock: Seconds since whenever.
    """

    __slots__ = ("_clock", "_until_s")

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._until_s = 0.0

    def begin(self, after_s: float) -> None:
        """Pause, unless it is for longer than anybody waits."""
        if after_s <= LONGEST_WAIT_S:
            self._until_s = max(self._until_s, self._clock() + after_s)

    def check(self) -> None:
        """Before a call of users' code.

        Raises:
            NotBegun: There is a pause.
        """
        if self._until_s:
            left_s = self._until_s - self._clock()
            if left_s > 0:
                raise NotBegun(left_s, "the service that the stage asks wants to be asked later")
            self._until_s = 0.0


def asked_wait_s(error: BaseException) -> float | None:
    """How long to wait before an exception's item is tried again; None if it says nothing of that.

    Besides ``RetryLater`` these are exceptions with the answer of an HTTP server: with ``response`` (httpx,
    requests, openai) or being one themselves (aiohttp, urllib), with the status of an error, and a header that
    says when.
    """
    if isinstance(error, RetryLater):
        return max(LEAST_WAIT_S, error.after_s)
    try:
        after_s = _of_answer(getattr(error, "response", None) or error)
    except Exception:  # anyone's object may do anything when it is asked
        return None
    return None if after_s is None else max(LEAST_WAIT_S, after_s)


def _of_answer(answer: Any) -> float | None:
    headers = getattr(answer, "headers", None)
    if headers is None or not callable(getattr(headers, "get", None)):
        return None
    for name in ("status_code", "status", "code"):
        status = getattr(answer, name, None)
        if isinstance(status, int) and status < ERRORS_FROM:
            return None
    for name, unit_s in (("retry-after-ms", 0.001), ("Retry-After-Ms", 0.001)):
        with contextlib.suppress(TypeError, ValueError):
            return _seconds(float(headers.get(name)) * unit_s)
    text = headers.get("retry-after") or headers.get("Retry-After")
    return None if text is None else _parsed(str(text).strip(), headers)


def _parsed(text: str, headers: Any) -> float | None:
    """The header's value: seconds, or a date."""
    with contextlib.suppress(ValueError):
        return _seconds(float(text))
    try:
        then_s = parsedate_to_datetime(text).timestamp()
    except (ValueError, TypeError):
        return None
    now_s = time.time()
    with contextlib.suppress(ValueError, TypeError):  # the server's own clock, if it tells
        now_s = parsedate_to_datetime(headers.get("date") or headers.get("Date")).timestamp()
    return max(0.0, then_s - now_s)


def _seconds(number: float) -> float | None:
    return number if 0 <= number < math.inf else None
