"""A user's module, for the command line."""

from typing import Any

import fanfold as ff


@ff.stage(batch_size=4)
def scaled(items: list[dict[str, Any]], *, factor: int) -> list[dict[str, Any]]:
    if factor < 0:
        raise ValueError("negative")
    return [{"n": item["n"] * factor} for item in items]


@ff.pipeline(level="row")
def rows(item: ff.Port[dict[str, Any]], *, factor: int = 2) -> ff.Port[dict[str, Any]]:
    return scaled(item, factor=factor)


@ff.stage
def length(file: ff.File) -> int:
    return file.size


@ff.pipeline(level="file")
def sizes(file: ff.Port[ff.File]) -> dict[str, ff.Port[Any]]:
    return {"size": length(file), "path": ff.record(path=file["path"])}


@ff.pipeline
def pair(file: ff.Port[ff.File]) -> tuple[ff.Port[int], ff.Port[int]]:
    return length(file), length(file)


class NeedsGpu:
    def __init__(self) -> None:
        raise ff.SetupError("FF452", "there is no GPU.", "Leave out cuda=true.")

    def __call__(self, item: dict[str, Any]) -> dict[str, Any]:
        return item


needs_gpu = ff.stage(NeedsGpu)


@ff.pipeline
def on_gpu(item: ff.Port[dict[str, Any]]) -> ff.Port[dict[str, Any]]:
    return needs_gpu()(item)


not_a_pipeline = 3
