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


@pytest.mark.parametrize("check", [mypy, pyright])
def test_types_are_inferred_and_mistakes_flagged(check, tmp_path):
    assert check(SHOWN) == set()
    assert len(PLANTED) > 15
    bare = tmp_path / "bare_types.py"
    bare.write_text(IGNORE.sub("", SHOWN.read_text(encoding="utf-8")), encoding="utf-8")
    assert check(bare) >= PLANTED
