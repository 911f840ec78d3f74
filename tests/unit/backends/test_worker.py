"""A stage's runner over values in memory: what users' functions take, return, yield and raise."""

from __future__ import annotations

import io
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from fanfold.errors import UsageError
from fanfold.failures import ItemFailure, ParentFailure
from fanfold.plan import Control, FieldCheck
from fanfold.protocol import BatchFinished, ChildrenReleased, TasksFinished
from tests.backends import Rig, Told, call_plan

CHILDREN = [[(0, ())]]
"""The first output is expanded."""


def double(x: int) -> int:
    return 2 * x


def doubles(xs: list[int]) -> list[int]:
    return [2 * x for x in xs]


def add(x: int, y: int, *, z: int = 0, factor: int = 1) -> int:
    return (x + y + z) * factor


def upto(n: int) -> list[int]:
    return list(range(n))


def counting(n: int) -> Iterator[int]:
    yield from range(n)


def fails_at(stop: int, error: BaseException) -> Callable[[int], Iterator[int]]:
    def breaking(n: int) -> Iterator[int]:
        for i in range(n):
            if i == stop:
                raise error
            yield i

    return breaking


class Scale:
    made = 0

    def __init__(self, by: int) -> None:
        type(self).made += 1
        self.by = by

    def __call__(self, x: int) -> int:
        return self.by * x

    def up(self, x: int) -> int:
        return self.by + x


# ------------------------------------------------------------------------------ items and batches


def test_items_are_run_one_by_one_and_reported_together():
    told = Rig(call_plan(double)).run([1, 2, 3])
    assert told.values == {0: 2, 1: 4, 2: 6}
    assert [type(e) for e in told.events] == [TasksFinished, BatchFinished]


def test_a_batched_stage_gets_lists():
    told = Rig(call_plan(doubles, batch_size=4)).run([1, 2, 3])
    assert told.values == {0: 2, 1: 4, 2: 6}


def test_inputs_by_position_and_by_keyword_and_static_arguments():
    plan = call_plan(add, inputs=(None, None, "z"), static={"factor": 10})
    told = Rig(plan).run([1, 2], [10, 20], [100, 200])
    assert told.values == {0: 1110, 1: 2220}


def test_a_class_is_constructed_once_and_entered_where_told():
    Scale.made = 0
    rig = Rig(call_plan(Scale, args=(3,)))
    assert [rig.run([2]).values, rig.run([5]).values] == [{0: 6}, {0: 15}]
    assert Scale.made == 1
    assert Rig(call_plan(Scale, args=(3,), method="up")).run([2]).values == {0: 5}


@pytest.mark.parametrize("kind", [tuple, deque, lambda xs: range(len(xs))])
def test_any_sequence_of_the_right_length_is_a_batchs_results(kind):
    told = Rig(call_plan(lambda xs: kind(xs), batch_size=4)).run([0, 1])
    assert told.values == {0: 0, 1: 1}


def test_an_array_is_a_batchs_results():
    numpy = pytest.importorskip("numpy")
    told = Rig(call_plan(lambda xs: numpy.array(xs) * 2, batch_size=4)).run([1, 2])
    assert told.values == {0: 2, 1: 4}


@pytest.mark.parametrize(
    ("returned", "got"),
    [
        ([1], "got 1"),
        ([1, 2, 3], "got 3"),
        (None, "got a NoneType"),
        ("ab", "got a str"),
        ({1: 2, 3: 4}, "got a dict"),
        ({1, 2}, "got a set"),
        (iter([1, 2]), "got a list_iterator"),
    ],
)
def test_results_of_the_wrong_shape_are_nobodys_in_a_batch_and_the_items_own_alone(returned, got):
    rig = Rig(call_plan(lambda xs: returned, batch_size=4))
    told = rig.run([1, 2])
    assert told.raised is not None
    kind, message = told.raised
    assert kind == "contract" and got in message and "its batch, here 2," in message
    if returned != [1]:
        alone = rig.run([1])
        assert alone.raised is None and alone.failures[0][0] == "contract"


