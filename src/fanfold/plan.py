"""The plan: what the compiler makes of a traced pipeline and all that the engine knows of it.

Everything here is immutable and made of small integers that index into the plan's own tuples: levels,
stages, ports, nodes, controls. The plan is what the model and the compiler share with the engine, the
backends and the reference interpreter; it holds no logic beyond look-ups.

Structure of a plan
-------------------
* Levels form a tree; level 0 is the root. Each other level was made by exactly one ``ExpandNode``.
* A port has one level and one producer (a source or a node). Nodes are in topological order.
* Calls with ports of several levels are already lowered: the compiler inserted ``BroadcastNode`` (one for
  each level that a value descends), so every node but expand, gather and broadcast works on one level.
* A gather of several ports is lowered too: each ``GatherNode`` gathers ``inputs`` aligned.
* Whatever the driver must learn of values (masks, labels, which fields are missing) is listed as
  *controls* and *field checks* on the streams of the call or source that makes the values.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from fractions import Fraction
from typing import Any, Literal, TypeAlias

from fanfold.parts import AtLeast as AtLeast  # so spelt, they are the plan's own names as well
from fanfold.parts import Constant as Constant
from fanfold.parts import Input as Input
from fanfold.parts import Where as Where

Path: TypeAlias = tuple[str, ...]
"""Field names to follow from a value, outermost first; ``()`` is the value itself."""


@dataclass(frozen=True, slots=True)
class Level:
    """A granularity. ``parent`` is None and ``expand`` is None for the root, level 0."""

    index: int
    name: str
    depth: int
    parent: int | None = None
    expand: int | None = None
    """Index of the ExpandNode that makes this level's items."""


@dataclass(frozen=True, slots=True)
class PortSpec:
    """A port: the values (and outcomes) of one thing at one level."""

    index: int
    name: str
    """For people: ``Ocr``, ``page['image']``, ``gather(Ocr)``."""
    level: int
    node: int | None
    """The producing node, or None for a source port."""


@dataclass(frozen=True, slots=True)
class StageSpec:
    """A stage object: one pool of workers, shared by all its calls."""

    index: int
    name: str
    target: Callable[..., Any] | type
    """The user's function, or class to construct once per worker."""
    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    """Constructor arguments of a class stage; empty for functions."""
    is_class: bool = False
    method: str | None = None
    """Entry point on the instance; None means to call it (a class's ``__call__``)."""
    batch_size: int | None = None
    """None: one item at a time. A number, 1 too: lists of up to so many."""
    batch_bytes: int | None = None
    """The most bytes of input values in one batch; an item that is larger goes alone."""
    batch_cost: Callable[..., Any] | None = None
    """Given an item's first input: what the item costs in a batch."""
    max_batch_cost: float | None = None
    """The most that the items of one batch cost together; an item that costs more goes alone."""
    batch_by: Callable[..., Any] | None = None
    """Given an item's first input: only items for which it gives equal values share a batch."""
    linger_s: float | None = None
    """How long a batch that is not full waits for more while a worker is idle."""
    rate_limit: float | None = None
    """How many calls of the entry point may begin per second, in all workers together; None: any number."""
    replicas: int = 1
    cpus: int | None = None
    """Cores that one replica keeps busy, and may; OpenMP, BLAS and the like are sized to it. None: nothing was
    said, which is one core for these, and none that counts towards what the machine has."""
    gpus: Fraction | None = None
    """GPUs that one replica has to itself, or the share of one. None: nothing was said."""
    memory: int | None = None
    """Bytes that one replica's own heap needs; None: nothing was said."""
    recycle_after: int | None = None
    """After so many items a worker is replaced."""
    recycle_above: int | None = None
    """A worker that takes more bytes by itself than this at the end of a batch is replaced."""
    generator: bool = False
    """True if the target is known to be a generator function: its single stream of yields is children."""
    asynchronous: bool = False
    """True if the entry point is ``async def``: it runs in an event loop of its worker's own."""
    max_in_flight: int = 1
    """How many calls of an asynchronous entry point one worker keeps going at a time; 1 for all others."""
    retries: int = 0
    """How often an item is tried again after an exception other than a declared failure."""
    on_error: Literal["fail", "stop"] = "fail"
    """What a failure that was not declared comes to, when no attempt is left: it fails its item, or it stops
    the run as well."""
    probe: int = 8
    """Items of a parent that are dispatched before its first result at a call, while other work waits."""
    schedule: Literal["fifo", "fair"] = "fair"
    """In which order ready items go: as they became ready, or in turns of their roots."""
    workers: Literal["process", "thread"] = "process"
    """What a replica is: a process of its own, or a thread of the driver's process."""
    identities: bool = False
    """Whether the stage asks for the keys and ordinals of its items: batches must tell them
    (:attr:`fanfold.protocol.RunBatch.identity`)."""

    def __reduce__(self) -> tuple[Any, ...]:
        """A decorated function is imported by whoever unpickles this, as any function of a module is.

        Its name leads to the stage that the decorator made, so picklers would not find the function there
        and copy it, with every global that it mentions.
        """
        values = {part.name: getattr(self, part.name) for part in fields(self)}
        place = _behind_stage(self.target)
        return (_restored, ({**values, "target": None}, place) if place else (values, None))


