"""Dead work: which items nobody needs any more, found backwards from what was lost or decided.

An item at a slot is needed while a reader that has not ended could still be affected by it. Outputs of the
pipeline and effects are needed until they end. When items are lost, or a merge has decided, what they read
is looked at again; what nobody needs is suppressed there, and so on backwards, so that a task whose outputs
are all dead is never started. Looked at again are also children that come when the list of them is lost,
what is copied to children once no more can come, and what a worker had in hand that died.

Owns the direction from readers to what they read; that outcomes spread from there to readers is in
:mod:`fanfold.engine.rules`. A drop never makes work dead: other readers may count the dropped item out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from fanfold.engine.chunks import Chunk
from fanfold.engine.program import Program
from fanfold.engine.rules import Causes, Rule, State
from fanfold.failures import Failure
from fanfold.plan import BroadcastNode, ExpandNode, GatherNode, Node, ports_made, ports_read

UNNEEDED: Final = Failure(kind="unneeded", message="nothing that is still open depends on it")
"""The cause of what died without a failure: a merge took another port."""

Needs = Callable[[Chunk, int], int]
"""Which of some open items a reader could still be affected by."""


class Backwards:
    """What nodes read, and who needs it.

    Args:
        program: The slots.
    """

    def __init__(self, program: Program) -> None:
        self._program = program
        plan = program.plan
        self._needs: list[list[list[Needs]]] = [[[] for _ in range(n)] for n in program.slots]
        self._together: list[list[tuple[int, ...]]] = [
            [(slot,) for slot in range(n)] for n in program.slots
        ]
        """By level and slot: the slots of one node, which end together."""
        self.reads: list[list[list[Rule]]] = [[[] for _ in range(n)] for n in program.slots]
        """By level and slot: the rules to tell when items end there without a value."""
        self.late: list[list[Rule]] = [[] for _ in plan.levels]
        """By level: the rules to tell of children whose parents lost something before."""
        self.ends: list[tuple[int, int, Rule]] = []
        """Triples (level, slot, rule): rules to tell of every end there."""
        for port in (*(output.port for output in plan.outputs), *program.effect_ports):
            self._needs[plan.ports[port].level][program.port[port]].append(_always)
            above = plan.levels[plan.ports[port].level]
            while above.parent is not None:
                self._needs[above.parent][program.expansion[above.index]].append(_always)
                above = plan.levels[above.parent]
        for node in plan.nodes:
            self._add(node)

    def unneeded(
        self, state: State, chunk: Chunk, slot: int, items: int, causes: Causes = ()
    ) -> None:
        """Suppress those of some items at a slot that nobody needs any more."""
        level = chunk.level
        together = self._together[level][slot]
        items &= ~chunk.terminal(slot)
        for part in together:
            for needs in self._needs[level][part]:
                if not items:
                    return
                items &= ~needs(chunk, items)
        if items:
            every = [*causes, (items, UNNEEDED)]
            for part in together:
                state.give_up(chunk, part, items, every)

    # ------------------------------------------------------------------------------ wiring

    def _add(self, node: Node) -> None:
        slots, ports = self._program.port, self._program.plan.ports
        outputs = tuple(slots[port] for port in ports_made(node))
        level = node.level
        match node:
            case ExpandNode():
                parent = ports[node.inputs[0]].level
                expansion = self._program.expansion[level]
                self._same_level(parent, [slots[port] for port in node.inputs], (expansion,))
                return  # its own outputs come into being with their values
            case BroadcastNode():
                above = ports[node.input].level
                expansion = self._program.expansion[level]
                self._needs[above][slots[node.input]].append(
                    _children_open(level, expansion, outputs[0])
                )
                self.reads[level][outputs[0]].append(
                    _Parents(self, level, outputs[0], slots[node.input])
                )
                no_more = _NoMoreCopies(self, above, expansion, slots[node.input])
                self.ends.append((above, expansion, no_more))
                return
            case GatherNode():
                row = self._program.row[node.index]
                expansion = self._program.expansion[node.child_level]
                if (inputs := [slots[port] for port in ports_read(node)]) != [row]:
                    self._same_level(node.child_level, inputs, (row,))
                self._needs[node.child_level][row].append(_parent_open(outputs[0]))
                self._needs[level][expansion].append(_open(outputs[0]))
                members = _Members(self, level, outputs[0], node.child_level, row)
                self.reads[level][outputs[0]].append(members)
                self.late[node.child_level].append(_LateMembers(node.child_level, members))
                self.reads[level][outputs[0]].append(_Read(self, level, outputs[0], (expansion,)))
            case _:
                inputs = [slots[port] for port in ports_read(node)]
                self._same_level(level, inputs, outputs)
        for slot in outputs:
            self._together[level][slot] = outputs

    def _same_level(self, level: int, inputs: Sequence[int], outputs: Sequence[int]) -> None:
        for slot in dict.fromkeys(inputs):
            self._needs[level][slot].append(_open(outputs[0]))
        for slot in outputs:
            self.reads[level][slot].append(_Read(self, level, slot, tuple(dict.fromkeys(inputs))))


# ---------------------------------------------------------------------------------- who needs what


def _always(chunk: Chunk, items: int) -> int:
    """An output of the pipeline or an effect: needed until it ends."""
    return items


def _open(output: int) -> Needs:
    """A node at the same level: while its output is open."""
    return lambda chunk, items: items & ~chunk.terminal(output)


def _parent_open(output: int) -> Needs:
    """A gather: while the list is open."""

    def needs(chunk: Chunk, items: int) -> int:
        assert chunk.parent is not None
        return items & chunk.items_of(chunk.parents & ~chunk.parent.terminal(output))

    return needs


def _children_open(level: int, expansion: int, output: int) -> Needs:
    """A broadcast: while the copy at any child is open, or children may still come."""

    def needs(chunk: Chunk, items: int) -> int:
        needed = items & ~chunk.terminal(expansion)
        children = chunk.children.get(level)
        if children is not None and needed != items:
            for child in children.chunks(items & ~needed):
                needed |= child.parents_of(child.items_of(items) & ~child.terminal(output))
        return needed & items

    return needs


# ------------------------------------------------------------------------------ what is looked at again


@dataclass(slots=True, eq=False)
class _Read:
    """Items of ``slot`` were lost: what the node read at its own level."""

    backwards: Backwards
    level: int
    slot: int
    inputs: tuple[int, ...]

    def update(self, state: State, chunk: Chunk, hint: int) -> None:
        lost = chunk.lost_at(self.slot)
        if lost is not None and (items := hint & (lost.failed | lost.suppressed)):
            for slot in self.inputs:
                self.backwards.unneeded(state, chunk, slot, items, lost.causes)


@dataclass(slots=True, eq=False)
class _Members:
    """Lists at ``slot`` were lost: their members."""

    backwards: Backwards
    level: int
    slot: int
    child_level: int
    row: int

    def update(self, state: State, chunk: Chunk, hint: int) -> None:
        children = chunk.children.get(self.child_level)
        if children is not None and (parents := hint & self.lost(chunk)):
            for child in children.chunks(parents):
                self.give_up(state, child, child.items_of(parents))

    def lost(self, chunk: Chunk) -> int:
        """The parents whose lists are lost."""
        lost = chunk.lost_at(self.slot)
        return 0 if lost is None else lost.failed | lost.suppressed

    def give_up(self, state: State, child: Chunk, items: int) -> None:
        """The lists of these members are lost."""
        assert child.parent is not None
        lost = child.parent.lost_at(self.slot)
        assert lost is not None
        causes = [(child.items_of(bits), cause) for bits, cause in lost.causes]
        self.backwards.unneeded(state, child, self.row, items, causes)


@dataclass(slots=True, eq=False)
class _LateMembers:
    """Children came: those whose lists were lost before."""

    level: int
    members: _Members

    def update(self, state: State, chunk: Chunk, hint: int) -> None:
        assert chunk.parent is not None
        if items := hint & chunk.items_of(self.members.lost(chunk.parent)):
            self.members.give_up(state, chunk, items)


@dataclass(slots=True, eq=False)
class _Parents:
    """Copies at ``slot`` were lost: the item above them."""

    backwards: Backwards
    level: int
    slot: int
    input: int

    def update(self, state: State, chunk: Chunk, hint: int) -> None:
        lost, parent = chunk.lost_at(self.slot), chunk.parent
        if lost is not None and parent is not None:
            causes = [(chunk.parents_of(bits), cause) for bits, cause in lost.causes]
            parents = chunk.parents_of(hint & (lost.failed | lost.suppressed))
            self.backwards.unneeded(state, parent, self.input, parents, causes)


@dataclass(slots=True, eq=False)
class _NoMoreCopies:
    """Expansions ended: what is copied from ``input`` to their children, if there are any."""

    backwards: Backwards
    level: int
    expansion: int
    input: int

    def update(self, state: State, chunk: Chunk, hint: int) -> None:
        lost = chunk.lost_at(self.expansion)
        failed, causes = (0, []) if lost is None else (lost.failed, lost.causes)
        ended = hint & (chunk.done[self.expansion] | failed)
        self.backwards.unneeded(state, chunk, self.input, ended, causes)
