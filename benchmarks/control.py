"""What the control plane costs: tiny children, so that nothing but Fanfold's own work is measured.

Cases: ``50-per-parent`` and ``5-per-parent`` (document → pages → read → gather → join, end to end with one
worker process per stage), ``routed`` (alternating split and merge with 1 % failed children, where runs break
into singles), ``engine-only`` (engine and dispatch alone, in this process, workers played by the benchmark).

Options: ``--children=N`` (default 2,000,000), ``--case=NAME``, ``--repeat=N`` (the best of N is told).
"""

from __future__ import annotations

import gc
import itertools
import time
import tracemalloc
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import fanfold as ff
from benchmarks.report import Report
from fanfold.dispatch.core import Core
from fanfold.driver.collector import relaxed
from fanfold.engine.commands import FinishRoots, StartBatch
from fanfold.plan import Plan
from fanfold.protocol import (
    BatchFinished,
    ChildrenReleased,
    ExpansionSealed,
    RootsAdmitted,
    RootsCommitted,
    Rows,
    RunBatch,
    SourceExhausted,
    StreamRows,
    TasksFinished,
    WorkerStarted,
)

BATCH = 256
TARGETS = {
    "50-per-parent": 500_000,
    "5-per-parent": 200_000,
    "routed": 200_000,
    "engine-only": 1_000_000,
}


def pages(counts: list[int]) -> list[list[int]]:
    """A document is the number of its pages."""
    return [list(range(n)) for n in counts]


def read(numbers: list[int]) -> list[int]:
    return [n + 1 for n in numbers]


def join(documents: list[list[int]]) -> list[int]:
    return [sum(numbers) for numbers in documents]


def classify(numbers: list[int]) -> list[str]:
    return ["odd" if n & 1 else "even" for n in numbers]


def even(numbers: list[int]) -> list[int | ff.ItemFailure]:
    """1 % of all children fail: every fiftieth of the even ones."""
    failure = ff.ItemFailure("planted")
    return [failure if n % 100 == 98 else n for n in numbers]


def odd(numbers: list[int]) -> list[int]:
    return [-n for n in numbers]


@ff.pipeline(level="document")
def fan_out(counts: ff.Port[int]) -> ff.Port[int]:
    page = ff.expand(ff.stage(pages, batch_size=BATCH)(counts), "page")
    return ff.stage(join, batch_size=BATCH)(ff.gather(ff.stage(read, batch_size=BATCH)(page)))


@ff.pipeline(level="document")
def routed(counts: ff.Port[int]) -> ff.Port[int]:
    page = ff.expand(ff.stage(pages, batch_size=BATCH)(counts), "page")
    kind = ff.stage(classify, batch_size=BATCH)(page)
    evens, odds = ff.split(page, kind, into=("even", "odd"))
    done = ff.merge(ff.stage(even, batch_size=BATCH)(evens), ff.stage(odd, batch_size=BATCH)(odds))
    return ff.stage(join, batch_size=BATCH)(ff.gather(done, failed="drop"))


def run(report: Report, options: Sequence[str]) -> None:
    """Measure the cases asked for."""
    parts = (option.lstrip("-").partition("=") for option in options)
    given = {name: value for name, _, value in parts}
    children = int(given.get("children", 2_000_000))
    repeat = int(given.get("repeat", 1))
    for case in [given["case"]] if "case" in given else list(TARGETS):
        report.note(f"{case}, {children:,} children")
        seconds = min(_measure(case, children) for _ in range(repeat))
        report.add(case, "children_per_s", children / seconds, "1/s", target=TARGETS[case])
    if "case" not in given or given["case"] == "engine-only":
        report.add(
            "engine-only",
            "driver_bytes_per_child",
            driver_bytes_per_child(100_000, 50),
            "bytes",
            target=100,
            better="lower",
        )