def test_several_outputs_are_tuples_of_that_length():
    values = {0: ("a", 1), 1: ["b", 2], 2: ("c",), 3: "no", 4: ("d", 4)}
    told = Rig(call_plan(lambda i: values[i], outputs=2)).run(list(range(5)))
    assert told.values == {0: ["a", 1], 4: ["d", 4]}
    assert {t: f[0] for t, f in told.failures.items()} == dict.fromkeys((1, 2, 3), "contract")
    assert "a tuple of 1" in told.failures[2][1] and "a str" in told.failures[3][1]


# ------------------------------------------------------------------------------ failures


@pytest.mark.parametrize("error", [ValueError("bad"), SystemExit(3), KeyboardInterrupt("no")])
def test_an_item_that_raises_fails_by_itself(error):
    def picky(x: int) -> int:
        if x == 2:
            raise error
        return x

    told = Rig(call_plan(picky)).run([1, 2, 3])
    assert told.values == {0: 1, 2: 3}
    assert told.failures == {1: ("raised", f"{type(error).__name__}: {error}")}


def test_an_item_failure_raised_or_returned_is_declared():
    def picky(x: int) -> Any:
        if x == 1:
            raise ItemFailure("one")
        return ItemFailure("two") if x == 2 else x

    told = Rig(call_plan(picky)).run([0, 1, 2])
    assert told.values == {0: 0}
    assert told.failures == {1: ("declared", "one"), 2: ("declared", "two")}


def test_an_item_failure_in_an_items_place_of_a_batch_fails_that_task():
    told = Rig(call_plan(lambda xs: [xs[0], ItemFailure("no"), xs[2]], batch_size=4)).run([1, 2, 3])
    assert told.values == {0: 1, 2: 3}
    assert told.failures == {1: ("declared", "no")}


def test_an_item_failure_inside_a_tuple_of_outputs_fails_the_task():
    told = Rig(call_plan(lambda x: (x, ItemFailure("no")), outputs=2)).run([1])
    assert told.failures == {0: ("declared", "no")}


def scopes(told: Told) -> dict[int, tuple[str, str, str]]:
    """By task that failed: scope, kind and message."""
    return {
        task: (failure.scope, failure.kind, failure.message)
        for event in told.of(TasksFinished)
        for task, failure in event.failures
    }


PARENT = ("parent", "declared", "no")
ITEM = ("item", "declared", "bad")


def test_a_parent_failure_raised_or_returned_says_its_scope():
    def sometimes(x: int) -> Any:
        if x == 1:
            raise ParentFailure("no")
        return ParentFailure("no") if x == 2 else ItemFailure("bad") if x == 3 else x

    told = Rig(call_plan(sometimes)).run([0, 1, 2, 3])
    assert scopes(told) == {1: PARENT, 2: PARENT, 3: ITEM} and told.values == {0: 0}
    batched = Rig(call_plan(lambda xs: [ParentFailure("no"), 1], batch_size=2)).run([0, 1])
    assert scopes(batched) == {0: PARENT} and batched.values == {1: 1}


def test_a_parent_failure_outranks_an_item_failure_among_outputs_and_children():
    def outputs(x: int) -> Any:
        return ItemFailure("bad"), ValueError("q"), ParentFailure("no")

    assert scopes(Rig(call_plan(outputs, outputs=3)).run([0])) == {0: PARENT}

    def children(x: int) -> Any:
        return [1, ItemFailure("bad"), ParentFailure("no")]

    told = Rig(call_plan(children, expand=CHILDREN)).run([0])
    assert scopes(told) == {0: PARENT} and told.children == {}

    def aligned(x: int) -> Any:
        return [ItemFailure("bad"), 1], [1, ParentFailure("no")]

    told = Rig(call_plan(aligned, outputs=2, expand=[[(0, ()), (1, ())]])).run([0])
    assert scopes(told) == {0: PARENT}


@pytest.mark.parametrize("yielded", [True, False])
def test_a_parent_failure_of_a_generator_comes_after_what_it_gave(yielded):
    def halting(n: int) -> Iterator[Any]:
        yield 1
        if yielded:
            yield ParentFailure("no")
        raise ParentFailure("no")

    told = Rig(call_plan(halting, expand=CHILDREN)).run([0])
    assert told.children_of(0) == [1] and told.sealed == {}
    assert scopes(told) == {0: PARENT}


