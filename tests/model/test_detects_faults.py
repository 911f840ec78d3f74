"""The proof itself is on trial: each fault put into the engine has to be found by the property test.

Each search starts from a seed of its own, so that these tests depend on no luck and take little time.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fanfold.engine import machine, resolve, rules
from fanfold.engine.bits import below
from fanfold.engine.chunks import Chunk, Lost
from fanfold.engine.machine import Machine
from fanfold.engine.roots import Roots
from fanfold.errors import InternalError
from fanfold.protocol import ChildrenReleased, TasksFinished
from fanfold.testing.sketches import Sketch
from fanfold.testing.strategies import sketches
from fanfold.testing.twin import Twin
from tests.model.profile import looked_for
from tests.model.test_pipelines_match_interpreter import check

EXAMPLES: Final = 1_000
"""At most so many pipelines are tried for one fault; most show within some dozens."""

Patch = pytest.MonkeyPatch
Install = Callable[[Patch], None]
FAULTS: dict[str, tuple[Install, int]] = {}


def fault(start: int = 0) -> Callable[[Install], Install]:
    """Name a fault; ``start`` is a seed from which the search meets it soon."""

    def register(install: Install) -> Install:
        FAULTS[install.__name__] = install, start
        return install

    return register


def _changed(patch: Patch, owner: Any, name: str, change: Callable[..., Any]) -> None:
    """Replace ``owner.name`` by ``change``, which gets the original first."""
    original = getattr(owner, name)
    patch.setattr(owner, name, lambda *args, **kwargs: change(original, *args, **kwargs))


# ------------------------------------------------------------------------------- values and membership


@fault()
def a_gather_is_reversed(patch: Patch) -> None:
    def reverse(original: Any, *args: Any, **kwargs: Any) -> Any:
        inner = original(*args, **kwargs)

        def reversed_members(entries: Any, refs: Any) -> Any:
            tag, column, lengths = inner(entries, refs)
            match column:
                case ("cat", parts):
                    column = "cat", parts[::-1]
            return tag, column, lengths

        return reversed_members

    _changed(patch, resolve, "_gather", reverse)


@fault()
def the_last_child_is_dropped(patch: Patch) -> None:
    def drop(original: Any, self: Machine, event: Any) -> Any:
        if isinstance(event, ChildrenReleased):
            *others, last = event.counts
            event = event._replace(counts=(*others, last - 1))
        return original(self, event)

    _changed(patch, Machine, "handle", drop)


@fault()
def children_are_taken_twice(patch: Patch) -> None:
    def double(original: Any, self: Machine, event: Any) -> Any:
        if isinstance(event, ChildrenReleased):
            original(self, event)
        return original(self, event)

    _changed(patch, Machine, "handle", double)


@fault()
def a_result_is_taken_for_its_neighbour(patch: Patch) -> None:
    def shift(original: Any, entries: Any, refs: Any) -> Any:
        column = original(entries, refs)
        match column:
            case ("rows", ref, first, n) if first > 0:
                return "rows", ref, first - 1, n
        return column

    def shifted(original: Any, slot: int) -> Any:
        inner = original(slot)
        return lambda entries, refs: shift(inner, entries, refs)

    _changed(patch, resolve, "_stored", shifted)


@fault(start=3)
def a_broadcast_goes_to_a_siblings_children(patch: Patch) -> None:
    def swap(original: Any, inner: Any) -> Any:
        resolver = original(inner)

        def resolve_swapped(entries: Any, refs: Any) -> Any:
            tag, column, counts = resolver(entries, refs)
            return tag, column, counts[::-1]

        return resolve_swapped

    _changed(patch, resolve, "_broadcast", swap)


@fault()
def an_ordinal_is_off_by_one(patch: Patch) -> None:
    def shift(original: Any, self: Roots, chunk: Any, offset: int) -> Any:
        *path, last = original(self, chunk, offset)
        return (*path, last + (1 if path else 0))

    _changed(patch, Roots, "ordinals", shift)


# --------------------------------------------------------------------------------------------- outcomes


@fault()
def a_failed_member_passes(patch: Patch) -> None:
    def lenient(original: Any, self: Any, *args: Any, stop_on_loss: bool) -> None:
        original(self, *args, stop_on_loss=False)

    _changed(patch, rules.GatherRule, "__init__", lenient)


@fault()
def a_gather_does_not_wait_for_all_members(patch: Patch) -> None:
    _changed(patch, rules.GatherRule, "complete", lambda original, self, chunk, parents: parents)


@fault()
def a_gather_takes_its_neighbours_members_for_its_own(patch: Patch) -> None:
    def confused(original: Any, self: Chunk, items: int) -> int:
        return original(self, items) or (self.parents if items else 0)

    _changed(patch, Chunk, "whole", confused)


@fault()
def siblings_in_another_chunk_are_forgotten(patch: Patch) -> None:
    _changed(patch, Chunk, "shared", lambda original, self: 0)


@fault()
def an_expansion_that_failed_counts_as_dropped(patch: Patch) -> None:
    def soften(original: Any, self: Any, state: Any, chunk: Any, hint: int) -> None:
        lost = chunk.lost_at(self.input)
        if lost is not None:
            gone = hint & (lost.dropped | lost.failed | lost.suppressed)
            state.settle_lost(chunk, self.expansion, dropped=gone)

    _changed(patch, rules.ExpandRule, "update", soften)


@fault(start=1)
def drop_beats_failure(patch: Patch) -> None:
    def swapped(original: Any, self: Any, state: Any, chunk: Any, hint: int) -> None:
        for slot in self.inputs:
            lost = chunk.lost_at(slot)
            if lost is not None and lost.dropped & hint:
                for output in self.outputs:
                    state.settle_lost(chunk, output, dropped=hint & lost.dropped)
        original(self, state, chunk, hint)

    _changed(patch, rules.Joined, "_lose", swapped)


@fault()
def a_split_keeps_what_it_should_drop(patch: Patch) -> None:
    def keep(original: Any, self: Any, state: Any, chunk: Any, slot: int, *sets: int) -> None:
        here, hint = sets
        original(self, state, chunk, slot, hint if here == 0 else here, hint)

    _changed(patch, rules.SplitRule, "_route", keep)


@fault(start=1)
def an_illegal_label_is_dropped_instead_of_failed(patch: Patch) -> None:
    def quiet(original: Any, chunk: Any, stream: Any, *rest: Any) -> Any:
        controls = tuple(control._replace(illegal=()) for control in stream.controls)
        return original(chunk, stream._replace(controls=controls), *rest)

    _changed(patch, machine, "place_facts", quiet)


@fault(start=1)
def a_missing_field_is_not_noticed(patch: Patch) -> None:
    def blind(original: Any, chunk: Any, stream: Any, *rest: Any) -> None:
        original(chunk, stream._replace(missing=()), *rest)

    _changed(patch, machine, "place_facts", blind)


@fault(start=3)
def a_merge_goes_on_after_a_failure(patch: Patch) -> None:
    def lenient(original: Any, self: Any, *args: Any, default: bool, next_on_loss: bool) -> None:
        original(self, *args, default=default, next_on_loss=True)

    _changed(patch, rules.MergeRule, "__init__", lenient)


@fault(start=1)
def a_merge_stops_at_a_failure(patch: Patch) -> None:
    def strict(original: Any, self: Any, *args: Any, default: bool, next_on_loss: bool) -> None:
        original(self, *args, default=default, next_on_loss=False)

    _changed(patch, rules.MergeRule, "__init__", strict)


@fault()
def a_cause_is_taken_from_another_item(patch: Patch) -> None:
    def first(original: Any, self: Lost, bit: int) -> Any:
        return self.causes[0][1] if self.causes else None

    _changed(patch, Lost, "cause", first)


@fault()
def a_whole_batch_is_blamed_for_an_exception(patch: Patch) -> None:
    def blame(original: Any, self: Machine, event: Any) -> None:
        batch = self.batches[event.batch]
        batch.count = 1
        original(self, event)

    _changed(patch, Machine, "_batch_raised", blame)


@fault()
def a_failed_task_is_taken_for_done(patch: Patch) -> None:
    def forgive(original: Any, self: Machine, event: TasksFinished) -> None:
        original(self, event._replace(failures=event.failures[:-1]))

    _changed(patch, Machine, "_tasks_finished", forgive)


@fault()
def a_failure_is_not_listed(patch: Patch) -> None:
    def unlisted(original: Any, self: Roots) -> Any:
        return tuple(result._replace(failures=result.failures[1:]) for result in original(self))

    _changed(patch, Roots, "take_results", unlisted)


@fault()
def a_generators_new_attempt_releases_everything_again(patch: Patch) -> None:
    _changed(patch, Machine, "_released", lambda original, self, call, entry: (0,))


# ----------------------------------------------------------------------------------------------- blocks


@fault()
def a_block_is_released_while_it_is_needed(patch: Patch) -> None:
    def early(original: Any, self: Any, state: Any, chunk: Any, hint: int) -> None:
        done = chunk.done[self.slot] & below(chunk.size)
        if done:
            state.release_early(chunk, self.slot, done)

    _changed(patch, rules.EarlyRelease, "update", early)


@fault()
def a_block_is_never_released(patch: Patch) -> None:
    _changed(patch, Machine, "free_items", lambda original, *args: None)


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    install, start = FAULTS[name]
    install(monkeypatch)

    @looked_for(name, EXAMPLES, start=start, shrink=False)
    @given(sketches(), st.integers(0, 2**16))
    def search(sketch: Sketch, order: int) -> None:
        twin = Twin(Random(order), deaths=1)
        check(sketch, twin, span=3)
        assert twin.blocks_left == 0

    # whatever an engine with a fault runs into: a broken invariant, a difference, a lost block
    found = (InternalError, AssertionError, LookupError, ValueError, TypeError, AttributeError)
    with pytest.raises(found):
        search()
