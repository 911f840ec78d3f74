"""The transition table of gathers: who is a member, when a list is whole, when it cannot be any more.

Told of members chunk by chunk and of parents as their expansions end; settles the parents, all that it can
at once. The table itself stands with the others, in :mod:`fanfold.engine.rules`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fanfold.engine.bits import bit_positions
from fanfold.engine.chunks import Chunk, Lost
from fanfold.engine.rules import RecordRule, State, copy_lost
from fanfold.failures import Failure
from fanfold.plan import AtLeast


class MemberRule(RecordRule):
    """The rows of a gather with ``members=``: that port alone says who is a member."""

    def __init__(
        self, level: int, inputs: Sequence[int], members: int, output: int, where: str
    ) -> None:
        super().__init__(level, inputs, (output,))
        self.members = members
        self.where = where

    def update(self, state: State, chunk: Chunk, hint: int) -> None:
        lost = chunk.lost_at(self.members)
        if lost is not None:
            copy_lost(state, chunk, self.outputs[0], lost, hint)
        super().update(state, chunk, hint & chunk.done[self.members])

    def drop(self, state: State, chunk: Chunk, dropped: int) -> None:
        (output,) = self.outputs
        for offset in bit_positions(dropped & ~chunk.terminal(output)):
            bit = 1 << offset
            message = "it is a member of the list, but its own value was dropped"
            failure = state.new_failure(chunk, bit, "missing", message, self.where)
            state.settle_lost(chunk, output, failed=bit, causes=((bit, failure),))


class GatherRule:
    """Per parent: done when its expansion is sealed and all members are terminal.

    ``stop_on_loss`` is ``failed="fail"``: the first member that is lost suppresses the gathered item.
    ``row`` is the members' slot at the child level, ``expansion`` the parents' own.
    """

    def __init__(
        self,
        level: int,
        child_level: int,
        row: int,
        expansion: int,
        outputs: Sequence[int],
        *,
        stop_on_loss: bool,
        enough: Enough | None = None,
    ) -> None:
        self.level = level
        self.child_level = child_level
        self.row = row
        self.expansion = expansion
        self.outputs = tuple(outputs)
        self.stop_on_loss = stop_on_loss
        self.enough = enough

    def update(self, state: State, chunk: Chunk, hint: int) -> None:
        """Told of parents whose expansion has ended."""
        hint &= ~chunk.terminal(self.outputs[0])
        lost = chunk.lost_at(self.expansion)
        if lost is not None:
            self.expansion_lost(state, chunk, hint, lost)
        hint &= self.closed(chunk)
        for slot in self.outputs if chunk.given_up else ():
            for bits, cause in chunk.given_up.get(slot, ()):
                given_up = bits & hint
                state.settle_lost(chunk, slot, suppressed=given_up, causes=((given_up, cause),))
        hint &= ~chunk.terminal(self.outputs[0])
        if self.enough is not None and hint:
            hint &= ~self._too_few(state, chunk, hint)
        self._finish(state, chunk, self.complete(chunk, hint))

    def members_ended(self, state: State, chunk: Chunk, hint: int) -> None:
        """Told of members that have ended; all their siblings may have by now."""
        parent = chunk.parent
        assert parent is not None
        lost = chunk.lost_at(self.row)
        if lost is not None:
            bad = hint & (lost.failed | lost.suppressed)
            if bad and self.stop_on_loss:
                self._suppress(state, parent, chunk, lost, bad)
            if self.enough is not None:
                affected = chunk.parents_of(hint) & ~parent.terminal(self.outputs[0])
                self._too_few(state, parent, affected & self.closed(parent))
        whole = chunk.whole(chunk.terminal(self.row))
        if whole:
            whole &= self.closed(parent) & ~parent.terminal(self.outputs[0])
            elsewhere = whole & chunk.shared()
            if elsewhere:
                whole ^= elsewhere ^ self.complete(parent, elsewhere)
            # What is lost already, though the list has still to be told of it:
            if lost is not None and self.stop_on_loss:
                whole &= ~chunk.parents_of(lost.failed | lost.suppressed)
            if self.enough is not None and whole and (elsewhere or lost is not None):
                whole &= ~self._too_few(state, parent, whole)
            self._finish(state, parent, whole)

    def closed(self, chunk: Chunk) -> int:
        """The parents that get no more children and may be done."""
        return chunk.done[self.expansion]

    def expansion_lost(self, state: State, chunk: Chunk, hint: int, lost: Lost) -> None:
        """Parents without a sealed expansion have no list."""
        for slot in self.outputs:
            state.settle_lost(
                chunk,
                slot,
                dropped=hint & lost.dropped,
                suppressed=hint & (lost.failed | lost.suppressed),
                causes=lost.causes,
            )

    def complete(self, chunk: Chunk, parents: int) -> int:
        """Those of some parents whose members are all terminal, and none is lost if that stops the list."""
        children = chunk.children.get(self.child_level)
        if children is not None and parents:
            for child in children.chunks(parents):
                parents &= ~child.parents | child.whole(child.terminal(self.row))
                if self.stop_on_loss and (lost := child.lost_at(self.row)) is not None:
                    parents &= ~child.parents_of(lost.failed | lost.suppressed)
        return parents

    def _suppress(self, state: State, parent: Chunk, chunk: Chunk, lost: Lost, bad: int) -> None:
        for bits, cause in lost.causes:
            parents = chunk.parents_of(bits & bad)
            if parents:
                for slot in self.outputs:
                    state.settle_lost(parent, slot, suppressed=parents, causes=((parents, cause),))

    def _too_few(self, state: State, chunk: Chunk, parents: int) -> int:
        """Suppress lists that cannot have enough members any more; which they are."""
        assert self.enough is not None
        found = 0
        for bit, cause in self.enough.lacking(state, chunk, parents):
            found |= bit
            for slot in self.outputs:
                state.settle_lost(chunk, slot, suppressed=bit, causes=((bit, cause),))
        return found

    def _finish(self, state: State, chunk: Chunk, done: int) -> None:
        if done:
            for slot in self.outputs:
                state.settle_done(chunk, slot, done)


class Enough:
    """``at_least=`` of a gather: counted per parent, and decided as soon as nothing can change it."""

    def __init__(self, child_level: int, row: int, at_least: AtLeast, where: str) -> None:
        self.child_level = child_level
        self.row = row
        self.at_least = at_least
        self.where = where

    def lacking(self, state: State, chunk: Chunk, parents: int) -> Iterator[tuple[int, Failure]]:
        """Those of some parents, whose expansions are sealed, that cannot get enough members, and why.

        Members that are still open could all be done yet; were some dropped, a share would ask for fewer, but
        never by more than there are fewer.
        """
        children = chunk.children.get(self.child_level)
        for offset in bit_positions(parents):
            bit, lost, members = 1 << offset, 0, 0
            cause: Failure | None = None
            for child, items in () if children is None else children.runs(bit):
                members += items.bit_count()
                gone = child.lost_at(self.row)
                if gone is not None:
                    bad = items & (gone.failed | gone.suppressed)
                    lost += bad.bit_count()
                    members -= (items & gone.dropped).bit_count()
                    if bad and cause is None:
                        cause = gone.cause(bad & -bad)
            needed = self.at_least.needed(members)
            if members - lost < needed:
                message = (
                    f"{members - lost} of {members} members are done, at_least={self.at_least}"
                )
                yield (
                    bit,
                    cause or state.new_failure(chunk, bit, "too_few", message, self.where),
                )


class SettledRule(GatherRule):
    """Done when nothing below a parent can change any more, whatever the outcomes."""

    def closed(self, chunk: Chunk) -> int:
        return chunk.terminal(self.expansion)

    def expansion_lost(self, state: State, chunk: Chunk, hint: int, lost: Lost) -> None:
        """It is an end like any other."""


class GatherFeed:
    """Tells a gather of members that have ended."""

    def __init__(self, level: int, rule: GatherRule) -> None:
        self.level = level
        self.rule = rule

    def update(self, state: State, chunk: Chunk, hint: int) -> None:
        self.rule.members_ended(state, chunk, hint)
