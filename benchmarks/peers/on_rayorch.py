"""The program in RayOrch: its own model of it, with lists in the place of streams."""

from __future__ import annotations

from typing import Any

from benchmarks.peers.libraries import NO_CORES, library, ray_started
from benchmarks.peers.work import Document, Shape, Work

INPUT_BATCH = 24
"""Documents that are admitted together where memory is bounded, as its makers do for document parsing;"""
INPUT_BATCHES = 8
"""and how many such groups may be open at a time."""


class Render:
    """Lists of pages, since its stages are no generators."""

    def __init__(self, shape: Shape, folder: str) -> None:
        self._work = Work(shape, folder).renderer()

    def run(self, documents: list[Document]) -> list[list[Any]]:
        return [list(self._work.pages(*document)) for document in documents]


class Model:
    def __init__(self, shape: Shape, folder: str) -> None:
        self._work = Work(shape, folder).model()

    def run(self, pages: list[Any]) -> list[int]:
        return self._work.read(pages)


class Assemble:
    def __init__(self, shape: Shape, folder: str) -> None:
        self._work = Work(shape, folder)

    def run(self, documents: list[Document], members: list[list[Any]]) -> list[int]:
        pairs = zip(documents, members, strict=True)
        return [self._work.assemble(document[0], pages) for document, pages in pairs]


class System:
    """RayOrch on a Ray of its own."""

    def __init__(self, memory_bytes: int | None, folder: str) -> None:
        self._ray = ray_started(memory_bytes, folder)
        self._rayorch = library("rayorch")

    def cannot(self, shape: Shape) -> str | None:
        """What it has no form for."""
        if shape.source_s:
            return "its source is a list, read before the run begins"
        if shape.record_bytes:
            return "it has no sinks"
        return None

    def run(self, shape: Shape, folder: str) -> int:
        """Run it; how many documents came out."""
        rayorch = self._rayorch
        functional = rayorch.F
        base: Any = rayorch.Pipeline

        class Program(base):  # type: ignore[misc]  # it has no types
            def __init__(self) -> None:
                def module(stage: type, **options: Any) -> Any:
                    recipe = rayorch.RayModule(stage).pre_init(shape, folder)
                    return recipe.ray_options(num_cpus=NO_CORES, **options)

                self.render = module(Render, replicas=shape.renderers, batch_size=1)
                self.read = module(Model, replicas=shape.replicas, batch_size=shape.batch or 1)
                self.assemble = module(Assemble, replicas=1, batch_size=4)

            def forward(self, documents: Any) -> Any:
                pages = functional.expand(self.render(documents))
                numbers = self.read(pages)
                if shape.gathers == "pages":
                    members = functional.reduce(pages, members=numbers)
                else:
                    members = functional.reduce(numbers)
                return self.assemble(documents, members)

        bounds = {}
        if shape.memory_bytes is not None:
            bounds = {
                "input_batch_size": INPUT_BATCH,
                "max_active_input_batches": INPUT_BATCHES,
            }
        with rayorch.Executor(Program()) as executor:
            result = executor.run(shape.documents, **bounds)
        lost = [out for out in result.outputs if isinstance(out, rayorch.OutputIssue)]
        if lost:
            raise RuntimeError(str(lost[0]))
        return len(result.outputs)

    def close(self) -> None:
        """End its Ray."""
        self._ray.shutdown()
