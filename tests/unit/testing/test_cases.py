"""Parent failures in the interpreter: who may be cut, and what is exact, worked out by hand.

An item that may be several things is shown as ``may(…)``; one that a run may lack has ``MAY_LACK`` in it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from fanfold.failures import ItemFailure, ParentFailure
from fanfold.plan import Plan
from fanfold.testing import cases
from fanfold.testing.cases import Item
from fanfold.testing.interpreter import Interpretation, interpret
from tests.unit.testing.drafts import Draft

MAY_LACK = "may be lacking"


def may(*ways: Any) -> set[str]:
    return set(map(str, ways))


def failed(*causes: str) -> tuple[str, ...]:
    return ("failed", *causes)


def lost(*causes: str) -> tuple[str, ...]:
    return ("suppressed", *causes)


def told(item: Item) -> Any:
    if item.outcome.value == "done":
        return item.value
    causes = sorted(cause.message for cause in item.causes)
    return (item.outcome.value, *causes) if causes else item.outcome.value


def means(interpretation: Interpretation, port: int) -> list[Any]:
    found: list[Any] = []
    for item in interpretation.ports[port].values():
        lacking = [MAY_LACK] if item.optional else []
        ways = [told(one) for one in (item, *item.otherwise)] + lacking
        same = all(str(way) == str(ways[0]) for way in ways)
        found.append(ways[0] if same else may(*ways))
    return found


def run(plan: Plan, *roots: Any) -> list[list[Any]]:
    interpretation = interpret(plan, [(root,) for root in roots])
    return [means(interpretation, output.port) for output in plan.outputs]


def give(value: Any) -> Any:
    return value


def tell(*values: Any) -> Any:
    """The first value; one that says so is a failure."""
    match values[0]:
        case str(text) if text.startswith("bad"):
            raise ParentFailure(text)
        case str(text) if text.startswith("poor"):
            raise ItemFailure(text)
    return values[0]


def weak(value: Any) -> Any:
    """As :func:`tell`, but every failure is an item's."""
    if isinstance(value, str):
        raise ItemFailure(value)
    return value


def children(d: Draft, name: str = "child") -> int:
    return int(d.expand(d.call(give, d.source("a")), name=name))


def test_siblings_at_the_call_are_done_or_suppressed_and_the_list_is_suppressed() -> None:
    d = Draft()
    at_c = d.call(tell, children(d))
    gathers = [d.gather(at_c, failed=how) for how in ("fail", "drop", "mark")]
    results = run(d.plan(at_c, *gathers), [1, "bad 2", 3], [4])
    assert results == [
        [may(1, lost("bad 2")), failed("bad 2"), may(3, lost("bad 2")), 4],
        *[[lost("bad 2"), [4]]] * 3,
    ]


def test_a_parent_failure_returned_in_an_items_place_is_the_same() -> None:
    def returns(xs: list[Any]) -> list[Any]:
        return [ParentFailure(x) if isinstance(x, str) else x for x in xs]

    d = Draft()
    at_c = d.call(returns, children(d), batch=4)
    assert run(d.plan(at_c, d.gather(at_c, failed="drop")), [1, "bad"]) == [
        [may(1, lost("bad")), failed("bad")],
        [lost("bad")],
    ]


def test_of_two_parent_failures_either_may_get_ahead_of_the_other() -> None:
    d = Draft()
    at_c = d.call(tell, children(d))
    assert run(d.plan(at_c, d.gather(at_c, failed="mark")), ["bad 0", 1, "bad 2"]) == [
        [
            may(failed("bad 0"), lost("bad 2")),
            may(1, lost("bad 0", "bad 2")),
            may(failed("bad 2"), lost("bad 0")),
        ],
        [lost("bad 0", "bad 2")],
    ]


def test_siblings_that_fail_or_are_dropped_at_the_call_may_be_cut_too() -> None:
    d = Draft()
    child = children(d)
    _, rest = d.split(child, child, into=("drop",), rest=True)
    at_c = d.call(tell, rest)
    assert run(d.plan(at_c, d.gather(at_c)), ["bad", "drop", "poor"]) == [
        [
            failed("bad"),
            may("dropped", lost("bad")),
            may(failed("poor"), lost("bad")),
        ],
        [lost("bad", "poor")],
    ]


def test_a_sibling_whose_inputs_are_lost_is_suppressed_either_way() -> None:
    d = Draft()
    child = children(d)
    before = d.call(weak, d.split(child, child, into=("x",), rest=True)[0])
    poor, _ = d.split(child, child, into=("x",), rest=True)
    at_c = d.call(tell, d.merge(before, child))
    assert poor and run(d.plan(at_c), ["x", "bad"]) == [[lost("bad", "x"), failed("bad")]]


