"""What holds for every test run: how long the tests that make up cases look, and that signals are heeded.

``FANFOLD_SEED=N`` replays a run; ``FANFOLD_EXAMPLES=N`` (of each property test) and ``FANFOLD_RUNS=N`` (of
simulation) look longer. The header says from which seed.
"""

from __future__ import annotations

import signal

from tests.model.profile import EXAMPLES, SEED
from tests.simulation.fresh import FIRST_SEED, RUNS


def pytest_report_header() -> list[str]:
    return [
        f"property tests: FANFOLD_SEED={SEED}, {EXAMPLES} examples each",
        f"simulation: FANFOLD_SEED={SEED}, {RUNS} runs from seed {FIRST_SEED} on",
    ]


def pytest_sessionstart() -> None:
    """A shell's background job ignores SIGINT, and what ``nohup`` starts ignores SIGHUP; tests, and the
    programs that they start, are to heed both however they were started themselves."""
    for number in (signal.SIGINT, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_IGN:
            default = signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL
            signal.signal(number, default)
