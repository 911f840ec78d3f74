"""The interpreter against expectations worked out by hand from the rules, on plans made by hand."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from fanfold.failures import Failure, ItemFailure
from fanfold.plan import Plan
from fanfold.testing.interpreter import Interpretation, MarkedFailure, interpret
from tests.unit.testing.drafts import Draft

DROPPED = "dropped"


def told(interpretation: Interpretation, port: int) -> list[Any]:
    """Values of done items; the others as outcome and causes' messages."""
    found: list[Any] = []
    for item in interpretation.ports[port].values():
        if item.outcome.value == "done":
            found.append(item.value)
        elif item.causes:
            found.append((item.outcome.value, *sorted(cause.message for cause in item.causes)))
        else:
            found.append(item.outcome.value)
    return found


def run(plan: Plan, *roots: Any) -> list[list[Any]]:
    """What each output tells, over roots of one value (or a tuple of values) each."""
    rows = [root if isinstance(root, tuple) else (root,) for root in roots]
    interpretation = interpret(plan, rows)
    return [told(interpretation, output.port) for output in plan.outputs]


def upto(n: int) -> list[int]:
    return list(range(n))


def upto_batch(ns: list[int]) -> list[list[int]]:
    return [list(range(n)) for n in ns]


def bad_if(x: Any, *, eq: Any, code: str = "") -> Any:
    if x == eq:
        raise ItemFailure(f"bad {x}", code=code)
    return x


def returns_bad_if(xs: list[Any], *, eq: Any) -> list[Any]:
    return [ItemFailure(f"bad {x}") if x == eq else x for x in xs]


def even(x: int) -> bool:
    return x % 2 == 0


def test_a_source_returned_directly() -> None:
    d = Draft()
    assert run(d.plan(d.source("a")), 1, None, []) == [[1, None, []]]


def test_positional_keyword_and_static_arguments() -> None:
    def subtract(left: int, *, right: int, scale: int) -> int:
        return (left - right) * scale

    d = Draft()
    a, b = d.source("a"), d.source("b")
    assert run(d.plan(d.call(subtract, a, named={"right": b}, scale=10)), (5, 3), (1, 1)) == [
        [20, 0]
    ]


def test_a_class_stage_is_constructed_once_and_may_name_its_method() -> None:
    made: list[int] = []

    class Adder:
        def __init__(self, k: int) -> None:
            made.append(k)
            self.k = k

        def add(self, xs: list[int]) -> list[int]:
            return [x + self.k for x in xs]

    d = Draft()
    assert run(d.plan(d.call(Adder, d.source("a"), batch=8, args=(3,), method="add")), 1, 2) == [
        [4, 5]
    ]
    assert made == [3]


def test_expand_and_gather_keep_order_and_zero_children_are_an_empty_list() -> None:
    d = Draft()
    child = d.expand(d.call(upto_batch, d.source("a"), batch=4))
    out = d.plan(child, d.gather(child))
    assert run(out, 3, 0, 1) == [[0, 1, 2, 0], [[0, 1, 2], [], [0]]]


def test_an_unexpanded_port_stays_readable_and_of_a_generator_is_the_list() -> None:
    def each(n: int) -> Iterator[int]:
        yield from range(n)

    d = Draft()
    made = d.call(each, d.source("a"))
    assert run(d.plan(made, d.expand(made)), 2, 0) == [[[0, 1], []], [0, 1]]


def test_a_null_child_a_dropped_child_a_failed_child_and_no_child_are_four_things() -> None:
    def give(values: Any) -> Any:
        return values

    d = Draft()
    child = d.expand(d.call(give, d.source("a")))
    kept, _ = d.split(child, child, into=("drop",), rest=True)[::-1]
    good = d.call(bad_if, kept, eq="fail")
    out = d.plan(d.gather(good))
    assert run(out, [], [None], ["drop"], ["fail"]) == [
        [[], [None], [], ("suppressed", "bad fail")]
    ]


