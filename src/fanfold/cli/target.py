"""From what the user named to a pipeline with its source and sinks.

Owns the forms of a target (``module:pipeline``, ``file.py:pipeline``, a ready-made name), what paths and
``--out`` mean for it, and ``--set``. Runs nothing.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from fanfold.data.file_source import read_files
from fanfold.data.jsonl_sink import write_jsonl
from fanfold.data.jsonl_source import read_jsonl
from fanfold.data.sources import Source
from fanfold.errors import FanfoldError, SetupError, UsageError
from fanfold.model.definition import did_you_mean
from fanfold.pipeline import Pipeline
from fanfold.pipelines import READY_MADE

_JSON_LINES = (".jsonl", ".ndjson", ".jsonl.gz", ".ndjson.gz")


@dataclass(frozen=True, slots=True)
class Target:
    """A pipeline and how the command line feeds it."""

    pipeline: Pipeline[Any, Any]
    source: Callable[[Sequence[str]], Source[Any]]
    sinks: Callable[[str | os.PathLike[str]], Any]


def load(name: str, changes: Sequence[str] = ()) -> Target:
    """What ``name`` stands for, with ``KEY=VALUE`` changes made.

    Raises:
        UsageError: There is nothing of that name, or a change is not of that form.
        SetupError: It needs a package that is not installed.
        DefinitionError: A change does not fit.
    """
    if name in READY_MADE:
        module = _ready_made(name)
        target = Target(getattr(module, name), module.source, module.sinks)
    elif ":" in name:
        pipeline = _attribute(*name.rsplit(":", 1))
        target = Target(pipeline, _source_of, lambda out: _sinks_of(pipeline, out))
    else:
        raise _unnamed(name)
    return Target(changed(target.pipeline, changes), target.source, target.sinks)


def changed(pipeline: Pipeline[Any, Any], changes: Sequence[str]) -> Pipeline[Any, Any]:
    """The pipeline after ``--set KEY=VALUE``, each.

    Raises:
        UsageError: A change has no ``=``.
        DefinitionError: A key is unknown, or a value does not fit.
    """
    values: dict[str, Any] = {}
    for change in changes:
        key, equals, text = change.partition("=")
        if not equals:
            raise UsageError(
                "FF502",
                f"--set {change!r} is not of the form KEY=VALUE.",
                "Such as Ocr.batch_size=8.",
            )
        values[key.strip()] = pipeline.parse(key.strip(), text)
    return pipeline.using(values) if values else pipeline


def _unnamed(name: str) -> UsageError:
    """What to say of a name that is no ready-made pipeline and tells no pipeline of a module."""
    if name.endswith(".py"):
        there = _pipelines_of(_module(name))
        hint = f"Name one of them: {', '.join(f'{name}:{one}' for one in there)}."
        return UsageError(
            "FF507",
            f"{name!r} is a file; which of its pipelines is meant?",
            hint if there else "There is none in it: declare one with @ff.pipeline.",
        )
    offered = did_you_mean(name, READY_MADE).replace("Known:", "Ready-made:")
    return UsageError(
        "FF501",
        f"there is no ready-made pipeline {name!r}.",
        f"{offered} One of your own is MODULE:PIPELINE or FILE.py:PIPELINE.",
    )


def _pipelines_of(module: ModuleType) -> list[str]:
    return [name for name, value in vars(module).items() if isinstance(value, Pipeline)]


def _ready_made(name: str) -> ModuleType:
    try:
        return importlib.import_module(READY_MADE[name])
    except ImportError as error:
        raise SetupError(
            "FF430",
            f"the pipeline {name!r} needs a package that is not installed: {error}.",
            f'Run: pip install "fanfold[{name}]"',
        ) from error


def _attribute(module_name: str, attribute: str) -> Pipeline[Any, Any]:
    module = _module(module_name)
    found = getattr(module, attribute, None)
    if isinstance(found, Pipeline):
        return found
    there = _pipelines_of(module)
    what = "does not exist" if found is None else f"is a {type(found).__name__}, not a pipeline"
    raise UsageError(
        "FF503",
        f"{attribute!r} in {module_name!r} {what}.",
        f"Pipelines there: {', '.join(there) or 'none'}.",
    )


def _module(name: str) -> ModuleType:
    """Import a module by name or by its file; the working directory counts, as for ``python -m``."""
    folder = ""
    if name.endswith(".py"):
        path = Path(name)
        if not path.is_file():
            raise UsageError("FF504", f"there is no file {name!r}.", "Name MODULE:PIPELINE.")
        # Its folder becomes importable, so that workers find the module under the same name.
        folder, name = str(path.resolve().parent), path.stem
    sys.path.insert(0, folder or os.getcwd())
    try:
        return importlib.import_module(name)
    except FanfoldError:
        raise
    except ModuleNotFoundError as error:
        if error.name is not None and (name == error.name or name.startswith(error.name + ".")):
            raise UsageError(
                "FF504",
                f"there is no module {name!r} (seen from {os.getcwd()!r}).",
                "Name MODULE:PIPELINE, or FILE.py:PIPELINE.",
            ) from error
        raise UsageError(
            "FF505", f"importing {name!r} failed: {error}.", "Install what it needs."
        ) from error
    except Exception as error:  # the user's own code runs here
        raise UsageError(
            "FF505",
            f"importing {name!r} failed: {type(error).__name__}: {error}.",
            "--debug shows where.",
        ) from error


def _source_of(paths: Sequence[str]) -> Source[Any]:
    """JSON Lines become items, anything else files.

    Raises:
        UsageError: Both are given: a pipeline takes one kind of item.
    """
    lines = [path for path in paths if path.endswith(_JSON_LINES)]
    if not lines:
        return read_files(*paths)
    if len(lines) < len(paths):
        other = next(path for path in paths if path not in lines)
        raise UsageError(
            "FF506",
            f"{lines[0]!r} gives an item for each of its lines, {other!r} is an item itself; a run takes "
            "one kind only.",
            "Run them one after the other, or read both in Python with sources of your choice.",
        )
    return read_jsonl(*paths)


def _sinks_of(pipeline: Pipeline[Any, Any], out: str | os.PathLike[str]) -> Any:
    """A JSON Lines file per output."""
    plan = pipeline.plan()
    if plan.structure == "dict":
        return {o.name: write_jsonl(os.path.join(out, f"{o.name}.jsonl")) for o in plan.outputs}
    if plan.structure == "tuple":
        names = [f"output-{i}.jsonl" for i in range(len(plan.outputs))]
        return tuple(write_jsonl(os.path.join(out, name)) for name in names)
    return write_jsonl(out)
