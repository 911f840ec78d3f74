"""What a sink is, which output goes to which sink, and how all records of a root commit together.

Owns the base class :class:`Sink`, :func:`bind_sinks` and :class:`SinkWriter`, the writer that a backend runs
where values can be read. What records look like on disk is each sink's own.

How a root commits
------------------
1. Every sink *prepares*: it turns the values into bytes and may fail without a trace. If it refuses a value,
   the root fails; no other is concerned.
2. Then every sink *commits* what it prepared: one append or one rename, which is there or not there.

A crash between two sinks' commits leaves the root in the first one only; since commits are idempotent by
key, running the root again makes it whole. A root that ended without records (it failed or was dropped) is
*forgotten*: records of it from an earlier run go, so that a sink never holds what the last run of a
key did not say.
"""

from __future__ import annotations

import contextlib
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias

from fanfold.errors import SinkError, SinkValueError, UsageError
from fanfold.outcomes import Status
from fanfold.plan import Output, Plan
from fanfold.protocol import RootResult

Commit: TypeAlias = Callable[[], None]

_URL: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")
"""One slash is enough, since pathlib makes one of two; a folder of such a name can be given as ``./s3:/x``."""
_WITH_RECORDS: Final = frozenset({Status.DONE.value, Status.PARTIAL.value})


@dataclass(frozen=True, slots=True)
class Item:
    """One value to write: of the root itself, or of an item below it."""

    value: Any
    ordinals: tuple[int, ...] = ()
    """One for each level below the root; empty for the root's own output."""


@dataclass(frozen=True, slots=True)
class RootRecords:
    """All that one root has for one output."""

    key: str
    levels: tuple[str, ...]
    """Names of the levels below the root, one for each ordinal; empty for a root-level output."""
    items: Sequence[Item]


class Sink(ABC):
    """Where the records of one output go.

    A sink pickles (it is sent to the process that writes) before it is opened. To make one of your own,
    subclass it; ``prepare`` must leave no trace, the commit that it returns must be atomic, and
    writing a key again must replace what was there.
    """

    @property
    @abstractmethod
    def folder(self) -> Path:
        """The folder that it writes into; the run directory goes there too."""

    @property
    @abstractmethod
    def target(self) -> str:
        """What it writes, for people: ``out/records.jsonl``."""

    def check(self) -> None:  # noqa: B027  optional
        """Find out, before any work, whether it can write.

        Raises:
            SinkError: It cannot.
        """

    @abstractmethod
    def open(self) -> None:
        """Called once, in the process that writes."""

    @abstractmethod
    def prepare(self, records: RootRecords) -> Commit:
        """Turn a root's values into what will be written; the function returned writes it.

        Raises:
            SinkValueError: A value cannot be written in this format; the root fails.
        """

    @abstractmethod
    def forget(self, key: str) -> None:
        """Remove the records of ``key`` that an earlier run wrote, if any."""

    @abstractmethod
    def close(self) -> None:
        """Called once after the last commit, also when the run stopped early."""


class SinkWriter:
    """The writer of a run: a sink for each output of the plan, all committed together.

    Args:
        sinks: One per output of the plan, in its order.
        levels: For each output the names of the levels below the root, empty for the root level.
    """

    def __init__(self, sinks: Sequence[Sink], levels: Sequence[tuple[str, ...]]) -> None:
        self.sinks: tuple[Sink, ...] = tuple(sinks)
        self._levels = tuple(levels)

    def open(self) -> None:
        """Open all sinks.

        Raises:
            SinkError: One cannot be opened; none stays open then.
        """
        with contextlib.ExitStack() as opened:
            for sink in self.sinks:
                sink.open()
                opened.callback(sink.close)
            opened.pop_all()

    def write(self, result: RootResult, values: Sequence[Any]) -> None:
        """Commit one root; ``values`` has for each output its value (of a child level: the list of them).

        Raises:
            SinkValueError: A sink refuses a value: nothing of this root is in any sink, nor from earlier.
            SinkError: It cannot be written; nothing of this root is, unless a commit itself failed.
        """
        if result.status not in _WITH_RECORDS:
            self._forget(result.key)
            return
        commits: list[Commit] = []
        for index, (sink, levels) in enumerate(zip(self.sinks, self._levels, strict=True)):
            if levels:
                items = [
                    Item(value, ordinals)
                    for value, ordinals in zip(
                        values[index], result.ordinals.get(index, ()), strict=True
                    )
                ]
            else:
                items = [Item(values[index])]
            try:
                commits.append(sink.prepare(RootRecords(result.key, levels, items)))
            except SinkValueError as error:
                self._forget(result.key)
                error.sink = repr(sink)
                raise
        for commit in commits:
            commit()

    def refuse(self, result: RootResult, output: int) -> str:
        """Nothing of this root is in any sink, nor from earlier; the sink of that output in words.

        Raises:
            SinkError: What an earlier run wrote cannot be removed.
        """
        self._forget(result.key)
        return repr(self.sinks[output])

    def _forget(self, key: str) -> None:
        for sink in self.sinks:
            sink.forget(key)

    def close(self) -> None:
        """Close all sinks, each of them even if another one fails to."""
        with contextlib.ExitStack() as closing:
            for sink in self.sinks:
                closing.callback(sink.close)


