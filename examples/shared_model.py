"""One model, called at two levels: its two calls share one pool of workers, which load it once each.

Run it with ``python examples/shared_model.py``; it writes below ``out/shared``. It prints a similarity of title
and pages for each document, then how many items each call did, and which workers did them all.
"""

from collections.abc import Iterator
from pathlib import Path

import fanfold as ff

OUT = Path("out", "shared", "similarities.jsonl")


class FakeEmbedder:
    """Stands in for a large text encoder: a vector of two counts."""

    def __init__(self, weights: str) -> None:
        self.alphabet = weights  # loading them is what should not happen twice

    def __call__(self, texts: list[str]) -> list[tuple[int, int]]:
        return [(sum(letter in self.alphabet for letter in text), len(text)) for text in texts]


embedder = ff.stage(FakeEmbedder, batch_size=8, replicas=2)("aeiou")


@ff.stage
def pages(text: str) -> Iterator[str]:
    """Take a document apart."""
    yield from text.split("|")


@ff.stage
def similarity(title: tuple[int, int], pages: list[tuple[int, int]]) -> list[float]:
    """Between the title's vector and that of each page."""
    return [1 - abs(title[0] / title[1] - page[0] / page[1]) for page in pages]


@ff.pipeline(level="document")
def compared(row: ff.Port[dict[str, str]]) -> ff.Port[list[float]]:
    """The same stage object at documents and at pages."""
    title = embedder(ff.field(row, "title", str))
    page = embedder(ff.expand(pages(ff.field(row, "text", str)), "page"))
    return similarity(title, ff.gather(page))


if __name__ == "__main__":
    rows = [
        {"id": "a", "title": "area", "text": "idea|rhythm|noon"},
        {"id": "b", "title": "seal", "text": "tree"},
    ]
    report = compared.run(ff.from_items(rows, key="id"), ff.write_jsonl(OUT), progress=False)
    print(OUT.read_text(), end="")
    print({call.name: call.done for call in report.calls if "Embedder" in call.name})
    print([worker.name for worker in report.workers if "Embedder" in worker.name])
