"""What cannot be stored fails its task and nobody else's, and no block is forgotten."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from fanfold.backends.inline import MemoryValues
from fanfold.backends.values import Unstorable
from fanfold.failures import Failure
from fanfold.protocol import ChildrenReleased, Rows
from tests.backends import Rig, call_plan, refs_of

CHILDREN = [[(0, ())]]


class Picky(MemoryValues):
    """Refuses the value ``"bad"``, also inside of lists and in second place of pairs."""

    def put(self, port: int, rows: Sequence[Any]) -> Rows:
        bad = [
            (i, Failure(kind="unpicklable", message=f"row {i}"))
            for i, row in enumerate(rows)
            if row == "bad" or (isinstance(row, list) and "bad" in row)
        ]
        if bad:
            raise Unstorable(bad)
        return super().put(port, rows)


def picky_rig(function: Any, **options: Any) -> Rig:
    rig = Rig(call_plan(function, **options))
    picky = Picky()
    rig.values = picky
    rig.runner._values = picky
    return rig


def test_only_the_task_of_a_value_that_cannot_be_stored_fails():
    told = picky_rig(lambda i: "bad" if i == 1 else i).run([0, 1, 2])
    assert told.values == {0: 0, 2: 2}
    assert told.failures == {1: ("unpicklable", "row 1")}


def test_rows_are_matched_to_tasks_though_others_failed_before():
    def function(i: int) -> Any:
        if i == 0:
            raise ValueError("first")
        return "bad" if i == 2 else i

    told = picky_rig(function).run([0, 1, 2, 3])
    assert told.values == {1: 1, 3: 3}
    assert told.failures == {0: ("raised", "ValueError: first"), 2: ("unpicklable", "row 1")}


def test_a_child_that_cannot_be_stored_fails_its_task_with_all_its_children():
    plan = {"expand": CHILDREN, "items": False}
    told = picky_rig(lambda i: ["a", "bad", "c"] if i == 1 else ["x"], **plan).run([0, 1, 2])
    assert [told.children_of(t) for t in range(3)] == [["x"], [], ["x"]]
    assert told.sealed == {1: [0, 2]}
    assert told.failures == {1: ("unpicklable", "row 2")}


def test_blocks_that_were_stored_before_the_refusal_are_taken_back():
    rig = picky_rig(
        lambda i: (["a"], ["bad"] if i == 1 else ["b"]),
        outputs=2,
        expand=[[(0, ()), (1, ())]],
    )
    told = rig.run([0, 1])
    assert told.failures[1][0] == "unpicklable"
    assert told.children_of(0, stream=1) == ["b"] and told.children_of(1) == []
    known = {0, *refs_of(told.events)}  # block 0 holds the inputs
    assert set(rig.values.blocks) == known, "a block that nobody was told of would never be freed"


def test_a_generator_stops_where_a_child_cannot_be_stored():
    drawn: list[int] = []

    def numbers(stop: int) -> Iterator[Any]:
        for i in range(stop):
            drawn.append(i)
            yield "bad" if i == 100 else i

    told = picky_rig(numbers, expand=CHILDREN, items=False).run([5_000, 2])
    assert told.failures[0][0] == "unpicklable"
    released = told.children_of(0)
    assert released == list(range(len(released))) and len(released) <= 100
    assert len(drawn) < 5_000, "the rest would have wrong ordinals"
    assert told.children_of(1) == [0, 1] and told.sealed == {1: [1]}


def test_a_generator_that_raised_keeps_its_children_beside_one_that_cannot_be_stored():
    def numbers(stop: int) -> Iterator[Any]:
        yield "a"
        if stop == 0:
            raise ValueError("broke")
        yield "bad"

    told = picky_rig(numbers, expand=CHILDREN, items=False).run([0, 1])
    assert told.children_of(0) == ["a"] and told.children_of(1) == []
    assert {t: kind for t, (kind, _) in told.failures.items()} == {0: "raised", 1: "unpicklable"}


def test_a_generator_that_raised_after_a_child_that_cannot_be_stored_fails_once():
    def numbers(_: int) -> Iterator[Any]:
        yield "bad"
        raise ValueError("broke")

    told = picky_rig(numbers, expand=CHILDREN, items=False).run([0])
    assert told.failures == {0: ("raised", "ValueError: broke")}
    assert not told.of(ChildrenReleased)
