"""Smaller cases that fail in the same way: a greedy search over what can be left out of a case.

Owns which reductions there are and in which order they are tried: those that take most away first. Works on
cases alone, which are plain data, and asks a function whether one still fails.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import islice
from typing import Any, Final

from fanfold.engine.chunks import SPAN
from fanfold.testing.simulation.case import Case, Timing
from fanfold.testing.sketches import Sketch, Step, prune

TRIES: Final = 2_000
"""Cases that are tried at most."""
OTHER_SEEDS: Final = (1, 2, 3, 4, 5, 6, 7)
"""What is left out of a case changes all that its seed draws from there on, so others are tried as well."""


def shrink(case: Case, fails: Callable[[Case], bool], tries: int = TRIES) -> Case:
    """The smallest case found that still fails.

    Args:
        case: One that fails.
        fails: Whether a case fails as that one does; a case that cannot be run does not.
        tries: How many cases to try at most.

    Example:
        >>> from fanfold.testing.simulation import draw_case
        >>> small = shrink(draw_case(5), lambda case: len(case.sketch.roots) > 1)
        >>> len(small.sketch.roots), len(small.faults)
        (2, 0)
    """
    position, since_success = 0, False
    while True:
        found = next(islice(reductions(case), position, None), None)
        if found is None and not since_success:
            return case
        if found is None:
            position, since_success = 0, False
            continue
        for seed in dict.fromkeys((case.seed, *OTHER_SEEDS)):
            if tries <= 0:
                return case
            tries -= 1
            smaller = replace(found, seed=seed)
            if fails(smaller):
                case, since_success = smaller, True
                break
        else:
            position += 1


def reductions(case: Case) -> Iterator[Case]:
    """Cases with one thing less, or with one thing simpler."""
    sketch = case.sketch
    for start, stop in _stretches(len(case.faults)):
        yield replace(case, faults=case.faults[:start] + case.faults[stop:])
    for start, stop in _stretches(len(sketch.roots)):
        yield _with(case, roots=sketch.roots[:start] + sketch.roots[stop:])
    for index in reversed(range(len(sketch.steps))):
        yield from _sketches(case, without(sketch, index), bypassed(sketch, index))
    for index in range(len(sketch.outputs)):
        yield from _sketches(case, _fewer_outputs(sketch, index))
    yield from _simpler_times(case)
    if case.span != SPAN:
        yield replace(case, span=SPAN)
    for index, stage in enumerate(sketch.stages):
        smaller_batch = stage.batch_size and stage.batch_size // 2
        for changed in (
            replace(stage, replicas=1),
            replace(stage, batch_size=smaller_batch or stage.batch_size),
            replace(stage, batch_bytes=None),
            replace(stage, batch_by=None),
            replace(stage, max_batch_cost=None),
            replace(stage, schedule="fifo"),
            replace(stage, linger_s=None),
            replace(stage, rate_limit=None),
            replace(stage, recycle_after=None),
            replace(stage, recycle_above=None),
        ):
            if changed != stage:
                stages = (*sketch.stages[:index], changed, *sketch.stages[index + 1 :])
                yield _with(case, stages=stages)
    for index, step in enumerate(sketch.steps):
        for changed_step in _simpler_steps(step):
            yield _with(
                case, steps=(*sketch.steps[:index], changed_step, *sketch.steps[index + 1 :])
            )
    for fault_index, fault in enumerate(case.faults):
        for at in sorted({0, fault.at // 2, max(fault.at - 1, 0)} - {fault.at}):
            faults = list(case.faults)
            faults[fault_index] = replace(fault, at=at)
            yield replace(case, faults=tuple(faults))
    for root_index, root in enumerate(sketch.roots):
        for position, value in enumerate(root):
            if type(value) is int and value:
                changed_root = (*root[:position], value // 2, *root[position + 1 :])
                roots = (*sketch.roots[:root_index], changed_root, *sketch.roots[root_index + 1 :])
                yield _with(case, roots=roots)


def without(sketch: Sketch, index: int) -> Sketch | None:
    """The sketch without a step and all that needs it; None if no output is left."""
    gone: set[int] = set()
    first = sketch.sources
    for number, step in enumerate(sketch.steps):
        made = range(first, first + step.made)
        if number == index or gone & set(step.ports):
            gone.update(made)
        first += step.made
    outputs = tuple(port for port in sketch.outputs if port not in gone)
    return _pruned(sketch, sketch.steps, outputs)


def bypassed(sketch: Sketch, index: int) -> Sketch | None:
    """The sketch whose readers of a step read the step's first input instead."""
    first = sketch.sources + sum(step.made for step in sketch.steps[:index])
    made = range(first, first + sketch.steps[index].made)
    source = sketch.steps[index].ports[0]

    def instead(ports: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(source if port in made else port for port in ports)

    steps = tuple(replace(step, ports=instead(step.ports)) for step in sketch.steps)
    outputs = tuple(dict.fromkeys(instead(sketch.outputs)))
    return _pruned(sketch, steps, tuple(port for port in outputs if port >= sketch.sources))


def _fewer_outputs(sketch: Sketch, index: int) -> Sketch | None:
    outputs = sketch.outputs[:index] + sketch.outputs[index + 1 :]
    return _pruned(sketch, sketch.steps, outputs)


def _pruned(sketch: Sketch, steps: tuple[Step, ...], outputs: tuple[int, ...]) -> Sketch | None:
    if not outputs:
        return None
    structure = sketch.structure if len(outputs) > 1 else "single"
    return prune(replace(sketch, steps=steps, outputs=outputs, structure=structure))


def _sketches(case: Case, *sketches: Sketch | None) -> Iterator[Case]:
    for sketch in sketches:
        if sketch is not None and sketch != case.sketch:
            yield replace(case, sketch=sketch)


def _simpler_times(case: Case) -> Iterator[Case]:
    timing, usual = case.timing, Timing()
    if timing != usual:
        yield replace(case, timing=usual)
    for name, value in vars(usual).items():
        if getattr(timing, name) != value:
            changes: dict[str, Any] = {name: value}
            yield replace(case, timing=replace(timing, **changes))


def _simpler_steps(step: Step) -> Iterator[Step]:
    """A step with one mishap or child less, or without an option."""
    static = step.options.get("static")
    if static is None:
        return
    for residue in static["trouble"]:
        trouble = {other: told for other, told in static["trouble"].items() if other != residue}
        yield _static(step, trouble=trouble)
    if static.get("most", 0) > 1:
        yield _static(step, most=static["most"] // 2)
    if static["salt"]:
        yield _static(step, salt=0)


def _static(step: Step, **changes: Any) -> Step:
    return replace(step, options={**step.options, "static": {**step.options["static"], **changes}})


def _with(case: Case, **changes: Any) -> Case:
    return replace(case, sketch=replace(case.sketch, **changes))


def _stretches(count: int) -> Iterator[tuple[int, int]]:
    """All of ``count``, its halves, quarters, and so on down to single ones."""
    size = count
    while size:
        yield from ((start, min(start + size, count)) for start in range(0, count, size))
        size //= 2
