"""How batches form in whole programs: full across parents, and within their limits."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from tests.conformance.batch_stages import (
    LARGE_BYTES,
    batches,
    lengths,
    puzzled,
    puzzling,
    puzzling_source,
    sorted_by_cost,
    sorted_by_initial,
)

COUNTS = [1, 2, 3, 5, 7, 11, 13, 17, 19, 23]


@pytest.fixture(params=["inline", "local"])
def backend(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def formed(backend: str, counts: list[int], **options: object) -> Counter[tuple[int, int]]:
    """How many batches of so many items and bytes there were."""
    pipeline = batches.using({f"batch.{name}": value for name, value in options.items()})
    items: Counter[tuple[int, int]] = Counter()
    for result in pipeline.stream(counts, backend=backend):
        assert len(result.value) == counts[int(result.key)]
        items.update(result.value)
    return Counter({told: number // told[0] for told, number in items.items()})


def test_every_batch_is_full_but_the_last(backend: str) -> None:
    """The hour that a batch may linger is not waited for: at the end nothing more can come."""
    sizes = Counter[int]()
    for (count, _), number in formed(backend, COUNTS).items():
        sizes[count] += number
    assert sizes == {16: sum(COUNTS) // 16, sum(COUNTS) % 16: 1}


def test_batches_of_limited_size_fill_up_with_what_is_small(backend: str) -> None:
    found = formed(backend, [40], batch_size=12, batch_bytes="1MB")
    assert sum(count * number for (count, _), number in found.items()) == 40
    assert max(bytes_ for _, bytes_ in found) <= 1_000_000
    if (
        backend == "inline"
    ):  # elsewhere a batch is closed by a large one that comes before small ones
        assert sum(found.values()) == 5, "ten large ones, two to a batch"
        assert found[12, 2 * LARGE_BYTES + 10_000] >= 2, "small ones fill them up"


def test_what_is_larger_than_a_batch_goes_alone(backend: str) -> None:
    found = formed(backend, [8], batch_bytes=5_000)
    assert found[1, LARGE_BYTES] == 2
    assert sum(count * number for (count, _), number in found.items()) == 8
    assert all(bytes_ <= 5_000 for count, bytes_ in found if count > 1)


@pytest.mark.parametrize(("schedule", "giant_first"), [("fifo", True), ("fair", False)])
def test_small_documents_wait_for_turns_of_a_giant_or_for_all_of_it(
    backend: str, schedule: str, giant_first: bool
) -> None:
    pipeline = lengths.using({"whole.schedule": schedule, "whole.probe": 10**6})
    counts = [3_000, *[5] * 30]
    ended = [result.key for result in pipeline.stream(counts, backend=backend, order="completed")]
    assert len(ended) == 31
    assert (ended[0] == "0") is giant_first
    if not giant_first:
        assert ended[-1] == "0"


def test_items_of_a_batch_come_to_its_cost_at_most(backend: str) -> None:
    texts = ["4000 4000 4000 2000", "7 20000 2000 2000"]
    found = [result.value for result in sorted_by_cost.stream(texts, backend=backend)]
    assert [len(batches) for batches in found] == [4, 4]
    shared = {batch for batches in found for batch in batches}
    assert all(sum(batch) <= 10_000 for batch in shared if len(batch) > 1)
    assert {(7,), (20_000,)} < shared, (
        "of one nothing is known, and one is more than a batch may cost"
    )
    assert sorted(number for batch in shared for number in batch) == sorted(
        int(word) for text in texts for word in text.split()
    )
    assert len(shared) == 4, "six that are cheap fill two batches"


def test_only_items_of_one_group_share_a_batch(backend: str) -> None:
    texts = ["ape bee ant 17 bat", "asp 23 cat", "bug auk boa bird"]
    pipeline = sorted_by_initial.using({"together.linger_s": 3600})
    found = [result.value for result in pipeline.stream(texts, backend=backend)]
    shared = {batch for batches in found for batch in batches}
    for words, text in zip(found, texts, strict=True):
        assert all(word in batch.split() for word, batch in zip(text.split(), words, strict=True))
    assert all(len({word[0] for word in batch.split()}) == 1 for batch in shared)
    assert {"17", "23", "cat"} < shared, "of some nothing is known, and one is the only one"
    assert sorted(len(batch.split()) for batch in shared) == [1, 1, 1, 1, 4, 4]


OPTIONS: dict[str, dict[str, Any]] = {
    "batch_by": {"how_many.batch_by": puzzled},
    "batch_cost": {"how_many.batch_cost": puzzled, "how_many.max_batch_cost": 9},
}


@pytest.mark.parametrize("option", OPTIONS)
def test_items_that_are_too_much_for_a_function_run_alone_and_the_report_says_so(
    backend: str, option: str
) -> None:
    pipeline = puzzling.using(OPTIONS[option])
    (result,) = pipeline.stream([8], backend=backend)
    assert result.value == [4, 1] * 4
    report = pipeline.run([8], backend=backend, progress=False)
    (note,) = report.notes
    assert note.startswith(
        f"{option} of how_many told nothing of 4 items, which ran alone, such as 1 (int): "
    )
    assert "SystemExit: odd" in note
    assert f"note: {note}" in str(report)


@pytest.mark.parametrize("option", OPTIONS)
def test_the_same_holds_for_items_of_the_source(backend: str, option: str) -> None:
    pipeline = puzzling_source.using(OPTIONS[option])
    report = pipeline.run(range(8), backend=backend, progress=False)
    assert report.ok
    (note,) = report.notes
    assert f"{option} of how_many told nothing of 4 items" in note