def test_item_failure_raised_or_returned_fails_all_outputs_of_its_task() -> None:
    def two(xs: list[int]) -> list[Any]:
        return [(x, ItemFailure("second") if x == 2 else -x) for x in xs]

    d = Draft()
    a = d.source("a")
    raised = d.call(bad_if, a, eq=2, code="x.y")
    x, y = d.call(two, a, batch=4, outputs=2)
    plan = d.plan(raised, x, y)
    assert run(plan, 1, 2) == [
        [1, ("failed", "bad 2")],
        [1, ("failed", "second")],
        [-1, ("failed", "second")],
    ]
    (cause,) = interpret(plan, [(1,), (2,)], ["k1", "k2"]).ports[raised][1,].causes
    assert cause == Failure(
        kind="declared",
        message="bad 2",
        code="x.y",
        exception="fanfold.failures.ItemFailure",
        call="bad_if",
        key="k2",
        levels=("root",),
        ordinals=(1,),
    )


def test_an_exception_fails_only_its_item_in_a_batched_stage_too() -> None:
    def invert(xs: list[int]) -> list[float]:
        return [1 / x for x in xs]

    d = Draft()
    expected = ("failed", "ZeroDivisionError: division by zero")
    assert run(d.plan(d.call(invert, d.source("a"), batch=3)), 1, 0, 2) == [[1.0, expected, 0.5]]


@pytest.mark.parametrize("result", [[], [1, 2], None, "x", {"a": 1}, {1}, 7])
def test_a_batched_stage_that_returns_the_wrong_length_breaks_the_contract(
    result: Any,
) -> None:
    def give(xs: list[Any]) -> Any:
        return result

    d = Draft()
    assert run(d.plan(d.call(give, d.source("a"), batch=1)), 0)[0][0][0] == "failed"


@pytest.mark.parametrize("value", ["text", b"bytes", {"a": 1}, {1, 2}, 3, None])
def test_what_is_not_children_fails_the_producing_task(value: Any) -> None:
    def give(_: int) -> Any:
        return value

    d = Draft()
    made = d.call(give, d.source("a"))
    child = d.expand(made)
    outputs = run(d.plan(made, child, d.gather(child)), 0)
    assert [outputs[0][0][0], outputs[1], outputs[2][0][0]] == [
        "failed",
        [],
        "suppressed",
    ]


def test_aligned_children_of_unequal_counts_fail_the_producing_task() -> None:
    def groups(n: int) -> tuple[list[int], list[int]]:
        return list(range(n)), [0] * (n if n < 3 else 1)

    d = Draft()
    left, right = d.call(groups, d.source("a"), outputs=2)
    p, q = d.expand(left, right)
    gathered = d.gather(p, q)
    results = run(d.plan(left, *gathered), 2, 3)
    assert results[1][0] == [0, 1]
    assert results[2][0] == [0, 0]
    assert [result[1][0] for result in results] == [
        "failed",
        "suppressed",
        "suppressed",
    ]


def test_a_dropped_parent_has_a_dropped_expansion() -> None:
    d = Draft()
    a, keep = d.source("a"), d.source("keep")
    child = d.expand(d.call(upto, d.filter(a, keep)))
    assert run(d.plan(child, d.gather(child)), (2, True), (1, False)) == [
        [0, 1],
        [[0, 1], DROPPED],
    ]


def test_a_failed_parent_has_a_failed_expansion() -> None:
    d = Draft()
    child = d.expand(d.call(upto, d.call(bad_if, d.source("a"), eq=2)))
    plan = d.plan(child, d.gather(child, failed="drop"), d.gather(child, failed="mark"))
    lost = ("suppressed", "bad 2")
    assert run(plan, 1, 2) == [[0], [[0], lost], [[0], lost]]


