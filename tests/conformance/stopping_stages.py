"""Stages and pipelines of runs that failures stop; a module of its own, as users have."""

from __future__ import annotations

from collections.abc import Iterator

import fanfold as ff


@ff.stage
def pages(count: int) -> Iterator[int]:
    if count < 0:
        raise ff.ItemFailure("no document", code="doc.none")
    yield from range(count)


@ff.stage(batch_size=8)
def broken(numbers: list[int]) -> list[int]:
    raise ZeroDivisionError("no weights")


@ff.pipeline(level="document")
def never_works(count: ff.Port[int]) -> ff.Port[list[int | ff.Failure]]:
    page = ff.expand(pages(count), "page")
    return ff.gather(broken(page), failed="mark")


@ff.stage
def positive(number: int) -> int:
    if number < 0:
        raise ValueError(f"{number} is negative")
    if number == 0:
        raise ff.ItemFailure("nothing", code="zero")
    return number


@ff.pipeline(level="number")
def numbers(number: ff.Port[int]) -> ff.Port[int]:
    return positive(number)


@ff.pipeline(level="document")
def page_numbers(count: ff.Port[int]) -> ff.Port[list[int]]:
    return ff.gather(positive(ff.expand(pages(count), "page")), failed="drop")
