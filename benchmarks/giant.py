"""The documents pipeline on one giant file within 1 GB: 5,000 pages, some of them scans.

The file is made here: pages with a text layer, and every so many pages (the first is one) an image of two lines
of text, which goes through OCR. Measured are the time until the first page is at the OCR stage, the most memory
that all processes held, and what values took of it. Options: ``--pages=N``, ``--scan-every=N``,
``--memory=SIZE``, ``--quick`` for a file that only shows that it works.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks.processes import sampled
from benchmarks.report import Report
from fanfold.pipelines.documents import ocr
from fanfold.sizes import as_bytes

FIRST_PAGE_S = 3.0
"""The target for the first page at the OCR stage."""
STAMP = "FANFOLD_BENCH_FIRST_PAGE"
"""The environment variable that names the file which the first page's time is written to."""


class StampingDetect(ocr.Detect):
    """The OCR stage's first half, which notes when it is first called."""

    def __call__(self, image: Any) -> list[ocr.Line]:
        path = Path(os.environ[STAMP])
        if not path.exists():
            path.write_text(str(time.time()), encoding="utf-8")
        return super().__call__(image)


def run(report: Report, options: Sequence[str]) -> None:
    """Convert the giant once."""
    from fanfold.pipelines.documents import documents, sinks, source

    given: dict[str, str] = {}
    for option in options:
        name, _, value = option.lstrip("-").partition("=")
        given[name] = value
    quick = "quick" in given
    pages = int(given.get("pages", "60" if quick else "5000"))
    scan_every = int(given.get("scan-every", "20" if quick else "250"))
    memory = given.get("memory", "1GB")
    pipeline = documents.using({"Detect": StampingDetect})
    with tempfile.TemporaryDirectory() as folder:
        giant, stamp = Path(folder, "giant.pdf"), Path(folder, "first-page")
        giant.write_bytes(b"".join(pdf(pages, scan_every)))
        os.environ[STAMP] = str(stamp)
        with sampled(os.getpid()) as samples:
            started, started_at = time.perf_counter(), time.time()
            result = pipeline.run(
                source([giant]), sinks(Path(folder, "out")), memory=memory, progress=False
            )
            seconds = time.perf_counter() - started
        first_page_s = float(stamp.read_text(encoding="utf-8")) - started_at
        file_bytes = giant.stat().st_size
    limit = as_bytes(memory)
    report.add("pdf", "pages", result.levels["page"], "pages")
    report.add("pdf", "file", file_bytes / 2**20, "MB")
    report.add("pdf", "first_page_at_ocr_s", first_page_s, "s", target=FIRST_PAGE_S, better="lower")
    report.add("pdf", "pages_per_s", result.levels["page"] / seconds, "1/s")
    peak = max(sample.pss_bytes for sample in samples)
    report.add("pdf", "peak_pss", peak / 2**20, "MB", target=limit / 2**20, better="lower")
    values = max(sample.arena_bytes for sample in samples)
    report.add("pdf", "peak_values", values / 2**20, "MB")
    report.add("pdf", "failed_documents", result.roots["failed"], "documents")
    for kind in result.failures:
        report.note(str(kind))


def pdf(pages: int, scan_every: int) -> Iterator[bytes]:
    """A PDF file of so many pages, every so many of which is an image.

    >>> file = b"".join(pdf(3, 2))
    >>> file[:8], file.count(b"/Type /Page ")
    (b'%PDF-1.7', 3)
    """
    offsets: list[int] = []
    written = 0

    def numbered(body: bytes) -> bytes:
        nonlocal written
        offsets.append(written)
        text = b"%d 0 obj\n%b\nendobj\n" % (len(offsets), body)
        written += len(text)
        return text

    head = b"%PDF-1.7\n"
    written += len(head)
    yield head
    kids = b" ".join(b"%d 0 R" % (4 + 2 * page) for page in range(pages))
    yield numbered(b"<< /Type /Catalog /Pages 2 0 R >>")
    yield numbered(b"<< /Type /Pages /Count %d /Kids [%b] >>" % (pages, kids))
    yield numbered(b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>")
    for page in range(pages):
        first = len(offsets) + 1
        scan = page % scan_every == 0
        resources = (
            b"/XObject << /Scan %d 0 R >>" % (4 + 2 * pages) if scan else b"/Font << /F 3 0 R >>"
        )
        yield numbered(
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents %d 0 R /Resources << %b >> >>"
            % (first + 1, resources)
        )
        yield numbered(_stream(b"595 0 0 842 0 0 cm /Scan Do" if scan else _words(page)))
    yield numbered(_scan())
    table = b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    yield b"xref\n0 %d\n0000000000 65535 f \n%b" % (len(offsets) + 1, table)
    yield b"trailer\n<< /Size %d /Root 1 0 R >>\n" % (len(offsets) + 1)
    yield b"startxref\n%d\n%%%%EOF\n" % written


def _stream(content: bytes, entries: bytes = b"") -> bytes:
    return b"<< /Length %d %b>>\nstream\n%b\nendstream" % (len(content), entries, content)


def _words(page: int) -> bytes:
    lines = b" T* ".join(
        b"(Page %d, line %d: what stands on it is of no use to anybody.) Tj" % (page + 1, line)
        for line in range(40)
    )
    return b"BT /F 11 Tf 14 TL 60 780 Td %b ET" % lines


def _scan() -> bytes:
    """An image of two lines of text, as pages of scans are."""
    import zlib

    from PIL import Image, ImageDraw, ImageFont

    image = Image.new("L", (1240, 1754), 255)
    font = ImageFont.load_default(size=40)
    draw = ImageDraw.Draw(image)
    draw.text((150, 300), "A page that was scanned", font=font, fill=0)
    draw.text((150, 400), "with two lines of text", font=font, fill=0)
    return _stream(
        zlib.compress(image.tobytes()),
        b"/Type /XObject /Subtype /Image /Width 1240 /Height 1754 /ColorSpace /DeviceGray "
        b"/BitsPerComponent 8 /Filter /FlateDecode ",
    )