def test_what_a_generator_released_before_it_failed_keeps_its_outcomes() -> None:
    def each(n: int) -> Iterator[int]:
        yield from range(n)
        if n == 3:
            raise ValueError("half-way")

    d = Draft()
    made = d.call(each, d.source("a"))
    child = d.expand(made)
    plan = d.plan(made, child, d.gather(child), d.gather(child, failed="mark"))
    failed = "ValueError: half-way"
    assert run(plan, 3, 1) == [
        [("failed", failed), [0]],
        [0, 1, 2, 0],
        [("suppressed", failed), [0]],
        [("suppressed", failed), [0]],
    ]


def test_a_gather_over_a_half_failed_expansion_may_name_a_failed_member() -> None:
    def each(n: int) -> Iterator[int]:
        yield from range(n)
        raise ValueError("half-way")

    d = Draft()
    child = d.call(bad_if, d.expand(d.call(each, d.source("a"))), eq=1)
    plan = d.plan(d.gather(child), d.gather(child, failed="drop"))
    expected = [
        ("suppressed", "ValueError: half-way", "bad 1"),
        ("suppressed", "ValueError: half-way"),
    ]
    assert [result[0] for result in run(plan, 2)] == expected


def test_a_generator_with_several_outputs_yields_tuples() -> None:
    def pairs(n: int) -> Iterator[Any]:
        for i in range(n):
            yield (i, -i) if i < 2 else i

    d = Draft()
    p, q = d.expand(*d.call(pairs, d.source("a"), outputs=2))
    results = run(d.plan(p, q, d.gather(q)), 2, 3)
    assert results[:2] == [[0, 1, 0, 1], [0, -1, 0, -1]]
    assert results[2][0] == [0, -1]
    assert results[2][1][0] == "suppressed"


def test_fail_drop_and_mark() -> None:
    def page(x: int) -> int:
        if x == 7:
            raise ValueError("page 7")
        return x * 10

    d = Draft()
    result = d.call(page, d.expand(d.call(upto, d.source("a"))))
    fail, drop, mark = (d.gather(result, failed=how) for how in ("fail", "drop", "mark"))
    plan = d.plan(fail, drop, mark)
    items = interpret(plan, [(10,)], ["doc"]).ports
    (cause,) = items[fail][0,].causes
    assert cause.ordinals == (0, 7)
    assert cause.where() == "root doc, child 7"
    assert items[drop][0,].value == [0, 10, 20, 30, 40, 50, 60, 80, 90]
    marked = items[mark][0,].value
    assert len(marked) == 10
    assert isinstance(marked[7], MarkedFailure)
    assert (marked[7].ordinals, marked[7].alternatives) == ((0, 7), frozenset({cause}))
    assert marked[8] == 80


def test_aligned_gathers_line_up_over_rows() -> None:
    d = Draft()
    child = d.expand(d.call(upto, d.source("a")))
    left = d.filter(child, d.call(even, child))
    right = d.call(bad_if, child, eq=2)
    p, q = d.gather(left, right)
    s, t = d.gather(left, right, failed="drop")
    plan = d.plan(p, q, s, t)
    lost = ("suppressed", "bad 2")
    assert run(plan, 2, 5) == [[[0], lost], [[0], lost], [[0], [0, 4]], [[0], [0, 4]]]


def test_failure_beats_drop_in_any_order_of_inputs() -> None:
    def add(x: int, y: int) -> int:
        return x + y

    d = Draft()
    a, mask = d.source("a"), d.source("m")
    dropped, failed = d.filter(a, mask), d.call(bad_if, a, eq=1)
    plan = d.plan(d.call(add, dropped, failed), d.call(add, failed, dropped))
    assert run(plan, (1, False), (2, False)) == [[("suppressed", "bad 1"), DROPPED]] * 2


def test_several_lost_inputs_leave_several_possible_causes() -> None:
    def add(x: int, y: int) -> int:
        return x + y

    d = Draft()
    a, b = d.source("a"), d.source("b")
    total = d.call(add, d.call(bad_if, a, eq=1), d.call(bad_if, b, eq=2))
    assert run(d.plan(total), (1, 2)) == [[("suppressed", "bad 1", "bad 2")]]


