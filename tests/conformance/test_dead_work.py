"""What nobody needs any more is not run, on any backend: siblings of a parent failure, and what follows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import fanfold as ff
from tests.conformance.backends import BACKENDS

PAGES = 200


def pages(count: int) -> list[int]:
    return list(range(count))


def read(number: int, *, log: str) -> int:
    with open(log, "a") as file:
        file.write(f"{number}\n")
    if number == 0:
        raise ff.ParentFailure("the first page says that the document is of no use")
    return number


@pytest.mark.parametrize("backend", ["inline", "local", "threads"])
def test_siblings_of_a_parent_failure_are_not_run(backend: str, tmp_path: Path) -> None:
    @ff.pipeline(level="document")
    def documents(count: ff.Port[int]) -> ff.Port[Any]:
        page = ff.expand(ff.stage(pages)(count), "page")
        return ff.gather(ff.stage(read)(page, log=str(tmp_path / "log")), failed="drop")

    (result,) = documents.stream([PAGES], backend=BACKENDS[backend]())
    assert result.status is ff.Status.FAILED
    ran = (tmp_path / "log").read_text().split()
    assert len(ran) < PAGES / 4, "the first message to a worker has few items, and the rest is dead"


def endless(start: int, *, log: str) -> Iterator[int]:
    try:
        while True:
            yield start
            start += 1
    finally:
        Path(log).write_text("closed")


def refuse(number: int) -> int:
    raise ff.ParentFailure("no")


@pytest.mark.parametrize("backend", ["local", "threads"])
def test_a_generator_whose_children_nobody_needs_is_closed(backend: str, tmp_path: Path) -> None:
    log = tmp_path / "log"

    @ff.pipeline(level="document")
    def documents(start: ff.Port[int]) -> ff.Port[Any]:
        page = ff.expand(ff.stage(endless)(start, log=str(log)), "page")
        return ff.gather(ff.stage(refuse)(page))

    (result,) = documents.stream([0], backend=BACKENDS[backend]())
    assert result.status is ff.Status.FAILED
    assert log.read_text() == "closed"
