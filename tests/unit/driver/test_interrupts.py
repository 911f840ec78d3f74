"""Signals while a run is going: noted first, immediate where code may be left, restored afterwards."""

import os
import signal
import threading

import pytest

from fanfold.driver.interrupts import Interrupts


def send(number: int) -> None:
    os.kill(os.getpid(), number)


@pytest.mark.parametrize(
    ("number", "name"),
    [(signal.SIGINT, "Ctrl-C"), (signal.SIGTERM, "SIGTERM"), (signal.SIGHUP, "SIGHUP")],
)
def test_the_first_signal_is_noted_the_second_raises(number, name):
    with Interrupts() as interrupts:
        interrupts.check()
        send(number)
        assert interrupts.pending == name
        with pytest.raises(KeyboardInterrupt, match=name):
            interrupts.check()
        with pytest.raises(KeyboardInterrupt, match=name):
            send(number)


def test_where_code_may_be_left_the_first_raises():
    with Interrupts() as interrupts:
        interrupts.immediate = True
        with pytest.raises(KeyboardInterrupt):
            send(signal.SIGINT)


def test_handlers_are_put_back():
    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    with Interrupts():
        assert signal.getsignal(signal.SIGINT) not in before
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == before


def test_a_program_that_handles_signals_itself_keeps_doing_so():
    seen: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, frame: seen.append(number))
    try:
        with Interrupts() as interrupts:
            send(signal.SIGTERM)
            interrupts.check()
    finally:
        signal.signal(signal.SIGTERM, before)
    assert seen == [signal.SIGTERM]


def test_other_threads_cannot_set_handlers_and_do_not_try():
    raised: list[BaseException] = []

    def enter() -> None:
        try:
            with Interrupts():
                pass
        except ValueError as error:
            raised.append(error)

    thread = threading.Thread(target=enter)
    thread.start()
    thread.join()
    assert raised == []
