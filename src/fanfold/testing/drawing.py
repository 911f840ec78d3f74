"""How programs are made up: one choice after the other, whoever makes the choices.

Owns the operations that a made-up program may consist of, how likely each is, and which inputs it gets. A
:class:`Chance` decides: Hypothesis in :mod:`fanfold.testing.strategies`, where failing examples shrink, or a
plain random generator in :mod:`fanfold.testing.simulation`, where one integer has to tell all. Knows nothing
of either.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol, TypeVar

from fanfold.testing import stages
from fanfold.testing.sketches import KINDS, Sketch, StageSketch, Step, prune

T = TypeVar("T")

LABELS: Final = ("a", "b", "c")
FIELDS: Final = {"n": "int", "kind": "label", "flag": "flag", "extra": "int"}
"""The fields of a page, and what they hold."""


class Chance(Protocol):
    """Whoever decides."""

    def choose(self, options: Sequence[T]) -> T:
        """One of the options, which are some."""
        ...

    def flag(self) -> bool:
        """Yes or no."""
        ...

    def number(self, least: int, most: int) -> int:
        """A whole number, both ends included."""
        ...

    def several(self, options: Sequence[T], least: int, most: int) -> list[T]:
        """Different ones of the options, in any order; fewer than ``least`` only if there are not so many."""
        ...


@dataclass(frozen=True)
class Limits:
    """How large a made-up program may become."""

    depth: int = 3
    """Levels below each other, the root's not counted."""
    levels: int = 4
    steps: int = 10
    roots: int = 6
    children: int = 3
    """Children of one parent, on the first two levels; one fewer below."""
    replicas: int = 2
    batch: int = 5
    mishaps: tuple[str, ...] = ()
    """Mishaps that any stage may have beside its own."""


