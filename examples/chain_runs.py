"""Two runs in a chain: the second reads what the first one wrote, under the same keys.

Run it with ``python examples/chain_runs.py``; it writes two files below ``out/chain``. It prints both. A run in
between could have mended some documents: their records replace the earlier ones.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fanfold as ff

OUT = Path("out", "chain")


@ff.stage
def pages(document: dict[str, str]) -> Iterator[str]:
    """Take a document apart."""
    yield from document["text"].split("|")


@ff.stage(batch_size=8)
def fake_ocr(images: list[str]) -> list[str]:
    """Text in capitals."""
    return [image.upper() for image in images]


@ff.pipeline(level="document")
def read(document: ff.Port[dict[str, str]]) -> ff.Port[dict[str, Any]]:
    """The first run: documents to texts."""
    return ff.record(pages=ff.gather(fake_ocr(ff.expand(pages(document), "page"))))


@ff.stage(batch_size=8)
def fake_language_model(texts: list[list[str]]) -> list[str]:
    """The first words of the pages."""
    return [" … ".join(page.split()[0] for page in text) for text in texts]


@ff.pipeline(level="document")
def summarised(row: ff.Port[dict[str, Any]]) -> ff.Port[dict[str, Any]]:
    """The second run: texts to summaries. Rows have the fields of the first run's records."""
    return ff.record(summary=fake_language_model(ff.field(row, "pages", list[str])))


if __name__ == "__main__":
    documents = [
        {"id": "b/harbour", "text": "ships and boats|fish"},
        {"id": "a/hills", "text": "sheep graze"},
    ]
    texts, summaries = OUT / "texts.jsonl", OUT / "summaries.jsonl"
    read.run(ff.from_items(documents, key="id"), ff.write_jsonl(texts), progress=False)
    summarised.run(ff.read_jsonl(texts), ff.write_jsonl(summaries), progress=False)
    print(texts.read_text() + summaries.read_text(), end="")
