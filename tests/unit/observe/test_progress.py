"""Progress: no flood in a file, a tidy display on a terminal, nothing when told."""

import errno
import io
import math

import pytest

from fanfold.engine.statistics import CallCounts, Statistics, WorkerTimes
from fanfold.observe.progress import (
    LineProgress,
    LiveProgress,
    NoProgress,
    choose_progress,
    headline,
)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


STATE = Statistics(
    calls=[CallCounts("Ocr#2", "Ocr[x]", "page", done=1200, ready=3, running=32, failed=1)],
    roots={"done": 7, "failed": 1},
    admitted=20,
    open_roots=12,
    workers=[WorkerTimes(0, "Ocr[0]", "starting"), WorkerTimes(1, "Ocr[1]", "busy")],
)


def run_for(progress, seconds: float) -> None:
    """A loop that turns ten times a second."""
    for tick in range(int(seconds * 10)):
        now_s = 100.0 + tick / 10
        if now_s >= progress.due_s:
            progress.show(STATE, now_s)
    progress.close()


def test_a_file_gets_at_most_one_line_in_ten_seconds():
    file = io.StringIO()
    run_for(LineProgress(file, "document", 100.0), 65)
    lines = file.getvalue().splitlines()
    assert len(lines) == 6
    assert lines[0] == ("fanfold: document: 8 ended (1 failed), 12 open, 1 worker starting, 10 s")


def test_a_short_run_prints_nothing_to_a_file():
    file = io.StringIO()
    run_for(LineProgress(file, "document", 100.0), 9.9)
    assert file.getvalue() == ""


def test_a_terminal_shows_calls_and_is_left_clean():
    pytest.importorskip("rich", reason="the live display is drawn by rich")
    terminal = Terminal()
    run_for(LiveProgress(terminal, "document", 100.0), 2)
    text = terminal.getvalue()
    assert "8 ended (1 failed)" in text
    assert "Ocr#2" in text
    assert "1,200 × page done" in text
    assert text.endswith("\x1b[2K") or text.rstrip("\r\n").endswith(("\x1b[2K", "\x1b[?25h"))


def test_nothing_is_shown_when_nothing_is_wanted():
    progress = choose_progress(False, Terminal(), "document", 0.0)
    assert isinstance(progress, NoProgress)
    assert progress.due_s == math.inf


def test_nothing_is_shown_where_there_is_no_such_stream():
    closed = io.StringIO()
    closed.close()
    for stream in (None, closed):
        assert isinstance(choose_progress(True, stream, "document", 0.0), NoProgress)


@pytest.mark.parametrize(
    ("kind", "error"),
    [(LineProgress, BrokenPipeError()), (LiveProgress, OSError(errno.EIO, "no such terminal"))],
)
def test_a_run_goes_on_when_nobody_reads_its_progress_any_more(kind, error):
    class Deserted(Terminal):
        def write(self, text: str) -> int:
            raise error

    progress = kind(Deserted(), "document", 100.0)
    progress.show(STATE, 200.0)
    assert progress.due_s == math.inf
    progress.close()


def test_the_display_fits_where_it_goes(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    assert isinstance(choose_progress(None, Terminal(), "document", 0.0), LiveProgress)
    assert isinstance(choose_progress(True, io.StringIO(), "document", 0.0), LineProgress)
    monkeypatch.setenv("TERM", "dumb")
    assert isinstance(choose_progress(None, Terminal(), "document", 0.0), LineProgress)


def test_the_headline_of_a_run_that_has_just_begun():
    assert headline(Statistics(), "video", 0.0) == "video: 0 ended, 0 open, 0.00 s"
