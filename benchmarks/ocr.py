"""Measures what the OCR defaults rest on: time, memory and errors by resolution, chunk and threads.

Each case runs in a process of its own, so that its peak memory is its own. The page is dense A4 text:
the text area of pages of ``examples/documents/handbook.pdf``, drawn as a scanner at that resolution
would see it and repeated down the page; the file's own text tells how many characters are read wrongly.

    python benchmarks/ocr.py [--json] [--only detect|recognize|threads]

Not a test: times differ from machine to machine. ``docs/explanation/ocr-defaults.md`` has the results.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import resource
import sys
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any

HANDBOOK = Path(__file__).parent.parent / "examples" / "documents" / "handbook.pdf"
REPEATS = 3
Measured = dict[str, float]


def dense_page(dpi: int, number: int = 0) -> tuple[Any, str]:
    """An image of a full page of text, and what is written on it."""
    import numpy as np
    import pypdfium2

    document = pypdfium2.PdfDocument(HANDBOOK)
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


def recognize(dpi: int, batch: int, chunk: int, threads: int = 1) -> Measured:
    """Recognition of the lines of two pages, in batches of ``batch`` and model calls of ``chunk``."""
    from fanfold.pipelines.documents.ocr import Detect, Recognize

    finder = Detect(threads=threads)
    found, truth = [], ""
    for number in range(2):
        image, text = dense_page(dpi, number)
        found += finder(image)
        truth += text
    del finder
    stage = Recognize(chunk, threads=threads)
    images = [line.image for line in found]
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


def main() -> None:
    """Run the cases one after the other and print a table, or one JSON object a line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--only", choices=CASES)
    options = parser.parse_args()
    for group, cases in CASES.items():
        if options.only not in (None, group):
            continue
        for function, arguments in cases:
            context = multiprocessing.get_context("spawn")
            with ProcessPoolExecutor(1, mp_context=context) as pool:
                measured = pool.submit(function, **arguments).result()
            case = " ".join([function.__name__, *(f"{k}={v}" for k, v in arguments.items())])
            if not options.json:
                print(f"{case:50}", *(f"{k} {v:.4g}" for k, v in measured.items()), sep="  ")
            else:
                for metric, value in measured.items():
                    unit = metric.split("_")[1] if "_" in metric else "count"
                    print(json.dumps(_row(case, metric, value, unit)))
            sys.stdout.flush()


def _row(case: str, metric: str, value: float, unit: str) -> dict[str, Any]:
    return {
        "bench": "ocr",
        "case": case,
        "system": "fanfold",
        "metric": metric,
        "value": round(value, 4),
        "unit": unit,
        "target": None,
        "met": None,
    }


if __name__ == "__main__":
    main()
