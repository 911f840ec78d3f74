"""The program in Ray Data: rows of pages, shuffled by document to put them together."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from benchmarks.peers.libraries import NO_CORES, library, ray_started
from benchmarks.peers.work import Shape, Work

SHUFFLE_PARTITIONS = 8
"""For the shuffle by document: one for each of Ray's logical cores."""
WAIT_FOR_ACTORS_S = 170
"""The stream begins when all actors are there, so that what is measured is the program, not their start."""
BLOCK_BYTES = (1024 * 1024, 128 * 1024 * 1024)
"""Blocks as large as a batch of the model, within these limits. The default, 128 MB, would hold the first small
page of a document back until all are rendered."""


class Render:
    """A generator of rows."""

    def __init__(self, shape: Shape, folder: str) -> None:
        self._work = Work(shape, folder).renderer()

    def __call__(self, row: dict[str, Any]) -> Iterator[dict[str, Any]]:
        document = int(row["document"])
        for ordinal, page in enumerate(self._work.pages(document, int(row["count"]))):
            yield {"document": document, "ordinal": ordinal, "page": page}


class Model:
    def __init__(self, shape: Shape, folder: str) -> None:
        self._work = Work(shape, folder).model()
        self._keeps = shape.gathers == "pages"

    def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
        numbers = self._work.read(list(batch["page"]))
        kept = {"page": batch["page"]} if self._keeps else {"number": numbers}
        return {"document": batch["document"], "ordinal": batch["ordinal"]} | kept


class Assemble:
    def __init__(self, shape: Shape, folder: str) -> None:
        self._work = Work(shape, folder)
        self._keeps = shape.gathers == "pages"

    def __call__(self, group: dict[str, Any]) -> dict[str, Any]:
        order = group["ordinal"].argsort()
        document = int(group["document"][0])
        if self._keeps:
            members = [group["page"][i] for i in order]
        else:
            members = group["number"][order].tolist()
        return {"document": [document], "count": [self._work.assemble(document, members)]}


class System:
    """Ray Data on a Ray of its own."""

    def __init__(self, memory_bytes: int | None, folder: str) -> None:
        self._ray = ray_started(memory_bytes, folder, cores=SHUFFLE_PARTITIONS)
        self._data = library("ray.data")
        self._context = self._data.DataContext.get_current()
        self._context.enable_progress_bars = False
        self._context.wait_for_min_actors_s = WAIT_FOR_ACTORS_S

    def cannot(self, shape: Shape) -> str | None:
        """What it has no form for."""
        if shape.source_s:
            return "it reads its source in tasks, which do not load the driver"
        if shape.record_bytes:
            return "after a shuffle its records have no order of documents"
        return None

    def run(self, shape: Shape, folder: str) -> int:
        """Run it; how many documents came out."""
        least, most = BLOCK_BYTES
        batch_bytes = (shape.batch or 1) * shape.page_bytes
        self._context.target_max_block_size = min(most, max(least, batch_bytes))
        rows = [{"document": number, "count": count} for number, count in shape.documents]
        blocks = min(len(rows), 200)
        given = {"fn_constructor_args": (shape, folder), "num_cpus": NO_CORES}
        pages = self._data.from_items(rows, override_num_blocks=blocks).flat_map(
            Render, concurrency=shape.renderers, **given
        )
        numbers = pages.map_batches(
            Model, batch_size=shape.batch or 1, concurrency=shape.replicas, **given
        )
        documents = numbers.groupby("document", num_partitions=SHUFFLE_PARTITIONS).map_groups(
            Assemble, concurrency=1, **given
        )
        return len(documents.take_all())

    def close(self) -> None:
        """End its Ray."""
        self._ray.shutdown()
