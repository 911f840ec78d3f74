"""Whole programs, from a source to records on disk: the same on every backend."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

import fanfold as ff
from fanfold.data.sinks import Sink
from tests.conformance import running_stages as stages

DOCUMENTS: list[dict[str, Any]] = [{"name": f"d{n}", "pages": n % 6} for n in range(20)]
"""Every sixth from d4 and d5 on has a page 3, which is unreadable."""


@pytest.fixture(params=["inline", "local"])
def backend(request):
    return request.param


def documents(items=DOCUMENTS):
    return ff.from_items(items, key="name")


def lines(path: Path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def expected(document) -> dict:
    texts = [f"{document['name']}-{n}".upper() for n in range(document["pages"])]
    return {"key": document["name"], "name": document["name"], "text": " ".join(texts)}


def test_records_come_in_source_order_and_failures_are_told(backend, tmp_path):
    report = stages.strict.run(
        documents(), ff.write_jsonl(tmp_path), backend=backend, progress=False
    )
    good = [d for d in DOCUMENTS if d["pages"] < 4]
    assert lines(tmp_path / "records.jsonl") == [expected(d) for d in good]
    assert report.roots["done"] == len(good)
    assert report.roots["failed"] == len(DOCUMENTS) - len(good)
    assert report.exit_code == 1
    assert report.levels == {"document": 20, "page": sum(d["pages"] for d in DOCUMENTS)}
    assert report.backend == backend
    assert report.first_root_s is not None
    (group,) = report.failures
    assert (group.call, group.code, group.count) == ("upper", "page.bad", 6)
    run_dir = Path(report.run_dir or "")
    assert run_dir.parent == tmp_path / ".fanfold"
    assert json.loads((run_dir / "report.json").read_text()) == json.loads(
        json.dumps(report.to_dict())
    )
    failures = lines(run_dir / "failures.jsonl")
    assert sorted(f["key"] for f in failures) == sorted(
        d["name"] for d in DOCUMENTS if d["pages"] > 3
    )
    assert {tuple(f["levels"]) for f in failures} == {("document", "page")}
    assert {f["ordinals"][1] for f in failures} == {3}
    assert set(os.listdir(tmp_path)) == {"records.jsonl", ".fanfold"}


def test_a_marked_failure_keeps_its_place_in_the_record(backend, tmp_path):
    stages.marked.run(
        documents(DOCUMENTS[5:6]), ff.write_jsonl(tmp_path), backend=backend, progress=False
    )
    (record,) = lines(tmp_path / "records.jsonl")
    assert record["pages"][:3] == ["D5-0", "D5-1", "D5-2"]
    assert record["pages"][3]["failure"]["code"] == "page.bad"
    assert record["pages"][3]["failure"]["ordinals"] == {"page": 3}
    assert record["pages"][4] == "D5-4"


def test_named_sinks_get_their_outputs_and_a_child_level_its_rows(backend, tmp_path):
    report = stages.two_outputs.run(
        documents(DOCUMENTS[4:7]),
        {"pages": ff.write_jsonl(tmp_path), "text": ff.write_files(tmp_path / "text")},
        backend=backend,
        progress=False,
    )
    assert report.roots["partial"] == 2
    assert report.roots["done"] == 1
    assert report.exit_code == 1
    assert lines(tmp_path / "records.jsonl") == [
        {"key": key, "page": page, "text": f"{key}-{page}".upper()}
        for key, page in [("d4", 0), ("d4", 1), ("d4", 2), *(("d5", n) for n in (0, 1, 2, 4))]
    ]
    texts = {path.name: path.read_text() for path in (tmp_path / "text").iterdir()}
    assert texts == {"d4.txt": "D4-0 D4-1 D4-2", "d5.txt": "D5-0 D5-1 D5-2 D5-4", "d6.txt": ""}


def test_a_rerun_replaces_and_a_root_that_fails_now_has_no_record(backend, tmp_path):
    def run(items):
        stages.strict.run(
            documents(items), ff.write_jsonl(tmp_path), backend=backend, progress=False
        )
        return sorted((r["key"], r["text"]) for r in lines(tmp_path / "records.jsonl"))

    first = run([{"name": "a", "pages": 1}, {"name": "b", "pages": 1}, {"name": "c", "pages": 1}])
    assert first == [("a", "A-0"), ("b", "B-0"), ("c", "C-0")]
    assert run([{"name": "b", "pages": 2}, {"name": "c", "broken": True}]) == [
        ("a", "A-0"),
        ("b", "B-0 B-1"),
    ]


def test_masks_and_labels_of_a_source_are_known(backend, tmp_path):
    report = stages.by_kind.run(
        [
            {"kind": "short", "name": "n0"},
            {"kind": "long", "title": "t1"},
            {"kind": "other"},
            {"kind": "long"},
        ],
        ff.write_jsonl(tmp_path),
        backend=backend,
        progress=False,
    )
    assert lines(tmp_path / "records.jsonl") == [
        {"key": "0", "value": "n0"},
        {"key": "1", "value": "t1"},
    ]
    assert {(g.kind, g.example["key"]) for g in report.failures} == {
        ("contract", "2"),
        ("contract", "3"),
    }


def test_several_sources_bind_by_name_or_position(backend):
    results = stages.sum_of_two.stream([(1, 2), {"b": 20, "a": 10}], backend=backend)
    assert [result.value for result in results] == [3, 30]
    assert stages.sum_of_two(3, b=4) == 7


def test_a_stream_is_lazy_at_both_ends(backend):
    pulled: list[int] = []

    def endless():
        n = 0
        while True:
            pulled.append(n)
            yield n
            n += 1

    stream = stages.fragile_items.stream(endless(), backend=backend)
    assert pulled == []
    assert [next(stream).value for _ in range(4)] == [0, 1, 2, 3]
    seen = len(pulled)
    stream.close()
    assert len(pulled) == seen < 1000


def test_a_stream_tells_failures(backend):
    good, bad = stages.fragile_items.stream([1, -1], backend=backend)
    assert (good.status, good.value, good.ok) == (ff.Status.DONE, 1, True)
    assert (bad.status, bad.value, bad.ok) == (ff.Status.FAILED, None, False)
    assert bad.failures[0].message == "ValueError: -1 is negative"
    assert bad.failures[0].key == "1"


def test_limit_takes_the_first(backend, tmp_path):
    report = stages.fragile_items.run(
        range(100), ff.write_jsonl(tmp_path), backend=backend, limit=3, progress=False
    )
    assert report.admitted == 3
    assert [r["value"] for r in lines(tmp_path / "records.jsonl")] == [0, 1, 2]


def test_completed_order_writes_all_the_same(backend, tmp_path):
    stages.fragile_items.run(
        range(500), ff.write_jsonl(tmp_path), backend=backend, order="completed", progress=False
    )
    assert sorted(r["value"] for r in lines(tmp_path / "records.jsonl")) == list(range(500))


def test_a_source_that_fails_leaves_what_it_gave(backend, tmp_path):
    def items():
        yield from range(5)
        raise OSError("disk gone")

    with pytest.raises(ff.SourceError, match=r"FF316 .*disk gone") as told:
        stages.fragile_items.run(
            ff.from_items(items()), ff.write_jsonl(tmp_path), backend=backend, progress=False
        )
    assert [r["value"] for r in lines(tmp_path / "records.jsonl")] == [0, 1, 2, 3, 4]
    report = told.value.report
    assert report.roots["done"] == 5
    assert report.stopped.code == "FF316"
    assert json.loads((Path(report.run_dir) / "report.json").read_text())["stopped"] == {
        "code": "FF316",
        "message": "from_items(generator) raised OSError after 5 items: disk gone.",
        "hint": "What it gave before was run to its end; mend the source and run again.",
    }


def test_a_stage_that_cannot_start_stops_the_run_in_words(backend, tmp_path):
    with pytest.raises(ff.SetupError, match="FF423 stage 'NeedsWeights'") as told:
        stages.cannot_start.run(range(5), ff.write_jsonl(tmp_path), backend=backend, progress=False)
    assert "FileNotFoundError: weights.bin" in str(told.value)
    assert "running_stages.py" in str(told.value)
    if backend == "local":
        assert "looking for weights" in str(told.value)


class Broken(Sink):
    """Counts roots in a file, and has no room for more than some."""

    def __init__(self, folder: Path, room: int) -> None:
        self._folder, self._room, self._count = folder, room, 0

    @property
    def folder(self) -> Path:
        return self._folder

    @property
    def target(self) -> str:
        return "nowhere"

    def open(self) -> None:
        self._folder.mkdir(exist_ok=True)

    def prepare(self, records):
        return self._commit

    def _commit(self) -> None:
        if self._count == self._room:
            raise OSError("No space left on device")
        self._count += 1
        with (self._folder / "roots").open("a") as file:
            file.write("x")

    def forget(self, key: str) -> None: ...

    def close(self) -> None:
        (self._folder / "closed").touch()


def test_a_disk_that_is_full_ends_the_run_and_what_was_committed_counts(backend, tmp_path):
    with pytest.raises(ff.SinkError, match=r"FF331 .*No space left") as told:
        stages.images.run(range(400), Broken(tmp_path / "out", 50), backend=backend, progress=False)
    assert (tmp_path / "out" / "roots").read_text() == 50 * "x"
    assert (tmp_path / "out" / "closed").exists()
    assert told.value.report.roots["done"] == 50


def test_a_sink_that_another_run_holds_ends_the_run_at_once(backend, tmp_path):
    held = ff.write_jsonl(tmp_path)
    held.open()
    with pytest.raises(ff.SinkError, match="FF327 another run is writing"):
        stages.images.run(range(20_000), ff.write_jsonl(tmp_path), backend=backend, progress=False)
    held.close()


def test_a_value_that_the_sink_cannot_write_fails_its_root_alone(backend, tmp_path):
    file = tmp_path / "records.jsonl"
    file.write_text('{"key": "1", "value": "from an earlier run"}\n')
    report = stages.bytes_at_one.run(
        range(3), ff.write_jsonl(tmp_path), backend=backend, progress=False
    )
    assert [record["key"] for record in lines(file)] == ["0", "2"]
    assert report.exit_code == 1
    assert (report.roots["done"], report.roots["failed"]) == (2, 1)
    (failure,) = lines(Path(str(report.run_dir)) / "failures.jsonl")
    assert (failure["kind"], failure["code"]) == ("contract", "FF326")
    assert (failure["key"], failure["levels"], failure["ordinals"]) == ("1", ["item"], [1])
    assert failure["call"] == f"write_jsonl({str(file)!r})"
    assert "the record of '1' cannot be written" in failure["message"]
    assert report.failures[0].example["message"] == failure["message"]


def test_an_error_of_our_own_stops_the_start_with_its_own_words_alone(backend, tmp_path):
    with pytest.raises(ff.SetupError) as told:
        stages.lacks_gpu.run(range(5), ff.write_jsonl(tmp_path), backend=backend, progress=False)
    error = told.value
    assert (error.code, error.message, error.hint) == (
        "FF452", "there is no GPU.", "Leave out cuda=true.",
    )  # fmt: skip
    assert error.exit_code == 3
    (note,) = error.__notes__  # for those who want to know where
    assert "running_stages.py" in note


def test_bytes_are_written_as_files(backend, tmp_path):
    stages.images.run(range(3), ff.write_files(tmp_path / "b"), backend=backend, progress=False)
    assert (tmp_path / "b" / "2.txt").read_bytes() == b"\xff\xff"


def test_a_missing_file_is_told_before_anything_is_made(backend, tmp_path):
    with pytest.raises(ff.UsageError, match="FF308"):
        stages.processes.run(
            ff.read_files(tmp_path / "no.pdf"), ff.write_jsonl(tmp_path / "out"), backend=backend
        )
    assert not (tmp_path / "out").exists()


def test_files_reach_the_workers(backend, tmp_path):
    (tmp_path / "in #1; é.txt").write_text("x")
    results = list(stages.processes.stream(ff.read_files(tmp_path), backend=backend))
    assert [r.key for r in results] == [str(tmp_path / "in #1; é.txt")]
    assert (results[0].value == os.getpid()) == (backend == "inline")


def test_resuming_is_refused(backend):
    with pytest.raises(ff.UsageError, match="FF228"):
        stages.fragile_items.run([1], backend=backend, resume=True)


def test_an_empty_source_leaves_an_empty_file(backend, tmp_path):
    report = stages.fragile_items.run([], ff.write_jsonl(tmp_path), backend=backend, progress=False)
    assert report.ok
    assert (tmp_path / "records.jsonl").read_text() == ""
