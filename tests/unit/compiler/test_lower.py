"""What survives into the plan, in which order, and what refers to what."""

import fanfold as ff
from fanfold import plan as fanfold_plan
from fanfold.plan import (
    CallNode,
    ExpandNode,
    FieldNode,
    FilterNode,
    GatherNode,
    MergeNode,
    Plan,
    RecordNode,
    SplitNode,
)
from tests.pipelines import both, compiled, join, lines, named, pages, problem_of, read


class Ocr:
    def __init__(self, weights):
        self.weights = weights

    def __call__(self, images):
        return [str(image) for image in images]


ocr = ff.stage(Ocr, batch_size=32, replicas=4)


def to_text(file, *, weights="ocr.onnx"):
    page = ff.expand(pages(file), "page")
    scanned, native = ff.split(page, page["kind"], into=("scan", "text"))
    text = ff.merge(ocr(weights)(scanned["image"]), ff.field(native, "text", str))
    return ff.record(path=file["path"], pages=ff.gather(text))


def well_formed(plan: Plan) -> None:
    """Indices are positions, and what a node reads was made before it."""
    for things in (plan.levels, plan.stages, plan.ports, plan.nodes, plan.controls, plan.checks):
        assert [thing.index for thing in things] == list(range(len(things)))
    for node in plan.nodes:
        assert list(fanfold_plan.ports_read(node)) == ports_read(node)
        assert list(fanfold_plan.ports_made(node)) == ports_made(node)
        for port in ports_read(node):
            maker = plan.ports[port].node
            assert maker is None or maker < node.index
    for port in plan.ports:
        assert port.node is None or port.index in ports_made(plan.nodes[port.node])
    for control in plan.controls:
        routing = plan.nodes[control.node]
        assert isinstance(routing, FilterNode | SplitNode) and routing.control == control.index
    for check in plan.checks:
        reader = plan.nodes[check.node]
        assert isinstance(reader, FieldNode) and reader.check == check.index
    assert set(plan.streams) == {call.index for call in plan.calls()}


def ports_read(node):
    if isinstance(node, CallNode):
        return [item.port for item in node.inputs]
    if isinstance(node, RecordNode):
        return [part for _, part in node.fields if isinstance(part, int)]
    if isinstance(node, GatherNode) and node.members is not None:
        return [*node.inputs, node.members]
    if isinstance(node, ExpandNode | GatherNode | MergeNode):
        return list(node.inputs)
    more = {FilterNode: "mask", SplitNode: "by"}.get(type(node))
    return [node.input, *([getattr(node, more)] if more else [])]


def ports_made(node):
    return list(node.outputs) if hasattr(node, "outputs") else [node.output]


def test_the_example_becomes_what_it_says():
    plan = compiled(to_text)
    well_formed(plan)
    assert [type(node).__name__.removesuffix("Node") for node in plan.nodes] == [
        "Call",
        "Expand",
        "Field",
        "Split",
        "Field",
        "Call",
        "Field",
        "Merge",
        "Field",
        "Gather",
        "Record",
    ]
    assert [(call.name, plan.levels[call.level].name) for call in plan.calls()] == [
        ("pages", "document"),
        ("Ocr", "page"),
    ]
    assert [stage.generator for stage in plan.stages] == [True, False]
    stage = plan.stages[1]
    assert (stage.target, stage.args, stage.batch_size, stage.replicas) == (
        Ocr,
        ("ocr.onnx",),
        32,
        4,
    )
    assert plan.structure == "single" and plan.outputs[0].name is None
    (control,) = plan.controls
    assert (control.kind, control.labels, control.rest) == ("label", ("scan", "text"), False)


def test_outputs_keep_names_order_and_structure():
    plan = compiled(lambda a, b: {"x": b, "y": a})
    assert plan.structure == "dict"
    assert [(output.name, output.port) for output in plan.outputs] == [("x", 1), ("y", 0)]
    assert compiled(lambda a: (a, a)).structure == "tuple"
    assert compiled(lambda a: [a]).structure == "tuple"
    assert compiled(lambda a: a).structure == "single"


def test_sources_are_in_the_order_of_the_parameters():
    plan = compiled(lambda a, b: join(b, a))
    assert [(s.name, s.stream.port, s.stream.position) for s in plan.sources] == [
        ("a", 0, 0),
        ("b", 1, 1),
    ]


def test_operations_that_nobody_reads_leave_no_trace():
    def pipeline(document):
        opened = pages(document)
        page = ff.expand(opened, "page")
        ff.gather(page)
        page["unused"]
        ff.record(a=document)
        ff.merge(document, document["b"])
        return read(opened)

    plan = compiled(pipeline)
    well_formed(plan)
    assert [type(node) for node in plan.nodes] == [CallNode, CallNode]
    assert len(plan.levels) == 1 and plan.checks == ()


def test_levels_are_numbered_anew_without_the_unread_ones():
    def pipeline(document):
        a, b = both(document)
        ff.expand(a, "unread")
        line = ff.expand(lines(ff.expand(b, "page")), "line")
        return ff.gather(line)

    plan = compiled(pipeline)
    well_formed(plan)
    assert [level.name for level in plan.levels] == ["document", "page", "line"]
    assert [level.parent for level in plan.levels] == [None, 0, 1]


def test_calls_from_which_no_output_can_be_reached_are_effects():
    def audited(document):
        page = ff.expand(pages(document), "page")
        line = ff.expand(lines(page), "line")
        join(document, read(line["text"]))  # two effects; only they need the level of lines
        line["unused"]
        return ff.gather(page)

    plan = compiled(audited)
    well_formed(plan)
    effects = [plan.call(index) for index in plan.effects]
    assert [call.name for call in effects] == ["lines", "read", "join"]
    assert [plan.levels[call.level].name for call in effects] == ["page", "line", "line"]
    assert [check.name for check in plan.checks] == ["text"]
    assert [stream.stored for stream in plan.streams[plan.effects[1]].items] == [True]
    assert plan.streams[plan.effects[2]].items == (), "nobody reads what it returns"

    assert compiled(lambda document: ff.filter(document, read(document))).effects == ()
    assert len(compiled(lambda d: (read(read(d)), d)[1]).effects) == 2


def test_no_source_and_no_output_are_refused():
    assert problem_of(lambda: None).code == "FF208"
    nothings: tuple[object, ...] = (None, (), {}, [])
    for nothing in nothings:
        assert problem_of(lambda document, nothing=None, *, n=nothing: n).code == "FF220"
        assert problem_of(lambda document, *, n=nothing: n).code == "FF209"


def test_outputs_are_ports():
    for wrong in (3, ["a"], {"a": 3}, lambda: None):
        problem = problem_of(lambda document, *, w=wrong: w)
        assert problem.code == "FF218" and "not a port" in problem.message
    assert problem_of(lambda document: {3: document}).code == "FF218"


def test_a_split_keeps_all_its_outputs_though_one_is_unread():
    def pipeline(document):
        scan, _ = ff.split(document, document["kind"], into=("scan", "text"))
        return scan

    assert len(named(compiled(pipeline), SplitNode).outputs) == 2


def test_plans_do_not_depend_on_how_often_they_are_made():
    first, second = compiled(to_text), compiled(to_text)
    assert first.nodes == second.nodes and first.streams == second.streams
    assert isinstance(named(first, FieldNode), FieldNode)
