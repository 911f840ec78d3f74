"""Rules made from a plan and hung on the slots that they watch. Built once per run; holds no state."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from fanfold.engine.facts import check_key, control_key, facts_reader
from fanfold.engine.gathers import Enough, GatherFeed, GatherRule, MemberRule, SettledRule
from fanfold.engine.program import Program, early_readers
from fanfold.engine.ready import ReadyQueue
from fanfold.engine.rules import (
    BroadcastFeed,
    BroadcastRule,
    CallRule,
    EarlyRelease,
    ExpandRule,
    FieldRule,
    MergeRule,
    RecordRule,
    RootRule,
    Rule,
    SplitRule,
)
from fanfold.plan import (
    BroadcastNode,
    CallNode,
    ExpandNode,
    FieldNode,
    FilterNode,
    GatherNode,
    MergeNode,
    Node,
    RecordNode,
    SplitNode,
    ports_read,
)


@dataclass(slots=True)
class Wiring:
    """``watchers[level][slot]``: the rules to tell when items of a slot end."""

    watchers: list[list[list[Rule]]]
    broadcasts: list[list[BroadcastRule]] = field(default_factory=list)
    """By level: the rules to tell when children come into being."""
    early: dict[int, EarlyRelease] = field(default_factory=dict)
    """By port: how its values go before their root ends; not in force before :meth:`watch_early`."""
    early_in_force: list[EarlyRelease] = field(default_factory=list)

    def watch_early(self, port: int) -> None:
        """From now on release a port's values at their last reader: that is worth it."""
        rule = self.early.pop(port)
        self.early_in_force.append(rule)
        for slot in rule.readers:
            self.watch(rule.level, slot, rule)

    def watch(self, level: int, slot: int, rule: Rule) -> None:
        rules = self.watchers[level][slot]
        if rule not in rules:
            rules.append(rule)


def wire(program: Program, queues: Mapping[int, ReadyQueue]) -> Wiring:
    """Make the rules of a program; calls' ready items go to ``queues``."""
    plan = program.plan
    wiring = Wiring(
        watchers=[[[] for _ in range(n)] for n in program.slots],
        broadcasts=[[] for _ in plan.levels],
    )
    for node in plan.nodes:
        _wire_node(program, wiring, node, queues)
    for port, chain in program.settled.items():
        level, row = plan.ports[port].level, program.port[port]
        for parent, slot in chain:
            settled = SettledRule(
                parent, level, row, program.expansion[level], (slot,), stop_on_loss=False
            )
            wiring.watch(level, row, GatherFeed(level, settled))
            wiring.watch(parent, program.expansion[level], settled)
            level, row = parent, slot
    for port, calls in early_readers(plan).items():
        level = plan.ports[port].level
        readers = [program.call_outputs[call][0] for call in calls]
        wiring.early[port] = EarlyRelease(level, program.port[port], readers)
    root = RootRule(program.root_slots)
    for slot in program.root_slots:
        wiring.watch(0, slot, root)
    return wiring


def _wire_node(
    program: Program, wiring: Wiring, node: Node, queues: Mapping[int, ReadyQueue]
) -> None:
    slot = program.port
    where = program.plan.ports
    rule: Rule
    match node:
        case CallNode():
            inputs = [slot[i.port] for i in node.inputs]
            rule = CallRule(
                node.level,
                queues[node.index],
                inputs,
                program.call_outputs[node.index],
                program.queued[node.index],
            )
            for s in inputs:
                wiring.watch(node.level, s, rule)
        case ExpandNode():
            expansion = program.expansion[node.level]
            parent = where[node.inputs[0]].level
            for port in node.inputs:
                wiring.watch(parent, slot[port], ExpandRule(parent, slot[port], expansion))
        case GatherNode():
            row, name = program.row[node.index], f"gather ({node.where})"
            enough = None
            if node.at_least is not None:
                enough = Enough(node.child_level, row, node.at_least, name)
            if row not in (inputs := [slot[p] for p in node.inputs]):
                rows: Rule = RecordRule(node.child_level, inputs, (row,))
                if node.members is not None:
                    rows = MemberRule(node.child_level, inputs, slot[node.members], row, name)
                for port in ports_read(node):
                    wiring.watch(node.child_level, slot[port], rows)
            expansion = program.expansion[node.child_level]
            gather = GatherRule(
                node.level,
                node.child_level,
                row,
                expansion,
                [slot[p] for p in node.outputs],
                stop_on_loss=node.failed == "fail",
                enough=enough,
            )
            wiring.watch(node.child_level, row, GatherFeed(node.child_level, gather))
            wiring.watch(node.level, expansion, gather)
        case FilterNode() | SplitNode():
            rule = _route(program, node)
            wiring.watch(node.level, slot[node.input], rule)
            wiring.watch(node.level, rule.by, rule)
        case MergeNode():
            rule = MergeRule(
                node.level,
                [slot[p] for p in node.inputs],
                slot[node.output],
                default=node.default is not None,
                next_on_loss=node.failed == "next",
            )
            for port in node.inputs:
                wiring.watch(node.level, slot[port], rule)
        case BroadcastNode():
            down = BroadcastRule(node.level, slot[node.input], slot[node.output])
            wiring.broadcasts[node.level].append(down)
            parent = where[node.input].level
            wiring.watch(parent, slot[node.input], BroadcastFeed(parent, down))
        case FieldNode():
            missing = facts_reader(program, node.input, check_key(node.check))
            rule = FieldRule(
                node.level,
                slot[node.input],
                slot[node.output],
                node.name,
                missing,
                where[node.output].name,
            )
            wiring.watch(node.level, slot[node.input], rule)
        case RecordNode():
            inputs = [slot[v] for _, v in node.fields if isinstance(v, int)]
            rule = RecordRule(node.level, inputs, (slot[node.output],))
            for s in inputs:
                wiring.watch(node.level, s, rule)


def _route(program: Program, node: FilterNode | SplitNode) -> SplitRule:
    """A filter is a split into true and nothing."""
    slot = program.port
    if isinstance(node, FilterNode):
        by, outputs, rest = node.mask, [slot[node.output]], None
        expected, name = "True or False", f"filter ({node.where})"
    else:
        by, outputs = node.by, [slot[p] for p in node.outputs]
        rest = outputs.pop() if node.rest else None
        expected = "one of the labels " + ", ".join(repr(label) for label in node.labels)
        name = f"split ({node.where})"
    return SplitRule(
        node.level,
        slot[node.input],
        slot[by],
        outputs,
        facts_reader(program, by, control_key(node.control)),
        rest=rest,
        expected=expected,
        where=name,
    )
