"""The pipeline ``documents``: PDF files to Markdown and records, with OCR where there is no text.

Owns how the stages are connected, their batch size, and the settings with their defaults (measured: see
``docs/explanation/ocr-defaults.md``). What each stage does is in the modules beside this one.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from fanfold.data.file_source import read_files
from fanfold.data.files import File
from fanfold.data.files_sink import write_files
from fanfold.data.jsonl_sink import write_jsonl
from fanfold.data.sinks import Sink
from fanfold.data.sources import Source
from fanfold.errors import DefinitionError
from fanfold.model.entry import stage
from fanfold.model.ops import expand, field, gather, merge, record, split
from fanfold.model.port import Port
from fanfold.pipeline import pipeline
from fanfold.pipelines.documents import assemble, extras, ocr, pdf
from fanfold.pipelines.documents.textlayer import HIDDEN_TEXT, HiddenText

pages = stage(pdf.pages)
render = stage(pdf.Render)
detect = stage(ocr.Detect)
recognize = stage(ocr.Recognize, batch_size=16)
join_lines = stage(assemble.join_lines)
assembled = stage(assemble.assemble, outputs=("markdown", "record"))


@pipeline(level="document")
def documents(
    file: Port[File],
    *,
    dpi: int = 150,
    max_pixels: int = 50_000_000,
    hidden_text: HiddenText = "use",
    detect_side_px: int = 1280,
    recognize_chunk: int = 1,
    min_confidence: float = 0.5,
    threads: int = 0,
    cuda: bool = False,
) -> dict[str, Port[Any]]:
    """PDF files to one Markdown text and one record each.

    A page with a usable text layer gives its own text; the others are rendered and read by OCR; an empty
    page is neither. A page that fails is marked in its place, a document that cannot be opened fails
    alone.

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
        DefinitionError: FF453, ``hidden_text`` is neither of the two.
    """
    if hidden_text not in HIDDEN_TEXT:
        raise DefinitionError(
            "FF453", f"hidden_text={hidden_text!r} is none of {', '.join(map(repr, HIDDEN_TEXT))}."
        )
    page = expand(pages(file, hidden_text=hidden_text), "page")
    scan, native, empty = split(page, page["kind"], into=("scan", "native", "empty"))

    image = render(dpi, max_pixels=max_pixels)(file, field(scan, "number", int))
    line = expand(detect(detect_side_px, threads=threads, cuda=cuda)(image), "line")
    line_text = recognize(recognize_chunk, threads=threads, cuda=cuda)(line["image"])
    leads, line_texts = gather(field(line, "lead", str), line_text)
    read = join_lines(leads, line_texts, min_confidence=min_confidence)

    own = record(text=native["text"], method="native", confidence=None)
    nothing = record(text=empty["text"], method="empty", confidence=None)
    texts = gather(merge(read, own, nothing), failed="mark")
    markdown, document = assembled(file, gather(page), texts)
    return {"markdown": markdown, "records": document}


def source(paths: Iterable[str | os.PathLike[str]]) -> Source[File]:
    """The PDF files among ``paths``: files, folders, globs and URLs.

    Raises:
        SetupError: FF450, the extra ``documents`` is not installed: said before a run starts.
        UsageError: FF307, no path is given.
    """
    extras.check()
    return read_files(*paths, suffix=".pdf")


def sinks(out: str | os.PathLike[str]) -> dict[str, Sink]:
    """``OUT/markdown/KEY.md``, a file per document, and ``OUT/records.jsonl``, a line per document."""
    folder = Path(out)
    return {
        "markdown": write_files(folder / "markdown", suffix=".md"),
        "records": write_jsonl(folder / "records.jsonl"),
    }
