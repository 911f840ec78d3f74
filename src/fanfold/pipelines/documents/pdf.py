"""Opens PDF files: the stages ``pages`` (a file to its pages) and ``Render`` (a page to an image).

Owns all use of PDFium and the codes of what can be wrong with a file or a page. Whether a page's own
text is good enough is decided in ``textlayer.py``. Must not know of OCR or of what is written at the end.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol

from fanfold.failures import ItemFailure
from fanfold.pipelines.documents.extras import load
from fanfold.pipelines.documents.textlayer import (
    HiddenText,
    Layer,
    has_usable_text,
    is_doubtful,
    tidy,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Kind = Literal["native", "scan", "empty"]

POINTS_PER_INCH: Final = 72
WINDOW_BYTES: Final = 1_024
"""A header may start, and an end-of-file mark may stand, so far from the ends of a file."""
PAGELESS_BYTES: Final = 1 << 20
"""A larger file is never taken for one without pages, which PDFium cannot tell from a broken one."""
_PAGELESS: Final = re.compile(
    rb"<<(?=[^>]*/Type\s*/Pages\b)(?=[^>]*/Count\s+0\b)[^>]*>>", re.DOTALL
)
_NO_PAGES: Final = "the document has 0 pages"
HOPELESS_PAGES: Final = 32
"""A file whose first so many pages are all unreadable is given up (its page count may be made up)."""
SAMPLE_CHARS: Final = 100
THUMBNAIL_PX: Final = 200
IMAGE_SHARE: Final = 4
"""A picture on a page may have so many times the pixels that the page itself may have."""


class LocalFile(Protocol):
    """What the stages need of a file; :class:`fanfold.File` has it."""

    @property
    def path(self) -> str: ...

    def local(self) -> str | os.PathLike[str]:
        """The path of a copy on this machine, or of the file itself if it is here."""
        ...


@dataclass(frozen=True, slots=True)
class Page:
    """A page of a document, without its looks."""

    number: int
    """Its ordinal, counted from 0."""
    kind: Kind
    """``native``: ``text`` is what is on it; ``scan``: it must be looked at; ``empty``: nothing is on it."""
    width_pt: float | None
    """As a viewer shows it, turned if the page says so; None if the page could not be read."""
    height_pt: float | None
    text: str


def pages(file: LocalFile, *, hidden_text: HiddenText = "use") -> Iterator[Page]:
    """The pages of a PDF file, one by one, in order.

    Args:
        file: The file.
        hidden_text: What to do with invisible text over a scan (somebody's OCR): ``"use"`` it, or
            ignore it and read the page anew (``"ocr"``).

    Raises:
        ItemFailure: ``pdf.empty_file``, ``pdf.not_a_pdf``, ``pdf.encrypted`` (a password is needed to
            read it), ``pdf.unsupported_encryption``, ``pdf.truncated``, ``pdf.damaged``,
            ``pdf.no_pages``.
        SetupError: FF450, a library is missing.
    """
    with opened(file) as document:
        count = len(document)
        if not count:
            raise ItemFailure(_NO_PAGES, code="pdf.no_pages")
        readable = 0
        for number in range(count):
            page = _page(document, number)
            if page is None:
                if number + 1 == HOPELESS_PAGES and not readable:
                    break
                # "scan", because only the stage that looks at a page can fail it alone.
                yield Page(number, "scan", None, None, "")
                continue
            readable += 1
            try:
                width_pt, height_pt = page.get_size()
                kind, text = _classified(page, hidden_text)
            finally:
                page.close()
            yield Page(number, kind, round(width_pt, 2), round(height_pt, 2), text)
        if not readable:
            raise ItemFailure(f"none of its {count} pages can be read", code="pdf.damaged")


class Render:
    """Draws pages; keeps the last document open, since its pages tend to come one after the other.

    Args:
        dpi: Resolution in pixels per inch.
        max_pixels: Larger pages are refused before any memory is taken for them.

    Raises:
        SetupError: FF450, a library is missing.
    """

    def __init__(self, dpi: int = 150, *, max_pixels: int = 50_000_000) -> None:
        self._dpi = dpi
        self._max_pixels = max_pixels
        self._stack = ExitStack()
        self._open: tuple[str, Any] | None = None
        load("pypdfium2")

    def __call__(self, file: LocalFile, number: int) -> NDArray[np.uint8]:
        """The page as a viewer shows it: height × width × 3 bytes, blue first.

        Raises:
            ItemFailure: ``page.too_large`` or ``page.damaged``.
        """
        page = _page(self._document(file), number)
        if page is None:
            raise ItemFailure("the page cannot be read", code="page.damaged")
        try:
            self._check_size(page)
            bitmap = page.render(scale=self._dpi / POINTS_PER_INCH)
            # A copy, because the bitmap's own memory goes away with the bitmap.
            image: NDArray[np.uint8] = bitmap.to_numpy().copy()
            bitmap.close()
            return image
        finally:
            page.close()

    def close(self) -> None:
        """Close the document that is still open."""
        self._open = None
        self._stack.close()

    def _document(self, file: LocalFile) -> Any:
        if self._open is None or self._open[0] != file.path:
            self.close()
            document = self._stack.enter_context(opened(file))
            document.init_forms()
            self._open = (file.path, document)
        return self._open[1]

    def _check_size(self, page: Any) -> None:
        """Refuse what would take more memory than allowed: the page itself, or a picture on it."""
        inches = [side / POINTS_PER_INCH for side in page.get_size()]
        width, height = (math.ceil(side * self._dpi) for side in inches)
        if width * height > self._max_pixels:
            raise ItemFailure(
                f"the page is {inches[0]:.1f} × {inches[1]:.1f} inches, {width} × {height} pixels at "
                f"{self._dpi} dpi, and the limit is {self._max_pixels} pixels; "
                "lower dpi or raise max_pixels",
                code="page.too_large",
            )
        for picture in _objects(page, "IMAGE"):
            width, height = picture.get_px_size()
            if width * height > IMAGE_SHARE * self._max_pixels:
                raise ItemFailure(
                    f"a picture on the page has {width} × {height} pixels, and the limit is "
                    f"{IMAGE_SHARE * self._max_pixels} pixels; raise max_pixels",
                    code="page.too_large",
                )


@contextmanager
def opened(file: LocalFile) -> Iterator[Any]:
    """A PDF file as PDFium's document, closed at the end. Raises what :func:`pages` says."""
    pdfium = load("pypdfium2")
    path = os.fspath(file.local())
    head, tail = _ends(path)
    if not head:
        raise ItemFailure("the file has 0 bytes", code="pdf.empty_file")
    if b"%PDF-" not in head:
        raise ItemFailure(f"the file begins with {head[:16]!r}", code="pdf.not_a_pdf")
    try:
        document = pdfium.PdfDocument(path)
    except pdfium.PdfiumError as error:
        raise _unreadable(error.err_code, path, tail) from error
    try:
        yield document
    finally:
        document.close()


def _ends(path: str) -> tuple[bytes, bytes]:
    """The first and the last bytes of a file."""
    with open(path, "rb") as stream:
        head = stream.read(WINDOW_BYTES)
        stream.seek(max(0, os.path.getsize(path) - WINDOW_BYTES))
        return head, stream.read(WINDOW_BYTES)


def _unreadable(error_code: int | None, path: str, tail: bytes) -> ItemFailure:
    """Why PDFium could not open a file that begins like a PDF."""
    raw = load("pypdfium2.raw")
    if error_code == raw.FPDF_ERR_PASSWORD:
        return ItemFailure("a password is needed to read the file", code="pdf.encrypted")
    if error_code == raw.FPDF_ERR_SECURITY:
        return ItemFailure("its encryption is not supported", code="pdf.unsupported_encryption")
    if b"%%EOF" not in tail:
        return ItemFailure("the end of the file is missing", code="pdf.truncated")
    if os.path.getsize(path) <= PAGELESS_BYTES:
        with open(path, "rb") as stream:
            if _PAGELESS.search(stream.read()):
                return ItemFailure(_NO_PAGES, code="pdf.no_pages")
    return ItemFailure("the file's structure cannot be read", code="pdf.damaged")


def _page(document: Any, number: int) -> Any:
    """A page, or None if it is damaged."""
    try:
        return document[number]
    except load("pypdfium2").PdfiumError:
        return None


def _objects(page: Any, *kinds: str) -> list[Any]:
    raw = load("pypdfium2.raw")
    return list(page.get_objects(filter=[getattr(raw, f"FPDF_PAGEOBJ_{kind}") for kind in kinds]))


def _classified(page: Any, hidden_text: HiddenText) -> tuple[Kind, str]:
    """What kind of page it is, and its text if that is usable."""
    layer = _layer(page, hidden_text)
    if has_usable_text(layer, hidden_text):
        return "native", tidy(layer.text)
    if layer.text.strip() or _objects(page, "IMAGE") or not _is_blank(page):
        return "scan", ""
    return "empty", ""


def _layer(page: Any, hidden_text: HiddenText) -> Layer:
    """The page's text layer, and what must be known to judge it."""
    raw = load("pypdfium2.raw")
    text_page = page.get_textpage()
    try:
        count = text_page.count_chars()
        # Not the text within the page's bounds: PDFium joins lines of turned text there.
        text: str = text_page.get_text_range() if count else ""
        sample = range(0, count, max(1, count // SAMPLE_CHARS))
        unmapped = sum(raw.FPDFText_HasUnicodeMapError(text_page, i) == 1 for i in sample)
        share = 1 / max(1, len(sample))
        if not is_doubtful(text, hidden_text):
            return Layer(text, unmapped * share)
        hidden = sum(
            raw.FPDFTextObj_GetTextRenderMode(raw.FPDFText_GetTextObject(text_page, i))
            == raw.FPDF_TEXTRENDERMODE_INVISIBLE
            for i in sample
        )
        return Layer(text, unmapped * share, hidden * share, _picture_share(page))
    finally:
        text_page.close()


def _picture_share(page: Any) -> float:
    """How much of the page pictures cover."""
    width_pt, height_pt = page.get_size()
    covered = 0.0
    for picture in _objects(page, "IMAGE"):
        left, bottom, right, top = picture.get_bounds()
        covered += abs((right - left) * (top - bottom))
    return float(min(1.0, covered / max(1.0, width_pt * height_pt)))


def _is_blank(page: Any) -> bool:
    """Whether nothing at all can be seen on the page (a white rectangle is nothing)."""
    bitmap = page.render(scale=THUMBNAIL_PX / max(page.get_size()), grayscale=True)
    pixels = bitmap.to_numpy()
    blank = bool(pixels.min() == pixels.max())
    bitmap.close()
    return blank
