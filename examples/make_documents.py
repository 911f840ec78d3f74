"""Makes the example documents in ``examples/documents``; the same bytes every time.

Owns what the twelve files contain. The demo (``examples/demo.py``) knows what must come out of them;
change the two together. The files are in the repository, so nobody needs this script to run the demo.

It needs ``pip install reportlab fpdf2 numpy pillow`` and one font file (``--font``, or the one that the
wheel ``cvttf-notosanscjk-regular`` ships) with Latin, Greek, Cyrillic and Chinese glyphs; the shipped
files were made with Noto Sans CJK (SIL Open Font License, which allows embedding). Other versions of
these libraries may give other bytes, but the same documents.

    python examples/make_documents.py --font NotoSansCJKtc-Regular.otf [--out examples/documents]
"""

from __future__ import annotations

import argparse
import importlib.util
import random
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from fpdf import FPDF
from PIL import Image, ImageDraw, ImageFilter, ImageFont
from reportlab.lib.pagesizes import A4, A5
from reportlab.lib.pdfencrypt import StandardEncryption
from reportlab.lib.utils import ImageReader
from reportlab.pdfgen.canvas import Canvas

SCAN_DPI = 150
ODD_NAME = "Entwurf #2; Übersicht für das Café.pdf"

SUBJECTS = (
    "The reading room", "Each shelf", "The rain gauge", "A spare lamp", "The north window",
    "Every map", "The catalogue", "The stair", "A paper tag", "The lower store", "The ink",
)  # fmt: skip
VERBS = (
    "is checked before", "is listed beside", "stays dry after", "is moved away from", "is kept near",
    "is counted with", "is cleaned before", "belongs next to", "is repaired after",
)  # fmt: skip
OBJECTS = (
    "the morning round", "the second cabinet", "a wet week", "the old register", "the copper scale",
    "the long table", "the winter stock", "an open drawer", "the first inspection",
)  # fmt: skip


def sentences(seed: int, count: int) -> list[str]:
    """``count`` plain English sentences, the same ones for the same seed."""
    chance = random.Random(seed)
    return [
        f"{chance.choice(SUBJECTS)} {chance.choice(VERBS)} {chance.choice(OBJECTS)}."
        for _ in range(count)
    ]


def wrapped(words: Sequence[str], width_chars: int) -> list[str]:
    """Lines of at most ``width_chars`` characters."""
    lines, line = [], ""
    for word in " ".join(words).split():
        if line and len(line) + 1 + len(word) > width_chars:
            lines.append(line)
            line = word
        else:
            line = f"{line} {word}".strip()
    return [*lines, line]


# Born-digital pages


def canvas(path: Path, size: tuple[float, float] = A4, **options: Any) -> Canvas:
    """A canvas that writes neither the time nor a random identifier."""
    made = Canvas(str(path), pagesize=size, invariant=1, pageCompression=1, **options)
    made.setTitle(path.stem)
    return made


def text_page(pdf: Canvas, title: str, lines: Sequence[str], size: tuple[float, float]) -> None:
    """A heading and lines of Helvetica."""
    pdf.setFont("Helvetica-Bold", 16)
    pdf.drawString(56, size[1] - 72, title)
    pdf.setFont("Helvetica", 10.5)
    for number, line in enumerate(lines):
        pdf.drawString(56, size[1] - 104 - 15 * number, line)
    pdf.showPage()


def annual_report(path: Path) -> None:
    """Four born-digital pages; the one with ordinal 2 is empty."""
    pdf = canvas(path)
    text_page(pdf, "Annual report of the map archive", wrapped(sentences(1, 14), 85), A4)
    text_page(pdf, "Holdings", wrapped(sentences(2, 20), 85), A4)
    pdf.showPage()
    text_page(pdf, "Outlook", wrapped(sentences(3, 9), 85), A4)
    pdf.save()


def handbook(path: Path) -> None:
    """Sixty born-digital pages."""
    pdf = canvas(path)
    for chapter in range(60):
        text_page(pdf, f"Rule {chapter}", wrapped(sentences(100 + chapter, 16), 85), A4)
    pdf.save()


def rotated(path: Path) -> None:
    """Born-digital pages that the page dictionary turns by 90, 180 and 270 degrees."""
    pdf = canvas(path)
    width, height = A4
    for angle in (90, 180, 270):
        pdf.setPageRotation(angle)
        # The text runs askew in the page's own coordinates and upright once the viewer has turned
        # them. The media box of a page turned sideways is landscape (reportlab swaps its sides).
        pdf.translate(*{90: (height, 0), 180: (width, height), 270: (0, width)}[angle])
        pdf.rotate(angle)
        text_page(pdf, f"Turned by {angle} degrees", wrapped(sentences(200 + angle, 10), 85), A4)
    pdf.save()


