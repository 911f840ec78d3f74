"""A dry run's findings: what went into and out of each stage, how long it took, whether it can travel.

Owns the recording (stages wrapped so that their values are seen on the way) and the table for people. Runs
nothing itself.
"""

from __future__ import annotations

import dataclasses
import io
import pickle
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from fanfold.data.sources import Source
from fanfold.errors import UsageError
from fanfold.observe.profile import DURATIONS, Profile, StageProfile
from fanfold.observe.report import FailureGroup, Report, duration
from fanfold.plan import Plan, StageSpec

_SAMPLES = 64
"""Values of a stage whose size and picklability are looked at; pickling all of a large sample costs."""


@dataclass(slots=True)
class StageCheck:
    """What was seen of one stage."""

    name: str
    construct_s: float = 0.0
    """How long its constructor took; 0 for a function."""
    calls: int = 0
    """How often the user's code was called: per item, or per batch."""
    items: int = 0
    results: int = 0
    """Values that it returned or yielded."""
    busy_s: float = 0.0
    takes: str = ""
    """What the first item looked like."""
    gives: str = ""
    """What its first result looked like."""
    largest_bytes: int = 0
    """Size of the largest result looked at, pickled."""
    unpicklable: str = ""
    """Why a result, or the stage itself, cannot travel between processes; empty if it can."""
    looked_at: int = 0
    batched: bool = False
    seconds: dict[int, list[float]] = field(default_factory=dict)
    """By the number of items in a call: how long each call took."""

    def note(self, items: int, seconds: float) -> None:
        """A call took so long."""
        self.busy_s += seconds
        known = self.seconds.setdefault(items, [])
        if len(known) < DURATIONS:
            known.append(seconds)


@dataclass(frozen=True, slots=True)
class Check:
    """The findings of a dry run; ``str(check)`` is a table."""

    stages: tuple[StageCheck, ...]
    report: Report
    profile: Profile
    """How long the stages took, by the number of items in a call; those of a sweep included."""

    @property
    def ok(self) -> bool:
        """Whether nothing failed and everything can travel."""
        return self.report.ok and not any(stage.unpicklable for stage in self.stages)

    @property
    def failures(self) -> tuple[FailureGroup, ...]:
        """What failed, grouped."""
        return tuple(self.report.failures)

    def __str__(self) -> str:
        head = (
            "stage",
            "takes",
            "gives",
            "items",
            "results",
            "per item",
            "largest result",
            "travels",
        )
        rows = [head, *(_cells(stage) for stage in self.stages)]
        widths = [max(len(row[i]) for row in rows) for i in range(len(head))]
        lines = [
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
            for row in rows
        ]
        lines += [
            f"{stage.name} cannot run in a worker process: {stage.unpicklable}"
            for stage in self.stages
            if stage.unpicklable
        ]
        return "\n".join([*lines, "", self.report.summary()])


def _cells(stage: StageCheck) -> tuple[str, ...]:
    return (
        stage.name,
        stage.takes or "-",
        stage.gives or "-",
        f"{stage.items:,}",
        f"{stage.results:,}",
        _precise(stage.busy_s / stage.items) if stage.items else "-",
        size(stage.largest_bytes) if stage.results else "-",
        "no" if stage.unpicklable else "yes",
    )


def _precise(seconds: float) -> str:
    return f"{seconds * 1000:.3g} ms" if seconds < 1 else duration(seconds)


class Recorder:
    """Collects what the wrapped stages see.

    Args:
        plan: The plan whose stages are wrapped.
    """

    def __init__(self, plan: Plan) -> None:
        self.stages = {
            stage.index: StageCheck(stage.name, batched=stage.batch_size is not None)
            for stage in plan.stages
        }

    def result(self, report: Report, *more: Recorder) -> Check:
        """The findings, once the dry run has ended with ``report``; of ``more`` only the durations count."""
        profiles: dict[str, StageProfile] = {}
        for index, stage in self.stages.items():
            seconds: dict[int, list[float]] = {}
            for recorder in (self, *more):
                for items, durations in recorder.stages[index].seconds.items():
                    known = seconds.setdefault(items, [])
                    known.extend(durations[: DURATIONS - len(known)])
            profiles[stage.name] = StageProfile(
                stage.construct_s, stage.batched, {n: tuple(s) for n, s in seconds.items()}
            )
        return Check(tuple(self.stages.values()), report, Profile(report.pipeline, profiles))


def recording(plan: Plan, recorder: Recorder) -> Plan:
    """The same plan with stages that tell ``recorder`` what passes through them."""
    stages = tuple(_wrapped(stage, recorder.stages[stage.index]) for stage in plan.stages)
    return dataclasses.replace(plan, stages=stages)


class Sample(Source[Any]):
    """Items of a source, read at once and kept, keys and all."""

    def __init__(self, source: Source[Any]) -> None:
        self._pairs = list(source)
        self._source = source
        self.unique_keys = source.unique_keys

    def __iter__(self) -> Iterator[tuple[str, Any]]:
        return iter(self._pairs)

    def __repr__(self) -> str:
        return repr(self._source)


def resized(plan: Plan, sizes: Mapping[str, int]) -> Plan:
    """The same plan with other batch sizes for these stages."""
    stages = tuple(
        dataclasses.replace(stage, batch_size=sizes.get(stage.name, stage.batch_size))
        for stage in plan.stages
    )
    return dataclasses.replace(plan, stages=stages)