def test_a_filter_is_decided_by_its_source_first_then_its_mask() -> None:
    d = Draft()
    a, m = d.source("a"), d.source("m")
    source, mask = d.call(bad_if, a, eq=1), d.call(bad_if, m, eq="bad")
    plan = d.plan(d.filter(source, mask))
    results = run(plan, (1, False), (1, "bad"), (2, "bad"), (2, True), (2, False), (2, 1))
    assert results[0][:5] == [("failed", "bad 1")] * 2 + [
        ("failed", "bad bad"),
        2,
        DROPPED,
    ]
    assert results[0][5][0] == "failed"


def test_split_routes_by_label_and_an_unlisted_one_fails_every_route() -> None:
    d = Draft()
    a, by = d.source("a"), d.source("by")
    x, y = d.split(a, by, into=("x", "y"))
    p, rest = d.split(a, by, into=("x",), rest=True)
    results = run(d.plan(x, y, p, rest), (1, "x"), (2, "y"), (3, "z"))
    assert [result[:2] for result in results[:2]] == [[1, DROPPED], [DROPPED, 2]]
    assert [result[2][0] for result in results[:2]] == ["failed", "failed"]
    assert results[2:] == [[1, DROPPED, DROPPED], [DROPPED, 2, 3]]


def test_merge_takes_the_first_that_is_done() -> None:
    d = Draft()
    a, by = d.source("a"), d.source("by")
    x, y, z = d.split(a, by, into=("x", "y", "z"))
    ten = d.call(bad_if, x, eq=1)
    two = d.merge(ten, y)
    plan = d.plan(two, d.merge(ten, y, default=0), d.merge(ten, z, a, failed="next"))
    results = run(plan, (1, "x"), (2, "x"), (3, "y"), (4, "z"))
    lost = ("failed", "bad 1")
    assert results == [[lost, 2, 3, DROPPED], [lost, 2, 3, 0], [1, 2, 3, 4]]


def test_merge_with_next_and_nothing_left_is_suppressed_if_any_failed() -> None:
    d = Draft()
    a, keep = d.source("a"), d.source("keep")
    one, two = d.call(bad_if, a, eq=1), d.filter(a, keep)
    plan = d.plan(d.merge(one, two, failed="next"), d.merge(one, two, failed="next", default=9))
    rows = [(1, False), (1, True), (2, False)]
    assert run(plan, *rows) == [[("suppressed", "bad 1"), 1, 2], [9, 1, 2]]


def test_broadcast_copies_outcome_value_and_cause_to_each_child() -> None:
    d = Draft()
    a, keep = d.source("a"), d.source("keep")
    child = d.expand(d.call(upto, a))
    value = d.broadcast(d.filter(d.call(bad_if, a, eq=1), keep), child)
    plan = d.plan(value, d.gather(value))
    failed = ("failed", "bad 1")
    assert run(plan, (1, True), (2, True), (3, False), (0, False)) == [
        [failed, 2, 2, DROPPED, DROPPED, DROPPED],
        [("suppressed", "bad 1"), [2, 2], [], []],
    ]


def test_field_of_mappings_and_objects_and_a_missing_one() -> None:
    d = Draft()
    a = d.source("a")
    plan = d.plan(d.field(a, "real"))
    results = run(plan, 5, {"real": 1}, {"other": 1})
    assert results[0][:2] == [5, 1]
    assert results[0][2][0] == "failed"


def test_expanding_a_field_that_is_missing_fails_the_expansion_but_not_the_task() -> None:
    def give(value: Any) -> Any:
        return value

    d = Draft()
    made = d.call(give, d.source("a"))
    child = d.expand(d.field(made, "pages"))
    results = run(d.plan(made, d.gather(child)), {"pages": [1, 2]}, {})
    assert results[0] == [{"pages": [1, 2]}, {}]
    assert results[1][0] == [1, 2]
    assert results[1][1][0] == "suppressed"


