"""The report of a run: what became of every root, what it cost, where things are.

Owns the report's schema, which displays and other programs build on: :data:`SCHEMA` goes up when a field
changes its meaning or goes away; new fields may come at any time. Knows nothing of how counts come about.
"""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from fanfold.engine.statistics import CallCounts, Statistics
from fanfold.failures import Failure
from fanfold.outcomes import Status
from fanfold.protocol import Count

SCHEMA: Final = 1


@dataclass(frozen=True, slots=True)
class CallReport:
    """One call: the outcomes of its items, and what it ran."""

    name: str
    stage: str
    level: str
    done: int
    dropped: int
    failed: int
    suppressed: int
    batches: int
    executed: int
    """Items run, each attempt counted."""
    mean_batch: float | None
    """Items per batch; None if nothing ran."""
    fill: float | None
    """Share of the batches' places that were taken, 0 to 1; None for a stage that is not batched."""
    busy_s: float
    """Time spent in the user's code, all workers together."""
    counters: Mapping[str, int] = field(default_factory=dict)
    """What the stage has counted by name (``ff.context().count``), each attempt included."""

    @classmethod
    def of(cls, counts: CallCounts, counters: Mapping[str, int]) -> CallReport:
        """From the counts of the core, and the sums of what the stage has counted."""
        return cls(
            name=counts.name,
            stage=counts.stage,
            level=counts.level,
            done=counts.done,
            dropped=counts.dropped,
            failed=counts.failed,
            suppressed=counts.suppressed,
            batches=counts.batches,
            executed=counts.executed,
            mean_batch=round(counts.executed / counts.batches, 3) if counts.batches else None,
            fill=round(counts.executed / counts.capacity, 4) if counts.capacity else None,
            busy_s=round(counts.busy_s, 6),
            counters=counters,
        )


@dataclass(frozen=True, slots=True)
class WorkerReport:
    """How one worker spent its time."""

    name: str
    starting_s: float
    busy_s: float
    idle_s: Mapping[str, float]
    """Seconds by reason: ``no input``, ``downstream full``, ``rate limit``, ``finished``; and ``parked``: it
    was not there, since nobody needed it or others had its cores."""
    restarts: int
    """How often it died and was replaced."""
    recycled: int = 0
    """How often it was replaced as its stage asks (``recycle_after``, ``recycle_above``)."""


@dataclass(frozen=True, slots=True)
class MemoryReport:
    """What values took, users' own memory apart."""

    budget_bytes: int | None
    """How much they were allowed to take."""
    peak_bytes: int
    """The most that they took at a time."""
    pauses: int
    """How often a generator has waited for memory."""


