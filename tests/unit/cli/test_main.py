"""The command: exit codes, one block per error, and what goes where."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import fanfold.cli.main as cli
from fanfold.cli.main import main
from fanfold.errors import InternalError

HERE = Path(__file__).parent
FLOW = str(HERE / "flow.py")


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rows.jsonl").write_text('{"id": "a", "n": 1}\n{"id": "b", "n": 2}\n')
    yield tmp_path
    sys.modules.pop("flow", None)


def run(*words: str) -> int:
    return main(
        ["run", f"{FLOW}:rows", "rows.jsonl", "--out", "out", "--backend", "inline", *words]
    )


def records(place):
    return [json.loads(line) for line in (place / "out" / "records.jsonl").read_text().splitlines()]


def test_a_run_writes_records_and_tells_where(place, capsys):
    assert run("--set", "factor=10") == 0
    assert records(place) == [{"key": "a", "n": 10}, {"key": "b", "n": 20}]
    shown = capsys.readouterr()
    assert "2 × row" in shown.out
    assert "out/records.jsonl" in shown.out
    assert shown.err == ""


@pytest.mark.parametrize("backend", ["inline", "local"])
def test_a_stage_that_lacks_something_is_told_once_and_without_a_traceback(capsys, backend):
    command = ["run", f"{FLOW}:on_gpu", "rows.jsonl", "--out", "out", "--backend", backend]
    assert main(command) == 3
    said = capsys.readouterr().err
    assert said.startswith("fanfold: FF452 there is no GPU.\n  Leave out cuda=true.\n")
    assert said.count("there is no GPU") == 1
    assert "Traceback" not in said and "FF423" not in said
    assert main([*command, "--debug"]) == 3
    assert "flow.py" in capsys.readouterr().err


def test_limit_run_dir_and_quiet(place, capsys):
    assert run("--limit", "1", "--run-dir", "state", "--quiet", "--order", "completed") == 0
    assert records(place) == [{"key": "a", "n": 2}]
    assert json.loads((place / "state" / "report.json").read_text())["ok"] is True
    shown = capsys.readouterr()
    assert (shown.out, shown.err) == ("", "")


def test_failed_roots_make_it_1(capsys):
    assert run("--set", "factor=-1") == 1
    assert "2 × scaled raised, such as row a:" in capsys.readouterr().out


def test_a_run_that_failures_stop_is_1_and_tells_why_and_what_was_done(capsys):
    assert run("--set", "factor=-1", "--max-failed", "1") == 1
    told = capsys.readouterr().err
    assert told.startswith(
        "fanfold: FF421 the run was stopped: 2 of 2 roots failed, which is more than max_failed=1 allows. "
        "The first was row a, at call 'scaled': ValueError: negative.\nTraceback"
    )
    assert "ValueError: negative\nWhat to do: See what failed and why in the report" in told
    assert "rows: 2 × row in" in told and "2 failed" in told
    assert run("--set", "scaled.on_error=stop", "--set", "factor=-1", "--quiet") == 1
    told = capsys.readouterr().err
    assert told.count("FF421") == 1 and "1 failed, 1 unfinished" in told


def test_a_limit_of_failed_roots_may_be_a_share(capsys):
    assert run("--set", "factor=-1", "--max-failed", "0.5") == 1
    assert "FF421" not in capsys.readouterr().err
    for wrong in ("1.5", "-1"):
        assert run(f"--max-failed={wrong}") == 2
        assert f"FF433 max_failed={wrong}" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("option", "wrong", "hint"),
    [
        (
            "--max-failed",
            "few",
            "a whole number such as 10, or a share from 0.0 to 1.0 such as 0.05",
        ),
        ("--max-failed", "5%", "such as 0.05"),
        ("--limit", "x", "'x' is no number of items; give a whole number from 1 on, such as 100"),
        ("--limit", "0", "'0' is no number of items"),
    ],
)
def test_a_number_that_is_none_is_refused_with_what_is_allowed(capsys, option, wrong, hint):
    with pytest.raises(SystemExit) as left:
        run(option, wrong)
    assert left.value.code == 2
    said = capsys.readouterr().err
    assert f"argument {option}: " in said and hint in said
    assert "_count" not in said


def test_a_users_mistake_is_one_block_and_2(capsys):
    assert run("--set", "faktor=1") == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.startswith("fanfold: FF221 ")
    assert "Traceback" not in shown.err
    assert len(shown.err.splitlines()) == 2


def test_a_url_as_output_is_refused_before_anything_is_made(place, capsys):
    assert main(["run", f"{FLOW}:rows", "rows.jsonl", "--out", "s3://b/o"]) == 2
    assert run("--run-dir", "s3://b/o") == 2
    assert capsys.readouterr().err.count("FF323") == 2
    assert not (place / "s3:").exists()


def test_debug_shows_where(capsys):
    assert run("--set", "faktor=1", "--debug") == 2
    assert "Traceback" in capsys.readouterr().err


def test_arguments_that_make_no_sense_are_2(capsys):
    for words in (["run"], ["run", "x", "y"], ["dance"], ["check", f"{FLOW}:rows", "x", "-n", "0"]):
        with pytest.raises(SystemExit) as left:
            main(words)
        assert left.value.code == 2
    assert "usage: fanfold" in capsys.readouterr().err


def test_a_broken_input_is_3_and_tells_what_was_done(place, capsys):
    (place / "rows.jsonl").write_text('{"id": "a", "n": 1}\nnot json\n')
    assert run() == 3
    shown = capsys.readouterr().err
    assert shown.startswith("fanfold: FF310 rows.jsonl:2 is not valid JSON")
    assert "1 done" in shown
    assert records(place) == [{"key": "a", "n": 2}]


def test_an_error_of_our_own_is_70(monkeypatch, capsys):
    def broken(options):
        raise InternalError("FF910", "it stands still.")

    monkeypatch.setitem(cli._COMMANDS, "explain", broken)
    assert main(["explain", f"{FLOW}:rows"]) == 70

    def bug(options):
        raise KeyError("x")

    monkeypatch.setitem(cli._COMMANDS, "explain", bug)
    assert main(["explain", f"{FLOW}:rows"]) == 70
    shown = capsys.readouterr().err
    assert "FF910" in shown
    assert "please report it" in shown


@pytest.mark.parametrize(("factor", "code"), [("2", 0), ("-1", 1)])
def test_nobody_who_reads_the_summary_changes_nothing_about_the_exit_code(
    monkeypatch, place, factor, code
):
    reading, writing = os.pipe()
    os.close(reading)
    with open(writing, "w", encoding="utf-8") as deserted:
        monkeypatch.setattr(sys, "stdout", deserted)
        assert run("--set", f"factor={factor}") == code
        print("more", flush=True)  # as Python flushes when it exits


def test_an_interrupt_is_130(monkeypatch, capsys):
    def interrupted(options):
        raise KeyboardInterrupt("the run was interrupted by Ctrl-C")

    monkeypatch.setitem(cli._COMMANDS, "run", interrupted)
    assert run() == 130
    assert capsys.readouterr().err == "fanfold: the run was interrupted by Ctrl-C\n"


@pytest.mark.parametrize("where", ["_parser", "load", "_say"])
def test_an_interrupt_before_or_after_the_run_is_told_in_words(monkeypatch, capsys, where):
    """Python's own exception has no words: while modules are imported, or the summary is printed."""
    say = cli._say

    def interrupted(*_):
        monkeypatch.setattr(cli, "_say", say)
        raise KeyboardInterrupt

    if where == "load":
        monkeypatch.setattr("fanfold.cli.target.load", interrupted)
    else:
        monkeypatch.setattr(cli, where, interrupted)
    assert run() == 130
    assert capsys.readouterr().err == "fanfold: interrupted (no run was going on)\n"


