"""Coming and going: import, start to first record, many workers ready, nothing left after a kill.

Options: ``--repeat=N`` (default 3; the best is told, since everything else on the machine only adds).
"""

from __future__ import annotations

import compileall
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import fanfold
from benchmarks.report import Report
from benchmarks.trivial import Trivial

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
    best = min(_import_s() for _ in range(repeat))
    report.add("import", "import_s", best, "s", target=0.15, better="lower")
    report.add(
        "first-record",
        "first_record_s",
        min(_first_record_s() for _ in range(repeat)),
        "s",
        target=0.5,
        better="lower",
    )
    report.add(
        "64-workers",
        "workers_ready_s",
        min(_workers_ready_s(64) for _ in range(repeat)),
        "s",
        target=1.0,
        better="lower",
    )
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


def _import_s() -> float:
    """Importing Fanfold as it is installed, with its bytecode, without what an empty interpreter costs."""
    compileall.compile_dir(Path(fanfold.__file__).parent, quiet=1)

    def seconds(code: str) -> float:
        started = time.perf_counter()
        subprocess.run([sys.executable, "-c", code], check=True)
        return time.perf_counter() - started

    return min(seconds("import fanfold") for _ in range(3)) - min(seconds("pass") for _ in range(3))


def _first_record_s() -> float:
    """From ``stream`` to its first result, with trivial stages in processes of their own."""
    import fanfold as ff

    @ff.pipeline(level="document")
    def trivial(n: ff.Port[int]) -> ff.Port[int]:
        return ff.stage(Trivial, batch_size=1)()(n)

    started = time.perf_counter()
    results = trivial.stream(ff.from_items(range(10)))
    next(iter(results))
    seconds = time.perf_counter() - started
    results.close()
    return seconds


def _workers_ready_s(replicas: int) -> float:
    """Until the last of many replicas has told that its constructor returned."""
    import fanfold as ff
    from fanfold.backends.base import WorkerSpec
    from fanfold.backends.local.backend import LocalBackend
    from fanfold.protocol import WorkerStarted

    @ff.pipeline(level="document")
    def trivial(n: ff.Port[int]) -> ff.Port[int]:
        return ff.stage(Trivial, batch_size=1)()(n)

    backend = LocalBackend()
    started = time.perf_counter()
    try:
        specs = [WorkerSpec(i, 0, f"Trivial[{i}]") for i in range(replicas)]
        backend.start(trivial.plan(), specs, None)
        ready = 0
        while ready < replicas:
            ready += sum(isinstance(e, WorkerStarted) for e in backend.poll(None))
        return time.perf_counter() - started
    finally:
        backend.close()


def _killed() -> tuple[float, int]:
    """Kill a driver with busy workers: seconds until all are gone, and files left in shared memory."""
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        before = set(os.listdir("/dev/shm"))
        driver = subprocess.Popen([sys.executable, "-c", _DRIVER, folder])
        logs = Path(folder)
        while sum(b"busy" in log.read_bytes() for log in logs.rglob("*.log")) < 4:
            time.sleep(0.01)
        family = _descendants(driver.pid)
        driver.send_signal(signal.SIGKILL)
        started = time.perf_counter()
        driver.wait()
        while any(_alive(pid) for pid in family):
            time.sleep(0.001)
        return time.perf_counter() - started, len(set(os.listdir("/dev/shm")) - before)


def _descendants(pid: int) -> list[int]:
    found: list[int] = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in map(int, task.read_text().split()):
            found += [child, *_descendants(child)]
    return found


def _alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"
