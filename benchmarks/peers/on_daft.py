"""The program in Daft on its native runner, the faster of its two on one machine."""

from __future__ import annotations

from typing import Any

from benchmarks.peers.libraries import NO_CORES, library
from benchmarks.peers.work import Shape, Work

THREADS = 128
"""As many as sleeping stages may want; with one per core they wait for each other."""


class System:
    """Daft in this process, its stages in processes of their own."""

    def __init__(self, memory_bytes: int | None, folder: str) -> None:
        self._daft = library("daft")
        self._daft.set_runner_native(num_threads=THREADS)

    def cannot(self, shape: Shape) -> str | None:
        """What it has no form for."""
        if shape.source_s:
            return "its source is a table, read before the run begins"
        if shape.record_bytes:
            return "after a grouping its records have no order of documents"
        return None

    def run(self, shape: Shape, folder: str) -> int:
        """Run it; how many documents came out."""
        daft, col, kinds = self._daft, self._daft.col, self._daft.DataType
        page_kind = kinds.binary()
        if shape.form == "array":
            page_kind = kinds.tensor(kinds.uint8(), shape=(max(8, shape.page_bytes),))
        row = kinds.struct({"ordinal": kinds.int64(), "page": page_kind})
        apart = {"use_process": True, "cpus": NO_CORES}

        @daft.cls(max_concurrency=shape.renderers, **apart)
        class Render:
            def __init__(self, shape: Shape, folder: str) -> None:
                self._work = Work(shape, folder).renderer()

            @daft.method.batch(return_dtype=kinds.list(row), batch_size=1)  # type: ignore[untyped-decorator]
            def pages(self, document: Any, count: Any) -> Any:
                lists = [
                    [
                        {"ordinal": ordinal, "page": page}
                        for ordinal, page in enumerate(self._work.pages(number, pages))
                    ]
                    for number, pages in zip(document.to_pylist(), count.to_pylist(), strict=True)
                ]
                return daft.Series.from_pylist(lists, dtype=kinds.list(row))

        @daft.cls(max_concurrency=shape.replicas, **apart)
        class Model:
            def __init__(self, shape: Shape, folder: str) -> None:
                self._work = Work(shape, folder).model()

            @daft.method.batch(return_dtype=kinds.int64(), batch_size=shape.batch or 1)  # type: ignore[untyped-decorator]
            def read(self, page: Any) -> list[int]:
                return self._work.read(page.to_pylist())

        @daft.cls(max_concurrency=1, **apart)
        class Assemble:
            def __init__(self, shape: Shape, folder: str) -> None:
                self._work = Work(shape, folder)

            @daft.method.batch(return_dtype=kinds.int64(), batch_size=16)  # type: ignore[untyped-decorator]
            def put_together(self, document: Any, ordinals: Any, members: Any) -> list[int]:
                columns = document.to_pylist(), ordinals.to_pylist(), members.to_pylist()
                return [
                    self._work.assemble(
                        number, [pages[i] for i in sorted(range(len(order)), key=order.__getitem__)]
                    )
                    for number, order, pages in zip(*columns, strict=True)
                ]

        documents = {
            "document": [number for number, _ in shape.documents],
            "count": list(shape.counts),
        }
        frame = daft.from_pydict(documents).into_batches(1)
        pages = Render(shape, folder).pages(col("document"), col("count"))
        frame = frame.select("document", pages.alias("row")).explode("row")
        frame = frame.select(
            "document",
            col("row")["ordinal"].alias("ordinal"),
            col("row")["page"].alias("page"),
        ).into_batches(shape.batch or 1)
        number = Model(shape, folder).read(col("page")).alias("number")
        frame = frame.select("document", "ordinal", "page", number)
        member = col("page" if shape.gathers == "pages" else "number")
        frame = frame.groupby("document").agg(
            col("ordinal").list_agg(), member.list_agg().alias("m")
        )
        count = Assemble(shape, folder).put_together(col("document"), col("ordinal"), col("m"))
        return len(frame.select(count.alias("count")).to_pydict()["count"])

    def close(self) -> None:
        """Nothing is left running."""
