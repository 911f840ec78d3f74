"""What the producers must deliver: values that somebody reads, and reports for the rest."""

import fanfold as ff
from fanfold.plan import CallStreams, ExpandNode, Plan, Stream
from tests.pipelines import both, compiled, lines, named, pages, read


def streams_of(plan: Plan, call: str) -> CallStreams:
    return next(plan.streams[node.index] for node in plan.calls() if node.name == call)


def reports(plan: Plan, stream: Stream) -> list[tuple[str, tuple[str, ...]]]:
    """The names of the fields that a stream reports on, with the paths."""
    return [(plan.checks[check].name, path) for check, path in stream.checks]


def test_an_expanded_output_has_a_child_stream_and_no_item_stream():
    plan = compiled(lambda document: ff.gather(ff.expand(pages(document), "page")))
    streams = streams_of(plan, "pages")
    assert streams.items == ()
    (expansion,) = streams.expansions
    (stream,) = expansion.streams
    assert (stream.level, stream.position, stream.path, stream.stored) == (1, 0, (), True)
    assert stream.port == named(plan, ExpandNode).outputs[0]
    assert expansion.node == named(plan, ExpandNode).index


def test_an_output_read_whole_has_an_item_stream_as_well():
    def pipeline(document):
        opened = pages(document)
        return read(opened), ff.gather(ff.expand(opened, "page"))

    streams = streams_of(compiled(pipeline), "pages")
    assert [item.stored for item in streams.items] == [True]
    assert len(streams.expansions) == 1


def test_an_output_that_only_routes_is_reported_and_not_stored():
    def pipeline(document):
        return ff.filter(document, read(document)["good"])

    plan = compiled(pipeline)
    (item,) = streams_of(plan, "read").items
    assert not item.stored
    assert item.controls == ((0, ("good",)),)
    assert reports(plan, item) == [("good", ())]


def test_an_output_that_nobody_looks_at_has_no_stream():
    plan = compiled(lambda document: both(document)[1])
    (item,) = streams_of(plan, "both").items
    assert item.position == 1


def test_masks_and_fields_are_reported_by_every_producer_behind_a_merge():
    def pipeline(document):
        page = ff.expand(pages(document), "page")
        merged = ff.merge(read(page), page["native"], ff.broadcast(document, like=page))
        return ff.filter(merged, merged["keep"])

    plan = compiled(pipeline)
    (item,) = streams_of(plan, "read").items
    (child,) = streams_of(plan, "pages").expansions[0].streams
    assert item.controls == ((0, ("keep",)),)
    assert child.controls == ((0, ("native", "keep")),)
    assert plan.sources[0].stream.controls == ((0, ("keep",)),)
    assert reports(plan, item) == [("keep", ())]
    assert reports(plan, child) == [("native", ()), ("keep", ("native",))]
    assert reports(plan, plan.sources[0].stream) == [("keep", ())]
    assert item.stored and child.stored and plan.sources[0].stream.stored


def test_a_child_that_only_its_number_matters_is_not_stored():
    def pipeline(document):
        page = ff.expand(pages(document), "page")
        return ff.gather(ff.broadcast(document, like=page))

    (child,) = streams_of(compiled(pipeline), "pages").expansions[0].streams
    assert not child.stored


def test_of_aligned_gathers_the_unread_one_needs_no_values():
    def pipeline(document):
        a, b = ff.expand(*both(document), "page")
        return ff.gather(a, b)[0]

    expansion = streams_of(compiled(pipeline), "both").expansions[0]
    assert [stream.stored for stream in expansion.streams] == [True, False]
    assert [stream.position for stream in expansion.streams] == [0, 1]


def test_an_expanded_field_is_checked_and_its_path_is_told():
    def pipeline(document):
        result = read(document)
        line = ff.expand(lines(ff.expand(result["a"]["b"], "page")), "line")
        return ff.gather(ff.gather(line))

    plan = compiled(pipeline)
    streams = streams_of(plan, "read")
    (item,) = streams.items
    assert not item.stored and reports(plan, item) == [("a", ()), ("b", ("a",))]
    assert streams.expansions[0].streams[0].path == ("a", "b")


def test_unused_sources_are_not_stored():
    plan = compiled(lambda a, b: read(a))
    assert [source.stream.stored for source in plan.sources] == [True, False]


def test_what_a_dead_end_would_report_is_not_asked_for():
    def pipeline(document):
        ff.filter(document, document["keep"])["x"]
        return read(document)

    plan = compiled(pipeline)
    assert (plan.controls, plan.checks) == ((), ())
    stream = plan.sources[0].stream
    assert (stream.controls, stream.checks) == ((), ())
