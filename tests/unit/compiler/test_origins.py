"""Masks, labels and fields: followed back to who makes them, or refused."""

import enum

import pytest

import fanfold as ff
from fanfold.compiler.origins import Fixed, Made, Opaque, origins
from fanfold.model.declaration import declare, trace
from fanfold.model.overrides import Overrides
from tests.pipelines import both, compiled, lines, pages, problem_of, problems_of, read


class Kind(enum.Enum):
    SCAN = "scan"
    TEXT = "text"


def traced(function):
    graph, _ = trace(declare(function, name=None, level="document"), {}, Overrides())
    return graph


def page_of(document):
    return ff.expand(pages(document), "page")


def test_a_path_leads_back_through_all_operations_to_every_producer():
    def pipeline(document):
        page = page_of(document)
        a, b = ff.split(page, page["kind"], into=("a", "b"))
        merged = ff.merge(read(a), ff.filter(b, b["good"]), ff.broadcast(document, like=page))
        return merged["x"]["y"]

    graph = traced(pipeline)
    names = {
        (graph.ports[origin.port].name, origin.path)
        for origin in origins(graph, graph.outputs[0][1])
        if isinstance(origin, Made)
    }
    assert names == {("read", ("x", "y")), ("page", ("x", "y")), ("document", ("x", "y"))}


def test_merges_of_merges_are_looked_at_once():
    def pipeline(document):
        port = document
        for _ in range(40):
            port = ff.merge(port, port)
        return port["x"]

    graph = traced(pipeline)
    assert origins(graph, graph.outputs[0][1]) == [Made(0, ("x",))]


def test_constants_and_lists_are_told_apart():
    def pipeline(document):
        return ff.merge(document, default={"x": 3})["x"], ff.gather(page_of(document))

    graph = traced(pipeline)
    assert Fixed(3, "merge's default") in origins(graph, graph.outputs[0][1])
    (opaque,) = origins(graph, graph.outputs[1][1])
    assert isinstance(opaque, Opaque) and "gather(page)" in opaque.what


@pytest.mark.parametrize(
    "mask",
    [
        lambda document: ff.gather(page_of(document)),
        lambda document: ff.merge(read(document), ff.gather(page_of(document))),
        lambda document: ff.record(a=document),
        lambda document: ff.record(a=document)["a"],
        lambda document: ff.record(a=document, b=True)["b"],
        lambda document: ff.merge(read(document), default="yes"),
        lambda document: ff.merge(read(document), default=1),
        pages,
    ],
)
def test_a_mask_off_the_control_path_is_refused(mask):
    problem = problem_of(lambda document: ff.filter(document, mask(document)))
    assert problem.code == "FF213" and problem.hint
    assert problem_of(
        lambda document: ff.split(document, mask(document), into=("a", "b"))
    ).code == ("FF213")


def test_masks_and_labels_on_the_control_path_are_welcome():
    def pipeline(document):
        page = page_of(document)
        kept = ff.filter(page, ff.merge(read(page), page["keep"], default=False))
        first, rest = ff.split(
            kept, ff.merge(kept["kind"], default=Kind.TEXT), into=(Kind.SCAN, ...)
        )
        return first, rest, ff.filter(document, document)

    compiled(pipeline)


def test_a_default_label_must_be_listed_unless_there_is_a_rest():
    def pipeline(default, into):
        return lambda document: ff.split(document, ff.merge(document, default=default), into=into)

    assert problem_of(pipeline("c", ("a", "b"))).code == "FF213"
    assert problem_of(pipeline([], ("a", "b"))).code == "FF213"
    compiled(pipeline("a", ("a", "b")))
    compiled(pipeline("c", ("a", "b", ...)))


@pytest.mark.parametrize(
    ("port", "reason"),
    [
        (lambda document: ff.gather(page_of(document)), "gathered list"),
        (pages, "children of generator"),
        (lambda document: ff.record(a=document), "with the fields a lacks it"),
        (lambda document: ff.merge(document, default=None), "merge's default None"),
        (lambda document: ff.merge(document, default={"y": 1}), "merge's default {'y': 1}"),
        (lambda document: ff.record(a=document, b={"y": 1})["b"], "field 'b' {'y': 1}"),
    ],
)
def test_a_field_that_is_certain_to_be_missing_is_refused(port, reason):
    problem = problem_of(lambda document: port(document)["x"])
    assert problem.code == "FF215" and reason in problem.message


def test_a_missing_field_is_told_once_though_more_is_read_of_it():
    def pipeline(document):
        missing = ff.gather(page_of(document))["x"]
        return ff.filter(document, missing["y"]["z"]), *ff.split(document, missing, into=(1, 2))

    assert problem_of(pipeline).code == "FF215"


def test_fields_of_records_are_those_of_their_parts():
    def pipeline(document):
        record = ff.record(a=read(document), b={"y": 1})
        return record["a"]["x"], record["b"]["y"], ff.filter(record, document)["a"]["z"]

    plan = compiled(pipeline)
    (item,) = plan.streams[0].items
    assert [(plan.checks[check].name, path) for check, path in item.checks] == [
        ("x", ()),
        ("z", ()),
    ]


def test_problems_of_several_kinds_come_together():
    def pipeline(document):
        a, b = both(document)
        page, line = ff.expand(a, "page"), ff.expand(lines(b), "line")
        return ff.filter(page, ff.gather(line)), ff.gather(page)["x"]

    assert sorted(problem.code for problem in problems_of(pipeline)) == ["FF213", "FF214", "FF215"]
