"""What the defaults of OCR rest on: time, memory and errors by resolution, chunk and threads.

Owns the cases. Each runs in a process of its own, so that its peak memory is its own. The page is dense A4
text: the text area of pages of ``examples/documents/handbook.pdf``, drawn as a scanner at that resolution
would see it and repeated down the page; the file's own text tells how many characters are read wrongly.

    ./dev bench ocr [--json] [--only=detect|recognize|threads]

``docs/explanation/ocr-defaults.md`` has the results. Compare within one run: machines differ.
"""

from __future__ import annotations

import resource
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from difflib import SequenceMatcher
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from benchmarks.report import Report
from fanfold.pipelines.documents.extras import load

HANDBOOK = Path(__file__).parent.parent / "examples" / "documents" / "handbook.pdf"
REPEATS = 3
Measured = dict[str, float]
UNITS = {
    "wall_s": "s",
    "cpu_s": "s",
    "wall_ms_per_line": "ms",
    "cpu_ms_per_line": "ms",
    "wrong_per_10000_chars": "1/10000",
    "lines": "1",
    "peak_mb": "MB",
}


def elsewhere(function: Callable[..., Any], options: dict[str, int]) -> Any:
    """Call it in a process of its own: spawned, so that it inherits no memory and no loaded model."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(function, **options).result()


def dense_page(dpi: int, number: int = 0) -> tuple[Any, str]:
    """An image of a full page of text, and what is written on it."""
    import numpy as np

    document = load("pypdfium2").PdfDocument(HANDBOOK)
    page = document[number]
    image = page.render(scale=dpi / 72).to_numpy()
    text = page.get_textpage().get_text_range()
    # The text stands between 55 and 315 points from the top.
    band = image[round(55 * dpi / 72) : round(315 * dpi / 72)]
    margin = image[: round(50 * dpi / 72)]
    return np.ascontiguousarray(np.concatenate([margin, *[band] * REPEATS])), text * REPEATS


def timed(work: Callable[[], Any], times: int = 2) -> tuple[float, float, Any]:
    """Wall and CPU seconds of the fastest of some tries after a warm-up, and the result."""
    result = work()
    best = (float("inf"), float("inf"))
    for _ in range(times):
        wall, cpu = time.perf_counter(), time.process_time()
        result = work()
        best = min(best, (time.perf_counter() - wall, time.process_time() - cpu))
    return (*best, result)


def peak_mb() -> float:
    """The most memory that this process had resident so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def detect(dpi: int, max_side_px: int, threads: int = 1) -> Measured:
    """Detection of one page of 30 lines."""
    from fanfold.pipelines.documents.ocr import Detect

    image, _ = dense_page(dpi)
    stage = Detect(max_side_px, threads=threads)
    wall_s, cpu_s, lines = timed(lambda: stage(image))
    return {"wall_s": wall_s, "cpu_s": cpu_s, "lines": len(lines), "peak_mb": peak_mb()}


def lines_of_two_pages(dpi: int) -> tuple[list[Any], str]:
    """The images of the lines of two pages, and what is written on them."""
    from fanfold.pipelines.documents.ocr import Detect

    stage = Detect(threads=1)
    images, truth = [], ""
    for number in range(2):
        page, text = dense_page(dpi, number)
        images += [line.image for line in stage(page)]
        truth += text
    return images, truth


def recognize(dpi: int, batch: int, chunk: int, threads: int = 1) -> Measured:
    """Recognition of the lines of two pages, in batches of ``batch`` and model calls of ``chunk``."""
    from fanfold.pipelines.documents.ocr import Recognize

    # In a process of its own, since detection takes more memory than recognition.
    images, truth = elsewhere(lines_of_two_pages, {"dpi": dpi})
    stage = Recognize(chunk, threads=threads)
    starts = range(0, len(images), batch)
    wall_s, cpu_s, batches = timed(lambda: [stage(images[i : i + batch]) for i in starts], 1)
    read = "".join(line.text for lines in batches for line in lines)
    wanted, got = "".join(truth.split()), "".join(read.split())
    alike = SequenceMatcher(None, wanted, got, autojunk=False).ratio()
    return {
        "wall_ms_per_line": 1000 * wall_s / len(images),
        "cpu_ms_per_line": 1000 * cpu_s / len(images),
        "wrong_per_10000_chars": 10_000 * (1 - alike),
        "peak_mb": peak_mb(),
    }


CASES: dict[str, list[tuple[Callable[..., Measured], dict[str, int]]]] = {
    "detect": [
        *((detect, {"dpi": 150, "max_side_px": side}) for side in (2000, 1600, 1280, 960, 736)),
        *((detect, {"dpi": dpi, "max_side_px": 1280}) for dpi in (100, 200, 300)),
        # 10.5-point letters at 86 dpi look as 6-point letters do at 150 dpi, and 629 is to 990 pixels
        # what 1280 is to 2012: so this is fine print on a large page, in two sizes of the copy.
        *((detect, {"dpi": 86, "max_side_px": side}) for side in (729, 629, 475)),
    ],
    "recognize": [
        *((recognize, {"dpi": dpi, "batch": 16, "chunk": 1}) for dpi in (100, 150, 200)),
        *(
            (recognize, {"dpi": 150, "batch": batch, "chunk": chunk})
            for batch, chunk in ((16, 2), (16, 4), (16, 8), (16, 16), (32, 32), (64, 1), (64, 4))
        ),
    ],
    "threads": [
        (detect, {"dpi": 150, "max_side_px": 1280, "threads": 2}),
        (recognize, {"dpi": 150, "batch": 16, "chunk": 1, "threads": 2}),
        (recognize, {"dpi": 150, "batch": 16, "chunk": 8, "threads": 2}),
    ],
}


def run(report: Report, arguments: Sequence[str]) -> None:
    """Run the cases one after the other; ``--only=GROUP`` leaves the other groups out."""
    for group, cases in CASES.items():
        if arguments and f"--only={group}" not in arguments:
            continue
        for function, options in cases:
            case = " ".join([function.__name__, *(f"{k}={v}" for k, v in options.items())])
            report.note(case)
            measured: Measured = elsewhere(function, options)
            for metric, value in measured.items():
                report.add(case, metric, round(value, 4), UNITS[metric])
