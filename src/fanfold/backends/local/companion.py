"""A worker's second thread: while users' code runs it tells what the batch before has given, and takes in what
comes next. So a worker spends little between two calls of a function that takes long.

Owns the thread and the order of what is told: reports are emitted one after the other, as they were handed
over. Knows nothing of what they say, nor of what is taken in.

Rules
-----
1. The thread holds one report at most. Who hands over the next waits until the one before was emitted, so a
   worker is never ahead by more than a batch of what it has told; if it dies then, that batch is run again.
2. While the thread waits for messages it tells nothing, and whoever would hand over a report emits it instead.
3. Code that keeps the interpreter to itself (a long computation, a library that does not let go of the lock)
   would hold up reports until it ends. Where one came late, the next :data:`ALONE` are emitted before the code
   runs.
"""

from __future__ import annotations

import os
import threading
import traceback
from collections.abc import Callable, Sequence
from time import perf_counter as clock
from typing import Final, Generic, TypeAlias, TypeVar

EventT = TypeVar("EventT")
Report: TypeAlias = Callable[[], Sequence[EventT]]
"""Makes the events of a report."""

BROKEN: Final = 70
"""The exit code of a worker that cannot tell what it has done."""
LATE_S: Final = 0.003
"""So late a report has found no room beside users' code."""
ALONE: Final = 64


class Companion(Generic[EventT]):
    """The thread, which begins with the first report that is handed over.

    Args:
        emit: Takes the events of one report.
        fetch: Takes in messages until there is a batch to go on with; called by the thread.
        prepare: Gets ready what can be of that batch; called by the thread after it.
    """

    def __init__(
        self,
        emit: Callable[[Sequence[EventT]], None],
        fetch: Callable[[], None],
        prepare: Callable[[], None] = lambda: None,
    ) -> None:
        self._emit = emit
        self._fetch = fetch
        self._prepare = prepare
        self._begin()
        # A fork of users' code has no second thread.
        os.register_at_fork(after_in_child=self._begin)

    def _begin(self) -> None:
        self._told, self._given = threading.Lock(), threading.Lock()
        self._given.acquire()  # it is released for each report; a semaphore takes many times as long
        self.fetching: threading.Lock = threading.Lock()
        """Held while it waits for messages, or is about to."""
        self._thread: threading.Thread | None = None
        self._report: Report[EventT] | None = None
        self._given_s = 0.0
        self._alone = 0
        self._error: BaseException | None = None

    def emit(self, events: Sequence[EventT]) -> None:
        """Emit events at once, after those of the report before.

        Raises:
            OSError: The driver is gone.
        """
        self._wait()
        try:
            self._emit(events)
        finally:
            self._told.release()

    def later(self, report: Report[EventT]) -> None:
        """Have a report made and emitted while this thread goes on.

        Raises:
            OSError: The driver is gone.
        """
        self._wait()
        if self._alone or not self.fetching.acquire(blocking=False):
            self._alone = max(0, self._alone - 1)
            try:
                self._emit(report())
            finally:
                self._told.release()
            return
        self._report, self._given_s = report, clock()
        if self._thread is None:
            self._thread = threading.Thread(target=self._go, name="fanfold-companion", daemon=True)
            self._thread.start()
        self._given.release()
        self.fetching.release()

    def close(self) -> None:
        """Wait until all is told."""
        with self._told:
            return

    def _wait(self) -> None:
        self._told.acquire()
        if self._error is not None:
            self._told.release()
            raise self._error

    def _go(self) -> None:
        while True:
            self._given.acquire()
            report, self._report = self._report, None
            assert report is not None, "it was handed over"
            try:
                self._emit(report())
            except OSError as error:  # the driver is gone, and the other thread ends as well
                self._error = error
            except BaseException:
                # Nobody would hear of that batch, and the other thread may wait for the next for ever.
                traceback.print_exc()
                os._exit(BROKEN)
            if clock() - self._given_s > LATE_S:
                self._alone = ALONE
            with self.fetching:  # before anyone can hand over the next
                del report
                self._told.release()
                self._fetch()
            self._prepare()
