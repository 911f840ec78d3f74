"""The life of workers, the same in this thread, in processes and in threads."""

import json
import os
from pathlib import Path

import pytest

import fanfold as ff
from fanfold import secret
from tests.conformance import worker_stages as stages

TOKEN = "tr0ub4dor"


@pytest.fixture(params=["inline", "process", "thread"])
def kind(request, tmp_path, monkeypatch):
    """Where stages run; their notes go to ``notes``."""
    (tmp_path / "notes").mkdir()
    monkeypatch.setenv(stages.FOLDER, str(tmp_path / "notes"))
    monkeypatch.setenv("FANFOLD_TEST_TOKEN", TOKEN)
    monkeypatch.setattr(secret, "_hidden", {})
    return request.param


def where(pipeline, kind):
    """The pipeline and the backend that run it there."""
    if kind == "inline":
        return pipeline, "inline"
    return pipeline.using({f"{stage}.workers": kind for stage in pipeline.stages}), "local"


def notes(tmp_path: Path):
    return {file.name: len(file.read_text()) for file in (tmp_path / "notes").iterdir()}


def test_a_class_is_set_up_once_constructed_per_worker_and_closed(kind, tmp_path):
    pipeline, backend = where(stages.told, kind)
    report = pipeline.run(range(20), backend=backend, progress=False)
    assert report.roots["done"] == 20
    assert notes(tmp_path) == {"set up": 1, "constructed": 2, "closed": 2}


def test_a_stream_that_is_closed_early_closes_its_stages(kind, tmp_path):
    pipeline, backend = where(stages.told, kind)
    stream = pipeline.stream(range(10**6), backend=backend)
    assert next(stream).value == "tr Model 1"
    stream.close()
    found = notes(tmp_path)
    assert found["set up"] == 1 and found["constructed"] <= 2


def test_what_stages_count_is_in_the_report(kind, tmp_path):
    pipeline, backend = where(stages.told, kind)
    report = pipeline.run(
        range(20), ff.write_jsonl(tmp_path / "out"), backend=backend, progress=False
    )
    (call,) = report.calls
    assert call.counters == {"items": 20}
    assert "Model counted: items 20" in str(report)


def test_a_secret_is_nowhere_but_in_the_worker(kind, tmp_path):
    pipeline, backend = where(stages.told, kind)
    report = pipeline.run(
        [-1, 1], ff.write_jsonl(tmp_path / "out"), backend=backend, progress=False
    )
    assert (
        report.failures[0].example["message"].endswith("no access with <secret FANFOLD_TEST_TOKEN>")
    )
    assert "FANFOLD_TEST_TOKEN" in pipeline.explain()
    left = [file.read_bytes() for file in (tmp_path / "out").rglob("*") if file.is_file()]
    assert len(left) >= 3, "records, report and failures"
    for text in (*left, str(report).encode(), pipeline.explain().encode()):
        assert TOKEN.encode() not in text


def test_a_secret_that_is_not_known_stops_the_start_in_words(kind, monkeypatch):
    monkeypatch.delenv("FANFOLD_TEST_TOKEN")
    pipeline, backend = where(stages.told, kind)
    with pytest.raises(ff.SetupError, match="FF440 the secret 'FANFOLD_TEST_TOKEN'"):
        pipeline.run([1], backend=backend, progress=False)


def test_asynchronous_items_fail_by_themselves_and_the_stage_is_closed(kind, tmp_path):
    pipeline, backend = where(stages.fetched, kind)
    results = list(pipeline.stream(range(6), backend=backend))
    assert [result.value for result in results] == [0, 10, 20, None, None, 50]
    assert results[3].failures[0].code == "remote.404"
    assert results[4].failures[0].message == "ValueError: odd"
    assert notes(tmp_path) == {"closed": 1}


@pytest.mark.parametrize("kind", ["process", "thread"], indirect=True)
def test_as_many_items_as_it_says_are_with_an_asynchronous_worker_at_a_time(kind):
    pipeline, backend = where(stages.fetched, kind)
    pipeline = pipeline.using({"together": 5, "Remote.max_in_flight": 5})
    values = [result.value for result in pipeline.stream([0, 1, 2, 5, 6], backend=backend)]
    assert values == [0, 10, 20, 50, 60], "or else they would wait for each other for ever"


def test_an_event_loop_goes_on_that_a_stage_has_stopped_and_is_not_closed_by_it(kind):
    pipeline, backend = where(stages.meddling, kind)
    results = list(pipeline.stream(range(5), backend=backend))
    assert [result.value for result in results] == [0, 1, None, 3, 4]
    (failure,) = results[2].failures
    assert (failure.kind, failure.attempts) == ("raised", 1)
    assert "Cannot close a running event loop" in failure.message


def test_asynchronous_stages_make_children_and_take_batches(kind):
    pipeline, backend = where(stages.fanned, kind)
    values = [result.value for result in pipeline.stream([5, 0, 2], backend=backend)]
    assert values == [[0, 2, 4, 8], [], [0, 2]]


def test_a_pipeline_of_threads_works_on_the_programs_own_objects(monkeypatch):
    monkeypatch.setattr(stages.Hoard, "seen", [])
    things = [object() for _ in range(3)]
    results = [result.value for result in stages.hoarded.stream(things)]
    assert [a is b for a, b in zip(results, things, strict=True)] == [True] * 3
    assert len(stages.Hoard.seen) == 6
    assert {name for name, _ in stages.Hoard.seen} == {"Hoard[0]"}


def test_records_of_threads_are_written_by_the_writers_process(tmp_path):
    report = stages.hoarded.run(
        [{"n": n} for n in range(50)], ff.write_jsonl(tmp_path), progress=False
    )
    assert report.ok
    lines = (tmp_path / "records.jsonl").read_text().splitlines()
    assert [json.loads(line)["n"] for line in lines] == list(range(50))
    assert os.path.exists(tmp_path / "records.jsonl")
