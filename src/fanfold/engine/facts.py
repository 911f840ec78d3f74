"""Control values on their way: what masks, labels and field checks say at a port of a chunk.

Producers report facts at the ports of their streams; filters, splits, merges, broadcasts and fields pass
them on unchanged, item by item. Owns that passing-on; knows no outcomes beyond what a merge took.
"""

from __future__ import annotations

from collections.abc import Callable

from fanfold.columns import get_field
from fanfold.engine.chunks import Chunk, Facts, FactsKey
from fanfold.engine.program import Program
from fanfold.plan import (
    BroadcastNode,
    CallNode,
    Control,
    ExpandNode,
    FieldNode,
    FilterNode,
    MergeNode,
    Path,
    RecordNode,
    SplitNode,
)

ReadFacts = Callable[[Chunk], Facts]
"""Gives the facts of one control or check at one port, for all items of a chunk that are done there."""


def control_key(control: int) -> int:
    """The key of a control's facts beside port and path, as :attr:`Chunk.facts` has it."""
    return control


def check_key(check: int) -> int:
    """The key of a field check's facts."""
    return -1 - check


def facts_reader(program: Program, port: int, key: int, path: Path = ()) -> ReadFacts:
    """How to find the facts ``key`` of the items at ``port``; ``path`` leads from there to the value."""
    plan = program.plan
    labels = len(plan.controls[key].labels) if key >= 0 else 1
    index = plan.ports[port].node
    node = None if index is None else plan.nodes[index]
    match node:
        case None | CallNode() | ExpandNode():
            return _own_facts((port, key, path), labels)
        case FilterNode() | SplitNode():
            return facts_reader(program, node.input, key, path)
        case FieldNode():
            return facts_reader(program, node.input, key, (node.name, *path))
        case BroadcastNode():
            return _parent_facts(facts_reader(program, node.input, key, path))
        case MergeNode():
            return _merged_facts(program, node, key, path, labels)
        case RecordNode():
            return _recorded_facts(program, node, key, path, labels)
        case _:
            raise AssertionError(f"port {port} is on no control path")


def _own_facts(key: FactsKey, labels: int) -> ReadFacts:
    def read(chunk: Chunk) -> Facts:
        facts = None if chunk.facts is None else chunk.facts.get(key)
        return facts if facts is not None else Facts.empty(labels)

    return read


def _parent_facts(inner: ReadFacts) -> ReadFacts:
    def read(chunk: Chunk) -> Facts:
        assert chunk.parent is not None
        facts = inner(chunk.parent)
        return Facts(
            [chunk.items_of(bits) for bits in facts.labels],
            chunk.items_of(facts.illegal),
            [(chunk.items_of(bits), text) for bits, text in facts.texts],
        )

    return read


def _merged_facts(
    program: Program, node: MergeNode, key: int, path: Path, labels: int
) -> ReadFacts:
    readers = [(program.port[p], facts_reader(program, p, key, path)) for p in node.inputs]
    output = program.port[node.output]
    by_default = (
        None if node.default is None else constant_label(program, key, node.default.value, path)
    )

    def read(chunk: Chunk) -> Facts:
        result = Facts.empty(labels)
        left = chunk.done[output]
        for slot, inner in readers:
            taken = left & chunk.done[slot]
            if taken:
                facts = inner(chunk)
                for i, bits in enumerate(facts.labels):
                    result.labels[i] |= bits & taken
                result.illegal |= facts.illegal & taken
                result.texts += [(bits & taken, text) for bits, text in facts.texts]
                left &= ~taken
        if left and by_default is not None:
            label, text = by_default
            if label is None:
                result.illegal |= left
                result.texts.append((left, text))
            elif label >= 0:
                result.labels[label] |= left
        return result

    return read


def _recorded_facts(
    program: Program, node: RecordNode, key: int, path: Path, labels: int
) -> ReadFacts:
    """The compiler saw to it that the record has the field; what lies inside it may lack something."""
    part = dict(node.fields)[path[0]] if path else None
    if isinstance(part, int):
        return facts_reader(program, part, key, path[1:])
    return lambda chunk: Facts.empty(labels)


def constant_label(
    program: Program, key: int, value: object, path: Path = ()
) -> tuple[int | None, str]:
    """Which label a merge's default value is: an index, -1 for none of them, None for an illegal one."""
    try:
        for name in path:
            value = get_field(value, name)
        if key < 0:
            get_field(value, program.plan.checks[-1 - key].name)
            return -1, ""
    except LookupError:
        return (0 if key < 0 else None), repr(value)
    control: Control = program.plan.controls[key]
    if control.kind == "mask":
        return ((0 if value else -1) if isinstance(value, bool) else None), repr(value)
    for i, label in enumerate(control.labels):
        if value == label:
            return i, ""
    return (-1 if control.rest else None), repr(value)
