"""The composition root: which backend, which workers, which run directory.

Owns the names of backends and of what a run is made of. Everything else takes its parts as arguments.
"""

from __future__ import annotations

import datetime
import os
import secrets
from collections.abc import Iterable, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

from fanfold.backends.base import NO_RUN, Backend, RunFacts, WorkerSpec
from fanfold.data.sinks import SinkWriter, local_folder, make_folder, output_folder
from fanfold.data.sources import Source, from_items
from fanfold.driver.resources import Fitted
from fanfold.errors import UsageError

BACKENDS = ("local", "inline")


def make_backend(backend: str | Backend, log_dir: Path | None = None) -> tuple[Backend, str]:
    """A backend and its name for the report: one of ours by name, or the object that was given.

    Workers' output goes to files in ``log_dir``; if it is None, nowhere but into messages.

    Raises:
        UsageError: There is no such backend.
    """
    if backend == "local":
        from fanfold.backends.local.backend import LocalBackend

        return LocalBackend(log_dir=log_dir), "local"
    if backend == "inline":
        from fanfold.backends.inline import InlineBackend

        return InlineBackend(), "inline"
    if isinstance(backend, str):
        raise UsageError(
            "FF424",
            f"there is no backend {backend!r}.",
            'Use "local" (worker processes on this machine) or "inline" (everything in this thread).',
        )
    if not callable(getattr(backend, "poll", None)):
        raise UsageError(
            "FF424", f"{backend!r} is no backend.", 'Give "local", "inline" or a Backend object.'
        )
    return backend, type(backend).__name__


def worker_specs(fitted: Fitted, facts: RunFacts = NO_RUN) -> tuple[WorkerSpec, ...]:
    """A worker for each replica of each stage, named ``Ocr[2]``; all know these facts of the run."""
    stages = fitted.plan.stages
    places = [(stage, replica) for stage in stages for replica in range(stage.replicas)]
    return tuple(
        WorkerSpec(
            worker,
            stage.index,
            f"{stage.name}[{replica}]",
            facts,
            fitted.gpus_of(stage.index, replica),
        )
        for worker, (stage, replica) in enumerate(places)
    )


def whole_seed(seed: Any) -> int:
    """A run's seed, checked.

    Raises:
        UsageError: It is no whole number (FF429).
    """
    if isinstance(seed, bool) or not isinstance(seed, int):
        raise UsageError("FF429", f"seed={seed!r} is no whole number.", "Such as seed=1.")
    return seed


def failed_limit(max_failed: Any) -> int | Fraction | None:
    """How many roots may fail, checked: a number, an exact share of those that ended, or None for any number.

    A share is read as the decimal that was written; ``1`` is a number, ``1.0`` a share.

    Raises:
        UsageError: It is neither (FF433).

    >>> failed_limit(5), failed_limit(0.1), failed_limit(None)
    (5, Fraction(1, 10), None)
    """
    if max_failed is None:
        return None
    if isinstance(max_failed, float) and 0.0 <= max_failed <= 1.0:
        return Fraction(str(max_failed))
    if isinstance(max_failed, int) and not isinstance(max_failed, bool) and max_failed >= 0:
        return max_failed
    raise UsageError(
        "FF433",
        f"max_failed={max_failed!r} is neither a number of roots nor a share of them.",
        "Give a whole number such as 10, or a share from 0.0 to 1.0 such as 0.05; leave it out for no limit.",
    )


def as_source(source: Any) -> Source[Any]:
    """``source`` itself, or a source of the items of an iterable.

    Raises:
        UsageError: It is neither, or a single value that was meant to be an item.
    """
    if isinstance(source, Source):
        return source
    if isinstance(source, (str, bytes, Mapping)) or not isinstance(source, Iterable):
        raise UsageError(
            "FF317",
            f"a run needs a source of items, not {type(source).__name__}.",
            "Use ff.read_files(…), ff.read_jsonl(…) or ff.from_items([…]); put a single item in a list.",
        )
    return from_items(source)


def new_run_name(now: datetime.datetime) -> str:
    """A name that sorts by time and is unique: ``2030-06-01T12-00-00-3fa9``."""
    return f"{now:%Y-%m-%dT%H-%M-%S}-{secrets.token_hex(2)}"


def make_run_dir(run_dir: Any, writer: SinkWriter | None, name: str) -> Path | None:
    """The run directory: the one that was asked for, else ``OUT/.fanfold/RUN``; None without a sink.

    Raises:
        UsageError: It is a URL.
        SinkError: It cannot be made.
    """
    if run_dir is not None:
        local_folder(os.fspath(run_dir), "run_dir=")
        folder = Path(run_dir).absolute()
    elif writer is not None:
        folder = output_folder(writer) / ".fanfold" / name
    else:
        return None
    make_folder(folder)
    return folder
