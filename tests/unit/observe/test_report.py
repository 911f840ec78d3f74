"""The report: its schema, what counts as well, and its words."""

import json

from fanfold.engine.statistics import CallCounts, Statistics, WorkerTimes
from fanfold.failures import Failure
from fanfold.observe.failure_log import FailureLog
from fanfold.observe.report import SCHEMA, Counters, FailureCounts, Report, Stopped, counted

ENCRYPTED = Failure(
    kind="declared",
    code="pdf.encrypted",
    message="a password is needed\nsecond line",
    call="pages",
    key="a.pdf",
    levels=("document",),
    ordinals=(3,),
)
BROKEN = Failure(
    kind="raised",
    message="ValueError: x",
    call="Ocr",
    key="b.pdf",
    levels=("document", "page"),
    ordinals=(4, 7),
)


def statistics(**roots: int) -> Statistics:
    return Statistics(
        calls=[
            CallCounts(
                "Ocr", "Ocr", "page", done=90, failed=1, batches=12, executed=91, capacity=96
            ),
            CallCounts("pages", "pages", "document"),
        ],
        levels={"document": 10, "page": 91},
        roots=roots,
        admitted=10,
        workers=[WorkerTimes(0, "Ocr[0]", "idle", 1.0, 2.0, {"no input": 0.5}, 1, 2)],
        budget_bytes=1000,
        peak_bytes=900,
        pauses=3,
    )


def report(found: Statistics, *failures: Failure, **changes) -> Report:
    counts = FailureCounts()
    counts.add(failures)
    counters = Counters()
    counters.add([("Ocr", "words", 1200), ("Ocr", "empty", 1)])
    counters.add([("Ocr", "words", 34)])
    fields = {
        "run": "r1",
        "pipeline": "to_text",
        "backend": "local",
        "started": "2031-01-01T00:00:00+00:00",
        "ended": "2031-01-01T00:01:15+00:00",
        "wall_s": 75.0,
        "first_worker_s": 0.2,
        "first_root_s": 0.4,
        "root_level": "document",
        "duplicates": 0,
        "failures": counts.groups(),
        **counted(found, counters),
        **changes,
    }
    return Report(**fields)


def test_counts_come_from_the_core_and_the_rest_is_unfinished():
    found = report(statistics(done=6, failed=1))
    assert found.roots == {"done": 6, "partial": 0, "dropped": 0, "failed": 1, "unfinished": 3}
    ocr, pages = found.calls
    assert (ocr.mean_batch, ocr.fill) == (7.583, 0.9479)
    assert (pages.mean_batch, pages.fill) == (None, None)


def test_what_stages_count_is_summed_by_call():
    found = report(statistics(done=10))
    assert [call.counters for call in found.calls] == [{"words": 1234, "empty": 1}, {}]
    assert found.to_dict()["calls"][0]["counters"] == {"words": 1234, "empty": 1}
    assert "  Ocr counted: words 1,234, empty 1" in found.summary().splitlines()


def test_dropped_is_well_and_failed_partial_unfinished_or_stopped_are_not():
    assert report(statistics(done=8, dropped=2)).ok
    assert report(statistics(done=8, dropped=2)).exit_code == 0
    for roots in ({"failed": 1, "done": 9}, {"partial": 1, "done": 9}, {"done": 9}):
        assert report(statistics(**roots)).exit_code == 1
    assert not report(statistics(done=10), stopped=Stopped("FF316", "x")).ok


def test_failures_are_grouped_most_frequent_first():
    found = report(statistics(done=10), BROKEN, ENCRYPTED, ENCRYPTED)
    assert [(g.call, g.kind, g.code, g.count) for g in found.failures] == [
        ("pages", "declared", "pdf.encrypted", 2),
        ("Ocr", "raised", "", 1),
    ]
    assert found.failed == 3


def test_the_schema_that_programs_build_on(tmp_path):
    found = report(statistics(done=9, failed=1), ENCRYPTED, run_dir="out/.fanfold/r1")
    found.write(tmp_path / "report.json")
    data = json.loads((tmp_path / "report.json").read_text())
    assert [path.name for path in tmp_path.iterdir()] == ["report.json"]
    assert data["schema"] == SCHEMA == 1
    assert data["ok"] is False
    assert set(data) == {
        *("schema", "ok", "run", "pipeline", "backend", "started", "ended", "wall_s"),
        *("first_worker_s", "first_root_s", "root_level", "admitted", "duplicates", "roots"),
        *("unreadable", "memory"),
        *("levels", "calls", "workers", "failures", "stopped", "outputs", "run_dir"),
        "notes",
    }
    assert set(data["calls"][0]) == {
        *("name", "stage", "level", "done", "dropped", "failed", "suppressed"),
        *("batches", "executed", "mean_batch", "fill", "busy_s", "counters"),
    }
    assert data["workers"] == [
        {
            "name": "Ocr[0]",
            "starting_s": 1.0,
            "busy_s": 2.0,
            "idle_s": {"no input": 0.5},
            "restarts": 1,
            "recycled": 2,
        }
    ]
    assert data["failures"][0]["example"]["key"] == "a.pdf"
    assert data["memory"] == {"budget_bytes": 1000, "peak_bytes": 900, "pauses": 3}


def test_the_summary_says_what_failed_where_and_where_things_are():
    text = str(
        report(
            statistics(done=8, failed=2),
            ENCRYPTED,
            BROKEN,
            duplicates=3,
            unreadable=1200,
            stopped=Stopped("FF316", "the source raised"),
            outputs=["out/records.jsonl"],
            run_dir="out/.fanfold/r1",
            notes=["stage 'Ocr' has 2 replicas and not 3"],
        )
    )
    assert text.splitlines() == [
        "to_text: 10 × document in 1 min 15 s: 8 done, 2 failed",
        "  91 × page",
        "  Ocr counted: words 1,234, empty 1",
        "  recycled: 2 workers",
        "  note: stage 'Ocr' has 2 replicas and not 3",
        "  left out for a key that had come before: 3",
        "  left out because the source could not read them: 1,200",
        "  2 failures:",
        "    1 × pages declared pdf.encrypted, such as document a.pdf:",
        "      a password is needed",
        "    1 × Ocr raised, such as document b.pdf, page 7:",
        "      ValueError: x",
        "  stopped early: FF316 the source raised",
        "  written: records of 8 × document to out/records.jsonl",
        "  details: out/.fanfold/r1",
    ]


def test_the_summary_says_of_how_many_roots_there_are_records():
    out = ["out/records.jsonl"]
    everything = str(report(statistics(done=9, partial=1), outputs=out))
    assert "written: records of 10 × document to out/records.jsonl" in everything
    assert "written" not in str(report(statistics(failed=6, dropped=4), outputs=out))


def test_failures_are_written_as_they_originate(tmp_path):
    path = tmp_path / "failures.jsonl"
    log = FailureLog(path)
    assert path.read_text() == ""
    log.add([ENCRYPTED])
    assert json.loads(path.read_text())["code"] == "pdf.encrypted"
    log.add([BROKEN])
    log.close()
    log.close()
    first, second = map(json.loads, path.read_text().splitlines())
    assert (first["key"], second["ordinals"]) == ("a.pdf", [4, 7])
