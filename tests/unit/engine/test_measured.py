"""Batches of limited size, driven by hand: what shares one, and what an item's inputs weigh."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from functools import reduce
from operator import and_
from typing import Any

import fanfold as ff
from fanfold.engine.bits import bit_positions
from fanfold.engine.invariants import known
from fanfold.engine.weights import weigher
from fanfold.protocol import (
    ChildrenReleased,
    RootsAdmitted,
    Rows,
    SourceExhausted,
    StreamRows,
    TasksFinished,
)
from tests.pipelines import compiled, pages, read
from tests.plans import fan_out_plan
from tests.scripted import Script

LIMIT_BYTES = 100


def limited(batch_size: int = 4, replicas: int = 1, probe: int = 10**6) -> Script:
    """The pages' call, whose index is 2, has batches of limited size."""
    plan = fan_out_plan(batch_size=batch_size)
    opened, look, join = plan.stages
    look = dataclasses.replace(look, batch_bytes=LIMIT_BYTES, probe=probe)
    return Script(dataclasses.replace(plan, stages=(opened, look, join)), replicas=replicas)


def release(script: Script, batch: Any, sizes: Sequence[int], counts: Sequence[int] = ()) -> None:
    """Children of these sizes come, all of one document unless ``counts`` says whose they are."""
    count = sum(counts) or len(sizes)
    stream = StreamRows(2, Rows(object(), count), sizes=tuple(sizes))
    script.event(ChildrenReleased(batch.batch, 1, 0, tuple(counts) or (count,), (stream,)))


def sizes_sent(script: Script, sizes: Sequence[int], **options: Any) -> list[list[float]]:
    """The batches that are made of children of these sizes, one after the other."""
    script = limited(**options) if script is None else script
    script.admit(1)
    (opened,) = script.dispatch()
    release(script, opened, sizes)
    script.seal(opened, [0])
    script.finish(opened)
    sent: list[list[float]] = []
    while batches := [batch for batch in script.dispatch() if batch.call == 2]:
        for batch in batches:
            entries = script.core.machine.batches[batch.batch].entries
            sent.append([sizes[o] for _, bits in entries for o in bit_positions(bits)])
            script.finish(batch)
    return sent


def test_a_batch_ends_where_it_would_be_too_large() -> None:
    assert sizes_sent(limited(), [40, 40, 20, 1, 99, 1]) == [[40, 40, 20], [1, 99], [1]]


def test_as_many_as_fit_exactly_share_a_batch() -> None:
    assert sizes_sent(limited(), [25] * 9) == [[25] * 4, [25] * 4, [25]]
    assert sizes_sent(limited(batch_size=8), [25] * 9) == [[25] * 4, [25] * 4, [25]]


def test_small_items_behind_a_large_one_fill_the_batch_and_the_large_one_is_next() -> None:
    assert sizes_sent(limited(), [70, 60, 10, 50, 10, 5, 20]) == [[70, 10, 10, 5], [60, 20], [50]]


def test_what_was_passed_over_comes_before_what_was_not_looked_at() -> None:
    script = limited()
    script.admit(4)
    (opened,) = script.dispatch()
    for counts, sizes in [((2,), [70, 60]), ((0, 4), [10, 10, 5, 20]), ((0, 0, 1), [30])]:
        release(script, opened, sizes, counts)
    _, second = script.dispatch()
    entries = script.core.machine.batches[second.batch].entries
    told = [chunk.row_sizes[2][0][1] for chunk, _ in entries if chunk.row_sizes is not None]
    assert told == [(70, 60), (10, 10, 5, 20)]


def test_an_item_above_the_limit_goes_alone() -> None:
    assert sizes_sent(limited(), [10, 500, 10, 101, 10]) == [[10, 10, 10], [500], [101]]


def test_items_that_are_alike_are_told_of_by_one_number() -> None:
    script = limited(batch_size=8)
    script.admit(1)
    (opened,) = script.dispatch()
    stream = StreamRows(2, Rows("block", 9), sizes=(30,))
    script.event(ChildrenReleased(opened.batch, 1, 0, (9,), (stream,)))
    assert [batch.count for batch in script.dispatch()] == [3, 3]


def test_sizes_are_those_of_the_items_own_rows() -> None:
    script = limited()
    script.admit(3)
    (opened,) = script.dispatch()
    release(script, opened, [5, 90, 10], counts=(1, 0, 2))
    assert [batch.count for batch in script.dispatch()][:1] == [2]


def test_a_batch_is_full_when_it_can_hold_no_more() -> None:
    script = limited(batch_size=64)
    script.admit(2)
    (opened,) = script.dispatch()
    release(script, opened, [60, 30, 60])
    (first,) = script.dispatch()  # the next one could take more, so it is not sent ahead yet
    assert first.count == 2
    release(script, opened, [30, 60])
    (second,) = script.dispatch()
    assert second.count == 2


def test_the_probe_holds_back_no_less_than_without_a_limit() -> None:
    script = limited(batch_size=4, probe=2)
    script.admit(2)
    (opened,) = script.dispatch()
    release(script, opened, [10] * 8, counts=(4, 4))
    batch, _all_that_is_left = script.dispatch()
    entries = script.core.machine.batches[batch.batch].entries
    assert [list(bit_positions(bits)) for _, bits in entries] == [[0, 1, 4, 5]]


