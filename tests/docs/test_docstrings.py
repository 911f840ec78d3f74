"""Every example in a docstring runs and prints what it says."""

import doctest
import importlib
import pkgutil

import pytest

import benchmarks
import fanfold

FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def module_names() -> list[str]:
    names: list[str] = []
    for package in (fanfold, benchmarks):
        modules = pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
        names += [package.__name__, *(module.name for module in modules)]
    return [name for name in names if not name.endswith("__main__")]


def examples() -> list[doctest.DocTest]:
    finder = doctest.DocTestFinder(exclude_empty=True)
    tests = [test for name in module_names() for test in finder.find(importlib.import_module(name))]
    return [test for test in tests if test.examples]


@pytest.mark.parametrize("test", examples(), ids=lambda test: test.name)
def test_the_example_runs(test, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    output: list[str] = []
    results = doctest.DocTestRunner(optionflags=FLAGS).run(test, out=output.append)
    assert results.failed == 0, "".join(output)
    assert results.attempted > 0