def test_record_keeps_the_order_of_its_fields_and_takes_a_tasks_outcome() -> None:
    from fanfold.plan import Constant

    d = Draft()
    a = d.source("a")
    plan = d.plan(d.record(x=d.call(bad_if, a, eq=1), kind=Constant("k"), y=a))
    results = run(plan, 1, 2)
    assert results == [[("suppressed", "bad 1"), {"x": 2, "kind": "k", "y": 2}]]
    assert list(results[0][1]) == ["x", "kind", "y"]


def test_two_levels_gather_one_at_a_time() -> None:
    d = Draft()
    child = d.expand(d.call(upto, d.source("a")), name="child")
    grand = d.expand(d.call(upto, child), name="grand")
    inner = d.gather(d.call(bad_if, grand, eq=2))
    plan = d.plan(inner, d.gather(inner), d.gather(inner, failed="drop"))
    lost = ("suppressed", "bad 2")
    assert run(plan, 3, 4) == [
        [[], [0], [0, 1], [], [0], [0, 1], lost],
        [[[], [0], [0, 1]], lost],
        [[[], [0], [0, 1]], [[], [0], [0, 1]]],
    ]


# ------------------------------------------------------------------------------- at_least and members


def give(values: Any) -> Any:
    return values


def few(*parts: Any) -> tuple[Any, ...]:
    return ("suppressed", *parts)


def sifted(d: Draft) -> int:
    """Children that are done, dropped ("drop") or failed ("fail"), as their root's list says."""
    child = d.expand(d.call(give, d.source("a")))
    _, rest = d.split(child, child, into=("drop",), rest=True)
    return int(d.call(bad_if, rest, eq="fail"))


@pytest.mark.parametrize(
    ("at_least", "children", "expected"),
    [
        (0, [], []),
        (3, [], few("0 of 0 are done")),
        (1, [], few("0 of 0 are done")),
        (3, [1, 2, 3], [1, 2, 3]),
        (3, [1, 2, "fail", 3], [1, 2, 3]),
        (3, [1, 2, "fail", "fail"], few("2 of 4 are done", "bad fail", "bad fail")),
        (3, [1, 2, "drop"], few("2 of 2 are done")),
        (1.0, [], []),
        (1.0, [1, "drop", 2], [1, 2]),
        (1.0, [1, "fail"], few("1 of 2 are done", "bad fail")),
        (0.9, [1] * 9 + ["fail"], [1] * 9),
        (0.9, [1] * 9 + ["fail", "drop"], [1] * 9),
        (0.9, [1] * 8 + ["fail"], few("8 of 9 are done", "bad fail")),
        (0.5, [1, "fail", "fail"], few("1 of 3 are done", "bad fail", "bad fail")),
        (0.5, [1, "fail"], [1]),
        (0.0, ["fail"], []),
    ],
)
def test_at_least_counts_done_members_among_those_not_dropped(
    at_least: float, children: list[Any], expected: Any
) -> None:
    d = Draft()
    out = d.gather(sifted(d), failed="drop", at_least=at_least)
    ((told_,),) = run(d.plan(out), children)
    if isinstance(expected, tuple):
        assert (told_[0], set(told_[1:])) == (expected[0], set(expected[1:]))
    else:
        assert told_ == expected


def test_with_fail_the_first_failed_member_decides_and_a_count_can_still_be_missed() -> None:
    d = Draft()
    out = d.gather(sifted(d), at_least=2)
    assert run(d.plan(out), [1, 2], [1], [1, 2, "fail"], [1, "fail"]) == [
        [[1, 2], few("1 of 1 are done"), few("bad fail"), few("1 of 2 are done", "bad fail")]
    ]