RETURNED = "a ValueError was returned as a value; raise it, or return ff.ItemFailure"


def test_an_exception_in_an_items_place_of_a_batch_is_no_value():
    told = Rig(call_plan(lambda xs: [xs[0], ValueError("q"), xs[2]], batch_size=4)).run([1, 2, 3])
    assert told.values == {0: 1, 2: 3}
    assert told.failures == {1: ("contract", RETURNED)}


@pytest.mark.parametrize("batch_size", [None, 2])
def test_an_exception_inside_a_tuple_of_outputs_is_no_value(batch_size):
    def two(x: Any) -> Any:
        return (x, ValueError("q")) if batch_size is None else [(x[0], ValueError("q"))]

    told = Rig(call_plan(two, outputs=2, batch_size=batch_size)).run([1])
    assert told.failures == {0: ("contract", RETURNED)}


def test_an_exception_that_one_item_gave_is_no_value():
    assert Rig(call_plan(lambda x: KeyError(x))).run([1]).failures[0][0] == "contract"


@pytest.mark.parametrize(
    ("child", "told_as"),
    [(ItemFailure("no"), ("declared", "no")), (ValueError("q"), ("contract", RETURNED))],
)
@pytest.mark.parametrize("batch_size", [None, 4])
@pytest.mark.parametrize("wrap", [list, tuple])
def test_a_failure_among_children_fails_the_task_that_made_them(child, told_as, batch_size, wrap):
    def make(x: Any) -> Any:
        made = [wrap([n, child] if n == 1 else [n]) for n in (x if batch_size else [x])]
        return made if batch_size else made[0]

    told = Rig(call_plan(make, batch_size=batch_size, expand=CHILDREN)).run([0, 1, 2])
    assert told.failures == {1: told_as}
    assert [told.children_of(t) for t in range(3)] == [[0], [], [2]]
    assert told.sealed == {1: [0, 2]}


def test_a_failure_among_the_children_of_a_field_fails_the_task():
    plan = call_plan(lambda x: {"parts": [x, ItemFailure("no")]}, expand=[[(0, ("parts",))]])
    assert Rig(plan).run([1]).failures == {0: ("declared", "no")}


@pytest.mark.parametrize("error", [ValueError("bad"), ItemFailure("bad")])
def test_a_batch_that_raises_ends_with_that_and_a_batch_of_one_with_its_items_failure(error):
    def guilty(xs: list[int]) -> list[int]:
        raise error

    rig = Rig(call_plan(guilty, batch_size=4))
    many, one = rig.run([1, 2]), rig.run([1])
    kind = "declared" if isinstance(error, ItemFailure) else "raised"
    assert many.raised is not None and many.raised[0] == kind
    assert len(many.events) == 1, "nothing else is told of it"
    assert one.raised is None and one.failures[0][0] == kind
    assert one.of(BatchFinished)


def test_exceptions_that_are_not_contained_reach_the_caller():
    rig = Rig(call_plan(double), contain=(ItemFailure,))
    with pytest.raises(TypeError):
        rig.run([None])
    rig = Rig(call_plan(lambda xs: None, batch_size=2), contain=(ItemFailure,))
    with pytest.raises(UsageError, match=r"FF407 stage '<lambda>'.*got a NoneType"):
        rig.run([1])


# ------------------------------------------------------------------------------ children


def test_lists_become_children_told_in_one_event():
    told = Rig(call_plan(upto, expand=CHILDREN)).run([2, 0, 3])
    assert [told.children_of(t) for t in range(3)] == [[0, 1], [], [0, 1, 2]]
    assert len(told.of(ChildrenReleased)) == 1
    assert told.sealed == {1: [0, 1, 2]}
    assert told.values == {0: [0, 1], 1: [], 2: [0, 1, 2]}


@pytest.mark.parametrize("batch_size", [None, 8])
@pytest.mark.parametrize("outputs", [tuple, deque, list])
def test_any_sequence_is_children(batch_size, outputs):
    function = (
        (lambda n: outputs(range(n)))
        if batch_size is None
        else (lambda ns: [outputs(range(n)) for n in ns])
    )
    told = Rig(call_plan(function, batch_size=batch_size, expand=CHILDREN)).run([2, 0, 1])
    assert [told.children_of(t) for t in range(3)] == [[0, 1], [], [0]]
    assert told.sealed == {1: [0, 1, 2]}


