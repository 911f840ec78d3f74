"""Programs that the tests start answer signals, however the tests themselves were started.

A shell's background job ignores SIGINT, and what ``nohup`` starts ignores SIGHUP; children inherit that.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True, scope="package")
def heeded_signals() -> Iterator[None]:
    """While these tests run, this process ignores none of the signals that stop a run."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGHUP)}
    for number, handler in before.items():
        if handler is signal.SIG_IGN:
            default = signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL
            signal.signal(number, default)
    yield
    for number, handler in before.items():
        signal.signal(number, handler)