def bind_sinks(plan: Plan, sink: Any) -> SinkWriter | None:
    """Which output goes to which sink: by name for a dict, by position for a tuple.

    Raises:
        UsageError: Names or numbers differ, or something is no sink.
    """
    if sink is None:
        return None
    sinks = _by_output(plan, sink)
    for one in sinks:
        if not isinstance(one, Sink):
            raise UsageError(
                "FF320",
                f"{one!r} is no sink.",
                "Use ff.write_jsonl(…) or ff.write_files(…), or a subclass of Sink.",
            )
    targets = [one.target for one in sinks]
    for target in targets:
        if targets.count(target) > 1:
            raise UsageError(
                "FF321",
                f"two outputs would both be written to {target}.",
                "Give each its own path.",
            )
    return SinkWriter(sinks, [_levels_of(plan, output) for output in plan.outputs])


def _by_output(plan: Plan, sink: Any) -> list[Any]:
    outputs = plan.outputs
    if plan.structure == "dict":
        names = [str(output.name) for output in outputs]
        if isinstance(sink, Mapping) and sink.keys() == set(names):
            return [sink[name] for name in names]
        wanted = f"a dict of sinks with the names {', '.join(map(repr, names))}"
    elif plan.structure == "tuple":
        if isinstance(sink, (tuple, list)) and len(sink) == len(outputs):
            return list(sink)
        wanted = f"a tuple of {len(outputs)} sinks"
    else:
        if not isinstance(sink, (Mapping, tuple, list)):
            return [sink]
        wanted = "one sink"
    given = f"a dict with {', '.join(map(repr, sink))}" if isinstance(sink, Mapping) else repr(sink)
    raise UsageError(
        "FF322", f"pipeline {plan.name!r} needs {wanted}, one for each output, but got {given}."
    )


def _levels_of(plan: Plan, output: Output) -> tuple[str, ...]:
    names: list[str] = []
    level = plan.levels[plan.ports[output.port].level]
    while level.parent is not None:
        names.append(level.name)
        level = plan.levels[level.parent]
    return tuple(reversed(names))


def output_folder(writer: SinkWriter) -> Path:
    """The folder of a run's output: the one that all sinks write into or right below.

    Where sinks write to unrelated places it is the first one's.
    """
    folders = [Path(sink.folder).absolute() for sink in writer.sinks]
    parents = {folder.parent for folder in folders}
    for candidate in (*folders, *parents):
        if all(folder == candidate or folder.parent == candidate for folder in folders):
            return candidate
    return folders[0]


def local_folder(path: str, what: str) -> None:
    """Refuse URLs where only a local path will do.

    Raises:
        UsageError: ``path`` is a URL.
    """
    if _URL.match(path):
        raise UsageError(
            "FF323",
            f"{what} writes to local folders, not to {path!r}.",
            "Write to a local folder and copy it there.",
        )


def make_folder(folder: Path) -> None:
    """Make a folder for output, or tell why that cannot be.

    Raises:
        SinkError: It cannot be made or written to.
    """
    import os
    import tempfile

    try:
        folder.mkdir(parents=True, exist_ok=True)
        # Asking for permission is not enough (file systems that are read-only or full): try it.
        handle, probe = tempfile.mkstemp(prefix=".fanfold-probe-", dir=folder)
        os.close(handle)
        os.unlink(probe)
    except OSError as error:
        raise SinkError(
            "FF324", f"the output folder {str(folder)!r} cannot be written to: {error}."
        ) from error
