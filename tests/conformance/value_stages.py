"""Stages whose values are of many types; a module of its own, as users have."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Iterator
from fractions import Fraction
from pathlib import PurePosixPath
from typing import Any

import numpy as np
import pydantic
from PIL import Image

import fanfold as ff


class Kind(enum.Enum):
    """What a page is."""

    SCAN = "scan"
    TEXT = "text"


@dataclasses.dataclass(frozen=True)
class Page:
    """A dataclass with an array in it."""

    number: int
    kind: Kind
    pixels: np.ndarray[Any, Any]


@dataclasses.dataclass(slots=True)
class Slotted:
    """One without a dictionary."""

    words: list[str]


class Box(pydantic.BaseModel):
    """What a detector gives, as many libraries have it."""

    label: str
    corners: tuple[float, float, float, float]
    score: float | None = None


class Kept(np.ndarray[Any, Any]):
    """A kind of array of one's own."""


def examples() -> list[Any]:
    """A value of each type, arrays of every layout among them."""
    pixels = np.arange(24, dtype=np.uint8).reshape(2, 4, 3)
    ragged = np.array([None, "text", 3], dtype=object)
    records = np.array([(1, 2.5), (3, 4.5)], dtype=[("page", "i4"), ("score", "f8")])
    return [
        Image.fromarray(pixels),
        Image.new("L", (5, 3), 7),
        Image.new("1", (9, 2)),
        pixels,
        pixels[:, ::2],
        np.asfortranarray(pixels),
        pixels.view(Kept),
        np.zeros((0, 3)),
        np.float32(1.5),
        np.array(3),
        np.array(["2026-11-30"], dtype="datetime64[D]"),
        ragged,
        records,
        Page(3, Kind.SCAN, pixels),
        Slotted(["a", "b"]),
        Box(label="title", corners=(0, 0.5, 1, 2)),
        [
            Box(label="a", corners=(1, 2, 3, 4), score=0.5),
            pixels,
            {"image": Image.new("L", (2, 2))},
        ],
        Kind.TEXT,
        Fraction(1, 3),
        PurePosixPath("a/b.pdf"),
        b"bytes",
        bytearray(b"more"),
        {1, 2},
        frozenset({"x"}),
        None,
        ...,
        10**40,
        complex(1, 2),
        "\ud800 is half a character",
    ]


@ff.stage
def made(number: int) -> Iterator[Any]:
    """All of them."""
    yield from examples()


@ff.stage(batch_size=8)
def passed(values: list[Any]) -> list[Any]:
    """Each as it is."""
    return values


@ff.pipeline(level="document")
def through(number: ff.Port[int]) -> ff.Port[list[Any]]:
    return ff.gather(passed(ff.expand(made(number), "value")))
