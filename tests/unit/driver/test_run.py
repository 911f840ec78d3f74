"""Calls on plain values, and a dry run's findings. What runs do on every backend is in tests/conformance."""

import json
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import fanfold as ff
from fanfold.driver.check import describe
from tests.conformance import running_stages as stages
from tests.conformance import stopping_stages


def test_a_call_runs_here_and_gives_the_value():
    assert stages.strict({"name": "a", "pages": 2}) == {"name": "a", "text": "A-0 A-1"}
    assert set(stages.two_outputs({"name": "a", "pages": 1})) == {"text", "pages"}


def test_a_call_raises_the_users_own_exception():
    with pytest.raises(ValueError, match="-1 is negative") as raised:
        stages.fragile_items(-1)
    assert Path(raised.traceback[-1].path).name == "running_stages.py"


def test_a_declared_failure_has_its_effect_where_the_pipeline_provides_for_it():
    record = stages.marked({"name": "a", "pages": 4})
    assert record["pages"][:3] == ["A-0", "A-1", "A-2"]
    assert isinstance(record["pages"][3], ff.Failure)
    with pytest.raises(ff.ItemFailure, match="cannot be opened") as raised:
        stages.marked({"name": "a", "broken": True})
    assert raised.value.code == "doc.broken"


def test_calls_and_runs_work_in_other_threads():
    values: list[object] = []
    thread = threading.Thread(
        target=lambda: values.append(
            stages.fragile_items.run([1, 2], backend="inline", progress=False).ok
        )
    )
    thread.start()
    thread.join()
    assert values == [True]


@pytest.mark.parametrize("limit", [0, -1])
def test_a_limit_leaves_something_to_run(limit, tmp_path):
    with pytest.raises(ff.UsageError, match=f"FF428 limit={limit} leaves nothing to run"):
        stages.images.run([1], ff.write_files(tmp_path / "out"), limit=limit, progress=False)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("limit", ["3", 2.5, True])
def test_a_limit_is_a_whole_number(limit):
    with pytest.raises(ff.UsageError, match=rf"FF428 limit={limit!r} is no number of items"):
        stages.images.run([1], limit=limit, progress=False)


PROGRAM = """
import itertools, sys
import fanfold as ff

@ff.stage
def same(n): return n

@ff.pipeline
def items(n): return same(n)

results = items.stream(itertools.count(), backend=sys.argv[1])
next(results)
"""


@pytest.mark.parametrize("backend", ["inline", "local"])
def test_a_program_may_end_in_the_middle_of_a_stream(backend, tmp_path):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    ended = subprocess.run(
        [sys.executable, program, backend], capture_output=True, text=True, timeout=60
    )
    assert (ended.returncode, ended.stderr) == (0, "")


def test_a_check_shows_what_passes_through_each_stage():
    found = stages.strict.check([{"name": "a", "pages": 3}, {"name": "b", "pages": 1}], n=2)
    pages, upper, joined = found.stages
    assert (pages.items, pages.results, pages.takes) == (2, 4, "dict(name, pages)")
    assert pages.gives == "yields dict(number, text, mute)"
    assert (upper.items, upper.results, upper.gives) == (4, 4, "str of 3")
    assert (joined.takes, joined.calls) == ("list[str] of 3", 2)
    assert found.ok
    text = str(found)
    for part in ("stage", "yields dict(number", "4 × page", "2 done"):
        assert part in text


def test_a_check_takes_only_its_samples():
    pulled: list[int] = []

    def items():
        for n in range(100):
            pulled.append(n)
            yield n

    stages.fragile_items.check(items(), n=3)
    assert pulled == [0, 1, 2]
    with pytest.raises(ff.UsageError, match="FF426"):
        stages.fragile_items.check([1], n=0)


def test_a_check_finds_what_cannot_travel():
    lock = threading.Lock()

    @ff.stage
    def opens(item: int) -> object:
        return (n for n in range(item)) if False else lock

    @ff.pipeline
    def locks(item: ff.Port[int]) -> ff.Port[object]:
        return opens(item)

    found = locks.check([1])
    assert not found.ok
    assert "cannot run in a worker process" in str(found)


