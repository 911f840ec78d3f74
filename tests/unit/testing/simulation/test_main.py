"""The command line of simulations: one line of JSON, exit codes, kept cases and their replay."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from fanfold.engine.held import HeldBlocks
from fanfold.testing.simulation import FAULTS, CaseFile
from fanfold.testing.simulation.__main__ import main


def result(capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    (line,) = capsys.readouterr().out.splitlines()
    told: dict[str, Any] = json.loads(line)
    return told


def test_the_result_is_one_line_of_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--runs", "20", "--seed", "5", "--json", "--commit", "1f"]) == 0
    told = result(capsys)
    assert (told["runs"], told["seed"], told["violations"]) == (20, 5, 0)
    assert told["commit"] == "1f"
    assert FAULTS.keys() <= told["faults"].keys()
    assert sum(told["faults"].values()) > 0
    assert told["events"] > 20
    assert told["compared"] == 20
    assert told["seconds"] >= 0


def test_a_drawn_seed_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--runs", "2"]) == 0
    told = capsys.readouterr()
    (seed,) = re.findall(r"2 runs from seed (\d+) on", told.err)
    assert re.search(rf"(?m)^seed: +{seed}$", told.out)


def test_two_processes_find_what_one_finds(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--runs", "201", "--seed", "9", "--json"]
    assert main(arguments) == 0
    alone = result(capsys)
    assert main([*arguments, "--jobs", "2"]) == 0
    together = result(capsys)
    same = ("runs", "events", "faults", "violations")
    assert [alone[name] for name in same] == [together[name] for name in same]


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_runs_that_do_not_begin_in_time_are_left_out(
    capsys: pytest.CaptureFixture[str], jobs: str
) -> None:
    assert main(["--runs", "2000", "--minutes", "0", "--seed", "9", "--json", "--jobs", jobs]) == 0
    assert result(capsys)["runs"] == 200


def test_a_failing_case_is_kept_and_replays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["--runs", "200", "--seed", "0", "--json", "--stop", "1", "--keep", str(tmp_path)]
    with monkeypatch.context() as patch:
        patch.setattr(HeldBlocks, "discard", lambda blocks, streams: None)
        assert main(arguments) == 1
        told = result(capsys)
        (file,) = tmp_path.glob("*.json")
        assert told["files"] == [str(file)]
        assert told["violations"] == 1
        assert main(["--replay", str(file)]) == 1
        replayed = capsys.readouterr()
        assert replayed.out.startswith("leak: ")
        assert "the same to the byte" in replayed.err
        assert main(["--replay", str(file), "--log"]) == 1
        log = capsys.readouterr().out
        assert " RootsAdmitted(" not in log
        assert " WorkerStarted(" in log
    assert CaseFile.from_json(file.read_text()).about == f"seed {told['failing_seeds'][0]}"
    assert main(["--replay", str(file)]) == 0
    mended = capsys.readouterr()
    assert mended.out == "no rule is broken\n"
    assert "the code changed" in mended.err


@pytest.mark.parametrize("text", [None, "{}"])
def test_a_file_that_is_no_case_is_refused(
    text: str | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "case.json"
    if text is not None:
        file.write_text(text)
    assert main(["--replay", str(file)]) == 2
    assert "cannot be replayed" in capsys.readouterr().err


def test_a_number_that_makes_no_sense_is_refused() -> None:
    with pytest.raises(SystemExit) as raised:
        main(["--runs", "0"])
    assert raised.value.code == 2