@dataclass(frozen=True, slots=True)
class FailureGroup:
    """Failures of one call and code (or kind, where there is no code), with one of them as example."""

    call: str
    kind: str
    code: str
    count: int
    example: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Stopped:
    """Why a run ended early."""

    code: str
    message: str
    """What happened, with the first failure and its traceback if failures stopped the run."""
    hint: str = ""
    """What to do about it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What a run did. ``str(report)`` is a summary for people, :meth:`to_dict` is for programs."""

    run: str
    """Name of this run, unique in its output folder."""
    pipeline: str
    backend: str
    started: str
    """Date and time, ISO 8601 in UTC."""
    ended: str
    wall_s: float
    first_worker_s: float | None
    """From the start until the first worker was ready."""
    first_root_s: float | None
    """From the start until the first root ended."""
    root_level: str
    admitted: int
    """Roots read from the source."""
    duplicates: int
    """Items of the source left out because their key had come before."""
    roots: Mapping[str, int]
    """Roots by status: done, partial, dropped, failed, unfinished."""
    levels: Mapping[str, int]
    """Items at each level."""
    calls: Sequence[CallReport]
    workers: Sequence[WorkerReport]
    failures: Sequence[FailureGroup]
    """Each failure counted once, where it originated."""
    memory: MemoryReport = MemoryReport(None, 0, 0)
    unreadable: int = 0
    """Items that the source found and could not read, left out; ``failures`` tells of them too."""
    notes: Sequence[str] = ()
    """In words: what was changed of what stages ask for, such as replicas for which there is no room; and which
    stage's ``batch_by`` or ``batch_cost`` told nothing of some items."""
    stopped: Stopped | None = None
    outputs: Sequence[str] = ()
    """What was written, by sink."""
    run_dir: str | None = None
    schema: int = field(default=SCHEMA)

    @property
    def ok(self) -> bool:
        """Whether the run went to its end and no root failed, in whole or in part."""
        return self.stopped is None and not any(
            self.roots.get(status.value, 0)
            for status in (Status.FAILED, Status.PARTIAL, Status.UNFINISHED)
        )

    @property
    def exit_code(self) -> int:
        """For a command line: 0 if :attr:`ok`, else 1 (an error that stopped the run has its own)."""
        return 0 if self.ok else 1

    @property
    def failed(self) -> int:
        """How many failures there were, at all levels."""
        return sum(group.count for group in self.failures)

    def to_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON; the field ``schema`` tells its version."""
        data = dataclasses.asdict(self)
        return {"schema": data.pop("schema"), "ok": self.ok, **data}

    def summary(self) -> str:
        """Some lines for people: what happened, what failed with an example each, where the output is."""
        return "\n".join(_summary(self))

    def __str__(self) -> str:
        return self.summary()

    def write(self, path: Path) -> None:
        """Write it as JSON, in one step: a reader sees the whole file or none."""
        temporary = path.with_name(f".{path.name}.writing")
        text = json.dumps(self.to_dict(), indent=2, ensure_ascii=False)
        temporary.write_text(text + "\n", encoding="utf-8", errors="backslashreplace")
        os.replace(temporary, path)


class FailureCounts:
    """Counts failures as they originate, by call and code."""

    def __init__(self) -> None:
        self._groups: dict[tuple[str, str, str], tuple[int, Failure]] = {}

    def add(self, failures: Sequence[Failure]) -> None:
        """Count each of these once."""
        for failure in failures:
            group = (failure.call, failure.kind, failure.code)
            count, example = self._groups.get(group, (0, failure))
            self._groups[group] = (count + 1, example)

    def groups(self) -> tuple[FailureGroup, ...]:
        """The most frequent first."""
        found = [
            FailureGroup(call, kind, code, count, dict(example.as_dict()))
            for (call, kind, code), (count, example) in self._groups.items()
        ]
        return tuple(sorted(found, key=lambda group: -group.count))


class Counters:
    """What stages count themselves, summed up."""

    def __init__(self) -> None:
        self._sums: dict[str, dict[str, int]] = {}

    def add(self, counts: Sequence[Count]) -> None:
        """Add what a worker has counted."""
        for call, name, n in counts:
            sums = self._sums.setdefault(call, {})
            sums[name] = sums.get(name, 0) + n

    def of(self, call: str) -> dict[str, int]:
        """The sums of a call, by name."""
        return dict(self._sums.get(call, {}))


class UntoldCounts:
    """Items that ran alone since a function of their stage's options told nothing of them, by call.

    Args:
        calls: The calls' names, by number.
    """

    def __init__(self, calls: Mapping[int, str]) -> None:
        self._calls = calls
        self._found: dict[tuple[int, str], tuple[int, str]] = {}

    def add(self, call: int, option: str, count: int, example: str) -> None:
        """So many more, of which one in words."""
        so_far, first = self._found.get((call, option), (0, example))
        self._found[call, option] = (so_far + count, first)

    def notes(self) -> tuple[str, ...]:
        """One for each call and option.

        >>> untold = UntoldCounts({3: "Ocr"})
        >>> untold.add(3, "batch_by", 2, "'a' (str): ValueError: no size")
        >>> untold.notes()
        ("batch_by of Ocr told nothing of 2 items, which ran alone, such as 'a' (str): ValueError: no size",)
        """
        return tuple(
            f"{option} of {self._calls[call]} told nothing of {plural(count, 'item')}, which ran alone, "
            f"such as {example}"
            for (call, option), (count, example) in self._found.items()
        )


def counted(statistics: Statistics, counters: Counters) -> dict[str, Any]:
    """The part of a report that the core's statistics and the stages' counters hold, as keyword arguments."""
    roots = {status.value: statistics.roots.get(status.value, 0) for status in Status}
    roots[Status.UNFINISHED.value] = statistics.admitted - sum(
        count for status, count in roots.items() if status != Status.UNFINISHED.value
    )
    return {
        "admitted": statistics.admitted,
        "roots": roots,
        "levels": dict(statistics.levels),
        "memory": MemoryReport(statistics.budget_bytes, statistics.peak_bytes, statistics.pauses),
        "calls": tuple(CallReport.of(call, counters.of(call.name)) for call in statistics.calls),
        "workers": tuple(
            WorkerReport(
                name=worker.name,
                starting_s=round(worker.starting_s, 6),
                busy_s=round(worker.busy_s, 6),
                idle_s={reason: round(s, 6) for reason, s in worker.idle_s.items()},
                restarts=worker.restarts,
                recycled=worker.recycled,
            )
            for worker in statistics.workers
        ),
    }


def plural(count: int, noun: str) -> str:
    """``1 worker``, ``2,500 workers``: for words of ours; levels have names of the user's (:func:`times`).

    >>> plural(1, "worker"), plural(2500, "worker"), plural(0, "failure")
    ('1 worker', '2,500 workers', '0 failures')
    """
    return f"1 {noun}" if count == 1 else f"{count:,} {noun}s"


def times(count: int, level: str) -> str:
    """So many items of a level, whose name has no plural that anybody knows: ``series``, ``child``, ``Seite``.

    >>> times(1, "page"), times(2500, "series")
    ('1 × page', '2,500 × series')
    """
    return f"{count:,} × {level}"


def duration(seconds: float) -> str:
    """Seconds in words that fit their size.

    >>> duration(0.25), duration(75), duration(7500)
    ('0.25 s', '1 min 15 s', '2 h 5 min')
    """
    if seconds < 60:
        return f"{seconds:.2f} s" if seconds < 10 else f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    return f"{minutes // 60} h {minutes % 60} min"


def _summary(report: Report) -> list[str]:
    statuses = [f"{count:,} {status}" for status, count in report.roots.items() if count]
    head = f"{report.pipeline}: {times(report.admitted, report.root_level)}"
    lines = [f"{head} in {duration(report.wall_s)}: {', '.join(statuses) or 'nothing to do'}"]
    deeper = [times(n, name) for name, n in report.levels.items() if name != report.root_level]
    if deeper:
        lines.append(f"  {', '.join(deeper)}")
    for call in report.calls:
        if call.counters:
            sums = ", ".join(f"{name} {n:,}" for name, n in call.counters.items())
            lines.append(f"  {call.name} counted: {sums}")
    if recycled := sum(worker.recycled for worker in report.workers):
        lines.append(f"  recycled: {plural(recycled, 'worker')}")
    lines += [f"  note: {note}" for note in report.notes]
    if report.duplicates:
        lines.append(f"  left out for a key that had come before: {report.duplicates:,}")
    if report.unreadable:
        lines.append(f"  left out because the source could not read them: {report.unreadable:,}")
    if report.failures:
        lines.append(f"  {plural(report.failed, 'failure')}:")
        for group in report.failures:
            what = f"{group.kind} {group.code}".strip()
            example = Failure(**group.example)
            lines.append(f"    {group.count:,} × {group.call} {what}, such as {example.where()}:")
            lines.append(f"      {_first_line(example.message)}")
    if report.stopped is not None:
        lines.append(
            f"  stopped early: {report.stopped.code} {_first_line(report.stopped.message)}"
        )
        if report.stopped.hint:
            lines.append(f"    {report.stopped.hint}")
    if written := report.roots.get(Status.DONE.value, 0) + report.roots.get(
        Status.PARTIAL.value, 0
    ):
        of = times(written, report.root_level)
        lines += [f"  written: records of {of} to {output}" for output in report.outputs]
    if report.run_dir is not None:
        lines.append(f"  details: {report.run_dir}")
    return lines


def _first_line(text: str) -> str:
    line = text.strip().partition("\n")[0]
    return line if len(line) <= 200 else line[:200] + " …"
