"""When a run equals its meaning, and what is said where it does not."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from fanfold.failures import Failure
from fanfold.outcomes import Outcome
from fanfold.testing.cases import DROPPED, Item
from fanfold.testing.comparison import Seen, compare, compare_failures, same_failure
from fanfold.testing.interpreter import Interpretation
from tests.plans import fan_out_plan

PLAN = replace(fan_out_plan(), outputs=(replace(fan_out_plan().outputs[0], port=3),))
"""Its output is port 3, at the level of pages."""


def failure(message: str, **more: Any) -> Failure:
    return Failure(
        kind="declared",
        message=message,
        key="0",
        levels=("document", "page"),
        ordinals=(0, 0),
        **more,
    )


A, B, C = failure("a"), failure("b"), failure("c")
CUT = Item(Outcome.SUPPRESSED, causes=frozenset({A, B}))
ONE = Item(Outcome.DONE, 1)
MAYBE = replace(ONE, otherwise=(Item(Outcome.DONE, 2), CUT))


def differences(expected: dict[int, Item], seen: dict[int, Seen]) -> list[str]:
    """Of the pages of the one document, by ordinal."""
    meant: dict[tuple[int, ...], Item] = {(0, page): item for page, item in expected.items()}
    observed: dict[tuple[int, ...], Seen] = {(0, page): one for page, one in seen.items()}
    return compare(PLAN, Interpretation({3: meant}), {3: observed})


def test_an_exact_item_is_one_thing() -> None:
    assert differences({0: ONE}, {0: Seen(Outcome.DONE, 1)}) == []
    for seen in (Seen(Outcome.DONE, 2), Seen(Outcome.DONE, True), Seen(Outcome.DROPPED)):
        assert len(differences({0: ONE}, {0: seen})) == 1
    assert differences({0: CUT}, {0: Seen(Outcome.SUPPRESSED, failure=B)}) == []
    for seen in (Seen(Outcome.SUPPRESSED, failure=C), Seen(Outcome.SUPPRESSED), Seen(Outcome.DONE)):
        assert len(differences({0: CUT}, {0: seen})) == 1
    assert "is missing" in differences({0: DROPPED}, {})[0]
    assert "does not exist" in differences({}, {0: Seen(Outcome.DROPPED)})[0]


def test_an_item_that_may_be_several_things_is_one_of_them() -> None:
    for good in (
        Seen(Outcome.DONE, 1),
        Seen(Outcome.DONE, 2),
        Seen(Outcome.SUPPRESSED, failure=A),
    ):
        assert differences({0: MAYBE}, {0: good}) == []
    for bad in (
        Seen(Outcome.DONE, 3),
        Seen(Outcome.SUPPRESSED, failure=C),
        Seen(Outcome.FAILED, failure=A),
        Seen(Outcome.DROPPED),
    ):
        (text,) = differences({0: MAYBE}, {0: bad})
        assert text.count(" or ") >= 2, "all that it may be is told"


def test_children_that_a_run_may_lack_are_lacking_from_the_end() -> None:
    rare = replace(ONE, optional=True)
    done = Seen(Outcome.DONE, 1)
    expected = {0: rare, 1: rare, 2: rare}
    for there in ({}, {0: done}, {0: done, 1: done}, {0: done, 1: done, 2: done}):
        assert differences(expected, there) == []
    assert len(differences(expected, {1: done})) == 1, "the first cannot be lacking then"
    assert len(differences(expected, {0: Seen(Outcome.DONE, 5)})) == 1


def test_what_is_listed_can_happen_and_tells_of_each_lost_output() -> None:
    def listed(item: Item, *failures: Failure) -> list[str]:
        return compare_failures(PLAN, Interpretation({3: {(0, 0): item}}), {0: failures})

    assert listed(CUT, A) == listed(CUT, A, B) == listed(MAYBE) == listed(MAYBE, B) == []
    assert len(listed(CUT)) == 1
    assert len(listed(MAYBE, C)) == 1
    both = replace(CUT, otherwise=(Item(Outcome.FAILED, causes=frozenset({C})),))
    assert listed(both, C) == listed(both, A) == [], "lost either way, and either cause will do"
    assert len(listed(both)) == 1
    assert listed(replace(CUT, optional=True)) == [], "a run may lack it"


def test_a_parent_failure_is_not_an_item_failure() -> None:
    assert same_failure(A, replace(A, worker="w[0]", attempts=2, traceback="…"))
    assert not same_failure(A, replace(A, scope="parent"))