def test_other_ports_of_the_same_children_and_other_parents_are_untouched() -> None:
    d = Draft()
    child = children(d)
    d_side = d.call(give, child)
    plan = d.plan(d.call(tell, child), d_side, d.gather(d_side), d.gather(child))
    assert run(plan, ["bad", 1], [2])[1:] == [["bad", 1, 2], [["bad", 1], [2]], [["bad", 1], [2]]]


def test_at_the_root_level_it_equals_an_item_failure() -> None:
    d = Draft()
    plan = d.plan(d.call(tell, d.source("a")))
    assert run(plan, 1, "bad", 2) == [[1, failed("bad"), 2]]
    (cause,) = interpret(plan, [("bad",)]).ports[1][0,].causes
    assert (cause.kind, cause.scope, cause.exception) == (
        "declared",
        "parent",
        "fanfold.failures.ParentFailure",
    )


def test_on_one_item_it_outranks_an_item_failure() -> None:
    def both(x: Any) -> Any:
        return ItemFailure("item"), ParentFailure("parent"), ValueError("no value")

    d = Draft()
    assert run(d.plan(*d.call(both, d.source("a"), outputs=3)), 1) == [[failed("parent")]] * 3


def test_a_gather_depends_through_calls_filters_splits_fields_records_and_merges() -> None:
    def wrap(value: Any) -> Any:
        return {"value": value, "keep": True}

    d = Draft()
    child = children(d)
    at_c = d.call(tell, child)
    whole = d.call(wrap, at_c)
    keep = d.field(whole, "keep")
    ports = [
        whole,
        keep,
        d.filter(child, keep),  # its members depend on C, though its values do not
        d.split(child, keep, into=(True,), rest=True)[1],  # dropped everywhere, and yet it depends
        d.record(x=at_c),
        d.merge(child, at_c),  # C's output is never chosen: it depends, but does not wait
    ]
    plan = d.plan(*(d.gather(port, failed="drop") for port in ports))
    *others, chosen = run(plan, [1, "bad"])
    assert others == [[lost("bad")]] * (len(ports) - 1)
    assert chosen == [may([1, "bad"], lost("bad"))], "nothing waits for C"


