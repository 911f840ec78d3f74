"""How cases are made up: one integer is one case.

Owns how large they are, how long things take in them and what goes wrong. Most are small, so that there are
many; some are larger, some have parents with more children than the probe lets through, and a few have one
parent with more children than the engine keeps together.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import replace
from random import Random
from typing import Final, TypeVar, get_args

from fanfold.engine.chunks import SPAN
from fanfold.errors import PipelineError
from fanfold.testing.drawing import Limits, draw_sketch
from fanfold.testing.simulation.case import Case, Fault, FaultKind, Timing
from fanfold.testing.sketches import GROUPERS, Sketch, StageSketch, build

T = TypeVar("T")

SMALL: Final = Limits(roots=6, replicas=3)
DEADLY: Final = replace(SMALL, mishaps=("kill",))
"""Some items kill their workers."""
MEDIUM: Final = Limits(roots=40, steps=14, children=6, replicas=4, batch=16, mishaps=("kill",))
BROAD: Final = Limits(roots=6, steps=4, levels=2, depth=1, children=30, replicas=4, batch=6)
"""Several parents have many children each, few of which are at workers at a time."""
LARGE: Final = Limits(roots=200, steps=5, levels=2, depth=1, children=9, replicas=8, batch=64)
WIDE: Final = Limits(roots=3, steps=3, levels=1, depth=1, children=2_500, replicas=4, batch=256)
"""A parent has more children than one chunk of the engine's state holds items."""
BUDGETS: Final = (None, None, None, 1, 2, 6, 20, 100)
"""Values that may be in memory at a time."""
SIZES: Final = (
    (SMALL, 0.67),
    (DEADLY, 0.2),
    (MEDIUM, 0.06),
    (BROAD, 0.06),
    (LARGE, 0.007),
    (WIDE, 0.003),
)
"""Each with its share of the cases."""

SPANS: Final = (1, 2, 5, 30, SPAN)
BATCHES_BYTES: Final = (None, None, 8, 20, 60, 150, 1_000)
LINGERS_S: Final = (None, 0.0, 0.000_1, 0.05, 0.4, 30.0)
RATES: Final = (0.2, 3.0, 50.0, 2_000.0)
LIVES: Final = (None, None, None, 1, 2, 5, 20)
"""Items after which, or imagined bytes beyond which, a worker is replaced."""
MANY_ROOTS: Final = 10
LOOKS_S: Final = (0.0, 0.0, 0.001, 0.1, 0.5)
"""How far apart looks at the measured work are."""
PACES_S: Final = (0.0, 0.000_01, 0.001, 0.02, 0.3)


class Die:
    """Choices of a random generator; implements :class:`fanfold.testing.drawing.Chance`."""

    def __init__(self, random: Random) -> None:
        self._random = random

    def choose(self, options: Sequence[T]) -> T:
        """One of the options, all equally likely."""
        return self._random.choice(options)

    def flag(self) -> bool:
        """Yes or no, equally likely."""
        return self._random.random() < 0.5

    def number(self, least: int, most: int) -> int:
        """A whole number, both ends included, all equally likely."""
        return self._random.randint(least, most)

    def several(self, options: Sequence[T], least: int, most: int) -> list[T]:
        """Different ones of the options in a random order."""
        count = self.number(min(least, len(options)), min(most, len(options)))
        return self._random.sample(list(options), count)


def draw_case(seed: int, limits: Limits | None = None) -> Case:
    """The case that a seed stands for: the same in every process, on every machine.

    Args:
        seed: Any integer.
        limits: How large the program may become; without them, the seed decides that too.

    Example:
        >>> draw_case(1) == draw_case(1), draw_case(1) == draw_case(2)
        (True, False)
    """
    random = Random(seed)
    if limits is None:
        (limits,) = random.choices([size for size, _ in SIZES], [share for _, share in SIZES])
    die = Die(random)
    sketch = draw_sketch(die, limits)
    timing = _timing(random, len(sketch.stages))
    workers = sum(stage.replicas for stage in sketch.stages if isinstance(stage.replicas, int))
    span = SPAN if limits is WIDE else random.choice(SPANS)
    faults = _faults(die, workers)
    budget = random.choice(BUDGETS)
    sketch = _limited(random, _ordered(random, _forming(random, sketch)))
    case = Case(seed, _recycling(random, sketch), timing, faults, span, budget)
    return _scaled(random, case)


