"""The transition tables: how outcomes spread from port to port, as algebra over sets of items.

One class per kind of node. A rule is told that something changed for some items of a chunk (``hint``) and
settles what follows from the state; it may be told too often, never too seldom. Outcomes only ever go from
open to terminal, so the order of telling does not matter.

In the tables below a name stands for the set of items, ``&`` for and, ``~`` for not; *lost* is failed or
suppressed; *terminal* is done, dropped or lost.

============ =====================================================================================
call, field, suppressed = any input lost; dropped = all inputs terminal & any dropped & ~suppressed;
record, row  ready (call) or done (others) = all inputs done
expand       dropped = input dropped; failed = input lost; done = sealed
filter       as the input where that is not done; then as the mask where that is not done;
             then done = mask true, dropped = mask false, failed (contract) = neither
split        the same for each label; failed (contract) = a value that is none of the labels
merge        the first input that is not dropped (with ``failed="next"``: neither dropped nor lost)
             decides; none left: the default, else suppressed if any was lost, else dropped
broadcast    as the parent's item
row of a     as the port of members where that is not done; then as a call's inputs, but failed
gather       (missing) where they are dropped
gather       dropped = expansion dropped; suppressed = expansion failed, or a member lost (``fail``), or
             too few done (``at_least``); done = expansion sealed & all members terminal
============ =====================================================================================
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from fanfold.engine.bits import bit_positions
from fanfold.engine.chunks import Chunk, Lost
from fanfold.engine.facts import ReadFacts
from fanfold.engine.ready import ReadyQueue
from fanfold.failures import Failure

Causes = Iterable[tuple[int, Failure]]


class State(Protocol):
    """What rules may do (:class:`fanfold.engine.settling.Settling`): settle outcomes, and have others told."""

    def settle_done(self, chunk: Chunk, slot: int, bits: int) -> None: ...

    def settle_lost(
        self,
        chunk: Chunk,
        slot: int,
        *,
        dropped: int = 0,
        failed: int = 0,
        suppressed: int = 0,
        causes: Causes = (),
    ) -> None: ...

    def new_failure(
        self, chunk: Chunk, bit: int, kind: str, message: str, where: str
    ) -> Failure: ...

    def schedule(self, rule: Rule, chunk: Chunk, hint: int) -> None: ...

    def end_roots(self, chunk: Chunk, bits: int) -> None: ...

    def release_early(self, chunk: Chunk, slot: int, bits: int) -> None: ...

    def unneeded(self, chunk: Chunk, slot: int, items: int) -> None: ...

    def give_up(self, chunk: Chunk, slot: int, items: int, causes: Causes) -> None: ...


class Rule(Protocol):
    """One node's table."""

    level: int
    """The level of the chunks that ``update`` is told of."""

    def update(self, state: State, chunk: Chunk, hint: int) -> None: ...


def copy_lost(state: State, chunk: Chunk, slot: int, lost: Lost, within: int) -> None:
    """Settle ``slot`` as another slot is, where that is not done (outcome and cause unchanged)."""
    if within & (lost.dropped | lost.failed | lost.suppressed):
        state.settle_lost(
            chunk,
            slot,
            dropped=within & lost.dropped,
            failed=within & lost.failed,
            suppressed=within & lost.suppressed,
            causes=lost.causes,
        )


class Joined:
    """The rule of call, field, record and row: all inputs are needed, failure beats drop."""

    def __init__(self, level: int, inputs: Sequence[int], outputs: Sequence[int]) -> None:
        self.level = level
        self.inputs = tuple(dict.fromkeys(inputs))
        self.outputs = tuple(outputs)

    def ready(self, state: State, chunk: Chunk, hint: int) -> int:
        """Settle what is lost; return the items of ``hint`` whose inputs are all done."""
        done = hint
        for slot in self.inputs:
            done &= chunk.done[slot]
        if chunk.lost is not None and done != hint:
            self._lose(state, chunk, hint & ~done)
        return done

    def _lose(self, state: State, chunk: Chunk, hint: int) -> None:
        suppressed = dropped = 0
        known = hint
        causes: list[tuple[int, Failure]] = []
        for slot in self.inputs:
            lost = chunk.lost_at(slot)
            known &= chunk.terminal(slot)
            if lost is not None:
                suppressed |= lost.failed | lost.suppressed
                dropped |= lost.dropped
                causes += lost.causes
        suppressed &= hint
        dropped &= known & ~suppressed
        if suppressed:
            for slot in self.outputs:
                state.settle_lost(chunk, slot, suppressed=suppressed, causes=causes)
        if dropped:
            self.drop(state, chunk, dropped)

    def drop(self, state: State, chunk: Chunk, dropped: int) -> None:
        """All inputs of these have ended, some without a value, and none was lost."""
        for slot in self.outputs:
            state.settle_lost(chunk, slot, dropped=dropped)