def test_any_iterator_is_children_but_not_a_file():
    with open(__file__) as text, open(__file__, "rb") as binary:
        made: dict[str, Any] = {
            "text": text,
            "binary": binary,
            "map": map(str, [1, 2]),
            "zip": zip("a", "b", strict=True),
        }
        made["memory"] = io.BytesIO(b"a\nb")
        told = Rig(call_plan(made.get)).run(list(made))
        opened = Rig(call_plan(made.get, expand=CHILDREN)).run(["text"])
    assert [told.values[2], told.values[3]] == [["1", "2"], [("a", "b")]], (
        "read as a whole it is a list"
    )
    assert told.values[4].getvalue() == b"a\nb", "as in a batch or beside other outputs"
    for task, kind in ((0, "TextIOWrapper"), (1, "BufferedReader")):
        why, message = told.failures[task]
        assert why == "contract" and f"a {kind}, an open file" in message
        assert "return what is in it (file.read()" in message
    assert opened.failures[0][0] == "contract"


def test_an_arrays_first_axis_is_children():
    numpy = pytest.importorskip("numpy")
    array = numpy.arange(6).reshape(3, 2)
    told = Rig(call_plan(lambda _: array, expand=CHILDREN)).run([0])
    assert [child.tolist() for child in told.children_of(0)] == [[0, 1], [2, 3], [4, 5]]


@pytest.mark.parametrize("batch_size", [None, 8])
@pytest.mark.parametrize("value", ["ab", b"ab", {"a": 1}, {1}, 3, None])
def test_what_is_no_children_fails_its_task(value, batch_size):
    function = (lambda x: x) if batch_size is None else (lambda xs: xs)
    told = Rig(call_plan(function, batch_size=batch_size, expand=CHILDREN)).run([[1], value, [2]])
    kind, message = told.failures[1]
    assert kind == "contract" and type(value).__name__ in message
    assert told.sealed == {1: [0, 2]}
    assert (told.children_of(0), told.children_of(1), told.children_of(2)) == ([1], [], [2])


def test_aligned_outputs_need_equal_counts():
    aligned = [[(0, ()), (1, ())]]
    values = [([1, 2], ["a", "b"]), ([1], []), ([], [])]
    told = Rig(call_plan(lambda i: values[i], outputs=2, expand=aligned)).run([0, 1, 2])
    assert (told.children_of(0, stream=0), told.children_of(0, stream=1)) == ([1, 2], ["a", "b"])
    assert told.failures[1][0] == "contract" and "1 and 0" in told.failures[1][1]
    assert told.sealed == {1: [0, 2]}


def test_a_task_that_fails_in_one_expansion_gives_no_children_to_another():
    told = Rig(call_plan(lambda i: ([1], "no"), outputs=2, expand=[[(0, ())], [(1, ())]])).run([0])
    assert told.failures[0][0] == "contract"
    assert told.children == {} and told.sealed == {}


def test_a_field_is_expanded_and_where_it_is_missing_only_that_expansion_stays_open():
    told = Rig(call_plan(lambda v: v, expand=[[(0, ("pages",))]])).run([{"pages": [1, 2]}, {}])
    assert told.children_of(0) == [1, 2]
    assert told.sealed == {1: [0]}
    assert told.failures == {}, "the field's own item fails, elsewhere"


def test_children_of_a_failed_item_are_not_told():
    told = Rig(
        call_plan(lambda xs: [[1], ItemFailure("no"), [2]], batch_size=4, expand=CHILDREN)
    ).run([0, 1, 2])
    assert [told.children_of(t) for t in range(3)] == [[1], [], [2]]
    assert told.sealed == {1: [0, 2]}


# ------------------------------------------------------------------------------ generators


def test_tiny_children_of_several_generators_share_an_event():
    told = Rig(call_plan(counting, expand=CHILDREN)).run([2, 0, 3])
    assert [told.children_of(t) for t in range(3)] == [[0, 1], [], [0, 1, 2]]
    assert len(told.of(ChildrenReleased)) == 1
    assert told.sealed == {1: [0, 1, 2]}
    assert told.values == {0: [0, 1], 1: [], 2: [0, 1, 2]}, "the whole value is the list"