def _measure(case: str, children: int) -> float:
    if case == "engine-only":
        return engine_seconds(children, 50)
    pipeline, fan = {
        "50-per-parent": (fan_out, 50),
        "5-per-parent": (fan_out, 5),
        "routed": (routed, 100),
    }[case]
    parents = children // fan
    results = 0
    started = time.perf_counter()
    report = pipeline.run(ff.from_items(itertools.repeat(fan, parents)), progress=False)
    seconds = time.perf_counter() - started
    results = report.roots["done"]
    if results != parents:
        raise SystemExit(f"{case}: {results} of {parents} documents are done")
    return seconds


# ------------------------------------------------------------------------------ engine and dispatch alone


@dataclass(frozen=True)
class _Replica:
    worker: int
    stage: int
    name: str


class _Played:
    """Driver and workers that answer at once, with blocks that are numbers and values that do not exist."""

    def __init__(self, plan: Plan, parents: int, fan: int) -> None:
        self.plan = plan
        self.parents = parents
        self.fan = fan
        self.core = Core(plan, [_Replica(s.index, s.index, s.name) for s in plan.stages])
        self.waiting: deque[StartBatch] = deque()
        self._refs = itertools.count(1)
        for stage in plan.stages:
            self.core.handle(WorkerStarted(stage.index))

    def admit(self) -> None:
        first = self.core.machine.roots.admitted
        n = min(self.core.room(), self.parents - first)
        if n > 0:
            keys = tuple(map(str, range(first, first + n)))
            port = self.plan.sources[0].stream.port
            self.event(RootsAdmitted(keys, (StreamRows(port, Rows(next(self._refs), n)),)))
            if first + n == self.parents:
                self.event(SourceExhausted())

    def event(self, event: object) -> None:
        for command in self.core.handle(event):  # type: ignore[arg-type]
            if isinstance(command, StartBatch):
                self.waiting.append(command)
            elif isinstance(command, FinishRoots):
                self.event(RootsCommitted(tuple(result.root for result in command.results)))

    def dispatch(self) -> None:
        self.waiting.extend(c for c in self.core.dispatch(0.0) if isinstance(c, StartBatch))

    def answer(self, command: StartBatch) -> None:
        batch = command.batch
        streams = self.plan.streams[batch.call]
        for expansion in streams.expansions:
            rows = Rows(next(self._refs), batch.count * self.fan)
            counts = (self.fan,) * batch.count
            released = tuple(StreamRows(s.port, rows) for s in expansion.streams)
            self.event(ChildrenReleased(batch.batch, expansion.node, 0, counts, released))
            self.event(ExpansionSealed(batch.batch, expansion.node, tuple(range(batch.count))))
        made = tuple(StreamRows(s.port, Rows(next(self._refs), batch.count)) for s in streams.items)
        self.event(TasksFinished(batch.batch, 0, batch.count, made))
        self.event(BatchFinished(batch.batch))


def engine_seconds(children: int, fan: int) -> float:
    """Time to carry ``children`` through engine and dispatch."""
    played = _Played(fan_out.plan(), children // fan, fan)
    started = time.perf_counter()
    with relaxed():  # as every run does
        while not played.core.finished:
            played.admit()
            played.dispatch()
            if played.waiting:
                played.answer(played.waiting.popleft())
    return time.perf_counter() - started


def driver_bytes_per_child(children: int, fan: int) -> float:
    """What the engine holds for each of so many children that are in flight at once."""
    played = _Played(fan_out.plan(), children // fan, fan)
    gc.collect()
    tracemalloc.start()
    try:
        machine = played.core.machine
        played.parents = children // fan
        while machine.roots.admitted < played.parents:
            first = machine.roots.admitted
            n = min(1000, played.parents - first)
            keys = tuple(map(str, range(first, first + n)))
            rows = Rows(next(played._refs), n)
            played.event(RootsAdmitted(keys, (StreamRows(0, rows),)))
        for batch in _take_all(played, machine.plan.calls()[0].index):
            played.answer(StartBatch(0, batch))
        gc.collect()
        return tracemalloc.get_traced_memory()[0] / machine.items_per_level[1]
    finally:
        tracemalloc.stop()


def _take_all(played: _Played, call: int) -> Iterator[RunBatch]:
    """All ready batches of a call, past dispatch, which would pause it long before."""
    while taken := played.core.machine.take(call, BATCH):
        yield taken
