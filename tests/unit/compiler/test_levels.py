"""Which operations fit together: the level tree and every check that compares levels."""

import pytest

import fanfold as ff
from fanfold.plan import BroadcastNode, CallNode, ExpandNode, GatherNode, RecordNode
from tests.pipelines import both, compiled, join, lines, named, pages, problem_of, problems_of, read


def page_of(document):
    return ff.expand(pages(document), "page")


def test_levels_form_a_tree_named_by_the_expands():
    def pipeline(document):
        page = page_of(document)
        line = ff.expand(lines(page), "line")
        frame = ff.expand(lines(document), "frame")
        return ff.gather(ff.gather(line)), ff.gather(frame)

    plan = compiled(pipeline)
    assert [(level.name, level.parent, level.depth) for level in plan.levels] == [
        ("document", None, 0),
        ("page", 0, 1),
        ("line", 1, 2),
        ("frame", 0, 1),
    ]
    for level in plan.levels[1:]:
        expand = plan.nodes[level.expand or 0]
        assert isinstance(expand, ExpandNode) and expand.level == level.index
    gathers = [node for node in plan.nodes if isinstance(node, GatherNode)]
    assert [(node.child_level, node.level) for node in gathers] == [(2, 1), (1, 0), (3, 0)]


def test_gather_at_the_root_has_no_parent():
    problem = problem_of(lambda document: ff.gather(read(document)))
    assert problem.code == "FF201" and "'document'" in problem.message


def test_gather_of_several_ports_wants_one_level():
    def pipeline(document):
        page = page_of(document)
        return ff.gather(page, ff.expand(lines(page), "line"))

    problem = problem_of(pipeline)
    assert problem.code == "FF204"
    assert "'page' (level 'page') and port 'line' (level 'line')" in problem.message


@pytest.mark.parametrize(
    ("opened", "what"),
    [
        (lambda document: document, "a source"),
        (lambda document: document["pages"], "a source"),
        (lambda document: ff.gather(page_of(document)), "made by gather"),
        (lambda document: ff.filter(read(document), read(document)), "made by filter"),
        (lambda document: ff.record(a=document)["a"], "made by record"),
        (page_of, "made by expand"),
    ],
)
def test_only_what_a_call_returns_can_be_expanded(opened, what):
    problem = problem_of(lambda document: ff.expand(opened(document), "x"))
    assert problem.code == "FF202"
    assert what in problem.message


def test_a_field_of_what_a_call_returns_can_be_expanded():
    def pipeline(document):
        result = read(document)
        page = ff.expand(result["deep"]["pages"], "page")
        return ff.gather(page)

    plan = compiled(pipeline)
    (expansion,) = plan.streams[0].expansions
    assert expansion.streams[0].path == ("deep", "pages")
    assert plan.nodes[named(plan, ExpandNode).call].name == "read"


def test_aligned_ports_are_outputs_of_one_call():
    problem = problem_of(lambda d: ff.expand(pages(d), pages(d), "page"))
    assert problem.code == "FF204" and "'pages' and 'pages#2'" in problem.message

    def fields(document):
        result = read(document)
        return ff.gather(*ff.expand(result["a"], result["b"], "page"))

    assert len(named(compiled(fields), ExpandNode).inputs) == 2


def test_a_port_is_expanded_in_one_way_only():
    def two_names(document):
        opened = pages(document)
        return ff.expand(opened, "page"), ff.expand(opened, "leaf")

    def alone_and_aligned(document):
        a, b = both(document)
        return ff.expand(a, "page"), *ff.expand(a, b, "leaf")

    for pipeline in (two_names, alone_and_aligned):
        problem = problem_of(pipeline)
        assert problem.code == "FF212"
        assert "'page'" in problem.message and "'leaf'" in problem.message
    compiled(lambda d: [ff.expand(port, name) for port, name in zip(both(d), "ab", strict=True)])


@pytest.mark.parametrize(("name", "first"), [("document", "the root"), ("page", "test_levels.py:")])
def test_level_names_differ(name, first):
    problem = problem_of(lambda d: (ff.gather(page_of(d)), ff.expand(lines(d), name)))
    assert problem.code == "FF211" and first in problem.message


def test_sibling_levels_do_not_join_and_the_message_says_what_to_gather():
    def pipeline(document):
        page, frame = page_of(document), ff.expand(lines(document), "frame")
        return join(page, frame)

    problem = problem_of(pipeline)
    assert problem.code == "FF203"
    assert "call 'join' joins levels 'page' and 'frame', which are siblings" in problem.message
    assert problem.hint == "Gather port 'frame' to 'document' first."