def test_ctrl_c_while_a_users_module_is_imported_is_130_and_no_traceback(place):
    (place / "slow.py").write_text("import os, signal\nos.kill(os.getpid(), signal.SIGINT)\n")
    words = [sys.executable, "-m", "fanfold", "explain", "slow.py:rows"]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stderr) == (130, "fanfold: interrupted (no run was going on)\n")


def test_the_version_is_shown(capsys):
    with pytest.raises(SystemExit) as left:
        main(["--version"])
    assert left.value.code == 0
    assert capsys.readouterr().out.startswith("fanfold ")


def test_explain_shows_the_plan(capsys):
    assert main(["explain", f"{FLOW}:rows", "--set", "scaled.batch_size=7"]) == 0
    assert "batches of up to 7" in capsys.readouterr().out
    for words in (["--mermaid"], ["--format", "mermaid"]):
        assert main(["explain", f"{FLOW}:rows", *words]) == 0
        assert "flowchart" in capsys.readouterr().out
    assert main(["explain", f"{FLOW}:rows", "--format", "text"]) == 0
    assert "pipeline rows" in capsys.readouterr().out


def test_check_shows_samples(capsys):
    assert main(["check", f"{FLOW}:rows", "rows.jsonl", "-n", "1"]) == 0
    shown = capsys.readouterr().out
    assert "dict(id, n)" in shown
    assert "1 × row" in shown
    assert main(["check", f"{FLOW}:rows", "rows.jsonl", "--set", "factor=-1"]) == 1


def test_the_module_is_the_command():
    done = subprocess.run(
        [sys.executable, "-m", "fanfold", "explain", f"{FLOW}:sizes"],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": str(HERE.parents[2] / "src"), "PATH": ""},
    )
    assert "pipeline sizes" in done.stdout