def _restored(values: Mapping[str, Any], place: tuple[str, str] | None) -> StageSpec:
    if place is None:
        return StageSpec(**values)
    module, name = place
    return StageSpec(**{**values, "target": _found(importlib.import_module(module), name).target})


def _behind_stage(target: Any) -> tuple[str, str] | None:
    """Module and name under which a stage of ``target`` can be imported, if one stands in its place."""
    module, name = getattr(target, "__module__", None), getattr(target, "__qualname__", "<none>")
    if module is None or module == "__main__" or "<" in name or module not in sys.modules:
        return None
    stage = _found(sys.modules[module], name)
    return (module, name) if getattr(stage, "target", None) is target else None


def _found(module: Any, name: str) -> Any:
    found = module
    for part in name.split("."):
        found = getattr(found, part, None)
    return found


@dataclass(frozen=True, slots=True)
class CallNode:
    """One use of a stage. The only kind of node that occupies a worker."""

    index: int
    name: str
    """``Ocr``, ``Ocr#2``."""
    stage: int
    level: int
    inputs: tuple[Input, ...]
    outputs: tuple[int, ...]
    """One port per declared output."""
    static: Mapping[str, Any] = field(default_factory=dict)
    """Keyword arguments that are no ports; passed unchanged."""
    where: Where = Where()


@dataclass(frozen=True, slots=True)
class ExpandNode:
    """Makes child level ``level`` of ``call``'s outputs (or fields of them); several are aligned."""

    index: int
    call: int
    """Index of the CallNode whose value is opened."""
    level: int
    inputs: tuple[int, ...]
    """Ports at the parent level."""
    outputs: tuple[int, ...]
    """Ports at the child level, one per input."""
    where: Where = Where()


@dataclass(frozen=True, slots=True)
class GatherNode:
    """Lists of ``inputs``' values per parent, in ordinal order, at the parent level of ``child_level``."""

    index: int
    level: int
    """The parent's level, where the outputs live."""
    child_level: int
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    failed: Literal["fail", "drop", "mark"] = "fail"
    at_least: AtLeast | None = None
    """What must be done, or the list is suppressed; None: any number."""
    members: int | None = None
    """A port at ``child_level`` whose outcomes say who is a member; None: every child is."""
    where: Where = Where()


@dataclass(frozen=True, slots=True)
class FilterNode:
    """Keeps the items of ``input`` for which ``control`` (a mask) is true."""

    index: int
    level: int
    input: int
    mask: int
    """The mask's port: its outcomes matter beside its values."""
    control: int
    output: int
    where: Where = Where()


@dataclass(frozen=True, slots=True)
class SplitNode:
    """Routes the items of ``input``: ``outputs[i]`` keeps those whose label is ``labels[i]``.

    With ``rest`` there is one more output, the last, for all other labels.
    """

    index: int
    level: int
    input: int
    by: int
    control: int
    labels: tuple[Any, ...]
    rest: bool
    outputs: tuple[int, ...]
    where: Where = Where()


@dataclass(frozen=True, slots=True)
class MergeNode:
    """The first of ``inputs`` that is done; see MODEL.md for the others' part."""

    index: int
    level: int
    inputs: tuple[int, ...]
    output: int
    default: Constant | None = None
    failed: Literal["stop", "next"] = "stop"
    where: Where = Where()


@dataclass(frozen=True, slots=True)
class BroadcastNode:
    """Copies an item one level down, to each of its children."""

    index: int
    level: int
    """The child level, where the output lives."""
    input: int
    output: int
    where: Where = Where()


@dataclass(frozen=True, slots=True)
class FieldNode:
    """Reads a mapping key or an attribute of each value; a value without it fails (``contract``)."""

    index: int
    level: int
    input: int
    name: str
    check: int
    """Index of the FieldCheck through which producers report values that lack the field."""
    output: int
    where: Where = Where()


@dataclass(frozen=True, slots=True)
class RecordNode:
    """Makes a dict of ports and constants, in the order given."""

    index: int
    level: int
    fields: tuple[tuple[str, int | Constant], ...]
    output: int
    where: Where = Where()


Node: TypeAlias = (
    CallNode
    | ExpandNode
    | GatherNode
    | FilterNode
    | SplitNode
    | MergeNode
    | BroadcastNode
    | FieldNode
    | RecordNode
)


def ports_read(node: Node) -> tuple[int, ...]:
    """The ports that a node looks at, for their values or for their outcomes alone."""
    match node:
        case CallNode():
            return tuple(item.port for item in node.inputs)
        case GatherNode():
            return node.inputs if node.members is None else (*node.inputs, node.members)
        case ExpandNode() | MergeNode():
            return node.inputs
        case FilterNode():
            return (node.input, node.mask)
        case SplitNode():
            return (node.input, node.by)
        case BroadcastNode() | FieldNode():
            return (node.input,)
        case RecordNode():
            return tuple(part for _, part in node.fields if isinstance(part, int))


