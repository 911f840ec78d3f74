"""Comparing benchmarks: their options, what runs, and what is said of a system that cannot."""

import io
import json
import signal

import pytest

from benchmarks.__main__ import main
from benchmarks.comparing import Case, Compared, Options, best_peer, compare, tell
from benchmarks.peers.logbook import ASSEMBLED, MODEL, RENDERED, Entry
from benchmarks.peers.session import Failed, Run, Session
from benchmarks.peers.work import Shape
from benchmarks.report import NOT_MEASURED, Report
from tools.environment import SetupFailed

QUICK = ["--quick", "--no-peers", "--json"]


@pytest.fixture(autouse=True)
def signals_as_they_were():
    before = signal.getsignal(signal.SIGTERM)
    yield
    signal.signal(signal.SIGTERM, before)


def rows(capsys) -> list[dict]:
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


@pytest.mark.parametrize(
    ("bench", "metrics"),
    [
        ("memory", {"peak_over_budget", "growth_over_budget", "wall_s"}),
        ("payload", {"mb_per_s"}),
        ("streaming", {"first_child_ms", "children_per_s"}),
        ("fill", {"batch_fill", "span_s"}),
        ("fairness", {"small_p50_over_fair_share", "span_s"}),
        ("startup", {"import_s", "first_record_s", "workers_ready_s"}),
    ],
)
def test_a_quick_run_without_peers_gives_all_metrics(bench, metrics, capsys):
    assert main([bench, *QUICK]) == 0
    found = rows(capsys)
    assert {row["metric"] for row in found} == metrics
    assert {row["system"] for row in found} == {"fanfold"}
    # Processes may end smaller than they were, in so short a run.
    assert all(row["value"] > 0 or row["metric"] == "growth_over_budget" for row in found)


def test_busy_shares_are_shares(capsys):
    assert main(["busy", *QUICK]) == 0
    shares = {row["case"]: row["value"] for row in rows(capsys)}
    assert {"1ms", "5ms", "20ms", "1s", "5ms-loaded", "unequal"} <= shares.keys()
    assert all(0 < share <= 1 for share in shares.values())


def test_only_the_chosen_cases_run(capsys):
    assert main(["payload", *QUICK, "--case=array"]) == 0
    assert {row["case"] for row in rows(capsys)} == {"array"}


@pytest.mark.parametrize("argument", ["--fast", "--peers=spark", "--repeat=0"])
def test_unknown_options_are_refused_with_what_there_is(argument):
    with pytest.raises(SystemExit, match="unknown option") as refused:
        Options.of([argument])
    assert "--no-peers" in str(refused.value)


def test_a_program_says_when_each_of_its_stages_ran():
    with Session("fanfold") as session:
        run = session.run(Shape(counts=(1, 5, 2), batch=4), 60)
    of = {kind: [e for e in run.entries if e.kind == kind] for kind in (RENDERED, MODEL, ASSEMBLED)}
    assert {entry.document: entry.items for entry in of[RENDERED]} == {0: 1, 1: 5, 2: 2}
    assert sum(entry.items for entry in of[MODEL]) == 8
    assert sorted(entry.document for entry in of[ASSEMBLED]) == [0, 1, 2]
    assert all(run.began_s <= entry.start_s <= entry.end_s for entry in run.entries)


def test_what_a_system_could_not_do_is_told_and_the_next_program_runs():
    wrong = Shape(counts=(1,), schedule="no such schedule")
    with Session("fanfold") as session:
        with pytest.raises(Failed, match=r"failed: .*schedule"):
            session.run(wrong, 60)
        assert session.run(Shape(counts=(2,)), 60).entries


def test_a_system_that_takes_too_long_is_ended():
    with Session("fanfold") as session:
        with pytest.raises(Failed, match="did not finish within"):
            session.run(Shape(counts=(1,), page_s=600), 0.01)
        session.close()
        assert not session.usable


def test_a_system_that_does_not_start_says_its_last_words():
    with pytest.raises(Failed, match="ended before it could start: ModuleNotFoundError"):
        Session("no_such_system")


def test_peers_without_an_environment_are_told_of_in_words(monkeypatch):
    def without():
        raise SetupFailed("there is no network")

    monkeypatch.setattr("benchmarks.peers.session.peers_python", without)
    output = io.StringIO()
    report = Report("payload", output=output)
    options = Options(peers=("daft",), repeat=1)
    compared = compare(report, [Case("tiny", Shape(counts=(1,)))], options)
    report.finish()
    assert compared.of("tiny").keys() == {"fanfold"}
    assert [one.metric for one in report.measurements] == [NOT_MEASURED]
    assert "no daft, its environment is not there: there is no network" in output.getvalue()


def test_a_system_that_was_ended_is_started_again_for_the_next_case():
    endless = Case("endless", Shape(counts=(1,), page_s=600), limit_s=0.01)
    cases = [endless, Case("tiny", Shape(counts=(1,)))]
    report = Report("payload", output=io.StringIO())
    compared = compare(report, cases, Options(peers=(), repeat=1))
    assert [(one.case, one.metric) for one in report.measurements] == [("endless", NOT_MEASURED)]
    assert compared.of("endless") == {}
    assert len(compared.of("tiny")["fanfold"]) == 1


def test_medians_are_told_and_a_measure_that_fails_is_words():
    def made(wall_s: float) -> Run:
        return Run(0.0, wall_s, [Entry(MODEL, 0.0, 1.0, 1, 0, 1)], [])

    compared = Compared({("a", "fanfold"): [made(3), made(1), made(2)], ("a", "daft"): [made(9)]})
    report = Report("bench", as_json=True, output=io.StringIO())
    medians = tell(report, compared, "a", "wall_s", "s", lambda run: run.wall_s, target=1)
    assert medians == {"fanfold": 2, "daft": 9}
    assert [one.met for one in report.measurements] == [True, None]
    assert best_peer(medians) == 9
    assert best_peer({"fanfold": 2}) is None

    def refuse(run: Run) -> float:
        raise Failed("started 3 of 4 replicas")

    assert tell(report, compared, "a", "ready_s", "s", refuse) == {}
    assert report.measurements[-1].unit == "started 3 of 4 replicas"
