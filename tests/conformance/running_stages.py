"""Stages and pipelines for running whole programs; a module of its own, as users have."""

import os
import time
from collections.abc import Iterator
from typing import Any

import fanfold as ff


@ff.stage
def pages(document: dict[str, Any]) -> Iterator[dict[str, Any]]:
    if document.get("broken"):
        raise ff.ItemFailure("cannot be opened", code="doc.broken")
    for number in range(document["pages"]):
        yield {"number": number, "text": f"{document['name']}-{number}", "mute": number == 1}


@ff.stage(batch_size=8)
def upper(texts: list[str]) -> list[Any]:
    return [
        ff.ItemFailure("unreadable", code="page.bad") if text.endswith("-3") else text.upper()
        for text in texts
    ]


@ff.stage
def joined(texts: list[str]) -> str:
    return " ".join(str(text) for text in texts)


@ff.pipeline(level="document")
def strict(document: ff.Port[dict[str, Any]]) -> ff.Port[dict[str, Any]]:
    page = ff.expand(pages(document), "page")
    return ff.record(name=document["name"], text=joined(ff.gather(upper(page["text"]))))


@ff.pipeline(level="document")
def marked(document: ff.Port[dict[str, Any]]) -> ff.Port[dict[str, Any]]:
    page = ff.expand(pages(document), "page")
    return ff.record(pages=ff.gather(upper(page["text"]), failed="mark"))


@ff.pipeline(level="document")
def two_outputs(document: ff.Port[dict[str, Any]]) -> dict[str, ff.Port[Any]]:
    page = ff.expand(pages(document), "page")
    text = upper(page["text"])
    return {"text": joined(ff.gather(text, failed="drop")), "pages": ff.record(text=text)}


@ff.pipeline(level="document")
def by_kind(document: ff.Port[dict[str, Any]]) -> ff.Port[str]:
    short, long = ff.split(document, document["kind"], into=("short", "long"))
    return ff.merge(ff.field(short, "name", str), ff.field(long, "title", str))


@ff.stage
def add(a: int, b: int) -> int:
    return a + b


@ff.pipeline
def sum_of_two(a: ff.Port[int], b: ff.Port[int]) -> ff.Port[int]:
    return add(a, b)


@ff.stage
def image(n: int) -> bytes:
    return b"\xff" * n


@ff.stage
def bytes_if_one(n: int) -> int | bytes:
    return b"" if n == 1 else n


@ff.pipeline
def bytes_at_one(n: ff.Port[int]) -> ff.Port[int | bytes]:
    return bytes_if_one(n)


@ff.pipeline
def images(n: ff.Port[int]) -> ff.Port[bytes]:
    return image(n)


class NeedsWeights:
    def __init__(self) -> None:
        print("looking for weights")
        raise FileNotFoundError("weights.bin")

    def __call__(self, item: int) -> int:
        return item


needs_weights = ff.stage(NeedsWeights)


@ff.pipeline
def cannot_start(item: ff.Port[int]) -> ff.Port[Any]:
    return needs_weights()(item)


class NeedsGpu:
    def __init__(self) -> None:
        print("\x1b[33mlooking for a GPU\x1b[0m")
        raise ff.SetupError("FF452", "there is no GPU.", "Leave out cuda=true.")

    def __call__(self, item: int) -> int:
        return item


needs_gpu = ff.stage(NeedsGpu)


@ff.pipeline
def lacks_gpu(item: ff.Port[int]) -> ff.Port[Any]:
    return needs_gpu()(item)


@ff.stage
def fragile(item: int) -> int:
    if item < 0:
        raise ValueError(f"{item} is negative")
    return item


@ff.pipeline
def fragile_items(item: ff.Port[int]) -> ff.Port[int]:
    return fragile(item)


@ff.stage
def endless(item: int) -> int:
    """Longer than any test waits; the first two items are quick."""
    if item >= 2:
        while True:
            time.sleep(1)
    return item


@ff.pipeline
def never_ends(item: ff.Port[int]) -> ff.Port[int]:
    return endless(item)


@ff.stage
def process_of(item: object) -> int:
    return os.getpid()


@ff.pipeline
def processes(item: ff.Port[object]) -> ff.Port[int]:
    return process_of(item)