class CallRule(Joined):
    """Items whose inputs are all done enter the call's ready queue, once."""

    def __init__(
        self,
        level: int,
        queue: ReadyQueue,
        inputs: Sequence[int],
        outputs: Sequence[int],
        queued: int,
    ) -> None:
        super().__init__(level, inputs, outputs)
        self.queue = queue
        self.queued = queued

    def update(self, state: State, chunk: Chunk, hint: int) -> None:
        if chunk.lost is None and len(self.inputs) == 1:
            ready = hint  # told of what is done, and there is nothing else to ask
        else:
            ready = self.ready(state, chunk, hint) & ~chunk.terminal(self.outputs[0])
        done = chunk.done
        ready &= ~done[self.queued]
        if ready:
            done[self.queued] |= ready
            self.queue.push(chunk, ready & ~chunk.ended)


class RecordRule(Joined):
    """Records, and the rows of aligned gathers."""

    def update(self, state: State, chunk: Chunk, hint: int) -> None:
        ready = self.ready(state, chunk, hint)
        if ready:
            state.settle_done(chunk, self.outputs[0], ready)


class FieldRule(Joined):
    """A field of a value; ``missing`` tells which values lack it."""

    def __init__(
        self, level: int, input: int, output: int, name: str, missing: ReadFacts, where: str
    ) -> None:
        super().__init__(level, (input,), (output,))
        self.name = name
        self.missing = missing
        self.where = where

    def update(self, state: State, chunk: Chunk, hint: int) -> None:
        (output,) = self.outputs
        ready = self.ready(state, chunk, hint) & ~chunk.terminal(output)
        if not ready:
            return
        facts = self.missing(chunk)
        missing = facts.labels[0] & ready
        for offset in bit_positions(missing):
            failure = state.new_failure(
                chunk,
                1 << offset,
                "contract",
                f"the value has no field {self.name!r}: it is {facts.text(1 << offset)}",
                self.where,
            )
            state.settle_lost(chunk, output, failed=1 << offset, causes=((1 << offset, failure),))
        if ready != missing:
            state.settle_done(chunk, output, ready & ~missing)


class SplitRule:
    """Filters and splits: output ``i`` keeps the items with label ``i``; ``rest`` those without one."""

    def __init__(
        self,
        level: int,
        input: int,
        by: int,
        outputs: Sequence[int],
        labels: ReadFacts,
        *,
        rest: int | None,
        expected: str,
        where: str,
    ) -> None:
        self.level = level
        self.input = input
        self.by = by
        self.outputs = tuple(outputs)
        self.labels = labels
        self.rest = rest
        self.expected = expected
        self.where = where

    def update(self, state: State, chunk: Chunk, hint: int) -> None:
        first = self.outputs[0] if self.outputs else self.rest
        assert first is not None
        hint &= ~chunk.terminal(first)
        every = self.outputs if self.rest is None else (*self.outputs, self.rest)
        lost = chunk.lost_at(self.input)
        if lost is not None:
            for slot in every:
                copy_lost(state, chunk, slot, lost, hint)
        hint &= chunk.done[self.input]
        lost = chunk.lost_at(self.by)
        if lost is not None:
            for slot in every:
                copy_lost(state, chunk, slot, lost, hint)
        hint &= chunk.done[self.by]
        if not hint:
            return
        facts = self.labels(chunk)
        for offset in bit_positions(facts.illegal & hint):
            bit = 1 << offset
            message = f"{facts.text(bit)} is not {self.expected}"
            failure = state.new_failure(chunk, bit, "contract", message, self.where)
            for slot in every:
                state.settle_lost(chunk, slot, failed=bit, causes=((bit, failure),))
        hint &= ~facts.illegal
        rest = hint
        for slot, bits in zip(self.outputs, facts.labels, strict=True):
            self._route(state, chunk, slot, bits & hint, hint)
            rest &= ~bits
        if self.rest is not None:
            self._route(state, chunk, self.rest, rest, hint)

    def _route(self, state: State, chunk: Chunk, slot: int, here: int, hint: int) -> None:
        if here:
            state.settle_done(chunk, slot, here)
        if here != hint:
            state.settle_lost(chunk, slot, dropped=hint & ~here)


