"""What the stages of a compared program do, whatever system calls them.

Owns the shape of a program, the values that travel and the time that work takes. It needs the standard library
only, since it runs in everybody's environment. Work sleeps, so that replicas do not compete for cores.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from benchmarks.peers.logbook import ASSEMBLED, FIRST_PAGE, MODEL, RENDERED, STARTED, Logbook

RECYCLED_PAGES = 64
"""So many pages a renderer has ready if it makes none anew: more than any system pickles together."""
FIRST_OF_ALL = 99_999_999
"""The number on the first page of the first document."""

Document = tuple[int, int]
"""Its number, and how many pages it has."""


@dataclass(frozen=True, slots=True)
class Shape:
    """The parameters of a program."""

    counts: tuple[int, ...]
    """How many pages each document has."""
    page_bytes: int = 16
    form: Literal["bytes", "array"] = "bytes"
    recycled: bool = False
    """Pages are the same objects again and again: so rendering costs nothing. Documents of up to 64 pages."""
    render_s: float = 0.0
    """Per page."""
    batch: int | None = 16
    """None: the model takes one page at a time."""
    batch_s: float = 0.0
    """What a call of the model takes,"""
    page_s: float = 0.0
    """and what each page adds."""
    first_s: float = 0.0
    """The very first page of the first document takes so long, alone."""
    slow_factor: float = 1.0
    """One replica of the model is slower than the others."""
    renderers: int = 1
    replicas: int = 1
    linger_s: float | None = None
    gathers: Literal["numbers", "pages"] = "numbers"
    """What documents are assembled from."""
    memory_bytes: int | None = None
    """How much the system may hold in values; None: as much as it likes."""
    schedule: str | None = None
    """Fanfold's, where it is to be another than its default."""
    source_s: float = 0.0
    """How long the source keeps the driver busy for each document."""
    record_bytes: int = 0
    """Size of a document's record, which is written in the order of documents. 0: nothing is written."""

    @property
    def documents(self) -> list[Document]:
        """What the source gives."""
        return list(enumerate(self.counts))

    def as_plain(self) -> dict[str, Any]:
        """Plain data, ready for JSON."""
        return asdict(self)

    @classmethod
    def from_plain(cls, data: dict[str, Any]) -> Shape:
        """The shape that :meth:`as_plain` told of.

        >>> Shape.from_plain(Shape((1, 2)).as_plain()) == Shape((1, 2))
        True
        """
        arguments: dict[str, Any] = data | {"counts": tuple(data["counts"])}
        return cls(**arguments)


class Work:
    """The work of one stage in one process.

    Args:
        shape: The program's parameters.
        folder: Where the stages write down when they ran.
    """

    def __init__(self, shape: Shape, folder: str) -> None:
        self.shape = shape
        self._log = Logbook(folder)
        self._recycled: list[Any] = []
        self._rest = b""
        """What is the same of all pages."""
        self._slowness = 1.0

    def renderer(self) -> Work:
        """Get ready to render."""
        self._rest = bytes(max(0, self.shape.page_bytes - 8))
        if self.shape.recycled:
            self._recycled = [self._page(i) for i in range(RECYCLED_PAGES)]
        return self

    def model(self) -> Work:
        """Get ready to be the model."""
        if self.shape.slow_factor != 1.0 and _first_to_come(Path(self._log.folder) / "slow"):
            self._slowness = self.shape.slow_factor
        self._log.write(STARTED, time.monotonic(), 0)
        return self

    def pages(self, document: int, count: int) -> Iterator[Any]:
        """A document's pages, one by one."""
        started = time.monotonic()
        for ordinal in range(count):
            if self.shape.render_s:
                time.sleep(self.shape.render_s)
            page = self._make(document, ordinal)
            if ordinal == 0:
                self._log.write(FIRST_PAGE, started, count, document)
            yield page
        self._log.write(RENDERED, started, count, document)

    def read(self, pages: Sequence[Any]) -> list[int]:
        """The model: for each page the number that is written on it."""
        started = time.monotonic()
        numbers = [number_on(page) for page in pages]
        seconds = self.shape.batch_s + self.shape.page_s * len(numbers)
        if FIRST_OF_ALL in numbers:
            seconds += self.shape.first_s
        if seconds:
            time.sleep(seconds * self._slowness)
        self._log.write(MODEL, started, len(numbers))
        return numbers

    def assemble(self, document: int, members: Iterable[Any]) -> int:
        """Put a document together and see that nothing is missing or out of order; how many pages it has."""
        started = time.monotonic()
        numbers = list(members)
        if self.shape.gathers == "pages":
            numbers = [number_on(page) for page in numbers]
        count = self.shape.counts[document]
        wanted = [i % RECYCLED_PAGES if self.shape.recycled else i for i in range(count)]
        if document == 0:
            wanted[0] = FIRST_OF_ALL
        if numbers != wanted:
            raise ValueError(f"document {document} is not what it was: {len(numbers)} of {count}")
        self._log.write(ASSEMBLED, started, count, document)
        return count

    def _make(self, document: int, ordinal: int) -> Any:
        if self._recycled and (document or ordinal):
            return self._recycled[ordinal % RECYCLED_PAGES]
        return self._page(ordinal if document or ordinal else FIRST_OF_ALL)

    def _page(self, ordinal: int) -> Any:
        head = ordinal.to_bytes(8, "little")
        if self.shape.form == "array":
            import numpy

            page = numpy.zeros(max(8, self.shape.page_bytes), numpy.uint8)
            page[:8] = numpy.frombuffer(head, numpy.uint8)
            return page
        return head + self._rest


def number_on(page: Any) -> int:
    """Which page it is. The last byte is looked at as well: all of it has to be there."""
    assert page[len(page) - 1] is not None
    return int.from_bytes(page[:8], "little")


def _first_to_come(mark: Path) -> bool:
    try:
        os.close(os.open(mark, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return False
    return True