def test_marks_are_no_done_members() -> None:
    d = Draft()
    plan = d.plan(d.gather(sifted(d), failed="mark", at_least=0.5))
    items = interpret(plan, [([1, "fail"],), ([1, "fail", "fail"],)]).ports[plan.outputs[0].port]
    assert [type(value) for value in items[0,].value] == [int, MarkedFailure]
    assert items[1,].outcome.value == "suppressed"


def test_too_few_is_a_failure_of_the_parent_and_an_open_expansion_is_never_too_few() -> None:
    def each(n: int) -> Iterator[int]:
        yield from range(n)
        if n == 1:
            raise ValueError("half-way")

    d = Draft()
    plan = d.plan(d.gather(d.expand(d.call(each, d.source("a"))), failed="drop", at_least=2))
    items = interpret(plan, [(0,), (1,)], ["k0", "k1"]).ports[plan.outputs[0].port]
    (cause,) = items[0,].causes
    assert (cause.kind, cause.key, cause.levels, cause.ordinals) == (
        "too_few",
        "k0",
        ("root",),
        (0,),
    )
    assert [cause.kind for cause in items[1,].causes] == ["raised"]


def test_members_are_told_by_another_port() -> None:
    """Per child of the root's list (who, what): who says who is a member, what is the child's own value."""
    d = Draft()
    who = d.field(child := d.expand(d.call(give, d.source("a"))), "who")
    what = d.field(child, "what")
    _, who = d.split(who, who, into=("drop",), rest=True)
    _, what = d.split(what, what, into=("drop",), rest=True)
    who, what = d.call(bad_if, who, eq="lost"), d.call(bad_if, what, eq="fail")
    plan = d.plan(*(d.gather(what, failed=how, members=who) for how in ("fail", "drop")))

    def means(*pairs: tuple[str, Any]) -> list[Any]:
        found = run(plan, [{"who": who, "what": what} for who, what in pairs])
        return [each[0] for each in found]

    assert means(("in", 1), ("in", 2)) == [[1, 2], [1, 2]]
    assert means(("drop", 1), ("in", 2)) == [[2], [2]], "no member, though it is done"
    assert means(("drop", "fail"), ("in", 2)) == [[2], [2]], "no member, so its failure is nobody's"
    assert means(("lost", 1), ("in", 2)) == [few("bad lost"), [2]], "a failed member, though done"
    assert means(("in", "fail"), ("in", 2)) == [few("bad fail"), [2]]
    assert means(("in", "drop"), ("in", 2)) == [few("a member has no value"), [2]]
    assert means(("lost", "fail")) == [few("bad lost"), []], "the members' port decides alone"


def test_a_missing_member_fails_at_its_own_place_and_counts_for_at_least() -> None:
    d = Draft()
    child = d.expand(d.call(give, d.source("a")))
    _, kept = d.split(child, child, into=("drop",), rest=True)
    mark = d.gather(kept, members=child, failed="mark")
    plan = d.plan(mark, d.gather(kept, members=child, failed="drop", at_least=1.0))
    items = interpret(plan, [([1, "drop"],)], ["k"]).ports
    one, missing = items[mark][0,].value
    assert one == 1
    assert (missing.kind, missing.levels, missing.ordinals) == (
        "missing",
        ("root", "child"),
        (0, 1),
    )
    assert {cause.kind for cause in items[plan.outputs[1].port][0,].causes} == {
        "missing",
        "too_few",
    }


def test_members_of_aligned_gathers_are_rows() -> None:
    d = Draft()
    child = d.expand(d.call(give, d.source("a")))
    mask = d.call(even, child)
    tenfold = d.call(mul, child, k=10)
    plan = d.plan(*d.gather(child, tenfold, members=d.filter(child, mask)))
    assert run(plan, [0, 1, 2, 3]) == [[[0, 2]], [[0, 20]]]


def mul(x: int, *, k: int) -> int:
    return x * k