def test_a_check_tells_failures():
    found = stages.fragile_items.check([1, -2])
    assert not found.ok
    assert [group.kind for group in found.failures] == ["raised"]


def test_duplicates_are_told_or_left_out(tmp_path):
    twice = ff.from_items([1, 2, 1], key=lambda n: n)
    with pytest.raises(ff.SourceError, match="FF314"):
        stages.fragile_items.run(twice, backend="inline", progress=False)
    report = stages.fragile_items.run(
        twice, ff.write_jsonl(tmp_path), backend="inline", duplicates="first", progress=False
    )
    assert report.duplicates == 1
    records = (tmp_path / "records.jsonl").read_text().splitlines()
    assert [json.loads(record)["key"] for record in records] == ["1", "2"]


@pytest.mark.parametrize("backend", ["inline", "local"])
def test_lines_that_were_skipped_are_told_by_a_report_and_cost_nothing_else(tmp_path, backend):
    lines = tmp_path / "in.jsonl"
    lines.write_text(
        '{"id": "a", "name": "a", "pages": 1}\n{"id": \n{"id": "b", "name": "b", "pages": 0}\nx\n'
    )
    source = ff.read_jsonl(lines, on_error="skip")
    report = stages.strict.run(source, ff.write_jsonl(tmp_path), backend=backend, progress=False)
    assert (report.admitted, report.unreadable, report.roots["done"]) == (2, 2, 2)
    assert report.ok and "could not read them: 2" in str(report)
    (group,) = report.failures
    assert (group.kind, group.count, group.call) == ("contract", 2, repr(source))
    assert group.example["key"] == f"{lines}:2" and group.example["ordinals"] == (1,)
    assert "FF310" in group.example["message"]
    told = (Path(str(report.run_dir)) / "failures.jsonl").read_text().splitlines()
    assert [json.loads(line)["ordinals"] for line in told] == [[1], [3]]
    records = (tmp_path / "records.jsonl").read_text().splitlines()
    assert [json.loads(record)["key"] for record in records] == ["a", "b"]


def test_a_stream_which_has_no_report_warns_of_lines_that_were_skipped(tmp_path):
    (tmp_path / "in.jsonl").write_text('{"id": "a", "name": "a", "pages": 1}\nx\n')
    source = ff.read_jsonl(tmp_path / "in.jsonl", on_error="skip")
    with pytest.warns(UserWarning, match=r"read_jsonl.*in.jsonl:2: FF310"):
        results = list(stages.strict.stream(source, backend="inline"))
    assert [result.key for result in results] == ["a"]


def test_values_are_described_by_type_and_shape():
    import numpy as np

    assert describe(np.zeros((2, 3), np.uint8)) == "ndarray[uint8] 2 × 3"
    assert describe(np.float32(1)) == "float32[float32] scalar"
    assert describe([1, "a"]) == "list[mixed] of 2"
    assert describe([]) == "list[] of 0"
    assert describe(dict.fromkeys("abcdef")) == "dict(a, b, c, d, …)"
    assert describe(object()) == "object"


def test_a_call_and_a_check_never_stop_for_failures():
    strict = stopping_stages.numbers.using({"positive.on_error": "stop"})
    with pytest.raises(ValueError, match="-1 is negative"):
        strict(-1)
    found = strict.check([-1] * 30, n=30)
    assert not found.ok
    assert [group.count for group in found.failures] == [30]


@pytest.mark.parametrize("method", ["run", "stream"])
def test_a_limit_of_failed_roots_that_makes_no_sense_is_told_at_once(method):
    with pytest.raises(ff.UsageError, match="FF433 max_failed=-1 is neither"):
        getattr(stages.fragile_items, method)(iter([1]), max_failed=-1)


def test_a_stream_that_stops_hands_out_what_waited_for_a_root_before_it():
    stream = stopping_stages.page_numbers.stream([5000, -1, -1], backend="inline", max_failed=1)
    results: list[ff.Result] = []
    with pytest.raises(ff.RunStopped):
        results.extend(stream)
    assert [(result.key, result.status) for result in results] == [
        ("1", ff.Status.FAILED),
        ("2", ff.Status.FAILED),
    ]