def odd_name(path: Path) -> None:
    """One page in a file whose name has spaces, a number sign, a semicolon and accents."""
    pdf = canvas(path)
    text_page(pdf, "Draft with an awkward name", wrapped(sentences(4, 8), 85), A4)
    pdf.save()


def owner_locked(path: Path) -> None:
    """Only changing it needs a password; everybody may read it."""
    lock = StandardEncryption("", ownerPassword="archive", strength=128)
    pdf = canvas(path, encrypt=lock)
    text_page(pdf, "Readable by everybody", wrapped(sentences(5, 8), 85), A4)
    pdf.save()


def encrypted(path: Path) -> None:
    """Reading it needs a password."""
    pdf = canvas(path, encrypt=StandardEncryption("archive", strength=128))
    text_page(pdf, "Closed stacks", wrapped(sentences(6, 8), 85), A4)
    pdf.save()


def truncated(path: Path) -> None:
    """The first two thirds of a file: the page tree and the cross-reference table are missing."""
    pdf = canvas(path)
    for page in range(3):
        text_page(pdf, f"Inventory {page}", wrapped(sentences(7 + page, 12), 85), A4)
    pdf.save()
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) * 2 // 3].rsplit(b"/Type /Catalog", 1)[0])


# Scanned pages


def scan(
    font: Path,
    lines: Sequence[str],
    *,
    seed: int,
    skew_deg: float = 0.0,
    columns: Sequence[Sequence[str]] = (),
) -> Image.Image:
    """An A5 page as a scanner sees it: grey, a little blurred, noisy and askew."""
    width, height = (round(side / 72 * SCAN_DPI) for side in A5)
    page = Image.new("L", (width, height), 244)
    draw = ImageDraw.Draw(page)
    face = ImageFont.truetype(str(font), 23)
    for number, line in enumerate(lines):
        draw.text((80, 90 + 38 * number), line, font=face, fill=40)
    for column, column_lines in enumerate(columns):
        left, top = 60 + 400 * column, 110 + 38 * len(lines)
        for number, line in enumerate(column_lines):
            draw.text((left, top + 38 * number), line, font=face, fill=40)
    page = page.rotate(skew_deg, resample=Image.Resampling.BICUBIC, fillcolor=244)
    page = page.filter(ImageFilter.GaussianBlur(0.6))
    noise = np.random.default_rng(seed).normal(0, 3, (height, width))
    return Image.fromarray(np.clip(np.asarray(page) + noise, 0, 255).astype(np.uint8))


def scan_page(pdf: Canvas, image: Image.Image, size: tuple[float, float], turned: int = 0) -> None:
    """The image fills the page; with ``turned`` it is stored sideways and the page turns it back."""
    jpeg = BytesIO()
    image.rotate(turned, expand=True).save(jpeg, "JPEG", quality=38)
    jpeg.seek(0)
    pdf.setPageSize(size)
    pdf.setPageRotation(turned)
    stored = size if turned % 180 == 0 else (size[1], size[0])
    pdf.drawImage(ImageReader(jpeg), 0, 0, *stored)
    pdf.showPage()
    pdf.setPageRotation(0)


def letter_scan(path: Path, font: Path) -> None:
    """One scanned page."""
    lines = [
        "Letter to the reading room", "", "The parcel with the harbour maps has arrived.",
        "Two of them are torn along the fold, and one", "is stained by water. We ask you to repair",
        "them before the exhibition in October.", "", "Please send the bill to the lower store.",
    ]  # fmt: skip
    pdf = canvas(path, A5)
    scan_page(pdf, scan(font, lines, seed=11, skew_deg=0.5), A5)
    pdf.save()


def minutes_scan(path: Path, font: Path) -> None:
    """Three scanned pages: plain, stored sideways and turned by the page dictionary, two columns."""
    pdf = canvas(path, A5)
    first = ["Minutes of the spring meeting", "", *wrapped(sentences(21, 7), 44)]
    scan_page(pdf, scan(font, first, seed=21, skew_deg=-0.4), A5)
    second = ["Decisions", "", *wrapped(sentences(22, 6), 44)]
    scan_page(pdf, scan(font, second, seed=22), A5, turned=90)
    left = [
        "The left column",
        "begins here and",
        "goes on down to",
        "its last line at",
        "the lower lamp.",
    ]
    right = [
        "The right column",
        "follows the left",
        "one, and closes",
        "the page with a",
        "quiet harbour.",
    ]
    scan_page(pdf, scan(font, ["Appendix"], seed=23, columns=(left, right)), A5)
    pdf.save()