def sweeps(
    plan: Plan, sweep: Sequence[int] | Mapping[str, Sequence[int]]
) -> Iterator[Mapping[str, int]]:
    """Batch sizes by stage, one mapping for each run of a sweep.

    Raises:
        UsageError: A stage is not there or not batched, or a size is none (FF444).
    """
    batched = [stage.name for stage in plan.stages if stage.batch_size is not None]
    wanted = sweep if isinstance(sweep, Mapping) else dict.fromkeys(batched, sweep)
    for name, sizes in wanted.items():
        good = all(type(size) is int and size > 0 for size in sizes)
        if name not in batched or not good:
            raise UsageError(
                "FF444",
                f"check: the sweep {name}={list(sizes)!r} cannot be made.",
                f"Give whole numbers from 1 on; stages with batches: {', '.join(batched) or 'none'}.",
            )
    for turn in range(max(map(len, wanted.values()), default=0)):
        yield {name: sizes[turn] for name, sizes in wanted.items() if turn < len(sizes)}


def _wrapped(stage: StageSpec, seen: StageCheck) -> StageSpec:
    if stage.workers == "process":
        seen.unpicklable = _why_not_picklable(stage)

    def entry(target: Any) -> _Recorded:
        return _Recorded(
            target if stage.method is None else getattr(target, stage.method),
            seen,
            batched=stage.batch_size is not None,
            asynchronous=stage.asynchronous,
            close=getattr(target, "close", None) if stage.is_class else None,
        )

    def construct(*args: Any, **kwargs: Any) -> _Recorded:
        started_s = time.perf_counter()
        target = stage.target(*args, **kwargs)
        seen.construct_s += time.perf_counter() - started_s
        return entry(target)

    if hasattr(stage.target, "setup_on_node"):
        construct.setup_on_node = stage.target.setup_on_node  # type: ignore[attr-defined]  # where it is looked for
    target = construct if stage.is_class else entry(stage.target)
    return dataclasses.replace(stage, target=target, method=None, replicas=1, most_replicas=None)


@dataclass(slots=True)
class _Recorded:
    """A stage's callable, watched."""

    run: Callable[..., Any]
    seen: StageCheck
    batched: bool
    asynchronous: bool = False
    close: Callable[[], Any] | None = None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        seen = self.seen
        inputs = args[0] if args else next(iter(kwargs.values()), None)
        count = len(inputs) if self.batched and inputs is not None else 1
        seen.calls += 1
        seen.items += count
        if not seen.takes and inputs is not None:
            seen.takes = describe(inputs[0] if self.batched else inputs)
        if self.asynchronous:
            return self._awaited(count, self.run(*args, **kwargs))
        started_s = time.perf_counter()
        children: Iterator[Any] | None = None
        result = None
        try:
            result = self.run(*args, **kwargs)
            if isinstance(result, Iterator) and not isinstance(result, io.IOBase):
                children = result
        finally:
            took_s = time.perf_counter() - started_s
            if children is None:
                seen.note(count, took_s)
        if children is not None:
            return self._watched(children, took_s)
        self._see_all(result)
        return result

    async def _awaited(self, count: int, coroutine: Awaitable[Any]) -> Any:
        started_s = time.perf_counter()
        try:
            result = await coroutine
        finally:
            self.seen.note(count, time.perf_counter() - started_s)
        self._see_all(result)
        return result

    def _watched(self, children: Iterator[Any], took_s: float) -> Iterator[Any]:
        try:
            while True:
                started_s = time.perf_counter()
                try:
                    child = next(children)
                except StopIteration:
                    return
                finally:
                    took_s += time.perf_counter() - started_s
                self._see(child, "yields ")
                yield child
        finally:
            self.seen.note(1, took_s)

    def _see_all(self, result: Any) -> None:
        for value in result if self.batched and hasattr(result, "__len__") else (result,):
            self._see(value)

    def _see(self, value: Any, verb: str = "") -> None:
        seen = self.seen
        seen.results += 1
        if not seen.gives:
            seen.gives = verb + describe(value)
        if seen.looked_at < _SAMPLES and not isinstance(value, BaseException):
            seen.looked_at += 1
            try:
                size_bytes = len(pickle.dumps(value, protocol=5))
            except Exception as error:  # a user's __reduce__ may raise anything
                if not seen.unpicklable:
                    seen.unpicklable = f"a result ({describe(value)}) does not pickle: {error}"
            else:
                seen.largest_bytes = max(seen.largest_bytes, size_bytes)


def _why_not_picklable(stage: StageSpec) -> str:
    import cloudpickle

    try:
        cloudpickle.dumps(stage, protocol=5)
    except Exception as error:
        return f"the stage itself does not pickle: {type(error).__name__}: {error}"
    return ""


def describe(value: Any) -> str:
    """A value's type and shape in a few characters.

    >>> describe([1, 2, 3]), describe({"a": 1}), describe("abc"), describe(b""), describe(None)
    ('list[int] of 3', 'dict(a)', 'str of 3', 'bytes of 0', 'None')
    """
    if value is None:
        return "None"
    name = type(value).__name__
    shape, kind = getattr(value, "shape", None), getattr(value, "dtype", None)
    if isinstance(shape, tuple) and kind is not None:
        return f"{name}[{kind}] {' × '.join(map(str, shape)) or 'scalar'}"
    if isinstance(value, Mapping):
        names = list(map(str, value))
        return f"{name}({', '.join(names[:4])}{', …' if len(names) > 4 else ''})"
    if isinstance(value, (list, tuple)):
        inner = {type(item).__name__ for item in value}
        return f"{name}[{inner.pop() if len(inner) == 1 else 'mixed' if inner else ''}] of {len(value)}"
    if isinstance(value, (str, bytes, bytearray)):
        return f"{name} of {len(value)}"
    return name


def size(n: int) -> str:
    """Bytes for people.

    >>> size(17), size(2_300_000)
    ('17 B', '2.3 MB')
    """
    for unit, factor in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if n >= factor:
            return f"{n / factor:.3g} {unit}"
    return f"{n} B"
