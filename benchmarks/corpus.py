"""The documents pipeline over a folder of real PDF files: pages a second, peak memory, what failed.

Options: ``--paths=DIR`` (needed), ``--replicas=N`` for the stages that read pages (default 1).

Debian's ``gnuplot-doc`` and ``texlive-humanities-doc`` make a corpus of 143 files and 3,296 pages:

    apt-get download gnuplot-doc texlive-humanities-doc
    for package in *.deb; do dpkg -x "$package" corpus; done
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Sequence

from benchmarks.processes import sampled
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
    with tempfile.TemporaryDirectory() as out, sampled(os.getpid(), SAMPLE_S) as samples:
        started = time.perf_counter()
        result = pipeline.run(source([given["paths"]]), sinks(out), progress=False)
        seconds = time.perf_counter() - started
    pages = result.levels["page"]
    report.add("documents", "pages", pages, "pages")
    report.add("documents", "pages_per_s", pages / seconds, "1/s")
    report.add(
        "documents", "peak_memory", max(sample.pss_bytes for sample in samples) / 2**20, "MB"
    )
    report.add("documents", "failed_documents", result.roots["failed"], "documents")
    for kind in result.failures:
        report.note(str(kind))
