"""Regions of pages go to three models by their kind, and come back in their places: per page, per document.

Run it with ``python examples/route_regions.py``. It prints the regions of each page of each document, as
the model for their kind read them.
"""

from collections.abc import Iterator
from typing import NamedTuple

import fanfold as ff


class Region(NamedTuple):
    """A part of a page, as a layout model finds it."""

    kind: str
    content: str


@ff.stage
def pages(document: str) -> Iterator[str]:
    """Take a document apart."""
    yield from document.split("\f")


@ff.stage(batch_size=4)
def fake_layout_model(images: list[str]) -> list[list[Region]]:
    """The regions of each page, in reading order: ``text:a | table:1,2``."""
    return [[Region(*part.split(":")) for part in image.split("|") if part] for image in images]


@ff.stage(batch_size=8)
def fake_text_model(crops: list[str]) -> list[str]:
    """Text in capitals."""
    return [crop.upper() for crop in crops]


@ff.stage(batch_size=4)
def fake_table_model(crops: list[str]) -> list[str]:
    """A table as a line of Markdown."""
    return [f"| {crop.replace(',', ' | ')} |" for crop in crops]


@ff.stage(batch_size=2)
def fake_figure_model(crops: list[str]) -> list[str]:
    """A caption."""
    return [f"(a picture of {crop})" for crop in crops]


@ff.pipeline(level="document")
def read(document: ff.Port[str]) -> ff.Port[list[list[str]]]:
    """For each page the list of its regions."""
    page = ff.expand(pages(document), "page")
    region = ff.expand(fake_layout_model(page), "region")
    crop = ff.field(region, "content", str)
    text, table, figure = ff.split(crop, region["kind"], into=("text", "table", "figure"))
    content = ff.merge(fake_text_model(text), fake_table_model(table), fake_figure_model(figure))
    return ff.gather(ff.gather(content))


if __name__ == "__main__":
    report = "text:intro|figure:a map|text:legend\ftable:1,2,3|text:end"
    for result in read.stream([report, "figure:a ship\f\ftext:blank before"]):
        print(result.key, result.value)
