"""The documents pipeline over a folder of real PDF files: pages a second, peak memory, what failed.

Options: ``--paths=DIR`` (needed), ``--replicas=N`` for the stages that read pages (default 1).

Debian's ``gnuplot-doc`` and ``texlive-humanities-doc`` make a corpus of 143 files and 3,296 pages:

    apt-get download gnuplot-doc texlive-humanities-doc
    for package in *.deb; do dpkg -x "$package" corpus; done
"""

from __future__ import annotations

import os
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from benchmarks.report import Report

SAMPLE_S = 0.25


def run(report: Report, options: Sequence[str]) -> None:
    """Convert every PDF file below the given folder."""
    from fanfold.pipelines.documents import documents, sinks, source

    given: dict[str, str] = {}
    for option in options:
        name, _, value = option.lstrip("-").partition("=")
        given[name] = value
    if "paths" not in given:
        raise SystemExit("corpus needs --paths=DIR, a folder with PDF files")
    pipeline = documents.using({"pages.replicas": int(given.get("replicas", "1"))})
    with tempfile.TemporaryDirectory() as out, _peak_memory() as peak:
        started = time.perf_counter()
        result = pipeline.run(source([given["paths"]]), sinks(out), progress=False)
        seconds = time.perf_counter() - started
    pages = result.levels["page"]
    report.add("documents", "pages", pages, "pages")
    report.add("documents", "pages_per_s", pages / seconds, "1/s")
    report.add("documents", "peak_memory", max(peak) / 2**20, "MB")
    report.add("documents", "failed_documents", result.roots["failed"], "documents")
    for kind in result.failures:
        report.note(str(kind))


@contextmanager
def _peak_memory() -> Iterator[list[int]]:
    """Samples of what this process and all its descendants hold, in bytes, each shared page counted once."""
    samples = [0]
    done = threading.Event()

    def sample() -> None:
        while not done.wait(SAMPLE_S):
            samples.append(sum(map(_pss_bytes, _family(os.getpid()))))

    thread = threading.Thread(target=sample, daemon=True)
    thread.start()
    try:
        yield samples
    finally:
        done.set()
        thread.join()


def _family(pid: int) -> list[int]:
    found = [pid]
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            children = task.read_text().split()
        except OSError:
            continue  # it has just ended
        for child in children:
            found += _family(int(child))
    return found


def _pss_bytes(pid: int) -> int:
    try:
        text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    except OSError:
        return 0
    kilobytes = next(
        (line.split()[1] for line in text.splitlines() if line.startswith("Pss:")), "0"
    )
    return int(kilobytes) * 1024
