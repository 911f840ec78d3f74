"""What the operations say of their own arguments; how they fit together is the compiler's."""

import math
from fractions import Fraction
from typing import Any

import pytest

import fanfold as ff
from fanfold.plan import (
    AtLeast,
    Constant,
    ExpandNode,
    FilterNode,
    GatherNode,
    MergeNode,
    RecordNode,
    SplitNode,
)
from tests.pipelines import both, compiled, named, pages, problem_of, read

untyped: Any = ff
"""For what type checkers would refuse before the trace does."""


def page_of(document):
    return ff.expand(pages(document), "page")


@pytest.mark.parametrize("arguments", [(), ("page",), (1,), ("port", 3), ("port", ""), ("port",)])
def test_expand_needs_ports_and_a_name(arguments):
    def pipeline(document):
        given = [pages(document) if one == "port" else one for one in arguments]
        return ff.expand(*given)

    assert problem_of(pipeline).code in ("FF219", "FF210")


def test_expand_of_several_ports_gives_as_many():
    def pipeline(document):
        a, b = ff.expand(*both(document), "page")
        return ff.gather(a, b)

    plan = compiled(pipeline)
    expand, gather = named(plan, ExpandNode), named(plan, GatherNode)
    assert len(expand.outputs) == len(gather.inputs) == len(gather.outputs) == 2
    assert plan.structure == "tuple"


@pytest.mark.parametrize("failed", ["fail", "drop", "mark"])
def test_gather_says_what_a_failed_member_does(failed):
    plan = compiled(lambda document: ff.gather(page_of(document), failed=failed))
    assert named(plan, GatherNode).failed == failed


@pytest.mark.parametrize(
    ("written", "least"),
    [
        (0, AtLeast(count=0)),
        (1, AtLeast(count=1)),
        (3, AtLeast(count=3)),
        (0.0, AtLeast(share=Fraction(0))),
        (0.9, AtLeast(share=Fraction(9, 10))),
        (1 / 3, AtLeast(share=Fraction("0.3333333333333333"))),
        (1e-7, AtLeast(share=Fraction(1, 10**7))),
        (1.0, AtLeast(share=Fraction(1))),
    ],
)
def test_at_least_is_a_count_or_the_decimal_that_was_written(written, least):
    plan = compiled(lambda d: ff.gather(page_of(d), failed="drop", at_least=written))
    assert named(plan, GatherNode).at_least == least


@pytest.mark.parametrize(
    ("written", "why"),
    [
        (-1, "is negative"),
        (True, "is neither a count nor a share"),
        ("3", "is neither a count nor a share"),
        (math.nan, "is no share"),
        (math.inf, "is no share"),
        (1.1, "is no share"),
        (3.0, "is no share"),
        (-0.1, "is no share"),
    ],
)
def test_what_at_least_cannot_be_is_refused(written, why):
    problem = problem_of(lambda d: ff.gather(page_of(d), at_least=written))
    assert problem.code == "FF219"
    assert f"at_least={written!r} {why}" in problem.message


def test_members_are_a_port_of_the_same_level():
    def pipeline(document):
        page = page_of(document)
        return ff.gather(page, read(page), members=ff.filter(page, page["keep"]))

    plan = compiled(pipeline)
    gather = named(plan, GatherNode)
    assert plan.ports[gather.members].name == "filter(page)"
    assert gather.at_least is None and len(gather.inputs) == 2
    for members in (3, "page", [read]):
        problem = problem_of(lambda d, *, m=members: untyped.gather(page_of(d), members=m))
        assert problem.code == "FF210" and "members=" in problem.message
    problem = problem_of(lambda d: ff.gather(page_of(d), members=d))
    assert problem.code == "FF214" and "port 'd' (level 'document')" in problem.message


def test_unknown_options_and_choices_are_refused():
    assert problem_of(lambda d: untyped.gather(page_of(d), falied="drop")).code == "FF104"
    problem = problem_of(lambda d: untyped.gather(page_of(d), failed="skip"))
    assert problem.code == "FF219" and "'fail', 'drop', 'mark'" in problem.message
    assert problem_of(lambda d: untyped.merge(d, failed="mark")).code == "FF219"


def test_an_operation_without_a_port_is_refused():
    assert problem_of(lambda document: untyped.gather()).code == "FF210"
    assert problem_of(lambda document: untyped.merge(default=3)).code == "FF210"
    assert problem_of(lambda document: untyped.record(a=3)).code == "FF210"
    assert problem_of(lambda document: untyped.filter(document, True)).code == "FF210"


def test_split_gives_a_port_for_each_entry_and_one_for_the_rest():
    def pipeline(document):
        page = page_of(document)
        scan, text, rest = ff.split(page, page["kind"], into=("scan", "text", ...))
        return scan, text, rest

    plan = compiled(pipeline)
    split = named(plan, SplitNode)
    assert split.labels == ("scan", "text") and split.rest and len(split.outputs) == 3
    plan = compiled(lambda document: ff.split(document, document["k"], into=[1, 2]))
    assert not named(plan, SplitNode).rest and len(plan.outputs) == 2


@pytest.mark.parametrize(
    "into", ["scan", (), (...,), (..., "a"), ("a", "a"), (["a"],), 3, None], ids=str
)
def test_labels_that_cannot_be_are_refused(into):
    problem = problem_of(lambda document: ff.split(document, document["k"], into=into))
    assert problem.code == "FF219" and "into" in problem.message


def test_a_port_is_no_label_and_no_default():
    assert problem_of(lambda d: ff.split(d, d["k"], into=(d, "a"))).code == "FF219"
    assert problem_of(lambda d: ff.merge(d, default=d["x"])).code == "FF206"


def test_merge_tells_a_default_of_none_from_no_default():
    assert named(compiled(lambda d: ff.merge(d, d["x"])), MergeNode).default is None
    assert named(compiled(lambda d: ff.merge(d, default=None)), MergeNode).default == Constant(None)
    assert named(compiled(lambda d: ff.merge(d, failed="next")), MergeNode).failed == "next"


def test_filter_keeps_by_a_mask():
    node = named(compiled(lambda document: ff.filter(document, read(document))), FilterNode)
    assert (node.level, node.input) == (0, 0)


def test_record_keeps_the_order_and_the_constants():
    node = named(compiled(lambda d: ff.record(b=d, a=[1], c=None)), RecordNode)
    assert node.fields == (("b", 0), ("a", Constant([1])), ("c", Constant(None)))


def test_a_field_is_named_by_a_string():
    assert problem_of(lambda document: document[0]).code == "FF219"
    assert problem_of(lambda document: document[1:3]).code == "FF219"


@pytest.mark.parametrize(
    "operation",
    [
        lambda: untyped.expand("a", "b"),
        lambda: untyped.gather(),
        lambda: untyped.filter(1, 2),
        lambda: untyped.split(1, 2, into=(3,)),
        lambda: untyped.merge(),
        lambda: untyped.broadcast(1, like=2),
        lambda: untyped.record(),
        lambda: untyped.field(1, "x", int),
    ],
)
def test_operations_stand_in_pipelines_only(operation):
    with pytest.raises(ff.DefinitionError, match="FF205") as caught:
        operation()
    assert "test_ops.py" in caught.value.message


def test_a_secret_does_not_become_a_value_of_items():
    def recorded(n):
        return ff.record(n=n, token=[ff.Secret("TOKEN")])

    def merged(n):
        return ff.merge(n, default=ff.Secret("TOKEN"))

    for function, word in ((recorded, "record: field 'token'"), (merged, "merge: default")):
        problem = problem_of(function)
        assert problem.code == "FF223" and word in problem.message
