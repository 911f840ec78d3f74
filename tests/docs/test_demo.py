"""The demonstration runs, and it would tell if anything were not as planted."""

from __future__ import annotations

import copy
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from examples.demo import differences

ROOT = Path(__file__).resolve().parents[2]
HANG_GUARD_S = 240


class Demo(NamedTuple):
    """What the demonstration said and wrote."""

    said: str
    out: Path
    records: dict[str, Any]
    failures: list[dict[str, Any]]


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Demo:
    out = tmp_path_factory.mktemp("demo") / "out"
    program = [sys.executable, str(ROOT / "examples" / "demo.py"), "--out", str(out)]
    done = subprocess.run(
        program,
        capture_output=True,
        text=True,
        timeout=HANG_GUARD_S,
        env=os.environ | {"PYTHONPATH": str(ROOT / "src")},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (failures,) = out.glob(".fanfold/*/failures.jsonl")
    records = {Path(record["key"]).name: record for record in lines(out / "records.jsonl")}
    return Demo(done.stdout, out, records, lines(failures))


def test_it_says_where_to_look(demo: Demo):
    assert "All as planted" in demo.said
    for written in ("markdown", "records.jsonl", "failures.jsonl"):
        assert written in demo.said
    assert (demo.out / "markdown" / "examples" / "documents" / "handbook.pdf.md").exists()


def test_keys_are_paths_as_written(demo: Demo):
    assert {record["key"] for record in demo.records.values()} == {
        f"examples/documents/{name}" for name in demo.records
    }


def test_it_finds_nothing_wrong_in_what_is_right(demo: Demo):
    assert list(differences(demo.out, demo.records, demo.failures)) == []


def test_it_would_tell_a_lost_document(demo: Demo):
    records = {name: record for name, record in demo.records.items() if name != "mixed.pdf"}
    assert "the records are of" in " ".join(differences(demo.out, records, demo.failures))


@pytest.mark.parametrize("change", ["none", "twice", "another"])
def test_it_would_tell_failures_that_were_not_planted(demo: Demo, change: str):
    first, *rest = demo.failures
    failures = {
        "none": rest,
        "twice": [first, *demo.failures],
        "another": [{**first, "code": "pdf.damaged"}, *rest],
    }[change]
    assert "planted were" in " ".join(differences(demo.out, demo.records, failures))


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"text": "something else"}, "lacks"),
        ({"method": "ocr"}, "was read by"),
        ({"number": 7}, "in order"),
        ({"error": {"code": "page.damaged"}}, "marks"),
    ],
)
def test_it_would_tell_a_wrong_page(demo: Demo, change: dict[str, Any], told: str):
    records = copy.deepcopy(demo.records)
    records["mixed.pdf"]["pages"][0].update(change)
    (problem,) = differences(demo.out, records, demo.failures)
    assert problem.startswith("mixed.pdf")
    assert told in problem


def test_it_keeps_its_hands_off_folders_of_others(tmp_path: Path):
    (tmp_path / "precious.txt").write_text("mine")
    program = [sys.executable, str(ROOT / "examples" / "demo.py"), "--out", str(tmp_path)]
    done = subprocess.run(
        program,
        capture_output=True,
        text=True,
        timeout=HANG_GUARD_S,
        env=os.environ | {"PYTHONPATH": str(ROOT / "src")},
    )
    assert done.returncode == 2
    assert (tmp_path / "precious.txt").read_text() == "mine"
