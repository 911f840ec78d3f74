"""Coming and going: what ``startup`` measures of Fanfold, and that nothing is left after a kill.

Options: ``--repeat=N`` (default 3; the best is told, since everything else on the machine only adds).
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.comparing import Options
from benchmarks.processes import alive, descendants
from benchmarks.report import Report
from benchmarks.startup import tell_own

_DRIVER = """
import sys, time
import fanfold as ff

def wait(n):
    print("busy", flush=True)
    time.sleep(600)

@ff.pipeline(level="document")
def waiting(n: ff.Port[int]) -> ff.Port[int]:
    return ff.stage(wait, replicas=4)(n)

waiting.run(ff.from_items(range(8)), progress=False, run_dir=sys.argv[1])
"""


def run(report: Report, options: Sequence[str]) -> None:
    """Measure all cases."""
    parts = (option.lstrip("-").partition("=") for option in options)
    given = {name: value for name, _, value in parts}
    repeat = int(given.get("repeat", 3))
    tell_own(report, Options(), repeat)
    gone = [_killed() for _ in range(repeat)]
    report.add(
        "sigkill", "workers_gone_s", min(s for s, _ in gone), "s", target=0.1, better="lower"
    )
    report.add(
        "sigkill",
        "left_in_shared_memory",
        max(n for _, n in gone),
        "files",
        target=0,
        better="lower",
    )


def _killed() -> tuple[float, int]:
    """Kill a driver with busy workers: seconds until all are gone, and files left in shared memory."""
    with tempfile.TemporaryDirectory() as folder:
        before = set(os.listdir("/dev/shm"))
        driver = subprocess.Popen([sys.executable, "-c", _DRIVER, folder])
        logs = Path(folder)
        while sum(b"busy" in log.read_bytes() for log in logs.rglob("*.log")) < 4:
            time.sleep(0.01)
        family = descendants(driver.pid)
        driver.send_signal(signal.SIGKILL)
        started = time.perf_counter()
        driver.wait()
        while any(alive(pid) for pid in family):
            time.sleep(0.001)
        return time.perf_counter() - started, len(set(os.listdir("/dev/shm")) - before)
