"""What only the trace can see: ports misused as values, in containers, of other traces."""

from typing import Any

import pytest

import fanfold as ff
from fanfold.plan import CallNode, ExpandNode, FieldNode
from tests.pipelines import both, compiled, join, lines, named, pages, problem_of, problems_of, read


def line_of(function, text):
    """The number of the first line of a function's source that contains ``text``."""
    import inspect

    source, first = inspect.getsourcelines(function)
    return next(first + offset for offset, line in enumerate(source) if text in line)


def with_if(document):
    if document:
        return read(document)
    return read(document)


def with_and(document):
    return document["a"] and read(document)


def with_loop(document):
    for page in document:
        read(page)
    return read(document)


def with_comparison(document):
    return ff.filter(document, document["n"] == 3)


def with_length(document):
    return read(document, *[None] * len(document))


def with_sum(document):
    return read(document + 1)


@pytest.mark.parametrize(
    ("function", "line", "words"),
    [
        (with_if, "if document", "truth value"),
        (with_and, "and read", "truth value"),
        (with_loop, "for page", "iterated"),
        (with_comparison, "==", "compared with =="),
        (with_length, "len(", "length"),
        (with_sum, "+ 1", "computed with"),
    ],
)
def test_a_port_used_as_a_value_is_told_with_its_line(function, line, words):
    problem = problem_of(function)
    assert problem.code == "FF207"
    assert words in problem.message
    assert problem.where.file == __file__
    assert problem.where.line == line_of(function, line)


@pytest.mark.parametrize("sign", ["+", "-", "*", "/", "//", "%", "**", "@", "&", "|", "^"])
@pytest.mark.parametrize("sides", ["document {} 3", "3 {} document"])
def test_every_operator_is_told_on_either_side(sign, sides):
    def pipeline(document):
        eval(sides.format(sign))
        return document

    assert "computed with" in problem_of(pipeline).message


@pytest.mark.parametrize("sign", ["<", "<=", ">", ">=", "!="])
def test_every_comparison_is_told(sign):
    def pipeline(document):
        eval(f"document {sign} 3")
        return document

    assert sign in problem_of(pipeline).message


def test_ports_can_be_kept_in_dicts_and_lists():
    def pipeline(document):
        kept = {document: "a", read(document): "b"}
        assert document in kept and document in [read(document), document]
        return document

    with pytest.raises(ff.PipelineError) as caught:  # the second read is compared; nothing else is
        compiled(pipeline)
    assert {problem.code for problem in caught.value.problems} == {"FF207"}


def test_unpacking_one_output_says_how_to_have_two():
    def pipeline(document):
        a, b = read(document)
        return a, b

    problems = problems_of(pipeline)
    assert [problem.code for problem in problems] == ["FF207", "FF225"]
    assert "outputs=" in problems[0].hint
    assert "ValueError" in problems[1].message


def test_what_the_function_raises_by_itself_comes_through_with_a_note():
    def pipeline(document):
        return {"a": document}["no such key"]

    with pytest.raises(KeyError) as caught:
        compiled(pipeline)
    assert caught.value.__notes__ == ["(while the pipeline 'pipeline' was traced)"]


def test_an_attribute_of_a_port_says_how_to_read_a_field():
    with pytest.raises(AttributeError, match=r'port\["kind"\] or ff.field'):
        compiled(lambda document: read(document.kind))


@pytest.mark.parametrize(
    "value", [[1, "port"], ("port",), {"a": "port"}, {"a": [("port",)]}], ids=str
)
def test_a_port_inside_of_a_container_is_told(value):
    def put(part, port):
        if isinstance(part, list | tuple):
            return type(part)(put(one, port) for one in part)
        if isinstance(part, dict):
            return {key: put(one, port) for key, one in part.items()}
        return port if part == "port" else part

    for function in (
        lambda document: join(document, b=put(value, document)),
        lambda document: join(document, put(value, document)),
        lambda document: ff.record(a=document, b=put(value, document)),
    ):
        problem = problem_of(function)
        assert problem.code == "FF206" and "'document'" in problem.message


def test_a_container_that_holds_itself_is_no_trap():
    cyclic: list[object] = []
    cyclic.append(cyclic)
    compiled(lambda document: join(document, b=cyclic))


def keeping(kept):
    """A pipeline that lets its port escape."""

    def pipeline(document):
        kept.append(document)
        return document

    return pipeline


def test_a_port_of_another_trace_is_told():
    kept: list[Any] = []
    compiled(keeping(kept))
    for function in (
        lambda document: join(document, kept[0]),
        lambda document: join(document, b=kept[0]),
        lambda document: join(document, kept[0]["a"]),
        lambda document: ff.gather(kept[0]),
        lambda document: ff.record(a=document, b=kept[0]),
        lambda document: kept[0],
    ):
        assert {problem.code for problem in problems_of(function)} == {"FF205"}


def test_a_call_needs_a_port_and_positional_arguments_are_ports():
    assert problem_of(lambda document: read(3)).code == "FF210"
    problem = problem_of(lambda document: join(document, 3))
    assert problem.code == "FF210" and "argument 2 is 3, not a port" in problem.message
    assert "keyword" in problem.hint
    assert problem_of(lambda document: join(a=1, b=2)).code == "FF210"


def test_a_call_must_fit_the_stage():
    for function in (
        lambda document: join(document),
        lambda document: read(document, document),
        lambda document: read(document, dpi=3),
    ):
        assert problem_of(function).code == "FF217"
    assert "missing a required argument: 'b'" in problem_of(lambda d: join(d)).message


def test_the_same_expand_and_the_same_field_again_give_the_same_port():
    def pipeline(document):
        opened = pages(document)
        page = ff.expand(opened, "page")
        assert ff.expand(opened, "page") is page
        assert page["text"] is page["text"] is ff.field(page, "text", str)
        return join(page["text"], ff.expand(opened, "page")["text"])

    plan = compiled(pipeline)
    assert len([node for node in plan.nodes if isinstance(node, ExpandNode)]) == 1
    assert len([node for node in plan.nodes if isinstance(node, FieldNode)]) == 1


def test_lines_are_those_of_the_user():
    def pipeline(document):
        return read(document)

    where = named(compiled(pipeline), CallNode).where
    assert (where.file, where.line) == (__file__, line_of(pipeline, "return read"))


def test_a_problem_is_noted_once_and_what_follows_from_it_is_not():
    def pipeline(document):
        broken = join(document)
        page = ff.expand(read(broken), "page")
        return ff.gather(ff.filter(page, page["a"])), both(broken)[1], broken["x"]

    assert problem_of(pipeline).code == "FF217"


def test_all_problems_are_told_at_once_in_the_order_of_lines():
    def pipeline(document):
        ff.gather(document)
        page = ff.expand(document, "page")
        if document:
            read()
        return read(page, 3), ff.expand(lines(document), "document")

    problems = problems_of(pipeline)
    assert [problem.code for problem in problems] == [
        "FF201",
        "FF202",
        "FF207",
        "FF210",
        "FF210",
        "FF211",
    ]
    assert [problem.where.line for problem in problems] == sorted(p.where.line for p in problems)


def test_a_wrong_stage_made_in_the_function_is_told_with_the_rest():
    def pipeline(document):
        ff.gather(document)
        return ff.stage(len, batch_size=0)(document)

    assert [problem.code for problem in problems_of(pipeline)] == ["FF201", "FF102"]
