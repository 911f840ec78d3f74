"""Progress for people: a live display on a terminal, a line now and then elsewhere, or nothing.

Owns what is shown and how often. Time arrives as a value, so that none of this is tied to a clock; the caller
asks :attr:`Progress.due_s` first, since counting costs something.
"""

from __future__ import annotations

import contextlib
import os
from abc import ABC, abstractmethod
from typing import IO, TYPE_CHECKING, Final

from fanfold.engine.statistics import CallCounts, Statistics
from fanfold.observe.report import duration, plural, times

if TYPE_CHECKING:
    from rich.console import Group
    from rich.live import Live

LINE_EVERY_S: Final = 10.0
"""Where there is no terminal: a log must not fill up with progress."""
DRAW_EVERY_S: Final = 0.2
NEVER_S: Final = float("inf")
CELLS: Final = 5
"""Columns of the live table."""


class Progress(ABC):
    """Something that shows how a run gets on."""

    due_s: float
    """When to show the next state; infinity for never."""

    def show(self, statistics: Statistics, time_s: float) -> None:
        """Show the state at ``time_s``; when nobody can see it any more, never again."""
        try:
            self._draw(statistics, time_s)
        except OSError:  # the terminal is gone, or whoever read the pipe: no reason to end a run
            self.due_s = NEVER_S

    @abstractmethod
    def _draw(self, statistics: Statistics, time_s: float) -> None:
        """Show the state, and say when the next one is due."""

    @abstractmethod
    def close(self) -> None:
        """The run ended; leave the terminal tidy."""


class NoProgress(Progress):
    """Shows nothing."""

    due_s: float = NEVER_S

    def _draw(self, statistics: Statistics, time_s: float) -> None:
        """Nothing to do."""

    def close(self) -> None:
        """Nothing to do."""


class LineProgress(Progress):
    """One line in ten seconds at most: for files, pipes, notebooks and continuous integration.

    Args:
        stream: Where lines go.
        root_level: What roots are called.
        start_s: The time at which the run starts; the first line comes ten seconds later.
    """

    def __init__(self, stream: IO[str], root_level: str, start_s: float) -> None:
        self._stream = stream
        self._root_level = root_level
        self._start_s = start_s
        self.due_s: float = start_s + LINE_EVERY_S

    def _draw(self, statistics: Statistics, time_s: float) -> None:
        self.due_s = time_s + LINE_EVERY_S
        line = headline(statistics, self._root_level, time_s - self._start_s)
        self._stream.write(f"fanfold: {line}\n")
        self._stream.flush()

    def close(self) -> None:
        """Nothing to do: the summary comes after it."""


class LiveProgress(Progress):
    """A small table that is drawn over and over at the bottom of a terminal, by rich.

    Args:
        stream: The terminal.
        root_level: What roots are called.
        start_s: The time at which the run starts.
    """

    def __init__(self, stream: IO[str], root_level: str, start_s: float) -> None:
        self._root_level = root_level
        self._start_s = start_s
        self._stream = stream
        self._live: Live | None = None
        self.due_s: float = start_s + DRAW_EVERY_S

    def _draw(self, statistics: Statistics, time_s: float) -> None:
        self.due_s = time_s + DRAW_EVERY_S
        live = self._live = self._live or self._started()
        live.update(self._table(statistics, time_s), refresh=True)

    def close(self) -> None:
        """Take the display away; what a run did is told by its summary."""
        if self._live is not None:
            with contextlib.suppress(OSError):  # as in show()
                self._live.stop()
            self._live = None

    def _started(self) -> Live:
        from rich.console import Console
        from rich.live import Live

        # Drawn by the run's own loop: no thread of rich's, and output of the user's program is left alone.
        live = Live(
            console=Console(file=self._stream),
            auto_refresh=False,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
        )
        live.start()
        return live

    def _table(self, statistics: Statistics, time_s: float) -> Group:
        from rich.console import Group
        from rich.table import Table
        from rich.text import Text

        title = headline(statistics, self._root_level, time_s - self._start_s)
        calls = Table.grid(padding=(0, 2))
        for _ in range(CELLS):
            calls.add_column(no_wrap=True)
        for call in statistics.calls:
            calls.add_row(*map(Text, call_cells(call)))  # as it is: a name may hold brackets
        return Group(Text(title, no_wrap=True, overflow="ellipsis"), calls)


def headline(statistics: Statistics, root_level: str, elapsed_s: float) -> str:
    """The state of a run in one line.

    >>> headline(Statistics(roots={"done": 7, "failed": 1}, admitted=20, open_roots=12), "video", 90)
    'video: 8 ended (1 failed), 12 open, 1 min 30 s'
    """
    ended = sum(statistics.roots.values())
    other = [f"{n:,} {status}" for status, n in statistics.roots.items() if n and status != "done"]
    noted = f" ({', '.join(other)})" if other else ""
    state = f"{root_level}: {ended:,} ended{noted}, {statistics.open_roots:,} open"
    starting = sum(worker.state == "starting" for worker in statistics.workers)
    if starting:
        state += f", {plural(starting, 'worker')} starting"
    return f"{state}, {duration(elapsed_s)}"


def call_cells(call: CallCounts) -> tuple[str, ...]:
    """One call's row of the table: :data:`CELLS` cells.

    >>> call_cells(CallCounts("Ocr", "Ocr", "page", done=1200, ready=3, running=32, failed=1))
    ('  Ocr', '1,200 × page done', '3 ready', '32 running', '1 failed')
    """
    return (
        f"  {call.name}",
        f"{times(call.done, call.level)} done",
        f"{call.ready:,} ready",
        f"{call.running:,} running",
        f"{call.failed:,} failed" if call.failed else "",
    )


def choose_progress(
    wanted: bool | None, stream: IO[str] | None, root_level: str, start_s: float
) -> Progress:
    """The display that fits where the run's messages go.

    Args:
        wanted: False for none; True or None for what fits: a live one on a terminal, lines elsewhere.
        stream: Where it goes, usually standard error; None or closed where a program has none.
        root_level: What roots are called.
        start_s: The time at which the run starts.
    """
    if wanted is False or stream is None or stream.closed:
        return NoProgress()
    if stream.isatty() and os.environ.get("TERM") != "dumb":
        return LiveProgress(stream, root_level, start_s)
    return LineProgress(stream, root_level, start_s)
