"""Stages travel by name where they can be found by it, by value otherwise, and a refusal says which."""

from __future__ import annotations

import json
import linecache
import os
import pickle
import subprocess
import sys
import threading
import traceback
from pathlib import Path

import pytest

import fanfold
from fanfold.backends.local.shipping import ship
from fanfold.errors import DefinitionError
from tests.unit.backends.local import decorated


def test_a_function_without_a_name_travels_by_value():
    n = 3
    assert pickle.loads(ship(lambda x: x + n, "it"))(4) == 7


def test_a_module_function_travels_by_name():
    assert pickle.loads(ship(ship, "it")) is ship


def test_what_a_decorator_stands_in_front_of_travels_by_name():
    for wrapper in (decorated.locked, decorated.Thing):
        original = wrapper.__wrapped__  # type: ignore[union-attr]  # a decorated class is no class
        data = ship({"deep": [original]}, "it")
        assert pickle.loads(data)["deep"][0] is original
        assert len(data) < 500


def test_what_cannot_travel_is_told_by_name():
    lock = threading.Lock()
    with pytest.raises(DefinitionError, match=r"FF406 stage 'Ocr' cannot be sent.*lock") as told:
        ship(lambda: lock, "stage 'Ocr'")
    for part in (
        "a variable that its function uses",
        "as a class",
        "constructor",
        "thread",
        "inline",
    ):
        assert part in told.value.hint


SCRIPT = """\
import fanfold as ff

@ff.stage
def fragile(n):
    def inner():
        raise ValueError(f"item {n} is odd")  # the culprit
    return inner() if n % 2 else n

@ff.pipeline
def numbers(n):
    return fragile(n)

numbers.run([1], ff.write_jsonl("out"), run_dir="run", progress=False)
"""


def test_a_traceback_from_a_script_tells_file_and_source_line(tmp_path: Path):
    (tmp_path / "counted.py").write_text(SCRIPT)
    subprocess.run(
        [sys.executable, "counted.py"],
        cwd=tmp_path,
        check=True,
        timeout=60,
        env=os.environ | {"PYTHONPATH": str(Path(fanfold.__file__).parents[1])},
    )
    (line,) = (tmp_path / "run" / "failures.jsonl").read_text().splitlines()
    told = json.loads(line)["traceback"]
    assert f'File "{tmp_path / "counted.py"}", line 6, in inner' in told
    assert "# the culprit" in told


def test_source_that_is_in_no_file_travels_along():
    name, source = "<cell 7>", "def fragile(n):\n    raise ValueError(n)  # the culprit\n"
    lines = [str(line) for line in source.splitlines(keepends=True)]
    linecache.cache[name] = (len(source), None, lines, name)
    space: dict[str, object] = {"__name__": "__main__"}
    exec(compile(source, name, "exec"), space)
    data = ship(space["fragile"], "it")
    del linecache.cache[name]
    try:
        with pytest.raises(ValueError, match="3") as caught:
            pickle.loads(data)(3)
        told = "".join(traceback.format_exception(caught.value))
    finally:
        linecache.cache.pop(name, None)
    assert 'File "<cell 7>", line 2, in fragile' in told
    assert "# the culprit" in told
