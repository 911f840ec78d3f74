"""A worker's second thread: who tells what, in which order, and what happens when it cannot."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable, Sequence

import pytest

from fanfold.backends.local import companion as module
from fanfold.backends.local.companion import ALONE, BROKEN, LATE_S, Companion

PATIENCE_S = 20
"""Nothing here takes long, unless it is broken."""


class Stage:
    """What a companion is given: it notes who emitted what, and fetches until it is let go."""

    def __init__(self) -> None:
        self.emitted: list[tuple[str, bool]] = []
        """Events, and whether another thread than the worker's emitted them."""
        self.fetching = threading.Semaphore(0)
        self.let_go = threading.Semaphore(0)
        self.companion = Companion[str](self.emit, self.fetch)
        self._own = threading.get_ident()

    def emit(self, events: Sequence[str]) -> None:
        elsewhere = threading.get_ident() != self._own
        self.emitted += [(event, elsewhere) for event in events]

    def fetch(self) -> None:
        self.fetching.release()
        assert self.let_go.acquire(timeout=PATIENCE_S)

    def wait_until_it_fetches(self) -> None:
        assert self.fetching.acquire(timeout=PATIENCE_S)

    def let_it_go(self) -> None:
        """It has ended fetching."""
        self.let_go.release()
        assert self.companion.fetching.acquire(timeout=PATIENCE_S)
        self.companion.fetching.release()


def report(*events: str) -> Callable[[], Sequence[str]]:
    return lambda: events


def test_a_report_is_made_and_emitted_by_another_thread() -> None:
    stage = Stage()
    made = threading.Event()
    going_on = threading.Event()

    def slow() -> list[str]:
        assert going_on.wait(PATIENCE_S), "who hands over does not wait"
        made.set()
        return ["one"]

    stage.companion.later(slow)
    assert not made.is_set()
    going_on.set()
    stage.wait_until_it_fetches()
    assert stage.emitted == [("one", True)]
    stage.let_go.release()


def test_what_is_emitted_at_once_comes_after_the_report_before() -> None:
    stage = Stage()
    stage.companion.later(report("one", "two"))
    stage.companion.emit(["three"])
    assert stage.emitted == [("one", True), ("two", True), ("three", False)]
    stage.let_go.release()


def test_while_it_fetches_reports_are_emitted_by_who_hands_them_over() -> None:
    stage = Stage()
    stage.companion.later(report("one"))
    stage.wait_until_it_fetches()
    stage.companion.later(report("two"))
    assert stage.emitted == [("one", True), ("two", False)]
    stage.let_go.release()


def test_it_fetches_after_each_report() -> None:
    stage = Stage()
    for number in range(3):
        stage.companion.later(report(f"{number}"))
        stage.wait_until_it_fetches()
        stage.let_it_go()  # until then, whoever hands over a report emits it instead
    stage.companion.close()
    assert [event for event, _ in stage.emitted] == ["0", "1", "2"]


def test_what_a_report_raises_is_raised_where_the_next_is_handed_over() -> None:
    stage = Stage()

    def broken() -> list[str]:
        raise BrokenPipeError("nobody listens")

    stage.companion.later(broken)
    with pytest.raises(BrokenPipeError, match="nobody listens"):
        stage.companion.emit(["one"])
    with pytest.raises(BrokenPipeError, match="nobody listens"):
        stage.companion.later(report("two"))
    assert stage.emitted == []
    stage.let_go.release()


def test_code_that_lets_nobody_else_run_has_its_reports_told_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stage = Stage()
    now_s = 100.0
    monkeypatch.setattr(module, "clock", lambda: now_s)
    started, held = threading.Event(), threading.Event()

    def held_up() -> list[str]:
        started.set()
        assert held.wait(PATIENCE_S)
        return ["late"]

    stage.companion.later(held_up)
    assert started.wait(PATIENCE_S)
    now_s += 2 * LATE_S
    held.set()
    stage.wait_until_it_fetches()
    stage.let_it_go()
    for _ in range(ALONE):
        stage.companion.later(report("alone"))
    assert stage.emitted[1:] == [("alone", False)] * ALONE
    stage.let_go.release()
    stage.companion.later(report("again"))
    stage.wait_until_it_fetches()
    assert stage.emitted[-1] == ("again", True)


def test_all_is_told_when_it_is_closed() -> None:
    stage = Stage()
    go_on = threading.Event()

    def slow() -> list[str]:
        assert go_on.wait(PATIENCE_S)
        return ["one"]

    stage.companion.later(slow)
    threading.Timer(0.0, go_on.set).start()
    stage.companion.close()
    assert stage.emitted == [("one", True)]
    stage.let_go.release()


def test_a_worker_that_cannot_tell_what_it_did_ends() -> None:
    program = (
        "import time\n"
        "from fanfold.backends.local.companion import Companion\n"
        "companion = Companion(lambda events: None, lambda: None)\n"
        "companion.later(lambda: [1 // 0])\n"
        "time.sleep(60)\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=50, check=False
    )
    assert ended.returncode == BROKEN
    assert "ZeroDivisionError" in ended.stderr