def ports_made(node: Node) -> tuple[int, ...]:
    """The ports of which a node is the producer."""
    match node:
        case CallNode() | ExpandNode() | GatherNode() | SplitNode():
            return node.outputs
        case FilterNode() | MergeNode() | BroadcastNode() | FieldNode() | RecordNode():
            return (node.output,)


@dataclass(frozen=True, slots=True)
class Control:
    """What the driver must know of a mask's or label's values; reported by whoever makes them.

    A report holds one set of rows for each label, and the rows whose value is not legal (for a mask:
    not a bool; for a split without ``rest``: none of the labels) with a text that shows the value.
    """

    index: int
    node: int
    """The FilterNode or SplitNode that needs it."""
    kind: Literal["mask", "label"]
    labels: tuple[Any, ...]
    """``(True,)`` for a mask."""
    rest: bool = False


@dataclass(frozen=True, slots=True)
class FieldCheck:
    """A field that the plan reads; reported are the rows that lack it."""

    index: int
    node: int
    """The FieldNode that reads it."""
    name: str


@dataclass(frozen=True, slots=True)
class Stream:
    """Values that a call or a source makes at one port, and what to report of them.

    An *item* stream has one row per item of the call (a source: per root), a *child* stream one row per
    child. ``position`` says which output of the call, ``path`` which field of that output.
    """

    port: int
    level: int
    position: int = 0
    path: Path = ()
    stored: bool = True
    """Whether any reader needs the values themselves (otherwise only reports are made)."""
    sized: bool = False
    """Whether the sizes of the rows are told: a call that reads them has batches of limited size."""
    groups: tuple[tuple[int, Path], ...] = ()
    """Pairs (call, path from the row to its first input): what the ``batch_by`` of its stage gives is told."""
    costs: tuple[tuple[int, Path], ...] = ()
    """The same for ``batch_cost``."""
    controls: tuple[tuple[int, Path], ...] = ()
    """Pairs (control, path from the row to the mask or label)."""
    checks: tuple[tuple[int, Path], ...] = ()
    """Pairs (field check, path from the row to the value that should have the field)."""


@dataclass(frozen=True, slots=True)
class Expansion:
    """The child streams of one ExpandNode; several are aligned: equal counts for each parent."""

    node: int
    level: int
    streams: tuple[Stream, ...]


@dataclass(frozen=True, slots=True)
class CallStreams:
    """All that a worker must deliver for a call.

    ``items`` has a stream for each output whose whole value is read (or looked into), none for one that
    is only expanded. For a generator the whole value is the list of its children.
    """

    call: int
    items: tuple[Stream, ...]
    expansions: tuple[Expansion, ...]


@dataclass(frozen=True, slots=True)
class Source:
    """A positional parameter of the pipeline."""

    name: str
    stream: Stream


@dataclass(frozen=True, slots=True)
class Output:
    """Something that the pipeline returns; ``name`` is its key in a dict, or None."""

    name: str | None
    port: int


@dataclass(frozen=True, slots=True)
class Plan:
    """A whole pipeline, ready to run. Immutable; picklable if its stages are (by cloudpickle)."""

    name: str
    levels: tuple[Level, ...]
    stages: tuple[StageSpec, ...]
    ports: tuple[PortSpec, ...]
    nodes: tuple[Node, ...]
    sources: tuple[Source, ...]
    outputs: tuple[Output, ...]
    structure: Literal["single", "tuple", "dict"]
    """How the pipeline returned its outputs."""
    streams: Mapping[int, CallStreams]
    """By index of the CallNode."""
    controls: tuple[Control, ...] = ()
    checks: tuple[FieldCheck, ...] = ()
    effects: tuple[int, ...] = ()
    """Indices of the CallNodes from which no output can be reached: they run for what they do."""

    def calls(self) -> tuple[CallNode, ...]:
        """The calls, in topological order."""
        return tuple(node for node in self.nodes if isinstance(node, CallNode))

    @property
    def groupers(self) -> Mapping[int, Callable[..., Any]]:
        """By call: the function by which its stage groups items (``batch_by``), for those that have one."""
        return {
            call.index: by
            for call in self.calls()
            if (by := self.stages[call.stage].batch_by) is not None
        }

    @property
    def costers(self) -> Mapping[int, Callable[..., Any]]:
        """By call: the function that tells what its items cost (``batch_cost``), for those that have one."""
        return {
            call.index: cost
            for call in self.calls()
            if (cost := self.stages[call.stage].batch_cost) is not None
        }

    def call(self, index: int) -> CallNode:
        """The call that is the node of this index."""
        node = self.nodes[index]
        assert isinstance(node, CallNode), f"node {index} is no call"
        return node
