"""Made-up pipelines: Hypothesis strategies for programs through the public interface, and their inputs.

Owns what a made-up pipeline may look like. A strategy gives a :class:`Sketch`, which is plain data (so
that a failing example prints and shrinks well); :func:`build` turns it into a pipeline as a user
would. The stages are those of :mod:`fanfold.testing.stages`. Needs the package ``hypothesis``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from hypothesis import strategies as st

import fanfold as ff
from fanfold.plan import Plan
from fanfold.testing import stages

DEPTH_LIMIT: Final = 3
LEVELS_LIMIT: Final = 4
STEPS_LIMIT: Final = 10

LABELS: Final = ("a", "b", "c")
FIELDS: Final = {"n": "int", "kind": "label", "flag": "flag", "extra": "int"}
"""The fields of a page, and what they hold."""


@dataclass(frozen=True)
class StageSketch:
    """A stage object: which function, and its options."""

    kind: str
    batch_size: int | None = None
    replicas: int = 1


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
class _Kind:
    """What a stage function makes: shapes of its outputs, or of the children that it fans out into."""

    function: Callable[..., Any]
    shapes: tuple[str, ...]
    fans: bool = False
    batched: bool = False
    troubles: tuple[str, ...] = ("raise", "fail")
    is_class: bool = False


_KINDS: Final = {
    "number": _Kind(stages.number, ("int",)),
    "numbers": _Kind(stages.numbers, ("int",), batched=True, troubles=("raise", "fail", "shape")),
    "Weigher": _Kind(stages.Weigher, ("int",), batched=True, is_class=True),
    "page": _Kind(stages.page, ("page",), troubles=("raise", "fail", "missing", "none")),
    "pages": _Kind(stages.pages, ("page",), batched=True, troubles=("fail", "missing", "shape")),
    "pair": _Kind(stages.pair, ("int", "page"), troubles=("raise", "fail", "shape", "missing")),
    "pairs": _Kind(stages.pairs, ("int", "page"), batched=True, troubles=("raise", "fail")),
    "listing": _Kind(stages.listing, ("list",), True, False, ("raise", "fail", "shape", "none")),
    "listings": _Kind(stages.listings, ("list",), True, True, ("raise", "fail", "none")),
    "album": _Kind(stages.album, ("album",), True, False, ("fail", "missing")),
    "twins": _Kind(stages.twins, ("list", "list"), True, False, ("raise", "shape")),
    "each": _Kind(stages.each, ("list",), True, False, ("raise", "fail", "half", "missing")),
    "each_pair": _Kind(stages.each_pair, ("list", "list"), True, False, ("half", "shape", "fail")),
    "iterated": _Kind(stages.iterated, ("list",), True, False, ("half", "none")),
}


@dataclass(frozen=True)
class _Port:
    number: int
    level: tuple[int, ...]
    """The levels from below the root down to the port's own."""
    shape: str
    control: bool
    """Whether a mask or label may come from it: it goes back to a call or a source."""
    call: int | None = None
    """The step that made it, if it is a call's own output."""
    child: str = "int"
    """What the children are, of a port that can be expanded."""


