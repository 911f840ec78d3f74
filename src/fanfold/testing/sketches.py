"""Sketches: programs as plain data, and the pipelines that they stand for.

Owns what a made-up program may consist of. A :class:`Sketch` prints, compares and goes through JSON well;
:func:`build` turns it into a pipeline as a user would. The stages are those of
:mod:`fanfold.testing.stages`. Knows nothing of how sketches are made up.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import fanfold as ff
from fanfold.plan import Plan
from fanfold.testing import stages


@dataclass(frozen=True)
class StageSketch:
    """A stage object: which function, and its options."""

    kind: str
    batch_size: int | None = None
    replicas: int = 1
    batch_bytes: int | None = None
    batch_by: str | None = None
    """A key of :data:`GROUPERS`."""
    max_batch_cost: float | None = None
    """With it, an item costs what :func:`fanfold.testing.stages.cost` tells."""
    schedule: str = "fifo"
    linger_s: float | None = None
    rate_limit: float | None = None
    recycle_after: int | None = None
    recycle_above: int | None = None


@dataclass(frozen=True)
class Step:
    """One operation on ports, which are numbered as they come into being (sources first)."""

    op: str
    ports: tuple[int, ...]
    made: int = 1
    """How many ports come of it."""
    options: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Sketch:
    """A program and its inputs."""

    sources: int
    stages: tuple[StageSketch, ...]
    steps: tuple[Step, ...]
    outputs: tuple[int, ...]
    structure: str
    roots: tuple[tuple[Any, ...], ...]


@dataclass(frozen=True)
class Kind:
    """What a stage function makes: shapes of its outputs, or of the children that it fans out into."""

    function: Callable[..., Any]
    shapes: tuple[str, ...]
    fans: bool = False
    batched: bool = False
    troubles: tuple[str, ...] = ("raise", "fail")
    is_class: bool = False


KINDS: Final = {
    "number": Kind(stages.number, ("int",)),
    "numbers": Kind(stages.numbers, ("int",), batched=True, troubles=("raise", "fail", "shape")),
    "Weigher": Kind(stages.Weigher, ("int",), batched=True, is_class=True),
    "page": Kind(stages.page, ("page",), troubles=("raise", "fail", "missing", "none")),
    "pages": Kind(stages.pages, ("page",), batched=True, troubles=("fail", "missing", "shape")),
    "pair": Kind(stages.pair, ("int", "page"), troubles=("raise", "fail", "shape", "missing")),
    "pairs": Kind(stages.pairs, ("int", "page"), batched=True, troubles=("raise", "fail")),
    "listing": Kind(stages.listing, ("list",), True, False, ("raise", "fail", "shape", "none")),
    "listings": Kind(stages.listings, ("list",), True, True, ("raise", "fail", "none")),
    "album": Kind(stages.album, ("album",), True, False, ("fail", "missing")),
    "twins": Kind(stages.twins, ("list", "list"), True, False, ("raise", "shape")),
    "each": Kind(stages.each, ("list",), True, False, ("raise", "fail", "half", "missing")),
    "each_pair": Kind(stages.each_pair, ("list", "list"), True, False, ("half", "shape", "fail")),
    "iterated": Kind(stages.iterated, ("list",), True, False, ("half", "none")),
}


GROUPERS: Final = {"parity": stages.parity, "remainder": stages.remainder}
"""What a made-up stage may group its items by."""


def prune(sketch: Sketch, *, effects: bool = False) -> Sketch:
    """Without the steps from which no output can be reached.

    With ``effects`` calls stay, and so does what they need.
    """
    first, needed = sketch.sources, set(sketch.outputs)
    starts = []
    for step in sketch.steps:
        starts.append(first)
        first += step.made
    keep: list[tuple[int, Step]] = []
    for start, step in zip(reversed(starts), reversed(sketch.steps), strict=True):
        kept = effects and step.op == "call"
        if kept or needed & set(range(start, start + step.made)):
            needed |= set(step.ports)
            keep.insert(0, (start, step))
    renamed = {number: number for number in range(sketch.sources)}
    steps = []
    for start, step in keep:
        ports = tuple(renamed[port] for port in step.ports)
        for offset in range(step.made):
            renamed[start + offset] = len(renamed)
        steps.append(Step(step.op, ports, step.made, dict(step.options)))
    used = sorted({step.options["stage"] for step in steps if "stage" in step.options})
    for step in steps:
        if "stage" in step.options:
            step.options["stage"] = used.index(step.options["stage"])
    stages = tuple(sketch.stages[number] for number in used)
    outputs = tuple(renamed[number] for number in sketch.outputs)
    return Sketch(sketch.sources, stages, tuple(steps), outputs, sketch.structure, sketch.roots)


def build(sketch: Sketch) -> ff.Pipeline[Any, Any]:
    """The sketch's pipeline, made through the public interface."""
    made = [_make_stage(index, stage) for index, stage in enumerate(sketch.stages)]

    def trace(*sources: Any) -> Any:
        ports = list(sources)
        for step in sketch.steps:
            results = _apply(step, [ports[number] for number in step.ports], made)
            ports.extend(results)
        outputs = [ports[number] for number in sketch.outputs]
        match sketch.structure:
            case "single":
                return outputs[0]
            case "dict":
                return {f"out{i}": port for i, port in enumerate(outputs)}
        return tuple(outputs)

    if sketch.sources == 1:

        @ff.pipeline(level="root")
        def one(a: ff.Port[Any]) -> Any:
            return trace(a)

        return one

    @ff.pipeline(level="root")
    def two(a: ff.Port[Any], b: ff.Port[Any]) -> Any:
        return trace(a, b)

    return two


