"""Fail fast on bugs, carry on with bad data: whole runs that failures stop, the same on every backend."""

from __future__ import annotations

import json
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

import fanfold as ff
from fanfold.backends.local.backend import LocalBackend
from fanfold.observe.report import Report, Stopped
from tests.conformance import stopping_stages as stages

BACKENDS = {
    "inline": "inline",
    "local": "local",
    "threads": partial(LocalBackend, workers="thread"),
}


@pytest.fixture(params=BACKENDS)
def backend(request: pytest.FixtureRequest) -> Any:
    chosen: Any = BACKENDS[request.param]
    return chosen if isinstance(chosen, str) else chosen()


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def stopped(pipeline: Any, items: Any, tmp_path: Path, **options: Any) -> tuple[Any, Report]:
    """The error that stopped a run, and its report, which agree with what is on disk."""
    with pytest.raises(ff.RunStopped, match="FF421 the run was stopped: ") as told:
        pipeline.run(items, ff.write_jsonl(tmp_path), progress=False, **options)
    error, report = told.value, told.value.report
    assert (error.exit_code, report.exit_code, report.ok) == (1, 1, False)
    assert report.stopped == Stopped(error.code, error.message, error.hint)
    assert sum(report.roots.values()) == report.admitted
    on_disk = json.loads((Path(report.run_dir) / "report.json").read_text())
    assert on_disk["stopped"] == {"code": "FF421", "message": error.message, "hint": error.hint}
    written = lines(tmp_path / "records.jsonl")
    assert len(written) == report.roots["done"] + report.roots["partial"]
    assert len(lines(Path(report.run_dir) / "failures.jsonl")) == report.failed
    return error, report


def test_a_call_that_only_fails_stops_the_run(backend: Any, tmp_path: Path) -> None:
    error, report = stopped(stages.never_works, [7] * 500, tmp_path, backend=backend)
    assert "tasks of call 'broken' (stopping_stages.py:" in error.message
    assert "ZeroDivisionError: no weights" in error.message.splitlines()[0]
    assert "Traceback" in error.message and "stopping_stages.py" in error.message
    assert "mend it and run again" in error.hint
    assert error.failure.exception == "ZeroDivisionError"
    assert report.roots["unfinished"] > 0 and report.roots["failed"] == 0
    assert report.admitted < 500
    (group,) = report.failures
    (broken,) = [call for call in report.calls if call.name == "broken"]
    assert group.count == broken.failed >= 20, "those of unfinished roots are told too"
    failed = {failure["key"] for failure in lines(Path(str(report.run_dir)) / "failures.jsonl")}
    assert len(failed) >= 3


def test_bad_data_does_not_stop_a_run(backend: Any) -> None:
    declared = stages.numbers.run([0] * 100, backend=backend, progress=False)
    assert (declared.stopped, declared.roots["failed"]) == (None, 100)


def test_one_good_item_among_errors_is_enough_to_go_on(backend: Any) -> None:
    mixed = stages.numbers.run([1, *[-1] * 100], backend=backend, progress=False)
    assert (mixed.stopped, mixed.roots["failed"]) == (None, 100)


def test_two_bad_documents_say_nothing_of_the_stage(backend: Any) -> None:
    report = stages.never_works.run([30, 30], backend=backend, progress=False)
    assert (report.stopped, report.failed) == (None, 60)


def test_more_failed_roots_than_allowed_stop_the_run(backend: Any, tmp_path: Path) -> None:
    items = chain([1, -1, 2, 0, 3, -2], range(4, 1000))
    error, report = stopped(stages.numbers, items, tmp_path, backend=backend, max_failed=2)
    assert "3 of " in error.message and "more than max_failed=2 allows" in error.message
    assert "The first was number 1, at call 'positive': ValueError: -1 is negative" in error.message
    assert "stopping_stages.py" in error.message
    assert report.roots["failed"] == 3
    assert report.roots["done"] >= 3
    values = [record["value"] for record in lines(tmp_path / "records.jsonl")]
    assert values == list(range(1, len(values) + 1))


def test_as_many_failed_roots_as_allowed_do_not(backend: Any) -> None:
    report = stages.numbers.run([1, -1, 2, 0, 3], backend=backend, max_failed=2, progress=False)
    assert (report.stopped, report.roots["failed"], report.roots["done"]) == (None, 2, 3)


def test_a_share_that_is_not_passed_does_not_stop_a_run(backend: Any) -> None:
    items = [-1, *range(1, 20)] * 5  # five in a hundred: as many as allowed, and at first many more
    report = stages.numbers.run(items, backend=backend, max_failed=0.05, progress=False)
    assert (report.stopped, report.roots["failed"]) == (None, 5)


def test_a_share_counts_from_a_hundred_roots_on(backend: Any, tmp_path: Path) -> None:
    items = chain([-1, *[1] * 99], [-1] * 900)
    error, report = stopped(stages.numbers, items, tmp_path, backend=backend, max_failed=0.05)
    assert "more than max_failed=0.05 allows" in error.message
    assert report.roots["done"] == 99


def test_a_strict_stage_stops_the_run_at_its_first_error(backend: Any, tmp_path: Path) -> None:
    strict = stages.numbers.using({"positive.on_error": "stop"})
    items = chain([1, 0, 2, -1], range(3, 1000))
    error, report = stopped(strict, items, tmp_path, backend=backend)
    assert "stage 'positive' has on_error=\"stop\"" in error.message
    assert "It was number 3: ValueError: -1 is negative." in error.message
    assert error.failure.ordinals == (3,)
    assert report.roots["done"] >= 2 and report.roots["failed"] == 2


@pytest.mark.parametrize("order", ["source", "completed"])
def test_a_stream_hands_out_what_had_ended_and_then_raises(backend: Any, order: Any) -> None:
    items = chain([1, -1, 2, -2], range(3, 1000))
    stream = stages.numbers.stream(items, backend=backend, order=order, max_failed=1)
    results: list[ff.Result] = []
    with pytest.raises(ff.RunStopped, match=r"FF421 .*max_failed=1 allows") as told:
        results.extend(stream)
    statuses = [result.status for result in results]
    assert statuses.count(ff.Status.FAILED) == 2
    assert {result.value for result in results if result.ok} >= {1, 2}
    assert len({result.key for result in results}) == len(results)
    assert told.value.failure is not None
    assert told.value.failure.message == "ValueError: -1 is negative"


def test_a_root_that_a_sink_refuses_counts(backend: Any, tmp_path: Path) -> None:
    @ff.stage
    def raw(number: int) -> bytes:
        return bytes(number)

    @ff.pipeline(level="number")
    def unwritable(number: ff.Port[int]) -> ff.Port[bytes]:
        return raw(number)

    error, report = stopped(unwritable, range(1000), tmp_path, backend=backend, max_failed=4)
    assert error.failure.code == "FF326"
    assert report.roots["failed"] >= 5 and report.roots["done"] == 0
