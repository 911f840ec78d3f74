"""Decides in which order the lines of a page are read, and what stands between two of them.

Owns the geometry only: boxes in, an order out. Must not know of images, models or text.

The idea is that of the recursive X-Y cut (G. Nagy, S. Seth, M. Viswanathan, "A prototype document image
analysis system for technical journals", Computer 25(7), 1992): a gutter parts a page into columns, which
are read one after the other. Unlike a plain cut, lines that cross the gutter (a title over two columns)
do not hide it: they part the page into bands, and each band has its columns. The cells of a table must
not be taken for columns, so a gutter needs text of some width and several lines on both sides.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import Final, NamedTuple

COLUMN_LINES: Final = 3
"""So many lines at least make a column."""
COLUMN_WIDTH_SHARE: Final = 0.22
"""The middle line of a column is at least so wide, as a share of the text's width (table cells are not)."""
CROSSING_SHARE: Final = 0.34
"""At most so many of the lines may cross a gutter."""
PARAGRAPH_GAP: Final = 0.9
"""A gap between two rows of more than so many line heights is a paragraph's end."""


class Box(NamedTuple):
    """A line's place on its page in pixels, counted from the upper left corner."""

    left: float
    top: float
    right: float
    bottom: float


def reading_order(boxes: Sequence[Box]) -> list[tuple[int, str]]:
    """The positions in ``boxes`` in reading order, each with what comes before that line.

    Returns:
        Pairs of a position and ``""`` (the first line), ``" "`` (further right in the same row),
        line break (the next row) or two line breaks (a new paragraph or column).

    Example:
        >>> reading_order([Box(0, 20, 90, 30), Box(0, 0, 40, 10), Box(50, 0, 90, 10)])
        [(1, ''), (2, ' '), (0, '\\n\\n')]
    """
    ordered: list[tuple[int, str]] = []
    for block in _blocks(boxes, range(len(boxes))):
        ordered += _rows(boxes, block, first="\n\n" if ordered else "")
    return ordered


def _blocks(boxes: Sequence[Box], members: Sequence[int]) -> list[list[int]]:
    """The stretches of text that have no columns in them, in reading order."""
    gutter = _gutter([boxes[i] for i in members])
    if gutter is None:
        return [list(members)] if members else []
    blocks: list[list[int]] = []
    spanning: list[int] = []
    sides: tuple[list[int], list[int]] = ([], [])
    for i in sorted(members, key=lambda i: boxes[i].top):
        if boxes[i].left < gutter < boxes[i].right:
            if any(sides):
                blocks += _band(boxes, sides)
                sides = ([], [])
            spanning.append(i)
        else:
            if spanning:
                blocks.append(spanning)
                spanning = []
            sides[boxes[i].left >= gutter].append(i)
    return blocks + ([spanning] if spanning else []) + (_band(boxes, sides) if any(sides) else [])


def _band(boxes: Sequence[Box], sides: tuple[list[int], list[int]]) -> list[list[int]]:
    """A band's columns; a band of a single row (a running title, a date) is read across instead."""
    if min(map(len, sides)) < 2:
        return [[*sides[0], *sides[1]]]
    return [block for side in sides for block in _blocks(boxes, side)]


def _gutter(boxes: Sequence[Box]) -> float | None:
    """Where a vertical gutter parts the boxes into two columns, if it does."""
    if len(boxes) < 2 * COLUMN_LINES:
        return None
    height = median(box.bottom - box.top for box in boxes)
    needed = COLUMN_WIDTH_SHARE * (max(b.right for b in boxes) - min(b.left for b in boxes))
    best: tuple[int, float] | None = None
    for edge in sorted({box.right for box in boxes}):
        middle = edge + height / 4
        before = [box for box in boxes if box.right < middle]
        after = [box for box in boxes if box.left > middle]
        crossing = len(boxes) - len(before) - len(after)
        if crossing > CROSSING_SHARE * len(boxes) or (best and crossing >= best[0]):
            continue
        if all(
            len(side) >= COLUMN_LINES and median(box.right - box.left for box in side) >= needed
            for side in (before, after)
        ):
            best = (crossing, middle)
    return best[1] if best else None


def _rows(boxes: Sequence[Box], members: Sequence[int], *, first: str) -> list[tuple[int, str]]:
    """The members row by row, each row from left to right."""
    height = median(boxes[i].bottom - boxes[i].top for i in members)
    ordered: list[tuple[int, str]] = []
    row: list[int] = []
    lead, row_bottom = first, 0.0

    def close_row() -> None:
        for position, i in enumerate(sorted(row, key=lambda i: boxes[i].left)):
            ordered.append((i, " " if position else lead))

    for i in sorted(members, key=lambda i: boxes[i].top):
        box = boxes[i]
        shared = min(row_bottom, box.bottom) - box.top
        if row and shared > (box.bottom - box.top) / 2:
            row.append(i)
            continue
        close_row()
        if row:
            lead = "\n\n" if box.top - row_bottom > PARAGRAPH_GAP * height else "\n"
        row, row_bottom = [i], box.bottom
    close_row()
    return ordered