def test_a_slow_generators_children_are_told_at_once():
    rig = Rig(call_plan(counting, expand=CHILDREN), step_s=1.0)
    told = rig.run([3, 2])
    assert [told.children_of(t) for t in range(2)] == [[0, 1, 2], [0, 1]]
    releases = told.of(ChildrenReleased)
    assert [(e.first, e.counts) for e in releases[:3]] == [(0, (1,))] * 3
    sealed_with = next(events for events in rig.flushes if len(events) > 1)
    assert TasksFinished in map(type, sealed_with), "a task's end is told with its seal"


def test_many_children_are_told_in_portions():
    told = Rig(call_plan(counting, expand=CHILDREN, items=False)).run([10_000])
    sizes = [sum(e.counts) for e in told.of(ChildrenReleased)]
    assert sum(sizes) == 10_000 and max(sizes) <= 4096
    assert told.children_of(0) == list(range(10_000))


def test_large_children_are_told_in_small_portions():
    told = Rig(call_plan(lambda n: iter([b"x" * 2_000_000] * n), expand=CHILDREN)).run([7])
    sizes = [sum(e.counts) for e in told.of(ChildrenReleased)]
    assert sum(sizes) == 7 and max(sizes) <= 3


@pytest.mark.parametrize(
    ("error", "kind"), [(ValueError("broke"), "raised"), (ItemFailure("broke"), "declared")]
)
def test_a_generator_that_fails_half_way_keeps_what_it_gave(error, kind):
    told = Rig(call_plan(fails_at(2, error), expand=CHILDREN)).run([1, 5, 1])
    assert [told.children_of(t) for t in range(3)] == [[0], [0, 1], [0]]
    assert told.sealed == {1: [0, 2]}
    assert told.failures[1][0] == kind and "broke" in told.failures[1][1]


def test_an_item_failure_that_is_yielded_fails_the_task():
    told = Rig(call_plan(lambda n: iter([1, ItemFailure("no"), 2]), expand=CHILDREN)).run([0])
    assert told.children_of(0) == [1]
    assert told.failures == {0: ("declared", "no")}


def test_an_exception_that_is_yielded_fails_the_task():
    told = Rig(call_plan(lambda n: iter([1, ValueError("q"), 2]), expand=CHILDREN)).run([0])
    assert told.children_of(0) == [1]
    assert told.failures == {0: ("contract", RETURNED)}


def test_a_generator_with_several_outputs_yields_tuples():
    def pairs(n: int) -> Iterator[Any]:
        for i in range(n):
            yield (i, str(i)) if i < 2 else i

    rig = Rig(call_plan(pairs, outputs=2, expand=[[(0, ()), (1, ())]]))
    told = rig.run([2, 3])
    assert (told.children_of(0, stream=0), told.children_of(0, stream=1)) == ([0, 1], ["0", "1"])
    assert told.values == {0: [[0, 1], ["0", "1"]]}
    assert told.children_of(1) == [0, 1] and told.failures[1][0] == "contract"


def test_an_iterator_that_nobody_expands_is_its_list():
    told = Rig(call_plan(counting)).run([3])
    assert told.values == {0: [0, 1, 2]}


def test_what_an_earlier_attempt_released_is_not_released_again():
    for function in (counting, upto):
        rig = Rig(call_plan(function, expand=CHILDREN))
        told = rig.run([5], skip=(3,), attempt=2)
        assert told.children_of(0) == [3, 4]
        assert told.values == {0: [0, 1, 2, 3, 4]}
        assert told.sealed == {1: [0]}


def test_fewer_children_than_an_earlier_attempt_released_is_not_deterministic():
    for function in (counting, upto):
        told = Rig(call_plan(function, expand=CHILDREN)).run([2], skip=(3,), attempt=2)
        assert told.failures[0][0] == "not_deterministic"
        assert told.children == {} and told.sealed == {}


def test_a_batched_stage_skips_as_well():
    plan = call_plan(lambda ns: [list(range(n)) for n in ns], batch_size=8, expand=CHILDREN)
    told = Rig(plan).run([4], skip=(1,), attempt=2)
    assert told.children_of(0) == [1, 2, 3]


