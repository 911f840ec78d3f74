"""How soon there is something: import, the first record, 64 workers ready.

Cases ``import``, ``first-record`` (trivial stages in processes of their own) and ``64-workers`` (trivial
constructors, all returned). The peers run a program of ten documents, and one with 64 replicas of the model:
``first_record_s`` is until the first document is assembled, ``workers_ready_s`` until the last replica's
constructor has returned, both from the moment when the program is handed over; their own import and the start
of Ray came before. Options: those of ``benchmarks/comparing.py``; Fanfold's best of three is told.
"""

from __future__ import annotations

import compileall
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import fanfold
from benchmarks.comparing import Case, Options, compare_peers, tell
from benchmarks.peers.logbook import ASSEMBLED, STARTED
from benchmarks.peers.session import Failed, Run
from benchmarks.peers.work import Shape
from benchmarks.report import Report
from benchmarks.trivial import Trivial

REPEAT = 3
REPLICAS = 64
IMPORT_S, FIRST_RECORD_S, WORKERS_READY_S = 0.15, 0.5, 1.0


def run(report: Report, arguments: Sequence[str]) -> None:
    """Measure all cases."""
    options = Options.of(arguments)
    tell_own(report, options, 1 if options.quick else REPEAT)
    replicas = 8 if options.quick else REPLICAS
    shapes = {
        "first-record": Shape(counts=(1,) * 10, batch=1),
        "64-workers": Shape(counts=(4,) * 2 * replicas, batch=1, page_s=0.05, replicas=replicas),
    }
    compared = compare_peers(report, [Case(*case) for case in shapes.items()], options)
    tell(report, compared, "first-record", "first_record_s", "s", first_record_s, better="lower")
    tell(
        report,
        compared,
        "64-workers",
        "workers_ready_s",
        "s",
        lambda run: last_ready_s(run, replicas),
        better="lower",
    )


def tell_own(report: Report, options: Options, repeat: int) -> None:
    """Fanfold's cases, the best of ``repeat`` tries: everything else on the machine only adds."""
    cases = (
        ("import", "import_s", import_s, IMPORT_S),
        ("first-record", "first_record_s", own_first_record_s, FIRST_RECORD_S),
        ("64-workers", "workers_ready_s", own_workers_ready_s, WORKERS_READY_S),
    )
    for case, metric, measure, target in cases:
        if options.chosen(case):
            report.note(f"{case}: fanfold")
            best = min(measure() for _ in range(repeat))
            report.add(case, metric, best, "s", target=target, better="lower")


def first_record_s(run: Run) -> float:
    """Until a peer's first document was assembled."""
    return min(entry.end_s for entry in run.entries if entry.kind == ASSEMBLED) - run.began_s


def last_ready_s(run: Run, replicas: int) -> float:
    """Until the last of a peer's replicas was there.

    Raises:
        Failed: Not all of them came.
    """
    ready = sorted(entry.end_s for entry in run.entries if entry.kind == STARTED)
    if len(ready) < replicas:
        raise Failed(f"started {len(ready)} of {replicas} replicas")
    return ready[replicas - 1] - run.began_s


def import_s() -> float:
    """Importing Fanfold as it is installed, with its bytecode, without what an empty interpreter costs."""
    compileall.compile_dir(Path(fanfold.__file__).parent, quiet=1)

    def seconds(code: str) -> float:
        started = time.perf_counter()
        subprocess.run([sys.executable, "-c", code], check=True)
        return time.perf_counter() - started

    return min(seconds("import fanfold") for _ in range(3)) - min(seconds("pass") for _ in range(3))


def own_first_record_s() -> float:
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


def own_workers_ready_s(replicas: int = REPLICAS) -> float:
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
