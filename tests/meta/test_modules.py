"""Rules for every module: it says what it owns, it is short enough, importing it costs little."""

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

from tools.sizes import LIMIT_LINES, too_long

ROOT = Path(__file__).resolve().parents[2]
MODULES = sorted((ROOT / "src").rglob("*.py"))
HEAVY = {"fsspec", "numpy", "onnxruntime", "pandas", "pyarrow", "pypdfium2", "ray", "rich", "torch"}


def module_id(path: Path) -> str:
    return str(path.relative_to(ROOT / "src"))


@pytest.mark.parametrize("path", MODULES, ids=module_id)
def test_a_module_says_what_it_is_for(path):
    source = path.read_text(encoding="utf-8")
    if path.name == "__init__.py" and not source.strip():
        return  # an empty package says nothing that its folder's name does not
    docstring = ast.get_docstring(ast.parse(source))
    assert docstring, f"{module_id(path)} has no docstring that says what it owns"


def test_no_module_is_too_long():
    assert too_long(MODULES) == []


def test_a_module_over_the_limit_would_be_found(tmp_path, monkeypatch):
    monkeypatch.setattr("tools.sizes.ROOT", tmp_path)
    long = tmp_path / "long.py"
    long.write_text("x = 1\n" * (LIMIT_LINES + 1))
    (problem,) = too_long([long])
    assert problem.startswith(f"long.py has {LIMIT_LINES + 1} lines")


NEEDED_TO_DECLARE = {"errors", "failures", "model", "outcomes", "parts", "pipeline"}


def modules_after(statement: str) -> list[str]:
    """All modules that a fresh interpreter has after ``statement``."""
    code = f"{statement}\nimport json, sys\nprint(json.dumps(sorted(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT / "src"
    )
    names: list[str] = json.loads(done.stdout)
    return names


def imported_by(statement: str) -> set[str]:
    """Their top-level names."""
    return {name.partition(".")[0] for name in modules_after(statement)}


def test_importing_fanfold_brings_no_heavy_library():
    assert imported_by("import fanfold") & HEAVY == set()


def test_a_heavy_import_would_be_found():
    assert "fsspec" in imported_by("import fanfold, fsspec") & HEAVY


def test_importing_fanfold_brings_what_declaring_a_pipeline_needs_and_no_more():
    """Each worker imports it with the user's module; compiling and running are the driver's."""
    declare = "import fanfold as ff\nff.pipeline(level='x')(lambda x: ff.stage(len)(x))"
    own = [name.split(".") for name in modules_after(declare) if name.startswith("fanfold.")]
    assert {parts[1] for parts in own} == NEEDED_TO_DECLARE
