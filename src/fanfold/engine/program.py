"""The plan lowered for the engine: slots per level, and who must look when a slot changes.

Owns the numbering of slots. A slot is a place in a chunk's state: one for each port of the chunk's level,
and hidden ones for what the tables need besides (see :class:`Program`). Holds no state of a run.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from fanfold.plan import (
    BroadcastNode,
    CallNode,
    ExpandNode,
    FieldNode,
    FilterNode,
    GatherNode,
    MergeNode,
    Node,
    Plan,
    RecordNode,
    SplitNode,
    ports_made,
    ports_read,
)


@dataclass(slots=True)
class Program:
    """Slot numbers of a plan.

    Hidden slots besides the ports' own:

    * ``queued[call]``: the items that ever entered the call's ready queue;
    * ``taken[call]``: the items that were taken from it;
    * ``expansion[level]`` (at the parent's level): the state of the expansion that makes ``level``:
      done = sealed, dropped and failed as MODEL.md's table for expand says;
    * ``row[gather]`` (at the child level): the outcome of a member row of an aligned gather;
    * ``settled[port]`` for ports below the root that the pipeline returns, and for effects there: a chain of
      slots up to the root, done where all items below are terminal.
    """

    plan: Plan
    slots: list[int] = field(default_factory=list)
    """How many slots each level has."""
    port: list[int] = field(default_factory=list)
    """By port: its slot at the port's level."""
    queued: dict[int, int] = field(default_factory=dict)
    taken: dict[int, int] = field(default_factory=dict)
    expansion: dict[int, int] = field(default_factory=dict)
    row: dict[int, int] = field(default_factory=dict)
    settled: dict[int, list[tuple[int, int]]] = field(default_factory=dict)
    """By port: pairs (level, slot), from the port's parent level up to the root."""
    root_slots: list[int] = field(default_factory=list)
    """The slots at the root that must be terminal before a root has ended."""
    stored: list[list[int]] = field(default_factory=list)
    """By level: the slots that hold values."""
    call_outputs: dict[int, tuple[int, ...]] = field(default_factory=dict)
    """By call: its outputs' slots."""
    effect_ports: list[int] = field(default_factory=list)
    """A port of each effect; a root ends after all its items at these."""
    condemned: dict[int, list[GatherNode]] = field(default_factory=dict)
    """By call: the lists that a parent failure there suppresses, since their values or members depend on the
    call's output."""

    def new_slot(self, level: int) -> int:
        self.slots[level] += 1
        return self.slots[level] - 1


def lower(plan: Plan) -> Program:
    """Number the slots of a plan."""
    program = Program(plan, slots=[0] * len(plan.levels), stored=[[] for _ in plan.levels])
    for port in plan.ports:
        program.port.append(program.new_slot(port.level))
    for node in plan.nodes:
        match node:
            case CallNode():
                program.queued[node.index] = program.new_slot(node.level)
                program.taken[node.index] = program.new_slot(node.level)
                program.call_outputs[node.index] = tuple(program.port[p] for p in node.outputs)
            case ExpandNode():
                parent = plan.levels[node.level].parent
                assert parent is not None
                program.expansion[node.level] = program.new_slot(parent)
            case GatherNode():
                program.row[node.index] = (
                    program.port[node.inputs[0]]
                    if len(node.inputs) == 1 and node.members is None
                    else program.new_slot(node.child_level)
                )
            case _:
                continue
    for call in plan.effects:
        program.effect_ports.append(ports_made(plan.nodes[call])[0])
    for returned in (*(output.port for output in plan.outputs), *program.effect_ports):
        level = plan.ports[returned].level
        if level == 0:
            program.root_slots.append(program.port[returned])
        elif returned not in program.settled:
            chain: list[tuple[int, int]] = []
            while (parent := plan.levels[level].parent) is not None:
                chain.append((parent, program.new_slot(parent)))
                level = parent
            program.settled[returned] = chain
            program.root_slots.append(chain[-1][1])
    _find_condemned(program)
    for stream in _stored_ports(plan):
        program.stored[plan.ports[stream].level].append(program.port[stream])
    return program


def _find_condemned(program: Program) -> None:
    """Follow each call's output to the gathers that depend on it, by whatever way."""
    plan = program.plan
    depends: list[frozenset[int]] = [frozenset()] * len(plan.ports)
    for node in plan.nodes:
        calls = frozenset[int]().union(*(depends[port] for port in ports_read(node)))
        if isinstance(node, BroadcastNode):  # which children there are depends on calls as well
            expand = plan.levels[node.level].expand
            assert expand is not None
            calls = calls.union(*(depends[port] for port in ports_read(plan.nodes[expand])))
        elif isinstance(node, CallNode):
            calls |= {node.index}
        elif isinstance(node, GatherNode):
            for call in calls:
                if plan.levels[plan.nodes[call].level].parent == node.level:
                    program.condemned.setdefault(call, []).append(node)
        for port in ports_made(node):
            depends[port] = calls


def _stored_ports(plan: Plan) -> Iterable[int]:
    for source in plan.sources:
        if source.stream.stored:
            yield source.stream.port
    for streams in plan.streams.values():
        for stream in streams.items:
            if stream.stored:
                yield stream.port
        for expansion in streams.expansions:
            for stream in expansion.streams:
                if stream.stored:
                    yield stream.port


def early_readers(plan: Plan) -> dict[int, tuple[int, ...]]:
    """Stored ports whose only readers are calls at the port's own level, with those calls.

    Their values may go as soon as those calls' items are terminal; all others stay until the root's
    records are committed. Filters, splits, merges and fields pass a value on, so they are looked through.
    """
    consumers: dict[int, list[Node]] = {}
    for node in plan.nodes:
        for port in ports_read(node):
            consumers.setdefault(port, []).append(node)
    returned = {output.port for output in plan.outputs}
    result: dict[int, tuple[int, ...]] = {}
    for port in _stored_ports(plan):
        calls: set[int] = set()
        pending, early = [port], True
        while pending and early:
            current = pending.pop()
            early = current not in returned
            for node in consumers.get(current, ()):
                match node:
                    case CallNode():
                        calls.add(node.index)
                    case FilterNode() | SplitNode():
                        control = node.mask if isinstance(node, FilterNode) else node.by
                        if current == control and current != node.input:
                            continue  # only its control values are read, and these have travelled
                        pending.extend(ports_made(node))
                    case MergeNode() | FieldNode():
                        pending.append(node.output)
                    case ExpandNode():
                        continue  # the children are streams of their own
                    case GatherNode() | BroadcastNode() | RecordNode():
                        early = False
        if early and calls:
            result[port] = tuple(sorted(calls))
    return result
