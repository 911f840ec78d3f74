"""Batches of one group each, driven by hand: what shares one, which goes first, and where groups are told."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Hashable, Sequence
from functools import reduce
from operator import and_
from typing import Any

import fanfold as ff
from fanfold.engine.bits import bit_positions
from fanfold.engine.grouped import PASSED_OVER
from fanfold.engine.groups import groups_reader
from fanfold.engine.invariants import known
from fanfold.protocol import (
    NO_GROUP,
    ChildrenReleased,
    RootsAdmitted,
    Rows,
    RunBatch,
    SourceExhausted,
    StreamRows,
    TasksFinished,
)
from tests.pipelines import compiled, pages, read
from tests.plans import fan_out_plan
from tests.scripted import Script


def told(groups: Sequence[Hashable]) -> tuple[tuple[Hashable, int], ...]:
    """By group, its rows."""
    return tuple(
        (group, sum(1 << row for row, other in enumerate(groups) if other == group))
        for group in dict.fromkeys(groups)
    )


def grouping(batch_size: int = 4, **options: Any) -> Script:
    """The pages' call, whose index is 2, has batches of one group each."""
    plan = fan_out_plan(batch_size=batch_size)
    opened, look, join = plan.stages
    look = dataclasses.replace(look, **{"batch_by": len, "probe": 10**6, **options})
    return Script(dataclasses.replace(plan, stages=(opened, look, join)))


def release(
    script: Script, batch: RunBatch, groups: Sequence[Hashable], counts: Sequence[int] = ()
) -> None:
    """Children of these groups come, all of one document unless ``counts`` says whose they are."""
    rows = StreamRows(2, Rows(object(), len(groups)), groups=((2, (), told(groups)),))
    event = ChildrenReleased(batch.batch, 1, 0, tuple(counts) or (len(groups),), (rows,))
    script.event(event)


def looks(script: Script) -> list[RunBatch]:
    return [batch for batch in script.dispatch() if batch.call == 2]


def offsets(script: Script, batch: RunBatch) -> list[int]:
    return [
        o
        for _, bits in script.core.machine.batches[batch.batch].entries
        for o in bit_positions(bits)
    ]


def all_batches(script: Script, groups: Sequence[Hashable]) -> list[str]:
    """The batches that are made of children of these groups, one after the other."""
    script.admit(1)
    (opened,) = script.dispatch()
    release(script, opened, groups)
    script.seal(opened, [0])
    script.finish(opened)
    found: list[str] = []
    while batches := looks(script):
        for batch in batches:
            found.append("".join(str(groups[o]) for o in offsets(script, batch)))
            script.finish(batch)
    return found


def test_only_equal_groups_share_a_batch_and_the_oldest_goes_first() -> None:
    assert all_batches(grouping(), "abbaab") == ["aaa", "bbb"]


def test_a_full_group_goes_before_an_older_one_that_is_not_full() -> None:
    assert all_batches(grouping(), "abbcbbc") == ["bbbb", "a", "cc"]


def test_a_group_that_is_not_full_is_passed_over_a_few_times_only() -> None:
    found = all_batches(grouping(batch_size=2), "a" + "b" * 40)
    assert found.index("a") == PASSED_OVER


def test_items_of_no_group_go_alone() -> None:
    groups = ["a", NO_GROUP, "a", NO_GROUP]
    script = grouping()
    assert [len(batch) for batch in all_batches(script, groups)] == [
        2,
        len("Ellipsis"),
        len("Ellipsis"),
    ]


def test_a_group_has_batches_of_limited_size_too() -> None:
    script = grouping(batch_size=8, batch_bytes=100)
    script.admit(1)
    (opened,) = script.dispatch()
    rows = StreamRows(
        2, Rows("block", 6), sizes=(60, 50, 30, 30, 80, 10), groups=((2, (), told("abaabb")),)
    )
    script.event(ChildrenReleased(opened.batch, 1, 0, (6,), (rows,)))
    batches = looks(script)
    assert [offsets(script, batch) for batch in batches] == [[0, 2], [1, 5]]


def test_items_of_a_lost_batch_come_back_to_their_group() -> None:
    script = grouping()
    script.admit(1)
    (opened,) = script.dispatch()
    release(script, opened, "aabb")
    (first,) = looks(script)
    script.core.machine.lose_batch(first.batch, running=False, reason="")
    entries, count = script.core.machine.queues[2].take(4)
    assert (count, entries[0][1]) == (2, 0b0011)
    entries, count = script.core.machine.queues[2].take(4)
    assert (count, entries[0][1]) == (2, 0b1100)
    assert script.core.machine.queues[2].take(4) == ([], 0)
    assert script.core.machine.queues[2].count == 0


def test_what_the_probe_holds_back_waits_for_other_groups_as_well() -> None:
    script = grouping(batch_size=4, probe=1)
    script.admit(2)
    (opened,) = script.dispatch()
    release(script, opened, "aab", counts=(2, 1))
    batches = looks(script)
    assert [offsets(script, batch) for batch in batches] == [[0]]
    script.finish(batches[0])
    assert [offsets(script, batch) for batch in looks(script)] == [[1]]


# --------------------------------------------------------------------------------- where they are told

