"""A value that cannot be loaded where it is to go fails its root alone, with a record that says so."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import fanfold as ff
from tests.conformance import unloadable_stages as stages

HOWS = ("ValueError", "MemoryError", "RecursionError", "SystemExit", "GeneratorExit")
SOURCE = ff.from_items(range(5), key=str)


@pytest.mark.parametrize("how", HOWS)
def test_a_stream_goes_on(how: str) -> None:
    results = list(stages.made.using({"how": how}).stream(SOURCE))
    assert [r.status.value for r in results] == ["done", "done", "failed", "done", "done"]
    assert [r.value for r in results] == [0, 1, None, 3, 4]
    (failure,) = results[2].failures
    assert (failure.kind, failure.call, failure.where()) == ("unpicklable", "make", "document 2")
    assert failure.exception == how
    assert failure.message.startswith("a value of it cannot be loaded: ")


@pytest.mark.parametrize("how", [*HOWS, "KeyboardInterrupt"])
def test_records_of_other_roots_are_written(how: str, tmp_path: Path) -> None:
    double, value = ff.write_jsonl(tmp_path / "d"), ff.write_jsonl(tmp_path / "v")
    report = stages.two.using({"how": how}).run(
        SOURCE, {"double": double, "value": value}, progress=False
    )
    assert (report.roots["done"], report.roots["failed"]) == (4, 1)
    (group,) = report.failures
    assert (group.kind, group.call, group.example["key"]) == ("unpicklable", repr(value), "2")
    for folder in ("d", "v"):
        lines = (tmp_path / folder / "records.jsonl").read_text().splitlines()
        assert [json.loads(line)["key"] for line in lines] == ["0", "1", "3", "4"]


def test_what_an_earlier_run_wrote_for_the_root_goes(tmp_path: Path) -> None:
    sink = ff.write_jsonl(tmp_path)
    stages.made.run(ff.from_items([1, 2], key=lambda number: str(number + 1)), sink, progress=False)
    stages.made.run(SOURCE.take(3), sink, progress=False)
    lines = (tmp_path / "records.jsonl").read_text().splitlines()
    assert sorted(json.loads(line)["key"] for line in lines) == ["0", "1"]


def test_a_stream_stops_at_what_the_user_presses() -> None:
    with pytest.raises(KeyboardInterrupt):
        list(stages.made.using({"how": "KeyboardInterrupt"}).stream(SOURCE))


@pytest.mark.parametrize("source", [SOURCE, [2]], ids=["among others", "last"])
def test_too_many_of_them_stop_the_run(source: Any) -> None:
    with pytest.raises(ff.RunStopped) as stopped:
        list(stages.made.stream(source, max_failed=0))
    assert stopped.value.failure is not None
    assert stopped.value.failure.kind == "unpicklable"


@pytest.mark.parametrize("how", [*HOWS, "KeyboardInterrupt"])
def test_a_stage_that_takes_it_fails_its_item_alone(how: str) -> None:
    results = list(stages.read.using({"how": how}).stream(SOURCE))
    assert [r.status.value for r in results] == ["done", "done", "failed", "done", "done"]
    (failure,) = results[2].failures
    assert (failure.call, failure.exception) == ("same", how)
