"""Types that users see: both checkers infer them, and both flag each planted mistake."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SHOWN = ROOT / "tests" / "typing" / "shown_types.py"
IGNORE = re.compile(r"  # type: ignore\[[a-z-]+\]")
PLANTED = {
    number
    for number, line in enumerate(SHOWN.read_text(encoding="utf-8").splitlines(), 1)
    if IGNORE.search(line)
}


def mypy(path: Path) -> set[int]:
    """The lines in which mypy finds an error."""
    command = [sys.executable, "-m", "mypy", "--follow-imports=silent", str(path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1), done.stdout + done.stderr
    return {int(line) for line in re.findall(r"^[^:]+:(\d+): error", done.stdout, re.MULTILINE)}


def pyright(path: Path) -> set[int]:
    """The lines in which the engine of pyright finds an error; the wheel is the one of `./dev check`."""
    command = [sys.executable, "-m", "basedpyright", "--outputjson", str(path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1), done.stdout + done.stderr
    found = json.loads(done.stdout)["generalDiagnostics"]
    return {one["range"]["start"]["line"] + 1 for one in found if one["severity"] == "error"}


HOVERED = """
from __future__ import annotations

from collections.abc import Iterator

import fanfold as ff


@ff.stage
def pages(file: str) -> Iterator[bytes]:
    yield b""


@ff.stage(batch_size=8)
def read(images: list[bytes]) -> list[str | ff.ParentFailure]:
    return ["" for _ in images]


@ff.pipeline(level="document")
def to_text(file: ff.Port[str]) -> ff.Port[list[str]]:
    page = ff.expand(pages(file), "page")
    reveal_type(page)
    text = read(page)
    reveal_type(text)
    reveal_type(ff.gather(text, failed="drop", at_least=0.9, members=page))
    reveal_type(ff.gather(text, failed="mark"))
    return ff.gather(text)


reveal_type(pages(""))
reveal_type(to_text("one.pdf"))
"""
SHOWN_ON_HOVER = [
    "Port[bytes]",
    "Port[str]",
    "Port[list[str]]",
    "Port[list[str | Failure]]",
    "Iterator[bytes]",
    "Any",
]


@pytest.mark.parametrize("checker", ["mypy", "basedpyright"])
def test_what_an_editor_shows_over_a_name(checker, tmp_path):
    shown = tmp_path / "hovered.py"
    shown.write_text(HOVERED, encoding="utf-8")
    command = [sys.executable, "-m", checker, str(shown)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    found = re.findall(r'(?:Revealed type is|Type of ".*" is) "([^"]*)"', done.stdout)
    plain = [re.sub(r"\b\w+\.", "", text) for text in found]
    assert plain == SHOWN_ON_HOVER, done.stdout + done.stderr


@pytest.mark.parametrize("check", [mypy, pyright])
def test_types_are_inferred_and_mistakes_flagged(check, tmp_path):
    assert check(SHOWN) == set()
    assert len(PLANTED) > 15
    bare = tmp_path / "bare_types.py"
    bare.write_text(IGNORE.sub("", SHOWN.read_text(encoding="utf-8")), encoding="utf-8")
    assert check(bare) >= PLANTED
