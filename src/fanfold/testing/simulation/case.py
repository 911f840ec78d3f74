"""A case: all that decides a simulated run, as plain data that goes through JSON and back.

Owns the form of the files in which failing cases are kept. What a case means is the run's
(:mod:`fanfold.testing.simulation.run`); how cases are made up is in :mod:`fanfold.testing.simulation.drawing`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Final, Literal, TypeAlias, get_args

from fanfold.engine.chunks import SPAN
from fanfold.testing.sketches import Sketch, StageSketch, Step

FaultKind: TypeAlias = Literal[
    "death_starting",
    "death_before",
    "death_while",
    "death_after",
    "hang",
    "late",
    "doubled",
    "put_off",
    "slow_start",
]
FAULTS: Final[Mapping[FaultKind, str]] = {
    "death_starting": "a worker dies before it is ready, and once more is made",
    "death_before": "a worker dies when it has a batch and has not begun it",
    "death_while": "a worker dies in the middle of a batch; what it had told stays told",
    "death_after": "a worker dies after the end of a batch, with the next one in its hands",
    "hang": "a batch takes very long, while everything else goes on",
    "late": "a worker is taken for dead in the middle of a batch, and what it had left to tell comes later",
    "doubled": "all that was told of a batch is told again after its end",
    "put_off": "the service that a stage asks wants to be asked later, from some task of a batch on",
    "slow_start": "a worker's constructor takes very long",
}
"""What can go wrong with workers, and what it means. Mishaps of items are the sketch's."""


@dataclass(frozen=True)
class Fault:
    """Something that goes wrong once."""

    kind: FaultKind
    at: int
    """The batch that it meets, by the order in which batches are sent, or the next one that it can meet; for
    what happens at a worker's start, the worker's number."""


@dataclass(frozen=True)
class Timing:
    """How long things take, in seconds of virtual time."""

    item_s: tuple[float, ...] = ()
    """By stage: the mean time for one item; the last one stands for all that follow."""
    start_s: float = 0.0
    """The mean time that a worker takes to get ready."""
    spread: Literal["even", "wide", "heavy"] = "even"
    """How times differ: not at all, by some factor, or some of them by orders of magnitude."""
    block: int = 1_000
    """Roots that the source gives at a time."""
    gap_s: float = 0.0
    """The time between two blocks of the source."""
    commit_s: float = 0.0
    """The mean time until an ended root is committed."""
    poll_s: float = 0.0
    """Events that follow each other within this time are handled before work is given out again."""


@dataclass(frozen=True)
class Case:
    """One run to be simulated: the program and its inputs, times, faults, and the seed of all that is left.

    Example:
        >>> from fanfold.testing.simulation import draw_case
        >>> case = draw_case(7)
        >>> Case.from_json(case.to_json()) == case
        True
    """

    seed: int
    """Decides portions of reports, single times and ties."""
    sketch: Sketch
    timing: Timing = Timing()
    faults: tuple[Fault, ...] = ()
    span: int = SPAN
    """Items in a full chunk of the engine's state; small ones put every rule to work across chunks."""
    budget: int | None = None
    """How many values may be in memory at a time; None: as many as it comes to."""

    def to_json(self) -> str:
        """The case as text, a line for each part."""
        return as_lines(self.as_dict())

    @classmethod
    def from_json(cls, text: str) -> Case:
        """The case that :meth:`to_json` wrote.

        Raises:
            ValueError: The text is not one.
        """
        return cls.from_dict(json.loads(text))

    def as_dict(self) -> dict[str, Any]:
        """Plain values, as JSON has them."""
        return {
            "seed": self.seed,
            "span": self.span,
            "budget": self.budget,
            "timing": asdict(self.timing),
            "faults": _dicts(self.faults),
            **{
                name: _dicts(value) if name in ("stages", "steps") else value
                for name, value in vars(self.sketch).items()
            },
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Case:
        """The case that :meth:`as_dict` gave.

        Raises:
            ValueError: The values are not those of a case.
        """
        try:
            return cls(
                seed=data["seed"],
                sketch=_sketch(data),
                timing=_timing(data["timing"]),
                faults=tuple(_fault(fault) for fault in data["faults"]),
                span=data["span"],
                budget=data.get("budget"),
            )
        except (KeyError, TypeError) as error:
            raise ValueError(
                f"this is no simulation case: {type(error).__name__}: {error}"
            ) from error


@dataclass(frozen=True)
class CaseFile:
    """A case that failed, or one that is kept because it once did.

    ``log_sha256`` is the digest of the whole run's log: a replay is the same to the byte if it has the same.
    """

    case: Case
    about: str = ""
    violations: tuple[str, ...] = ()
    log_sha256: str = ""
    extra: Mapping[str, Any] = field(default_factory=dict)
    """What else may help, such as the commit."""

    def to_json(self) -> str:
        """The file's text."""
        told = {"about": self.about, "violations": self.violations, "log_sha256": self.log_sha256}
        head = {name: value for name, value in told.items() if value}
        return as_lines(head | dict(self.extra) | {"case": self.case.as_dict()})

    @classmethod
    def from_json(cls, text: str) -> CaseFile:
        """What :meth:`to_json` wrote.

        Raises:
            ValueError: The text is not that of a case file.
        """
        data = json.loads(text)
        if not isinstance(data, dict) or "case" not in data:
            raise ValueError("a case file is a JSON object with the key 'case'")
        case = Case.from_dict(data.pop("case"))
        about, violations = data.pop("about", ""), tuple(data.pop("violations", ()))
        return cls(case, about, violations, data.pop("log_sha256", ""), data)


def as_lines(data: Mapping[str, Any], indent: str = "") -> str:
    """JSON with one line for each part: short enough to read, and to be compared by lines."""
    inner = indent + "  "
    parts = []
    for name, value in data.items():
        if name == "case":
            text = as_lines(value, inner)
        elif isinstance(value, (list, tuple)) and value:
            rows = (f"{inner}  {json.dumps(one)}" for one in value)
            text = "[\n" + ",\n".join(rows) + f"\n{inner}]"
        else:
            text = json.dumps(value)
        parts.append(f"{inner}{json.dumps(name)}: {text}")
    return "{\n" + ",\n".join(parts) + f"\n{indent}}}"


def _dicts(values: tuple[Any, ...]) -> list[dict[str, Any]]:
    return [dict(vars(value)) for value in values]


def _sketch(data: Mapping[str, Any]) -> Sketch:
    return Sketch(
        sources=data["sources"],
        stages=tuple(StageSketch(**stage) for stage in data["stages"]),
        steps=tuple(_step(step) for step in data["steps"]),
        outputs=tuple(data["outputs"]),
        structure=data["structure"],
        roots=tuple(tuple(root) for root in data["roots"]),
    )


def _step(data: Mapping[str, Any]) -> Step:
    options = {name: _option(value) for name, value in data["options"].items()}
    if "static" in options:
        static = options["static"]
        trouble = {int(residue): mishap for residue, mishap in static["trouble"].items()}
        options["static"] = {**static, "trouble": trouble}
    return Step(data["op"], tuple(data["ports"]), data["made"], options)


def _option(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _timing(data: Mapping[str, Any]) -> Timing:
    return Timing(**{**data, "item_s": tuple(data["item_s"])})


def _fault(data: Mapping[str, Any]) -> Fault:
    fault = Fault(**data)
    if fault.kind not in get_args(FaultKind):
        raise ValueError(f"there is no fault {fault.kind!r}; there are: {', '.join(FAULTS)}")
    return fault