def test_beyond_so_many_questions_a_meaning_is_said_not_to_be_whole(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    d = Draft()
    child = children(d)
    plan = d.plan(d.gather(d.merge(child, d.call(tell, child)), failed="drop"))
    roots = [([1, "bad"],), ([2, "worse"],)]
    assert interpret(plan, roots).whole
    monkeypatch.setattr(cases, "QUESTIONS", 1)
    assert not interpret(plan, roots).whole


def test_a_gather_depends_on_its_members_port() -> None:
    d = Draft()
    child = children(d)
    plan = d.plan(d.gather(child, members=d.call(tell, child), failed="drop"))
    assert run(plan, [1, "bad"], [2]) == [[lost("bad"), [2]]]


def test_what_is_made_of_a_cut_sibling_is_uncertain_and_no_more_than_that() -> None:
    d = Draft()
    child = children(d)
    at_c = d.call(tell, child)
    later = d.call(lambda_x10, at_c)
    fallback = d.merge(at_c, child, failed="next")
    assert run(d.plan(later, fallback, d.merge(child, at_c)), [1, "bad"]) == [
        [may(10, lost("bad")), lost("bad")],
        [1, "bad"],  # done either way, and with one value
        [1, "bad"],
    ]
    e = Draft()
    child = children(e)
    at_c = e.call(tell, child)
    other = e.call(lambda_x10, child)
    assert run(e.plan(e.merge(at_c, other, failed="next")), [1, "bad"]) == [
        [may(1, 10), "bad" * 10]  # C's value, or where C was cut the next port's
    ]


def lambda_x10(x: Any) -> Any:
    return x * 10


def test_it_reaches_the_direct_parent_only() -> None:
    """Regions fail their page; the document goes on without the page."""
    d = Draft()
    page = children(d, "page")
    region = d.call(tell, d.expand(d.call(give, page), name="region"))
    of_page = d.gather(region)
    plan = d.plan(region, of_page, d.gather(of_page, failed="drop"), d.gather(of_page))
    assert run(plan, [[1, "bad"], [2]]) == [
        [may(1, lost("bad")), failed("bad"), 2],
        [lost("bad"), [2]],
        [[[2]]],
        [lost("bad")],
    ]


def test_a_gather_above_depends_through_deeper_levels_and_their_gathers() -> None:
    """Pages are condemned at C; what is made of the regions of C's pages depends on C."""
    d = Draft()
    page = children(d, "page")
    at_c = d.call(tell, page)
    region = d.expand(d.call(give, at_c), name="region")
    of_page = d.gather(region, failed="drop")
    plan = d.plan(region, of_page, d.gather(of_page, failed="drop"))
    assert run(plan, [[1, 2], "bad"]) == [
        [may(1, MAY_LACK), may(2, MAY_LACK)],
        [may([1, 2], lost("bad")), lost("bad")],
        [lost("bad")],
    ]


def test_a_gather_depends_on_the_expansion_that_makes_its_children() -> None:
    """Regions hold nothing of C's but their number."""
    d = Draft()
    page = children(d, "page")
    region = d.expand(d.call(tell, page), name="region")
    constant = d.broadcast(d.call(str_of, page), like=region)
    of_page = d.gather(constant, failed="drop")
    plan = d.plan(constant, of_page, d.gather(of_page, failed="drop"))
    assert run(plan, [[1, 2], "bad"]) == [
        [may("[1, 2]", MAY_LACK), may("[1, 2]", MAY_LACK)],
        [may(["[1, 2]", "[1, 2]"], lost("bad")), lost("bad")],
        [lost("bad")],
    ]


def str_of(x: Any) -> str:
    return str(x)


def test_a_copy_for_each_child_is_cut_together() -> None:
    """Both regions of a page see the same outcome of the page at C, so their list is never mixed."""
    d = Draft()
    page = children(d, "page")
    at_c = d.call(tell_first, page)
    region = d.expand(d.call(give, page), name="region")
    copies = d.broadcast(at_c, like=region)
    plan = d.plan(copies, d.gather(copies, failed="drop"))
    assert run(plan, [[1, 2], ["bad"]]) == [
        [may(1, lost("bad")), may(1, lost("bad")), failed("bad")],
        [may([1, 1], []), []],
    ]


def tell_first(values: Any) -> Any:
    return tell(values[0])


def test_a_generator_that_is_cut_keeps_what_it_released() -> None:
    def each(values: Any) -> Iterator[Any]:
        for value in values:
            yield tell(value)

    d = Draft()
    page = children(d, "page")
    made = d.call(each, page)
    region = d.expand(made, name="region")
    plan = d.plan(made, region, d.gather(region, failed="drop"))
    assert run(plan, [[1, 2], [3, "bad"]]) == [
        [may([1, 2], lost("bad")), failed("bad")],
        [may(1, MAY_LACK), may(2, MAY_LACK), 3],
        [may([1, 2], lost("bad")), lost("bad")],
    ]


def test_a_generator_at_the_root_level_that_fails_half_way() -> None:
    def each(values: Any) -> Iterator[Any]:
        for value in values:
            yield ParentFailure(value) if isinstance(value, str) else value

    d = Draft()
    region = d.expand(d.call(each, d.source("a")))
    assert run(d.plan(region, d.gather(region)), [1, "bad"], [2]) == [
        [1, 2],
        [lost("bad"), [2]],
    ]


def test_a_list_of_children_with_a_parent_failure_in_it_condemns_the_call_that_made_it() -> None:
    def listing(values: Any) -> Any:
        return [
            ItemFailure("poor") if v == 0 else ParentFailure("bad") if v < 0 else v for v in values
        ]

    d = Draft()
    page = children(d, "page")
    made = d.call(listing, page)
    region = d.expand(made, name="region")
    assert run(d.plan(made, region), [[1], [0, -1], [0]]) == [
        [may([1], lost("bad")), failed("bad"), may(failed("poor"), lost("bad"))],
        [may(1, MAY_LACK)],
    ]


def test_a_second_condemned_call_adds_its_failures_as_possible_ones() -> None:
    """C fails the parent at child 0; D, behind it, would at child 1, if that is not cut at C."""

    def second(x: Any) -> Any:
        if x == 1:
            raise ParentFailure("worse 1")
        return x

    d = Draft()
    child = children(d)
    at_c = d.call(tell, child)
    at_d = d.call(second, at_c)
    plan = d.plan(at_d, d.gather(at_c, failed="drop"), d.gather(at_d, failed="drop"))
    assert run(plan, ["bad 0", 1, 2]) == [
        [
            lost("bad 0", "worse 1"),
            may(failed("worse 1"), lost("bad 0")),
            may(2, lost("bad 0", "worse 1")),
        ],
        [lost("bad 0")],
        [lost("bad 0", "worse 1")],
    ]


def test_an_expansion_that_was_dropped_has_nobody_to_condemn_and_a_failed_one_adds_its_cause() -> (
    None
):
    def each(values: Any) -> Iterator[Any]:
        yield from values
        raise ValueError("half-way")

    d = Draft()
    at_c = d.call(tell, d.expand(d.call(each, d.source("a"))))
    half = "ValueError: half-way"
    assert run(d.plan(d.gather(at_c, failed="drop")), [1, "bad"], [1]) == [
        [lost(half, "bad"), lost(half)]
    ]


def test_at_least_is_not_asked_about_siblings_that_were_cut() -> None:
    d = Draft()
    at_c = d.call(tell, children(d))
    plan = d.plan(d.gather(at_c, failed="drop", at_least=2), d.gather(at_c, at_least=1.0))
    assert run(plan, [1, 2, "bad"]) == [[lost("bad")], [lost("2 of 3 are done", "bad")]]


def test_results_above_are_exact_and_nothing_is_uncertain_without_parent_failures() -> None:
    d = Draft()
    page = children(d, "page")
    region = d.call(weak, d.expand(d.call(give, page), name="region"))
    total = d.call(give, d.gather(d.gather(region, failed="drop")))
    interpretation = interpret(d.plan(region, total), [([[1, "bad"], [2]],)])
    items = [item for port in interpretation.ports.values() for item in port.values()]
    assert not any(item.otherwise or item.optional for item in items)
    assert means(interpretation, total) == [[[1], [2]]]


def test_a_parent_failure_that_only_a_cut_brings_about_is_a_possible_cause() -> None:
    """Where C is cut, a merge goes on to the fallback, and that ruins the parent at D."""
    d = Draft()
    child = children(d)
    at_c = d.call(tell, child)
    fallback = d.call(ruinous, child)
    at_d = d.call(tell, d.merge(at_c, fallback, failed="next"))
    plan = d.plan(at_d, d.gather(at_d, failed="drop"))
    assert run(plan, [1, "bad"]) == [
        [
            may(1, failed("bad fallback 1"), lost("bad fallback bad")),
            may(failed("bad fallback bad"), lost("bad fallback 1")),
        ],
        [lost("bad", "bad fallback 1", "bad fallback bad")],
    ]


def ruinous(x: Any) -> str:
    return f"bad fallback {x}"


def test_the_users_code_runs_once_per_item_whoever_is_cut() -> None:
    ran: list[Any] = []

    def each(values: Any) -> Iterator[Any]:
        ran.append(values)
        for value in values:
            yield tell(value)

    d = Draft()
    made = d.call(each, children(d, "page"))
    region = d.expand(made, name="region")
    run(d.plan(made, region, d.gather(region)), [[1, 2], ["bad"], [3]])
    assert sorted(ran, key=str) == [["bad"], [1, 2], [3]]


def test_a_parent_failure_of_dead_work_may_go_unheard() -> None:
    """A merge takes an earlier port everywhere: nothing looks at what C gives, so it may never run."""
    d = Draft()
    child = children(d)
    at_c = d.call(tell, child)
    plan = d.plan(d.gather(d.merge(child, at_c)))
    assert run(plan, [1, "bad"]) == [[may([1, "bad"], lost("bad"))]]
    plan = d.plan(d.gather(d.merge(child, at_c)), d.gather(at_c, failed="drop"))
    assert run(plan, [1, "bad"]) == [
        [may([1, "bad"], lost("bad"))],  # done before C's failure, or not
        [lost("bad")],  # waits for it
    ]
    plan = d.plan(d.gather(d.merge(d.split(child, child, into=(1,), rest=True)[0], at_c)))
    assert run(plan, [1, "bad"]) == [[lost("bad")]], "no earlier port has the child that is bad"


def test_a_parent_failure_may_go_unheard_where_another_input_failed() -> None:
    d = Draft()
    child = children(d)
    both = d.call(tell, d.call(weak, child), d.call(tell, child))
    plan = d.plan(d.gather(both, failed="drop"))
    assert run(plan, ["bad", 1]) == [[may([1], lost("bad"))]]
    plan = d.plan(d.gather(both, failed="drop"), d.gather(d.call(tell, child), failed="drop"))
    assert run(plan, ["bad", 1]) == [[may([1], lost("bad"))], [lost("bad")]]
