"""The pipeline ``documents``: PDF files to Markdown and records, with OCR where there is no text.

Owns how the stages are connected, their batch size, and the settings with their defaults (measured: see
``docs/explanation/ocr-defaults.md``). What each stage does is in the modules beside this one.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

import fanfold as ff
from fanfold.pipelines.documents import assemble, extras, ocr, pdf
from fanfold.pipelines.documents.ranges import check_ranges
from fanfold.pipelines.documents.textlayer import HIDDEN_TEXT, HiddenText

if TYPE_CHECKING:
    from fanfold.data.sinks import Sink
    from fanfold.data.sources import Source

pages: Final = ff.stage(pdf.pages)
render: Final = ff.stage(pdf.Render)
detect: Final = ff.stage(ocr.Detect)
recognize: Final = ff.stage(ocr.Recognize, batch_size=16)
join_lines: Final = ff.stage(assemble.join_lines)
assembled: Final = ff.stage(assemble.assemble, outputs=("markdown", "record"))


@ff.pipeline(level="document")
def documents(
    file: ff.Port[ff.File],
    *,
    dpi: int = 150,
    max_pixels: int = 50_000_000,
    hidden_text: HiddenText = "use",
    detect_side_px: int = 1280,
    recognize_chunk: int = 1,
    min_confidence: float = 0.5,
    threads: int = 0,
    cuda: bool = False,
) -> dict[str, ff.Port[Any]]:
    """PDF files to one Markdown text and one record each.

    A page with a usable text layer gives its own text; the others are rendered and read by OCR; an empty
    page is neither. A page that fails is marked in its place; a document that cannot be opened, or none
    of whose pages could be read, fails alone.

    Args:
        file: The PDF file.
        dpi: Resolution at which pages are rendered for OCR.
        max_pixels: Pages that would have more pixels fail (``page.too_large``).
        hidden_text: ``use`` invisible text over a scan (somebody's OCR), or read such pages anew (``ocr``).
        detect_side_px: Longer side of the copy of a page in which lines of text are looked for.
        recognize_chunk: Lines in one call of the recognition model; on a GPU 32 and more.
        min_confidence: Lines about which OCR is less sure are left out.
        threads: Threads of each OCR worker; 0 takes the cores that the worker owns (``cpus``).
        cuda: Run OCR on the first GPU (needs ``onnxruntime-gpu``).

    Returns:
        ``markdown``, a text per document, and ``records``, the same as data
        (:class:`~fanfold.pipelines.documents.assemble.DocumentRecord`).

    Raises:
        DefinitionError: FF453, ``hidden_text`` is neither of the two; FF454, a number is out of its range.
    """
    if hidden_text not in HIDDEN_TEXT:
        raise ff.DefinitionError(
            "FF453", f"hidden_text={hidden_text!r} is none of {', '.join(map(repr, HIDDEN_TEXT))}."
        )
    check_ranges(
        dpi=dpi,
        max_pixels=max_pixels,
        detect_side_px=detect_side_px,
        recognize_chunk=recognize_chunk,
        min_confidence=min_confidence,
        threads=threads,
    )
    page = ff.expand(pages(file, hidden_text=hidden_text), "page")
    scan, native, empty = ff.split(page, page["kind"], into=("scan", "native", "empty"))

    image = render(dpi, max_pixels=max_pixels)(file, ff.field(scan, "number", int))
    line = ff.expand(detect(detect_side_px, threads=threads, cuda=cuda)(image), "line")
    line_text = recognize(recognize_chunk, threads=threads, cuda=cuda)(line["image"])
    leads, line_texts = ff.gather(ff.field(line, "lead", str), line_text)
    read = join_lines(leads, line_texts, min_confidence=min_confidence)

    own = ff.record(text=native["text"], method="native", confidence=None)
    nothing = ff.record(text=empty["text"], method="empty", confidence=None)
    texts = ff.gather(ff.merge(read, own, nothing), failed="mark")
    markdown, document = assembled(file, ff.gather(page), texts)
    return {"markdown": markdown, "records": document}


def source(paths: Iterable[str | os.PathLike[str]]) -> Source[ff.File]:
    """The PDF files among ``paths``: files, folders, globs and URLs.

    Raises:
        SetupError: FF450, the extra ``documents`` is not installed: said before a run starts.
        UsageError: FF307, no path is given.
    """
    extras.check()
    return ff.read_files(*paths, suffix=".pdf")


def sinks(out: str | os.PathLike[str]) -> dict[str, Sink]:
    """``OUT/markdown/KEY.md``, a file per document, and ``OUT/records.jsonl``, a line per document."""
    # No `Path`: it makes one slash of a URL's two, and the sinks could not tell it from a folder.
    return {
        "markdown": ff.write_files(os.path.join(out, "markdown"), suffix=".md"),
        "records": ff.write_jsonl(os.path.join(out, "records.jsonl")),
    }
