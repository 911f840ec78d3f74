"""Pipelines whose generators give more than there is memory for, and tell when they are closed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fanfold as ff

BLOB_BYTES = 100_000


@ff.stage
def blobs(document: dict[str, Any]) -> Iterator[bytes]:
    """So many pages, each with its number in front; in the end how many were given is put down."""
    given = 0
    try:
        for number in range(document["pages"]):
            bad = number == document.get("bad")
            yield b"%d %d " % (number, bad) + bytes(BLOB_BYTES)
            given += 1
    finally:
        Path(document["closed"]).write_text(str(given))


@ff.stage
def page_of(page: bytes) -> int:
    number, bad, _ = page.split(b" ", 2)
    if int(bad):
        raise ff.ParentFailure("not a document")
    return int(number)


class Opener:
    """The same from a class whose method returns an iterator: nobody knows before it runs."""

    def __call__(self, document: dict[str, Any]) -> Iterator[bytes]:
        made: Iterator[bytes] = blobs.target(document)
        return made


@ff.pipeline(level="document")
def returned(document: ff.Port[dict[str, Any]]) -> ff.Port[list[int]]:
    opened = ff.stage(Opener)()
    return ff.gather(page_of(ff.expand(opened(document), "page")))


@ff.pipeline(level="document")
def pages(document: ff.Port[dict[str, Any]]) -> ff.Port[list[int]]:
    return ff.gather(page_of(ff.expand(blobs(document), "page")))


@ff.stage
def total_of(pages: list[bytes]) -> int:
    return sum(int(page.split(b" ", 1)[0]) for page in pages)


@ff.pipeline(level="document")
def whole(document: ff.Port[dict[str, Any]]) -> ff.Port[int]:
    """All pages are gathered before any is looked at."""
    return total_of(ff.gather(ff.expand(blobs(document), "page")))
