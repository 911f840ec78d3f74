"""The program in Fanfold."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator, Sequence
from typing import Any

import fanfold as ff
from benchmarks.peers.work import Document, Shape, Work


class Render:
    """A generator: each page is on its way as soon as it is there."""

    def __init__(self, shape: Shape, folder: str) -> None:
        self._work = Work(shape, folder).renderer()

    def __call__(self, document: Document) -> Iterator[Any]:
        yield from self._work.pages(*document)


class Model:
    """The expensive stage, which takes batches."""

    def __init__(self, shape: Shape, folder: str) -> None:
        self._work = Work(shape, folder).model()

    def __call__(self, pages: Sequence[Any]) -> list[int]:
        return self._work.read(pages)


class ModelOfOne(Model):
    """The same, one page at a time."""

    def __call__(self, page: Any) -> int:  # type: ignore[override]  # by design: not batched
        return self._work.read([page])[0]


class Assemble:
    """Puts documents together."""

    def __init__(self, shape: Shape, folder: str) -> None:
        self._work = Work(shape, folder)
        self._record = "x" * shape.record_bytes

    def __call__(self, document: Document, members: list[Any]) -> int | str:
        count = self._work.assemble(document[0], members)
        return self._record or count


def program(shape: Shape, folder: str) -> ff.Pipeline[..., Any]:
    """The pipeline of a shape."""
    options: dict[str, Any] = {"replicas": shape.replicas}
    for name in ("linger_s", "schedule"):
        if (value := getattr(shape, name)) is not None:
            options[name] = value
    if shape.batch is None:
        read = ff.stage(ModelOfOne, **options)(shape, folder)
    else:
        read = ff.stage(Model, batch_size=shape.batch, **options)(shape, folder)
    render = ff.stage(Render, replicas=shape.renderers)(shape, folder)
    assemble = ff.stage(Assemble)(shape, folder)

    @ff.pipeline(level="document")
    def documents(document: ff.Port[Document]) -> ff.Port[int | str]:
        page = ff.expand(render(document), "page")
        numbers = read(page)
        members = (
            ff.gather(page, members=numbers) if shape.gathers == "pages" else ff.gather(numbers)
        )
        return assemble(document, members)

    return documents


def source(shape: Shape) -> Iterator[Document]:
    """The documents; where the shape says so, reading them takes the driver's time, not just its patience."""
    for document in shape.documents:
        if shape.source_s:
            until = time.thread_time() + shape.source_s
            while time.thread_time() < until:
                pass
        yield document


class System:
    """Nothing to start: each run has its own workers and its own memory."""

    def __init__(self, memory_bytes: int | None, folder: str) -> None:
        pass

    def cannot(self, shape: Shape) -> str | None:
        """It can do all of them."""
        return None

    def run(self, shape: Shape, folder: str) -> int:
        """Run it; how many documents came out."""
        with tempfile.TemporaryDirectory() as out:
            report = program(shape, folder).run(
                ff.from_items(source(shape)),
                ff.write_jsonl(out) if shape.record_bytes else None,
                memory=shape.memory_bytes,
                progress=False,
            )
        return report.roots["done"]

    def close(self) -> None:
        """Nothing is left running."""
