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


IMPORTS = """\
import functools
import inside.deep.leaf
import fanfold as ff

def decorated(function):
    @functools.wraps(function)
    def wrapper(*args):
        return function(*args)
    return wrapper

def helper(n):
    return [inside.deep.leaf.double(m) for m in [n]][0]

def closed_over():
    import inside.deep.leaf as leaf, inside as package
    return lambda n: [package.deep.leaf.double(m) for m in [n]][0]

class Plain:
    def __call__(self, n):
        return (lambda: inside.deep.leaf.double(n))()

class Nested:
    class Inner:
        @staticmethod
        def of(n):
            return next(inside.deep.leaf.double(m) for m in [n])

        @property
        def two(self):
            return {inside.deep.leaf.double(m) for m in [1]}.pop()

    def __call__(self, n):
        return self.Inner.of(n) * self.Inner().two // 2

def local_class(n):
    class Local:
        def of(self):
            return inside.deep.leaf.double(n)
    return Local().of()

STAGES = {
    "comprehension": lambda n: [inside.deep.leaf.double(m) for m in [n]][0],
    "lambda": lambda n: (lambda: inside.deep.leaf.double(n))(),
    "helper": lambda n: helper(n),
    "decorated": decorated(lambda n: {m: inside.deep.leaf.double(m) for m in [n]}[n]),
    "partial": functools.partial(lambda unused, n: helper(n), 0),
    "closed_over": closed_over(),
    "method": Plain,
    "nested_class": Nested,
    "local_class": local_class,
}
"""


@pytest.mark.parametrize(
    "name",
    "comprehension lambda helper decorated partial closed_over method nested_class local_class".split(),
)
def test_a_module_inside_a_package_is_loaded_wherever_code_names_it(tmp_path: Path, name: str):
    folder = tmp_path / "inside" / "deep"
    folder.mkdir(parents=True)
    (folder / "leaf.py").write_text("def double(n):\n    return 2 * n\n")
    run = (
        f"stage = ff.stage(STAGES[{name!r}], name='it')\n"
        f"stage = stage() if isinstance(STAGES[{name!r}], type) else stage\n"
        "numbers = ff.pipeline(lambda n: stage(n))\n"
        "print([(one.value, [str(f) for f in one.failures]) for one in numbers.stream([1, 3])])\n"
    )
    (tmp_path / "script.py").write_text(IMPORTS + run)
    told = subprocess.run(
        [sys.executable, "script.py"],
        cwd=tmp_path,
        check=True,
        timeout=60,
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": str(Path(fanfold.__file__).parents[1])},
    )
    assert told.stdout.strip() == "[(2, []), (6, [])]"