def plan_of(pipeline: ff.Pipeline[Any, Any]) -> Plan:
    """The pipeline's plan."""
    return pipeline.plan()


def _make_stage(index: int, sketch: StageSketch) -> Any:
    kind = KINDS[sketch.kind]
    options: dict[str, Any] = {
        "name": f"{sketch.kind}{index}",
        "replicas": sketch.replicas,
        "schedule": sketch.schedule,
        "rate_limit": sketch.rate_limit,
        "recycle_after": sketch.recycle_after,
        "recycle_above": sketch.recycle_above,
    }
    if sketch.batch_size is not None:
        options["batch_size"] = sketch.batch_size
        options |= {"batch_bytes": sketch.batch_bytes, "linger_s": sketch.linger_s}
        options["batch_by"] = GROUPERS[sketch.batch_by] if sketch.batch_by else None
        if sketch.max_batch_cost is not None:
            options |= {"batch_cost": stages.cost, "max_batch_cost": sketch.max_batch_cost}
    if len(kind.shapes) > 1:
        options["outputs"] = len(kind.shapes)
    stage = ff.stage(kind.function, **options)
    return stage(index) if kind.is_class else stage


def _apply(step: Step, ports: list[Any], made: Sequence[Any]) -> Sequence[Any]:
    result: Any
    options = step.options
    match step.op:
        case "call":
            named = {"also": ports.pop()} if options.get("keyword") else {}
            result = made[options["stage"]](*ports, **named, **options["static"])
        case "expand":
            result = ff.expand(*ports, options["name"])
        case "gather":
            more = dict(options)
            more["members"] = ports.pop() if more.get("members") else None
            result = ff.gather(*ports, **more)
        case "field":
            result = ports[0][options["name"]]
        case "filter":
            result = ff.filter(*ports)
        case "split":
            into = [*options["into"], *([...] if options["rest"] else [])]
            result = ff.split(ports[0], ports[1], into)
        case "broadcast":
            result = ff.broadcast(ports[0], like=ports[1])
        case "merge":
            result = ff.merge(*ports, **options)
        case "record":
            result = ff.record(**{f"f{i}": port for i, port in enumerate(ports)}, constant="c")
        case _:
            raise AssertionError(step.op)
    return result if step.made > 1 else (result[0],) if isinstance(result, tuple) else (result,)