def mixed(path: Path, font: Path) -> None:
    """Native, scanned, native, and scanned with somebody's invisible text on top."""
    pdf = canvas(path, A5)
    text_page(pdf, "Covering note", wrapped(sentences(31, 7), 55), A5)
    lines = ["Receipt", "", "Copper scale, second hand", "Paper tags, four boxes", "Total 128.50"]
    scan_page(pdf, scan(font, lines, seed=32, skew_deg=0.3), A5)
    pdf.setPageSize(A5)
    text_page(pdf, "Remarks", wrapped(sentences(33, 7), 55), A5)
    searchable = ["Searchable scan", "The text of this page", "was recognized long ago."]
    layer = pdf.beginText(40, A5[1] - 60)
    layer.setTextRenderMode(3)
    layer.setFont("Helvetica", 11)
    layer.textLines(searchable)
    pdf.drawText(layer)
    scan_page(pdf, scan(font, searchable, seed=34), A5)
    pdf.save()


def poster(path: Path) -> None:
    """A cover, a drawing of 200 by 200 inches that cannot be rendered, and a last page."""
    pdf = canvas(path)
    text_page(pdf, "Poster: cover", wrapped(sentences(41, 5), 85), A4)
    side_pt = 200 * 72
    pdf.setPageSize((side_pt, side_pt))
    pdf.setLineWidth(40)
    pdf.circle(side_pt / 2, side_pt / 2, side_pt / 3)
    pdf.showPage()
    pdf.setPageSize(A4)
    text_page(pdf, "Poster: credits", wrapped(sentences(42, 5), 85), A4)
    pdf.save()


def languages(path: Path, font: Path) -> None:
    """Greek, Russian and Chinese with embedded subsets of a font, and a Chinese scan."""
    pdf = FPDF(format=A5, unit="pt")
    pdf.set_creation_date(datetime(2026, 1, 1, tzinfo=UTC))
    pdf.add_font("text", fname=font)
    pages = (
        ["Ο ΧΑΡΤΗΣ ΤΟΥ ΛΙΜΑΝΙΟΥ", "ΟΙ ΧΑΡΤΕΣ ΜΕΝΟΥΝ ΣΤΕΓΝΟΙ"],
        ["Карта старой гавани", "Каждая карта хранится сухой", "и проверяется весной."],
        ["港口地图", "每一张地图都保存在干燥的柜子里。", "春天检查一次。"],
    )
    for lines in pages:
        pdf.add_page()
        pdf.set_font("text", size=14)
        for number, line in enumerate(lines):
            pdf.text(50, 80 + 24 * number, line)
    pdf.add_page()
    lines = ["阅览室规则", "", "请保持安静。", "地图不得带出阅览室。", "每天上午九点开放。"]
    jpeg = BytesIO()
    scan(font, lines, seed=51).save(jpeg, "JPEG", quality=38)
    pdf.image(jpeg, 0, 0, *A5)
    pdf.output(str(path))


PLAIN: dict[str, Callable[[Path], None]] = {
    "annual-report.pdf": annual_report,
    "handbook.pdf": handbook,
    "rotated.pdf": rotated,
    ODD_NAME: odd_name,
    "owner-locked.pdf": owner_locked,
    "encrypted.pdf": encrypted,
    "truncated.pdf": truncated,
    "poster.pdf": poster,
}
WITH_FONT: dict[str, Callable[[Path, Path], None]] = {
    "letter-scan.pdf": letter_scan,
    "minutes-scan.pdf": minutes_scan,
    "mixed.pdf": mixed,
    "languages.pdf": languages,
}


def shipped_font() -> Path | None:
    """The font of the wheel ``cvttf-notosanscjk-regular``, if that is installed."""
    spec = importlib.util.find_spec("cvttf_NotoSansCJK_Regular")
    if spec is None or spec.origin is None:
        return None
    return next(Path(spec.origin).parent.glob("*.otf"), None)


def main() -> None:
    """Write all documents into a folder."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "documents")
    parser.add_argument("--font", type=Path, default=shipped_font())
    options = parser.parse_args()
    if options.font is None:
        parser.error("give --font FILE, or pip install cvttf-notosanscjk-regular")
    options.out.mkdir(parents=True, exist_ok=True)
    for name, make in PLAIN.items():
        make(options.out / name)
    for name, make_with_font in WITH_FONT.items():
        make_with_font(options.out / name, options.font)
    total = sum(path.stat().st_size for path in options.out.glob("*.pdf"))
    print(f"{len(PLAIN) + len(WITH_FONT)} documents, {total / 1000:.0f} kB in {options.out}")


if __name__ == "__main__":
    main()