class _Drawing:
    """A sketch while it is drawn."""

    def __init__(self, draw: Callable[..., Any], full: bool) -> None:
        self.draw = draw
        self.full = full
        self.ports: list[_Port] = []
        self.steps: list[Step] = []
        self.stages: list[StageSketch] = []
        self.expanded: set[int] = set()
        self.levels = 0

    def choose(self, options: Sequence[Any]) -> Any:
        return self.draw(st.sampled_from(list(options)))

    def add(
        self,
        step: Step,
        ports: Sequence[tuple[tuple[int, ...], str, bool]],
        **more: Any,
    ) -> None:
        """Record a step and the ports (level, shape, control) that come of it."""
        for level, shape, control in ports:
            self.ports.append(_Port(len(self.ports), level, shape, control, **more))
        self.steps.append(step)

    def some(self, level: tuple[int, ...], *shapes: str) -> list[_Port]:
        """Ports of a level with one of the shapes that may control."""
        return [p for p in self.ports if p.level == level and p.shape in shapes and p.control]

    # ------------------------------------------------------------------------------- the operations

    def possible(self) -> list[Callable[[], None]]:
        """The operations that can be drawn now; calls are most likely."""
        found = [self.call, self.call, self.call, self.record]
        if self.levels < LEVELS_LIMIT:
            found += [self.fan_out] * 2
        if any(port.level for port in self.ports):
            found += [self.gather] * 2
        if any(port.shape == "page" and port.control for port in self.ports):
            found.append(self.field)
        if any(port.shape == "label" and port.control for port in self.ports):
            found += [self.split_and_merge] * 2
        if any(port.shape == "flag" and port.control for port in self.ports):
            found.append(self.filter)
        if len(self.ports) > 1:
            found.append(self.merge)
        return found

    def call(self) -> None:
        kind = self.choose([name for name, kind in _KINDS.items() if not kind.fans])
        inputs, level = self._inputs(self.choose(self.ports))
        static = self._static(kind)
        ports = [(level, shape, True) for shape in _KINDS[kind].shapes]
        options = {"stage": self._stage(kind), "static": static}
        if kind in ("number", "numbers") and len(inputs) > 1:
            options["keyword"] = self.draw(st.booleans())
        self.add(Step("call", inputs, len(ports), options), ports, call=len(self.steps))

    def fan_out(self, port: _Port | None = None) -> None:
        """A call that makes children, and their expansion."""
        kind = self.choose([name for name, kind in _KINDS.items() if kind.fans])
        start = port or self.choose([p for p in self.ports if len(p.level) < DEPTH_LIMIT])
        inputs, level = self._inputs(start, DEPTH_LIMIT - 1)
        child = self.choose(("int", "page"))
        most = 3 if len(level) < 2 else 2
        static = {**self._static(kind), "most": most, "child": child}
        shapes = _KINDS[kind].shapes
        options = {"stage": self._stage(kind), "static": static}
        first = len(self.ports)
        made = [(level, shape, True) for shape in shapes]
        self.add(
            Step("call", inputs, len(shapes), options),
            made,
            call=len(self.steps),
            child=child,
        )
        opened = list(range(first, first + len(shapes)))
        if kind == "album":
            self.add(
                Step("field", (first,), 1, {"name": "children"}),
                [(level, "list", True)],
            )
            opened = [first + 1]
        elif len(opened) == 2 and not self.draw(st.booleans()):
            opened = [self.choose(opened)]  # the other list stays a value
        below = (*level, self.levels)
        self.levels += 1
        shape = {first: child, first + 1: child if kind == "album" else "int"}
        self.add(
            Step("expand", tuple(opened), len(opened), {"name": f"level{below[-1]}"}),
            [(below, shape[port], True) for port in opened],
        )

    def ruined(self) -> None:
        """Children, perhaps with children of their own, and a call that gives up on some of their parents."""
        self.fan_out()
        if self.draw(st.booleans()):
            self.fan_out(self.ports[-1])
        port = self.choose([p for p in self.ports if p.level])
        self._called(self.choose(("number", "numbers", "pages")), (port.number,), port.level)
        trouble = self.steps[-1].options["static"]["trouble"]
        trouble[self.draw(st.integers(0, stages.RESIDUES - 1))] = "parent"

    def fold(self) -> None:
        """Gather some port below the root, level by level; the later ones are likelier."""
        below = [port for port in self.ports if port.level]
        if below and self.choose((True, True, True, False)):
            port = self.choose(below[-3:])
            for _ in range(self.draw(st.integers(1, len(port.level)))):
                self.gather(port)
                port = self.ports[-1]

    def gather(self, last: _Port | None = None) -> None:
        port = last or self.choose([p for p in self.ports if p.level])
        mates = [p for p in self.ports if p.level == port.level and p != port]
        ports = [port.number]
        if mates and self.draw(st.booleans()):
            ports.append(self.choose(mates).number)
        made = [(port.level[:-1], "any", False)] * len(ports)
        options: dict[str, Any] = {"failed": self.choose(("fail", "fail", "drop", "mark"))}
        if self.full:
            options["at_least"] = self.choose((None, None, 0, 1, 2, 3, 0.5, 0.7, 1.0))
            options["members"] = bool(mates) and self.choose((True, True, False))
            if options["members"]:
                ports.append(self.choose(mates).number)
        self.add(Step("gather", tuple(ports), len(made), options), made)

    def field(self) -> None:
        port = self.choose([p for p in self.ports if p.shape == "page" and p.control])
        name = self.choose(list(FIELDS))
        self.add(
            Step("field", (port.number,), 1, {"name": name}),
            [(port.level, FIELDS[name], True)],
        )

    def filter(self) -> None:
        mask = self.choose([p for p in self.ports if p.shape in ("flag", "int") and p.control])
        port = self.choose([p for p in self.ports if p.level == mask.level])
        self.add(
            Step("filter", (port.number, mask.number)),
            [(port.level, port.shape, port.control)],
        )

    def split_and_merge(self) -> None:
        by = self.choose([p for p in self.ports if p.shape == "label" and p.control])
        port = self.choose([p for p in self.ports if p.level == by.level])
        labels = self.draw(st.lists(st.sampled_from(LABELS), min_size=1, max_size=3, unique=True))
        rest = self.draw(st.booleans()) or len(labels) == 1
        made = len(labels) + rest
        first = len(self.ports)
        self.add(
            Step(
                "split",
                (port.number, by.number),
                made,
                {"into": tuple(labels), "rest": rest},
            ),
            [(port.level, port.shape, port.control)] * made,
        )
        routes = [self._through(first + i) for i in range(made)]
        match self.choose(("leave", "merge", "merge", "quarrel")):
            case "merge":
                self._merge(routes)
            case "quarrel":
                self._quarrel(port, self.choose(routes))

    def merge(self) -> None:
        port = self.choose(self.ports)
        mates = [p.number for p in self.ports if p.level == port.level and p != port]
        if mates:
            more = self.draw(st.lists(st.sampled_from(mates), min_size=1, max_size=2, unique=True))
            self._merge([port.number, *more])

    def record(self) -> None:
        port = self.choose(self.ports)
        parts = [port.number]
        mates = [p.number for p in self.ports if p.level == port.level and p != port]
        if mates and self.draw(st.booleans()):
            parts.append(self.choose(mates))
        self.add(Step("record", tuple(parts)), [(port.level, "any", False)])

    # ------------------------------------------------------------------------------------- the parts

    def _quarrel(self, port: _Port, route: int) -> None:
        """Read a route, which drops, together with a call that may fail: failure beats drop."""
        rival = self._called("number", (port.number,), port.level)
        ports = self.choose(((route, rival), (rival, route)))
        if self.draw(st.booleans()):
            self._called("numbers", ports, port.level)
        else:
            self.add(Step("record", ports), [(port.level, "any", False)])

    def _called(self, kind: str, ports: tuple[int, ...], level: tuple[int, ...]) -> int:
        """A call of a stage with one output: the port that comes of it."""
        options = {"stage": self._stage(kind), "static": self._static(kind)}
        made = [(level, _KINDS[kind].shapes[0], True)]
        self.add(Step("call", ports, 1, options), made, call=len(self.steps))
        return self.ports[-1].number

    def _through(self, number: int) -> int:
        """A route as it is, or through a call."""
        if not self.draw(st.booleans()):
            return number
        kind = self.choose(("number", "numbers", "Weigher", "page"))
        return self._called(kind, (number,), self.ports[number].level)

    def _merge(self, numbers: Sequence[int]) -> None:
        ports = [self.ports[number] for number in numbers]
        shapes = {port.shape for port in ports}
        shape = shapes.pop() if len(shapes) == 1 else "any"
        options: dict[str, Any] = {"failed": self.choose(("stop", "next"))}
        if self.draw(st.booleans()):
            page = {"n": 1, "kind": "a", "flag": True, "extra": 0}
            defaults = {"int": 7, "page": page, "flag": True, "label": "a"}
            options["default"] = defaults.get(shape)
            if shape != "flag":
                # As a mask or a label, or with one in a field, the constant might not be a legal one, which
                # the compiler refuses: nothing of the kind is made of such a merge.
                shape = "any"
        control = shape != "any" and all(port.control for port in ports)
        self.add(
            Step("merge", tuple(numbers), 1, options),
            [(ports[0].level, shape, control)],
        )

    def _inputs(
        self, port: _Port, depth: int = DEPTH_LIMIT
    ) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Ports for a call, on one chain of ancestors, and the level where it runs."""
        chosen, level = [port.number], port.level
        ancestors = [p for p in self.ports if len(p.level) < len(level)]
        above = [p for p in ancestors if p.level == level[: len(p.level)]]
        if above and self.draw(st.booleans()):
            chosen.append(self.choose(above).number)
        for _ in range(self.draw(st.integers(0, 2))):
            chain = [
                p
                for p in self.ports
                if len(p.level) <= depth
                and (p.level == level[: len(p.level)] or level == p.level[: len(level)])
            ]
            if chain:
                other = self.choose(chain)
                chosen.append(other.number)
                level = max(level, other.level, key=len)
        return tuple(chosen), level

    def _stage(self, kind: str) -> int:
        """A new stage object or one that another call uses already."""
        same = [i for i, stage in enumerate(self.stages) if stage.kind == kind]
        if same and self.draw(st.booleans()):
            return int(self.choose(same))
        batch = self.draw(st.integers(1, 5)) if _KINDS[kind].batched else None
        self.stages.append(StageSketch(kind, batch, self.draw(st.integers(1, 2))))
        return len(self.stages) - 1

    def _static(self, kind: str) -> dict[str, Any]:
        mishaps = st.sampled_from(_KINDS[kind].troubles)
        residues = st.integers(0, stages.RESIDUES - 1)
        least = self.choose((0, 1, 1, 2))
        trouble = self.draw(st.dictionaries(residues, mishaps, min_size=least, max_size=3))
        if self.full and self.choose((True, False, False)):
            ruin = ("parent", "halt") if _KINDS[kind].fans else ("parent",)
            trouble[self.draw(residues)] = self.choose(ruin)
        return {"salt": self.draw(st.integers(0, 9)), "trouble": trouble}


_PAGES: Final = st.fixed_dictionaries(
    {
        "n": st.integers(0, 20),
        "kind": st.sampled_from(LABELS),
        "flag": st.booleans(),
    },
    optional={"extra": st.integers(0, 5)},
)
_VALUES: Final[dict[str, st.SearchStrategy[Any]]] = {
    "int": st.integers(0, 20) | st.integers(0, 20) | st.none(),
    "page": _PAGES,
    "flag": st.booleans(),
    "label": st.sampled_from(LABELS),
}


@st.composite
def sketches(draw: Any, full: bool = False) -> Sketch:
    """Programs with one or two sources, up to three levels below the root, and several outputs.

    Args:
        draw: Given by Hypothesis.
        full: Also ``at_least=`` and ``members=``, effects, and parent failures.
    """
    drawing = _Drawing(draw, full)
    shapes = draw(st.lists(st.sampled_from(list(_VALUES)), min_size=1, max_size=2))
    drawing.ports = [_Port(i, (), shape, True) for i, shape in enumerate(shapes)]
    if full and draw(st.booleans()):
        drawing.ruined()
    for _ in range(draw(st.integers(3, STEPS_LIMIT))):
        drawing.choose(drawing.possible())()
    drawing.fold()
    numbers = st.sampled_from([port.number for port in drawing.ports[len(shapes) :]])
    others = draw(st.lists(numbers, max_size=3, unique=True))
    outputs = list(dict.fromkeys([drawing.ports[-1].number, *others]))
    structure = draw(st.sampled_from(["tuple", "dict"])) if len(outputs) > 1 else "single"
    least = draw(st.sampled_from((3, 3, 3, 3, 3, 0)))
    values = st.tuples(*(_VALUES[shape] for shape in shapes))
    roots = draw(st.lists(values, min_size=least, max_size=6))
    sketch = Sketch(
        len(shapes),
        tuple(drawing.stages),
        tuple(drawing.steps),
        tuple(outputs),
        structure,
        tuple(roots),
    )
    return prune(sketch, effects=full and draw(st.booleans()))


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
    kind = _KINDS[sketch.kind]
    options: dict[str, Any] = {
        "name": f"{sketch.kind}{index}",
        "replicas": sketch.replicas,
    }
    if sketch.batch_size is not None:
        options["batch_size"] = sketch.batch_size
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
        case "merge":
            result = ff.merge(*ports, **options)
        case "record":
            result = ff.record(**{f"f{i}": port for i, port in enumerate(ports)}, constant="c")
        case _:
            raise AssertionError(step.op)
    return result if step.made > 1 else (result[0],) if isinstance(result, tuple) else (result,)