grouped = ff.stage(lambda *columns: columns[0], name="grouped", batch_size=8, batch_by=len)


def groups_of(
    function: Callable[..., Any], pages_of: Sequence[Sequence[Hashable]]
) -> dict[Hashable, int]:
    """The groups of the call ``grouped``'s items: documents are of the groups A, B, …, and pages as given."""
    plan = compiled(function)
    script = Script(plan)
    names = "ABC"[: len(pages_of)]

    def rows(stream: Any, groups: Sequence[Hashable]) -> StreamRows:
        reports = tuple((call, path, told(groups)) for call, path in stream.groups)
        return StreamRows(stream.port, Rows(object(), len(groups)), groups=reports)

    script.event(RootsAdmitted(tuple(names), (rows(plan.sources[0].stream, names),)))
    script.event(SourceExhausted())
    calls = {call.name: call for call in plan.calls()}
    (expansion,) = plan.streams[calls["pages"].index].expansions
    first = 0
    while batches := [b for b in script.dispatch() if b.call == calls["pages"].index]:
        for batch in batches:
            mine = pages_of[first : first + batch.count]
            first += batch.count
            made = tuple(rows(s, [g for some in mine for g in some]) for s in expansion.streams)
            script.event(
                ChildrenReleased(batch.batch, expansion.node, 0, tuple(map(len, mine)), made)
            )
            script.seal(batch, range(batch.count), node=expansion.node)
            script.event(TasksFinished(batch.batch, 0, batch.count, ()))
            script.end(batch)
    machine, node = script.core.machine, calls["grouped"]
    read_groups = groups_reader(machine.program, node.index)
    slots = [machine.program.port[item.port] for item in node.inputs]
    (found,) = [
        dict(read_groups(chunk, ready))
        for chunk, items in known(machine)
        if chunk.level == node.level
        and (ready := reduce(and_, (chunk.done[slot] for slot in slots), items))
    ]
    return found


def test_a_field_of_a_page_tells_the_group() -> None:
    def pipeline(document: ff.Port[Any]) -> Any:
        page = ff.expand(pages(document), "page")
        return ff.gather(grouped(page["image"], page["number"]))

    plan = compiled(pipeline)
    (expansion,) = plan.streams[0].expansions
    (call,) = [call.index for call in plan.calls() if call.name == "grouped"]
    assert expansion.streams[0].groups == ((call, ("image",)),)
    assert groups_of(pipeline, [["x", "y"], [], ["x"]]) == {"x": 0b101, "y": 0b010}


def test_a_broadcast_value_tells_the_group_of_all_children() -> None:
    def pipeline(document: ff.Port[Any]) -> Any:
        page = ff.expand(pages(document), "page")
        return ff.gather(grouped(document, page))

    assert groups_of(pipeline, [["x", "y"], [], ["x"]]) == {"A": 0b011, "C": 0b100}


def test_a_merge_tells_the_group_of_what_it_took() -> None:
    def pipeline(document: ff.Port[Any]) -> Any:
        page = ff.expand(pages(document), "page")
        return ff.gather(grouped(ff.merge(read(page), page["image"], default="none")))

    plan = compiled(pipeline)
    call = {call.name: call.index for call in plan.calls()}
    (item,) = plan.streams[call["read"]].items
    assert item.groups == ((call["grouped"], ()),)
    (expansion,) = plan.streams[call["pages"]].expansions
    assert expansion.streams[0].groups == ((call["grouped"], ("image",)),)


def test_a_merge_tells_no_group_of_what_it_did_not_take() -> None:
    def pipeline(document: ff.Port[Any]) -> Any:
        page = ff.expand(pages(document), "page")
        kept = ff.filter(page["image"], page["good"])  # no mask was told: all are left out
        return ff.gather(grouped(ff.merge(kept, ff.broadcast(document, like=page))))

    assert groups_of(pipeline, [["x", "y"]]) == {"A": 0b11}


def test_the_default_of_a_merge_is_a_group() -> None:
    def pipeline(document: ff.Port[Any]) -> Any:
        page = ff.expand(pages(document), "page")
        kept = ff.filter(page["image"], page["good"])
        return ff.gather(grouped(ff.merge(kept, default="none"), page))

    groups = groups_of(pipeline, [["x", "y"]])  # no mask was told: all are left out
    assert list(groups.values()) == [0b11]


def test_the_defaults_of_two_merges_do_not_share_a_batch() -> None:
    seen: list[list[object]] = []

    def never(n: int) -> bool:
        return False

    def odd(n: int) -> bool:
        return n % 2 == 1

    def noted(values: list[object]) -> list[object]:
        seen.append(values)
        return values

    @ff.pipeline(level="document")
    def pipeline(n: ff.Port[int]) -> ff.Port[Any]:
        nothing = ff.filter(n, ff.stage(never)(n))
        text, number = ff.merge(nothing, default="none"), ff.merge(nothing, default=0)
        either = ff.merge(ff.filter(text, ff.stage(odd)(n)), number)
        return ff.stage(noted, batch_size=4, batch_by=type)(either)

    results = pipeline.stream(range(8), backend="inline")
    assert [result.value for result in results] == [0, "none"] * 4
    assert all(len(set(map(type, batch))) == 1 for batch in seen), seen
    assert max(map(len, seen)) > 1
