"""How benchmarks print what they measured."""

import io
import json

from benchmarks.__main__ import available, main
from benchmarks.report import Report


def test_json_has_one_object_a_line_with_the_agreed_names():
    output = io.StringIO()
    report = Report("control", as_json=True, output=output)
    report.add("5-per-parent", "children_per_s", 250_000.0, "1/s", target=200_000)
    report.add("import", "time_s", 0.2, "s", target=0.15, better="lower")
    report.add("import", "modules", 80, "1", system="peer")
    report.finish()
    rows = [json.loads(line) for line in output.getvalue().splitlines()]
    assert [list(row) for row in rows] == [
        ["bench", "case", "system", "metric", "value", "unit", "target", "met"]
    ] * 3
    assert [row["met"] for row in rows] == [True, False, None]
    assert [row["system"] for row in rows] == ["fanfold", "fanfold", "peer"]


def test_a_table_for_people_has_aligned_columns():
    output = io.StringIO()
    report = Report("lifecycle", output=output)
    report.add("import", "time_s", 0.125, "s", target=0.15, better="lower")
    report.add("64 workers", "ready_s", 1.5, "s", target=1.0, better="lower")
    report.finish()
    header, first, second = output.getvalue().splitlines()
    assert header.split() == ["bench", "case", "system", "metric", "value", "unit", "target", "met"]
    assert first.index("0.125") + len("0.125") == second.index("1.5") + len("1.5")
    assert first.endswith("yes")
    assert second.endswith("NO")


def test_what_a_system_cannot_do_stands_below_the_table_and_in_json():
    output = io.StringIO()
    report = Report("fill", output=output)
    report.add("growing", "batch_fill", 1, "1")
    report.missing("growing", "peer", "it has no sinks")
    report.finish()
    *_, last = output.getvalue().splitlines()
    assert len(output.getvalue().splitlines()) == 3
    assert last == "fill growing: no peer, it has no sinks"
    assert json.loads(report.measurements[-1].as_json()) == {
        "bench": "fill",
        "case": "growing",
        "system": "peer",
        "metric": "not_measured",
        "value": None,
        "unit": "it has no sinks",
        "target": None,
        "met": None,
    }


def test_nothing_is_printed_where_nothing_was_measured():
    output = io.StringIO()
    Report("empty", output=output).finish()
    assert output.getvalue() == ""


def test_an_unknown_benchmark_is_refused(capsys):
    assert main(["no-such-benchmark"]) == 2
    assert "there is no benchmark 'no-such-benchmark'" in capsys.readouterr().err


def test_without_a_name_they_are_listed(capsys):
    assert main([]) == 0
    listed = capsys.readouterr().out
    assert all(name in listed for name in available())
