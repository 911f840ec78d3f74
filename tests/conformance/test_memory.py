"""Generators that wait for memory are closed when nobody needs them any more: on every backend."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from fanfold.backends.base import Backend
from fanfold.backends.inline import InlineBackend
from fanfold.backends.local.backend import LocalBackend
from tests.conformance.memory_stages import BLOB_BYTES, pages, returned, whole

GIANT = 100_000
"""Pages that would take 10 GB."""
BUDGET = 4 * BLOB_BYTES


BACKENDS: dict[str, Callable[[], Backend]] = {
    "inline": InlineBackend,
    "processes": LocalBackend,
    "threads": partial(LocalBackend, workers="thread"),
}


@pytest.fixture(params=list(BACKENDS))
def backend(request: pytest.FixtureRequest) -> Callable[[], Backend]:
    return BACKENDS[request.param]


def document(folder: Path, pages: int, **more: Any) -> dict[str, Any]:
    return {"pages": pages, "closed": str(folder / f"closed-{pages}"), **more}


def given(folder: Path, pages: int) -> int:
    """How many pages such a document gave before it was closed."""
    return int((folder / f"closed-{pages}").read_text())


@pytest.mark.parametrize("pipeline", [pages, returned], ids=["yields", "returns"])
def test_the_report_tells_what_was_allowed_what_was_taken_and_who_waited(
    backend: Callable[[], Backend], tmp_path: Path, pipeline: Any
) -> None:
    report = pipeline.run(
        [document(tmp_path, 20)], backend=backend(), memory=BUDGET, progress=False
    )
    assert report.ok and report.levels["page"] == 20
    assert report.memory.budget_bytes == BUDGET
    assert BLOB_BYTES <= report.memory.peak_bytes <= BUDGET + 1.2 * BLOB_BYTES
    assert report.memory.pauses > 0


def test_a_generator_that_waits_is_closed_when_its_parent_fails(
    backend: Callable[[], Backend], tmp_path: Path
) -> None:
    roots = [document(tmp_path, GIANT, bad=0), document(tmp_path, 3)]
    bad, good = pages.stream(roots, backend=backend(), memory=BUDGET)
    assert (bad.status.value, good.value) == ("failed", [0, 1, 2])
    assert given(tmp_path, GIANT) < 20
    assert given(tmp_path, 3) == 3


def test_a_generator_that_waits_is_closed_when_the_run_is_left(
    backend: Callable[[], Backend], tmp_path: Path
) -> None:
    roots = [document(tmp_path, GIANT), document(tmp_path, 1)]
    results = pages.stream(roots, backend=backend(), memory=BUDGET, order="completed")
    assert next(results).value == [0], "the giant was begun before, and waits for room"
    results.close()
    assert 0 < given(tmp_path, GIANT) < GIANT


def test_what_waits_for_a_list_leaves_memory(tmp_path: Path) -> None:
    """Lists ten times as large as the budget, over processes, whose values can be moved to a disk."""
    roots = [document(tmp_path, 40), document(tmp_path, 41)]
    spill = tmp_path / "spill"
    spill.mkdir()
    report = whole.run(
        roots, backend=LocalBackend(spill_dir=str(spill)), memory=BUDGET, progress=False
    )
    assert report.ok and report.levels["page"] == 81
    assert report.memory.peak_bytes <= BUDGET + 2 * BLOB_BYTES
    results = whole.stream(roots, backend=LocalBackend(spill_dir=str(spill)), memory=BUDGET)
    assert [result.value for result in results] == [sum(range(40)), sum(range(41))]
    assert not any(spill.iterdir()), "the file has no name"
