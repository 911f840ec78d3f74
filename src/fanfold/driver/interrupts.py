"""Ctrl-C, SIGTERM and SIGHUP during a run: the first one stops it in an orderly way, the second one at once.

Owns the signal handlers, which are set only in the main thread, only while a run is going and only in the place
of Python's own: a program that handles these signals itself keeps doing so.
"""

from __future__ import annotations

import signal
import threading
from types import FrameType
from typing import Any, Final

_NAMES: Final = {signal.SIGINT: "Ctrl-C", signal.SIGTERM: "SIGTERM", signal.SIGHUP: "SIGHUP"}


class Interrupts:
    """While entered, signals are noted in :attr:`pending` instead of raising in the middle of anything.

    Code that may be left at any point (a user's source, a user's stage in this thread) sets
    :attr:`immediate`: then the first signal raises ``KeyboardInterrupt`` there.
    """

    def __init__(self) -> None:
        self.pending: str | None = None
        """What came, in words."""
        self.immediate = False
        self._replaced: dict[int, Any] = {}

    def __enter__(self) -> Interrupts:
        if threading.current_thread() is threading.main_thread():
            for number, own in (
                (signal.SIGINT, signal.default_int_handler),
                (signal.SIGTERM, signal.SIG_DFL),
                (signal.SIGHUP, signal.SIG_DFL),  # the terminal is closed; nohup has it ignored
            ):
                if signal.getsignal(number) is own:
                    self._replaced[number] = signal.signal(number, self._arrived)
        return self

    def __exit__(self, *exc_info: object) -> None:
        for number, handler in self._replaced.items():
            signal.signal(number, handler)
        self._replaced.clear()

    def check(self) -> None:
        """Raise if a signal came.

        Raises:
            KeyboardInterrupt: One did.
        """
        if self.pending is not None:
            raise KeyboardInterrupt(self.pending)

    def _arrived(self, number: int, frame: FrameType | None) -> None:
        again = self.pending is not None
        self.pending = _NAMES[signal.Signals(number)]
        if again or self.immediate:
            raise KeyboardInterrupt(self.pending)