def test_items_of_a_lost_batch_come_back_first() -> None:
    script = limited()
    script.admit(1)
    (opened,) = script.dispatch()
    release(script, opened, [60, 60, 40])
    (batch,) = script.dispatch()
    assert batch.count == 2
    script.core.machine.lose_batch(batch.batch, running=False, reason="")
    entries, count = script.core.machine.queues[2].take(4)
    assert (count, [list(bit_positions(bits)) for _, bits in entries]) == (2, [[0, 2]])


# ------------------------------------------------------------------------------------------- weights

measured = ff.stage(lambda *columns: columns[0], name="measured", batch_size=8, batch_bytes=50)


def weights(
    function: Callable[..., Any],
    *,
    documents: Sequence[int],
    pages_of: Sequence[Sequence[int]],
    done: Sequence[str] = (),
) -> list[list[float]]:
    """What the items of the call ``measured`` weigh, by chunk, after documents and pages came.

    Args:
        function: The pipeline.
        documents: Their sizes.
        pages_of: By document, the sizes of its pages.
        done: Calls of the stage ``read`` to run to their ends; what they return weighs 7.
    """
    plan = compiled(function)
    script = Script(plan)
    stream = plan.sources[0].stream
    keys = tuple(map(str, range(len(documents))))
    sizes = tuple(documents) if stream.sized else ()
    rows = StreamRows(stream.port, Rows("documents", len(keys)), sizes=sizes)
    script.event(RootsAdmitted(keys, (rows,)))
    script.event(SourceExhausted())
    calls = {call.name: call for call in plan.calls()}
    (expansion,) = plan.streams[calls["pages"].index].expansions
    first = 0
    while batches := [b for b in script.dispatch() if b.call == calls["pages"].index]:
        for batch in batches:
            mine = pages_of[first : first + batch.count]
            first += batch.count
            told = tuple(size for some in mine for size in some)
            made = tuple(
                StreamRows(s.port, Rows(object(), len(told)), sizes=told if s.sized else ())
                for s in expansion.streams
            )
            script.event(
                ChildrenReleased(batch.batch, expansion.node, 0, tuple(map(len, mine)), made)
            )
            script.seal(batch, range(batch.count), node=expansion.node)
            script.event(TasksFinished(batch.batch, 0, batch.count, ()))
            script.end(batch)
    for name in done:
        for batch in [b for _, b in script.running if b.call == calls[name].index] + [
            b for b in script.dispatch() if b.call == calls[name].index
        ]:
            (item,) = plan.streams[batch.call].items
            made = (StreamRows(item.port, Rows(object(), batch.count), sizes=(7,)),)
            script.event(TasksFinished(batch.batch, 0, batch.count, made))
            script.end(batch)
    machine, node = script.core.machine, calls["measured"]
    weigh = weigher(machine.program, node.index)
    slots = [machine.program.port[item.port] for item in node.inputs]
    return [
        weigh(chunk, ready)
        for chunk, items in known(machine)
        if chunk.level == node.level
        and (ready := reduce(and_, (chunk.done[slot] for slot in slots), items))
    ]


def test_fields_of_one_value_weigh_once() -> None:
    def pipeline(document: ff.Port[Any]) -> Any:
        page = ff.expand(pages(document), "page")
        return ff.gather(measured(page["image"], page["number"]))

    found = weights(pipeline, documents=[1], pages_of=[[5, 6, 7]])
    assert found == [[5, 6, 7]]


def test_a_broadcast_value_weighs_once_for_all_siblings() -> None:
    def pipeline(document: ff.Port[Any]) -> Any:
        page = ff.expand(pages(document), "page")
        return ff.gather(measured(page, document))

    found = weights(pipeline, documents=[100, 200], pages_of=[[5, 6], [7, 8]])
    assert found == [[105, 6, 207, 8]]


def test_a_list_weighs_what_is_in_it() -> None:
    def pipeline(document: ff.Port[Any]) -> Any:
        page = ff.expand(pages(document), "page")
        return measured(ff.gather(page))

    assert weights(pipeline, documents=[1, 1, 1], pages_of=[[5, 6], [], [7]]) == [[11, 0, 7]]


def test_a_record_weighs_its_parts_and_a_merge_what_it_took() -> None:
    def pipeline(document: ff.Port[Any]) -> Any:
        page = ff.expand(pages(document), "page")
        return ff.gather(measured(ff.record(page=page, text=ff.merge(read(page), page))))

    found = weights(pipeline, documents=[1], pages_of=[[5, 6]], done=["read"])
    assert found == [[12, 13]]


def test_only_what_is_read_by_such_calls_is_measured() -> None:
    def pipeline(document: ff.Port[Any]) -> Any:
        page = ff.expand(pages(document), "page")
        return ff.gather(measured(page["image"])), ff.gather(read(page))

    plan = compiled(pipeline)
    call = {call.name: call.index for call in plan.calls()}
    assert not plan.sources[0].stream.sized
    assert [s.sized for e in plan.streams[call["pages"]].expansions for s in e.streams] == [True]
    assert not any(item.sized for item in plan.streams[call["read"]].items)