def test_a_generator_is_closed_when_it_is_left():
    closed = []

    class Numbers:
        def __iter__(self) -> Iterator[int]:
            return self

        def __next__(self) -> int:
            raise ValueError("broke")

        def close(self) -> None:
            closed.append(True)

    Rig(call_plan(lambda n: Numbers(), expand=CHILDREN)).run([0])
    assert closed == [True]


# ------------------------------------------------------------------------------ reports


def test_slow_items_are_reported_before_the_batch_ends():
    told = Rig(call_plan(double), step_s=1.0).run([1, 2, 3])
    assert [(e.first, e.count) for e in told.of(TasksFinished)] == [(0, 1), (1, 1), (2, 1)]
    assert told.values == {0: 2, 1: 4, 2: 6}


def test_time_in_users_code_is_told():
    def takes_five(x: Any) -> Any:
        rig.time_s += 5
        return x

    rig = Rig(call_plan(takes_five))
    (finished,) = rig.run([1, 2]).of(BatchFinished)
    assert finished.busy_s == 10.0
    rig = Rig(call_plan(takes_five, batch_size=4))
    (finished,) = rig.run([1, 2]).of(BatchFinished)
    assert finished.busy_s == 5.0


def test_controls_and_checks_are_numbered_by_rows_of_tasks_that_did_not_fail():
    plan = call_plan(
        lambda x: ItemFailure("no") if x == 1 else {"a": 1} if x == 2 else True,
        controls=(Control(0, 9, "mask", (True,)),),
        checks=(FieldCheck(0, 9, "a"),),
    )
    told = Rig(plan).run([0, 1, 2, 3])
    (finished,) = told.of(TasksFinished)
    (stream,) = finished.streams
    assert stream.controls[0].labels == (0b101,)
    assert [row for row, _ in stream.controls[0].illegal] == [1]
    assert [(check, rows) for check, rows, *_ in stream.missing] == [(0, 0b101)]


def test_facts_of_children_come_with_their_release():
    plan = call_plan(
        upto,
        expand=CHILDREN,
        child_facts=True,
        stored=False,
        controls=(Control(0, 9, "label", (0, 2)),),
    )
    (released,) = Rig(plan).run([3, 2]).of(ChildrenReleased)
    (stream,) = released.streams
    assert stream.rows is None
    assert stream.controls[0].labels == (0b01001, 0b00100)
    assert [row for row, _ in stream.controls[0].illegal] == [1, 4]


class ClassRaises:
    """It raises when it is asked for its class."""

    @property  # type: ignore[misc]  # what no class should do is what is tested
    def __class__(self) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]  # likewise
        raise RuntimeError("no class")


@pytest.mark.parametrize("outputs", [1, 2])
def test_a_result_that_raises_when_it_is_looked_at_harms_no_other(outputs):
    odd: Any = ClassRaises()
    good: Any = (1, 1) if outputs == 2 else 1
    bad: Any = (odd, odd) if outputs == 2 else odd
    fails = ItemFailure("no")
    told = Rig(call_plan(lambda xs: [good, bad, fails], batch_size=4, outputs=outputs)).run(
        [1, 2, 3]
    )
    assert told.failures == {2: ("declared", "no")}
    assert set(told.values) == {0, 1}


@pytest.mark.parametrize("batch_size", [None, 4])
def test_what_raises_when_its_children_are_asked_for_fails_by_itself(batch_size):
    plan = call_plan(
        (lambda xs: [[1], ClassRaises()])
        if batch_size
        else (lambda x: [1] if x == 1 else ClassRaises()),
        batch_size=batch_size,
        expand=CHILDREN,
    )
    told = Rig(plan).run([1, 2])
    assert list(told.failures) == [1]


def test_a_failure_that_is_returned_many_times_gathers_no_tracebacks():
    blank = ItemFailure("blank")
    rig = Rig(call_plan(lambda _: blank))
    for _ in range(3):
        rig.run([1, 2, 3])
    depth, frame = 0, blank.__traceback__
    while frame is not None:
        depth, frame = depth + 1, frame.tb_next
    assert depth < 8