class MergeRule:
    """The first input that is not dropped decides; later ones are not looked at."""

    def __init__(
        self, level: int, inputs: Sequence[int], output: int, *, default: bool, next_on_loss: bool
    ) -> None:
        self.level = level
        self.inputs = tuple(inputs)
        self.output = output
        self.default = default
        self.next_on_loss = next_on_loss

    def update(self, state: State, chunk: Chunk, hint: int) -> None:
        left = hint & ~chunk.terminal(self.output)
        any_lost = 0
        causes: list[tuple[int, Failure]] = []
        for position, slot in enumerate(self.inputs):
            done = left & chunk.done[slot]
            if done:
                state.settle_done(chunk, self.output, done)
                for later in self.inputs[position + 1 :]:
                    if done & ~chunk.terminal(later):
                        state.unneeded(chunk, later, done)
            lost = chunk.lost_at(slot)
            if lost is None:
                return  # what is not done here is still open
            if self.next_on_loss:
                here = left & (lost.failed | lost.suppressed)
                any_lost |= here
                causes += lost.causes
                left &= lost.dropped | here
            else:
                decided = left & (lost.failed | lost.suppressed)
                if decided:
                    state.settle_lost(
                        chunk,
                        self.output,
                        failed=decided & lost.failed,
                        suppressed=decided & lost.suppressed,
                        causes=lost.causes,
                    )
                left &= lost.dropped
            if not left:
                return
        if self.default:
            state.settle_done(chunk, self.output, left)
        else:
            suppressed = left & any_lost
            state.settle_lost(
                chunk, self.output, dropped=left & ~suppressed, suppressed=suppressed, causes=causes
            )


class BroadcastRule:
    """A parent's outcome at each of its children; told when children come into being."""

    def __init__(self, level: int, input: int, output: int) -> None:
        self.level = level
        self.input = input
        self.output = output

    def update(self, state: State, chunk: Chunk, hint: int) -> None:
        parent = chunk.parent
        assert parent is not None
        done = chunk.items_of(parent.done[self.input]) & hint
        if done:
            state.settle_done(chunk, self.output, done)
        lost = parent.lost_at(self.input)
        if lost is not None and done != hint:
            state.settle_lost(
                chunk,
                self.output,
                dropped=chunk.items_of(lost.dropped) & hint,
                failed=chunk.items_of(lost.failed) & hint,
                suppressed=chunk.items_of(lost.suppressed) & hint,
                causes=[(chunk.items_of(bits), cause) for bits, cause in lost.causes],
            )


class BroadcastFeed:
    """Tells a broadcast of the children of the parents whose item has ended."""

    def __init__(self, level: int, rule: BroadcastRule) -> None:
        self.level = level
        self.rule = rule

    def update(self, state: State, chunk: Chunk, hint: int) -> None:
        children = chunk.children.get(self.rule.level)
        if children is not None:
            for child in children.chunks(hint):
                state.schedule(self.rule, child, child.items_of(hint))


class ExpandRule:
    """An expansion whose parent has no value is dropped or failed; sealing is an event of its own."""

    def __init__(self, level: int, input: int, expansion: int) -> None:
        self.level = level
        self.input = input
        self.expansion = expansion

    def update(self, state: State, chunk: Chunk, hint: int) -> None:
        lost = chunk.lost_at(self.input)
        if lost is not None:
            state.settle_lost(
                chunk,
                self.expansion,
                dropped=hint & lost.dropped,
                failed=hint & (lost.failed | lost.suppressed),
                causes=lost.causes,
            )


class RootRule:
    """A root has ended when everything that it returns is terminal."""

    level = 0

    def __init__(self, slots: Sequence[int]) -> None:
        self.slots = tuple(slots)

    def update(self, state: State, chunk: Chunk, hint: int) -> None:
        for slot in self.slots:
            hint &= chunk.terminal(slot)
            if not hint:
                return
        state.end_roots(chunk, hint)


class EarlyRelease:
    """Values whose every reader has ended may go before the root does."""

    def __init__(self, level: int, slot: int, readers: Sequence[int]) -> None:
        self.level = level
        self.slot = slot
        self.readers = tuple(readers)

    def update(self, state: State, chunk: Chunk, hint: int) -> None:
        for slot in self.readers:
            hint &= chunk.terminal(slot)
        hint &= chunk.done[self.slot]
        if hint:
            state.release_early(chunk, self.slot, hint)
