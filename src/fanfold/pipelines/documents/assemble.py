"""Puts a document together: lines to a page's text, pages to Markdown and a record.

Owns the schema of the record and the form of the Markdown (``docs/reference/documents.md``). Plain
values in, plain values out; must not know of PDF, images or models.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, Literal, NotRequired, Protocol, TypedDict

from fanfold.failures import Failure, ItemFailure
from fanfold.pipelines.documents.ocr import LineText
from fanfold.pipelines.documents.pdf import Page

Method = Literal["native", "ocr", "empty", "failed"]

# What Markdown would take for a heading, or for HTML, and the PDF meant as text.
_HEADING: Final = re.compile(r"^(\s{0,3})(#{1,6}\s)", re.MULTILINE)
_OF_DOCUMENT: Final = {"page.damaged": "pdf.damaged"}
"""What a page's code is called where it is that of the whole document."""
_HTML: Final = re.compile(r"<(?=[A-Za-z/!?])")


class PageText(TypedDict):
    """A page's text and how it was come by."""

    text: str
    method: Method
    confidence: float | None
    """OCR only: mean probability of the characters, 0 to 1; None where nothing was recognized."""


class PageError(TypedDict):
    """Why a page has no text."""

    code: str
    """Such as ``page.too_large``; empty if the stage that failed gave none."""
    kind: str
    call: str
    message: str


class PageRecord(PageText):
    """A page in a document's record."""

    number: int
    """Its ordinal, counted from 0."""
    width_pt: float | None
    height_pt: float | None
    error: NotRequired[PageError]
    """Only where ``method`` is ``failed``."""


class PageFailure(PageError):
    """A failed page in a document's list of failures."""

    page: int


class DocumentRecord(TypedDict):
    """The record of a document (the sink adds ``key``)."""

    source: str
    pages: list[PageRecord]
    failures: list[PageFailure]


class Named(Protocol):
    """A file, of which only the path matters here."""

    @property
    def path(self) -> str: ...


def join_lines(
    leads: Sequence[str], lines: Sequence[LineText], *, min_confidence: float = 0.5
) -> PageText:
    """The text of a page that was read by OCR.

    Args:
        leads: What comes before each line: nothing, a space, a line break or two.
        lines: What was read in each line, in reading order.
        min_confidence: A line less sure than this is a smudge, and left out.

    Example:
        >>> from fanfold.pipelines.documents.ocr import LineText
        >>> join_lines(["", "\\n"], [LineText("Seven", 0.9), LineText("rules", 0.8)])
        {'text': 'Seven\\nrules', 'method': 'ocr', 'confidence': 0.85}
    """
    text, characters, certainty = "", 0, 0.0
    for lead, line in zip(leads, lines, strict=True):
        if line.confidence < min_confidence or not line.text.strip():
            continue
        text += (lead or "\n") + line.text if text else line.text
        characters += len(line.text)
        certainty += len(line.text) * line.confidence
    confidence = round(certainty / characters, 4) if characters else None
    return {"text": text, "method": "ocr", "confidence": confidence}


def assemble(
    file: Named, pages: Sequence[Page], texts: Sequence[PageText | Failure]
) -> tuple[str, DocumentRecord]:
    """A document's Markdown and its record.

    Args:
        file: The document's file.
        pages: All its pages, in order.
        texts: For each page its text, or the failure that stands in its place.

    Raises:
        ItemFailure: No page could be read: with what was wrong with the first of them.
    """
    unread = [text for text in texts if isinstance(text, Failure)]
    if unread and len(unread) == len(texts):
        first = unread[0]
        told = f"none of its {len(texts)} pages could be read; page 0: {first.message}"
        raise ItemFailure(told, code=_OF_DOCUMENT.get(first.code, first.code))
    records: list[PageRecord] = []
    failures: list[PageFailure] = []
    for page, text in zip(pages, texts, strict=True):
        if isinstance(text, Failure):
            error: PageError = {
                "code": text.code,
                "kind": text.kind,
                "call": text.call,
                "message": text.message,
            }
            failures.append({"page": page.number, **error})
            records.append(
                {
                    "number": page.number,
                    "text": "",
                    "method": "failed",
                    "confidence": None,
                    "width_pt": page.width_pt,
                    "height_pt": page.height_pt,
                    "error": error,
                }
            )
        else:
            records.append(
                {
                    "number": page.number,
                    "text": text["text"],
                    "method": text["method"],
                    "confidence": text["confidence"],
                    "width_pt": page.width_pt,
                    "height_pt": page.height_pt,
                }
            )
    record: DocumentRecord = {"source": file.path, "pages": records, "failures": failures}
    return markdown(record), record


def markdown(record: DocumentRecord) -> str:
    """All pages, each behind a comment that gives its number; a failed page says so in its place.

    Example:
        >>> page = {"number": 0, "text": "# 5 rules", "method": "native", "confidence": None}
        >>> print(markdown({"source": "a.pdf", "pages": [page], "failures": []}))
        <!-- page 0 -->
        <BLANKLINE>
        \\# 5 rules
        <BLANKLINE>
    """
    parts = []
    for page in record["pages"]:
        parts.append(f"<!-- page {page['number']} -->")
        if "error" in page:
            error = page["error"]
            reason = " ".join(error["message"].split())
            parts.append(f"> **This page failed** ({error['code'] or error['kind']}): {reason}")
        elif page["text"]:
            parts.append(_HTML.sub(r"\\<", _HEADING.sub(r"\1\\\2", page["text"])))
    return "\n\n".join(parts) + "\n"