def test_cousins_say_how_far_to_gather():
    def pipeline(document):
        line = ff.expand(lines(page_of(document)), "line")
        region = ff.expand(pages(ff.expand(lines(document), "frame")), "region")
        return ff.record(a=line, b=region)

    problem = problem_of(pipeline)
    assert problem.code == "FF203" and "have only 'document' in common" in problem.message
    assert problem.hint == "Gather port 'region' to 'frame' and then to 'document' first."


def test_a_call_and_a_record_run_at_the_deepest_level_and_broadcast_step_by_step():
    def pipeline(document):
        page = page_of(document)
        line = ff.expand(lines(page), "line")
        joined = join(document, line)
        return ff.record(a=document, b=joined, c=page), join(line, document)

    plan = compiled(pipeline)
    broadcasts = [node for node in plan.nodes if isinstance(node, BroadcastNode)]
    ways = [(plan.ports[node.input].level, node.level) for node in broadcasts]
    assert ways == [(0, 1), (1, 2), (1, 2)], "document twice, page once; none of them again"
    assert plan.ports[broadcasts[1].input].node == broadcasts[0].index
    for node in plan.nodes:
        if isinstance(node, CallNode | RecordNode):
            ports = (
                [item.port for item in node.inputs]
                if isinstance(node, CallNode)
                else [part for _, part in node.fields if isinstance(part, int)]
            )
            assert {plan.ports[port].level for port in ports} == {node.level}


def test_explicit_broadcasts_share_nodes_with_implicit_ones():
    def pipeline(document):
        page = page_of(document)
        return (
            join(page, document),
            ff.broadcast(document, like=page),
            ff.broadcast(page, like=page),
        )

    plan = compiled(pipeline)
    assert len([node for node in plan.nodes if isinstance(node, BroadcastNode)]) == 1
    assert plan.outputs[2].port == named(plan, ExpandNode).outputs[0], "at its own level: no copy"


def test_what_a_broadcast_is_to_be_like_matters_for_its_level_alone():
    def pipeline(document):
        page = page_of(document)
        return ff.broadcast(document, like=read(page))

    plan = compiled(pipeline)
    assert [plan.call(index).name for index in plan.effects] == ["read"]

    def like_a_filtered_port(document):
        page = page_of(document)
        return ff.broadcast(document, like=ff.filter(page, page["keep"]))

    plan = compiled(like_a_filtered_port)
    assert [type(node).__name__ for node in plan.nodes] == [
        "CallNode",
        "ExpandNode",
        "BroadcastNode",
    ]


def test_broadcasts_go_down_only():
    def up(document):
        return ff.broadcast(page_of(document), like=document)

    def across(document):
        return ff.broadcast(page_of(document), like=ff.expand(lines(document), "frame"))

    for pipeline in (up, across):
        assert problem_of(pipeline).code == "FF214"


@pytest.mark.parametrize(
    "operation",
    [
        lambda page, document: ff.filter(page, read(document)),
        lambda page, document: ff.filter(document, page["keep"]),
        lambda page, document: ff.split(page, read(document), into=(1, 2)),
        lambda page, document: ff.merge(page, document),
    ],
)
def test_filters_splits_and_merges_never_broadcast(operation):
    problem = problem_of(lambda document: operation(page_of(document), document))
    assert problem.code == "FF214"
    assert "(level 'page')" in problem.message and "(level 'document')" in problem.message


def test_a_broken_level_is_told_once_however_far_it_reaches():
    def pipeline(document):
        page, frame = page_of(document), ff.expand(lines(document), "frame")
        wrong = join(page, frame)
        merged = ff.merge(wrong, page)
        line = ff.expand(read(merged), "line")
        return (
            ff.gather(ff.filter(line, line["keep"])),
            ff.broadcast(document, like=line),
            wrong["x"],
        )

    assert problem_of(pipeline).code == "FF203"


def test_problems_say_how_many_they_are_and_pickle():
    import pickle

    def pipeline(document):
        ff.gather(document)
        return ff.expand(document, "page")

    problems = problems_of(pipeline)
    assert len(problems) == 2
    error = ff.PipelineError("pipeline", problems)
    assert error.code == "FF200" and "has 2 problems" in str(error)
    assert all(str(problem) in str(error) for problem in problems)
    again = pickle.loads(pickle.dumps(error))
    assert again.problems == error.problems and str(again) == str(error)
    single = ff.PipelineError("pipeline", problems[:1])
    assert single.code == problems[0].code and problems[0].hint in str(single)