USUAL: Final = Limits()


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

    def __init__(self, chance: Chance, limits: Limits) -> None:
        self.chance = chance
        self.choose = chance.choose
        self.limits = limits
        self.ports: list[_Port] = []
        self.steps: list[Step] = []
        self.stages: list[StageSketch] = []
        self.expanded: set[int] = set()
        self.levels = 0

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
        if self.levels < self.limits.levels:
            found += [self.fan_out] * 2
        if any(port.level for port in self.ports):
            found += [self.gather, self.gather, self.broadcast]
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
        kind = self.choose([name for name, kind in KINDS.items() if not kind.fans])
        inputs, level = self._inputs(self.choose(self.ports))
        static = self._static(kind)
        ports = [(level, shape, True) for shape in KINDS[kind].shapes]
        options = {"stage": self._stage(kind), "static": static}
        if kind in ("number", "numbers") and len(inputs) > 1:
            options["keyword"] = self.chance.flag()
        self.add(Step("call", inputs, len(ports), options), ports, call=len(self.steps))

    def fan_out(self, port: _Port | None = None) -> None:
        """A call that makes children, and their expansion."""
        kind = self.choose([name for name, kind in KINDS.items() if kind.fans])
        start = port or self.choose([p for p in self.ports if len(p.level) < self.limits.depth])
        inputs, level = self._inputs(start, self.limits.depth - 1)
        child = self.choose(("int", "page"))
        most = max(1, self.limits.children - (len(level) >= 2))
        static = {**self._static(kind), "most": most, "child": child}
        shapes = KINDS[kind].shapes
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
        elif len(opened) == 2 and not self.chance.flag():
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
        if self.limits.levels > 1 and self.chance.flag():
            self.fan_out(self.ports[-1])
        port = self.choose([p for p in self.ports if p.level])
        self._called(self.choose(("number", "numbers", "pages")), (port.number,), port.level)
        trouble = self.steps[-1].options["static"]["trouble"]
        trouble[self.chance.number(0, stages.RESIDUES - 1)] = "parent"

    def fold(self) -> None:
        """Gather some port below the root, level by level; the later ones are likelier."""
        below = [port for port in self.ports if port.level]
        likely: bool = self.choose((True, True, True, False))
        if below and likely:
            port = self.choose(below[-3:])
            for _ in range(self.chance.number(1, len(port.level))):
                self.gather(port)
                port = self.ports[-1]

    def gather(self, last: _Port | None = None) -> None:
        port = last or self.choose([p for p in self.ports if p.level])
        mates = [p for p in self.ports if p.level == port.level and p != port]
        ports = [port.number]
        if mates and self.chance.flag():
            ports.append(self.choose(mates).number)
        made = [(port.level[:-1], "any", False)] * len(ports)
        options: dict[str, Any] = {"failed": self.choose(("fail", "fail", "drop", "mark"))}
        options["at_least"] = self.choose((None, None, None, 0, 1, 2, 3, 0.5, 0.7, 1.0))
        options["members"] = bool(mates) and self.choose((True, False, False))
        if options["members"]:
            ports.append(self.choose(mates).number)
        self.add(Step("gather", tuple(ports), len(made), options), made)

    def broadcast(self) -> None:
        """Copies at some level below, perhaps gathered at once: then they alone say what is in the list."""
        like = self.choose([p for p in self.ports if p.level])
        above = [p for p in self.ports if p.level == like.level[: len(p.level)]]
        port = self.choose([p for p in above if p.level != like.level])
        self.add(
            Step("broadcast", (port.number, like.number)), [(like.level, port.shape, port.control)]
        )
        if self.chance.flag():
            self.gather(self.ports[-1])

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
        labels = self.chance.several(LABELS, 1, 3)
        rest = self.chance.flag() or len(labels) == 1
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
        match self.choose(("leave", "merge", "merge", "quarrel", "lack")):
            case "merge":
                self._merge(routes)
            case "quarrel":
                self._quarrel(port, self.choose(routes))
            case "lack" if port.level:
                self._lack(port, self.choose(routes))

    def merge(self) -> None:
        port = self.choose(self.ports)
        mates = [p.number for p in self.ports if p.level == port.level and p != port]
        if mates:
            more = self.chance.several(mates, 1, 2)
            self._merge([port.number, *more])

    def record(self) -> None:
        port = self.choose(self.ports)
        parts = [port.number]
        mates = [p.number for p in self.ports if p.level == port.level and p != port]
        if mates and self.chance.flag():
            parts.append(self.choose(mates))
        self.add(Step("record", tuple(parts)), [(port.level, "any", False)])

    # ------------------------------------------------------------------------------------- the parts

    def _quarrel(self, port: _Port, route: int) -> None:
        """Read a route, which drops, together with a call that may fail: failure beats drop."""
        rival = self._called("number", (port.number,), port.level)
        ports = self.choose(((route, rival), (rival, route)))
        if self.chance.flag():
            self._called("numbers", ports, port.level)
        else:
            self.add(Step("record", ports), [(port.level, "any", False)])

    def _lack(self, port: _Port, route: int) -> None:
        """A list whose members are items that went another way as well, and lack a value there."""
        options = {
            "failed": self.choose(("fail", "drop", "mark")),
            "at_least": None,
            "members": True,
        }
        step = Step("gather", (route, port.number), 1, options)
        self.add(step, [(port.level[:-1], "any", False)])

    def _called(self, kind: str, ports: tuple[int, ...], level: tuple[int, ...]) -> int:
        """A call of a stage with one output: the port that comes of it."""
        options = {"stage": self._stage(kind), "static": self._static(kind)}
        made = [(level, KINDS[kind].shapes[0], True)]
        self.add(Step("call", ports, 1, options), made, call=len(self.steps))
        return self.ports[-1].number

    def _through(self, number: int) -> int:
        """A route as it is, or through a call."""
        if not self.chance.flag():
            return number
        kind = self.choose(("number", "numbers", "Weigher", "page"))
        return self._called(kind, (number,), self.ports[number].level)

    def _merge(self, numbers: Sequence[int]) -> None:
        ports = [self.ports[number] for number in numbers]
        shapes = {port.shape for port in ports}
        shape = shapes.pop() if len(shapes) == 1 else "any"
        options: dict[str, Any] = {"failed": self.choose(("stop", "next"))}
        if self.chance.flag():
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
        self, port: _Port, depth: int | None = None
    ) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Ports for a call, on one chain of ancestors, and the level where it runs."""
        depth = self.limits.depth if depth is None else depth
        chosen, level = [port.number], port.level
        ancestors = [p for p in self.ports if len(p.level) < len(level)]
        above = [p for p in ancestors if p.level == level[: len(p.level)]]
        if above and self.chance.flag():
            chosen.append(self.choose(above).number)
        for _ in range(self.chance.number(0, 2)):
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
        if same and self.chance.flag():
            return int(self.choose(same))
        batch = self.chance.number(1, self.limits.batch) if KINDS[kind].batched else None
        self.stages.append(StageSketch(kind, batch, self.chance.number(1, self.limits.replicas)))
        return len(self.stages) - 1

    def _static(self, kind: str) -> dict[str, Any]:
        least = self.choose((0, 1, 1, 2))
        residues = self.chance.several(range(stages.RESIDUES), least, 3)
        mishaps = (*KINDS[kind].troubles, *self.limits.mishaps)
        trouble = {residue: self.choose(mishaps) for residue in residues}
        if self.choose((True, False, False, False)):
            ruin = ("parent", "halt") if KINDS[kind].fans else ("parent",)
            trouble[self.chance.number(0, stages.RESIDUES - 1)] = self.choose(ruin)
        return {"salt": self.chance.number(0, 9), "trouble": trouble}

    # ----------------------------------------------------------------------------------- the inputs

    def root(self, shapes: Sequence[str]) -> tuple[Any, ...]:
        """A root item: one value for each source."""
        return tuple(self._value(shape) for shape in shapes)

    def _value(self, shape: str) -> Any:
        match shape:
            case "int":
                return self.choose((self.chance.number(0, 20), self.chance.number(0, 20), None))
            case "flag":
                return self.chance.flag()
            case "label":
                return self.choose(LABELS)
        page = {"n": self.chance.number(0, 20), "kind": self.choose(LABELS)}
        page["flag"] = self.chance.flag()
        if self.chance.flag():
            page["extra"] = self.chance.number(0, 5)
        return page


SHAPES: Final = ("int", "page", "flag", "label")


def draw_sketch(chance: Chance, limits: Limits = USUAL) -> Sketch:
    """A program with one or two sources, up to three levels below the root, and several outputs."""
    drawing = _Drawing(chance, limits)
    shapes = [chance.choose(SHAPES) for _ in range(chance.number(1, 2))]
    drawing.ports = [_Port(i, (), shape, True) for i, shape in enumerate(shapes)]
    if chance.choose((True, False, False)):
        drawing.ruined()
    for _ in range(chance.number(3, limits.steps)):
        chance.choose(drawing.possible())()
    drawing.fold()
    numbers = [port.number for port in drawing.ports[len(shapes) :]]
    others = chance.several(numbers, 0, 3)
    outputs = list(dict.fromkeys([drawing.ports[-1].number, *others]))
    structure = chance.choose(("tuple", "dict")) if len(outputs) > 1 else "single"
    least = chance.choose((3, 3, 3, 3, 3, 0))
    roots = tuple(drawing.root(shapes) for _ in range(chance.number(least, limits.roots)))
    sketch = Sketch(
        len(shapes), tuple(drawing.stages), tuple(drawing.steps), tuple(outputs), structure, roots
    )
    return prune(sketch, effects=chance.choose((True, False, False)))