def _forming(random: Random, sketch: Sketch) -> Sketch:
    """The same with options of how batches form, in a third of the cases."""
    if random.random() > 0.33:
        return sketch
    for index, stage in enumerate(sketch.stages):
        if stage.batch_size:
            stage = replace(
                stage,
                batch_bytes=random.choice(BATCHES_BYTES),
                linger_s=random.choice(LINGERS_S),
            )
            sketch = _with_stage(sketch, index, stage)
            judged = replace(stage, batch_by=random.choice((None, None, *GROUPERS)))
            if stage.batch_bytes is None:
                judged = replace(judged, max_batch_cost=random.choice((None, 1.0, 4.0, 9.0)))
            with contextlib.suppress(PipelineError):  # not every input can be judged
                build(_with_stage(sketch, index, judged)).plan()
                sketch = _with_stage(sketch, index, judged)
    return sketch


def _ordered(random: Random, sketch: Sketch) -> Sketch:
    """The same with roots that take turns at some stages, in half of the cases."""
    if random.random() < 0.5:
        return sketch
    stages = (replace(s, schedule=random.choice(("fifo", "fair"))) for s in sketch.stages)
    return replace(sketch, stages=tuple(stages))


def _limited(random: Random, sketch: Sketch) -> Sketch:
    """The same with rate limits, in a sixth of the cases."""
    if random.random() > 0.16:
        return sketch
    stages = (replace(stage, rate_limit=random.choice((None, *RATES))) for stage in sketch.stages)
    return replace(sketch, stages=tuple(stages))


def _recycling(random: Random, sketch: Sketch) -> Sketch:
    """The same with workers that are replaced from time to time, in a fifth of the cases."""
    if random.random() > 0.2:
        return sketch
    for index, stage in enumerate(sketch.stages):
        after, above = random.choice(LIVES), random.choice(LIVES)
        stage = replace(stage, recycle_after=after, recycle_above=above)
        sketch = _with_stage(sketch, index, stage)
    return sketch


def _scaled(random: Random, case: Case) -> Case:
    """The same with replicas that follow the work, and the cores that they share, in a seventh of the cases."""
    if random.random() > 0.14:
        return case
    sketch = case.sketch
    taken = 0
    for index, stage in enumerate(sketch.stages):
        least = random.choice((1, 1, 2))
        bounds = (least, least + random.choice((1, 2, 5)))
        chosen = random.choice((stage.replicas, bounds, "auto", "auto"))
        taken += least if chosen == bounds else 1 if chosen == "auto" else 0
        sketch = _with_stage(sketch, index, replace(stage, replicas=chosen))
    if len(sketch.roots) < MANY_ROOTS:  # for work that goes on for long enough to be measured
        sketch = replace(sketch, roots=sketch.roots * random.choice((1, 4)))
    cores, look_s = taken + random.choice((0, 1, 2, 4, 8)), random.choice(LOOKS_S)
    timing = replace(
        case.timing,
        item_s=tuple(random.choice(PACES_S[2:]) for _ in sketch.stages),
        start_s=random.choice((0.0, 0.001, case.timing.start_s)),
    )
    return replace(case, sketch=sketch, timing=timing, cores=cores, look_s=look_s)


def _with_stage(sketch: Sketch, index: int, stage: StageSketch) -> Sketch:
    return replace(sketch, stages=(*sketch.stages[:index], stage, *sketch.stages[index + 1 :]))


def _timing(random: Random, stages: int) -> Timing:
    return Timing(
        item_s=tuple(random.choice(PACES_S) for _ in range(stages)),
        start_s=random.choice((0.0, 0.05, 2.0)),
        spread=random.choice(("even", "wide", "wide", "heavy")),
        block=random.choice((1, 3, 1_000, 1_000)),
        gap_s=random.choice((0.0, 0.001, 0.5)),
        commit_s=random.choice((0.0, 0.0, 0.01, 1.0)),
        poll_s=random.choice((0.0, 0.0, 0.001, 0.1)),
    )


def _faults(die: Die, workers: int) -> tuple[Fault, ...]:
    """None in a third of the cases; otherwise mostly few, and mostly at one of the first batches."""
    count = die.choose((0, 0, 1, 1, 2, 4))
    kinds: tuple[FaultKind, ...] = get_args(FaultKind)
    faults: list[Fault] = []
    for _ in range(count):
        kind = die.choose(kinds)
        starting = kind in ("death_starting", "slow_start")
        at = (
            die.number(0, max(0, workers - 1))
            if starting
            else die.number(0, die.choose((3, 12, 40)))
        )
        faults.append(Fault(kind, at))
    return tuple(faults)
