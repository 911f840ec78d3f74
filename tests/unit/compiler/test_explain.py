"""What ``explain`` shows, as text and as a picture, and what it warns of."""

import re

import pytest

import fanfold as ff
from fanfold.compiler.advice import advice
from tests.pipelines import compiled, join, pages, read


class Ocr:
    def __init__(self, weights, **options):
        self.weights = weights

    def __call__(self, images):
        return [str(image) for image in images]


ocr = ff.stage(Ocr, batch_size=32, replicas=4, cpus=2)


@ff.pipeline(level="document")
def to_text(file, extra):
    opened = pages(file)
    page = ff.expand(opened, "page")
    scan, native, rest = ff.split(page, page["kind"], into=("scan", 'te"xt', ...))
    text = ff.merge(ocr("w", big="x" * 99)(scan), native, rest, default=None, failed="next")
    kept = ff.filter(join(text, b=file), page["keep"])
    return {
        "all": ff.record(pages=ff.gather(kept, failed="mark"), whole=read(opened)),
        "page": kept,
    }


def test_the_text_tells_levels_calls_queues_pools_broadcasts_and_warnings():
    text = to_text.explain()
    for pattern in (
        r"^pipeline to_text$",
        r"^  document  the source: file, extra$",
        r"^    page    expand of pages  test_explain.py:\d+$",
        r"^calls, each with a ready queue of its own$",
        r"^  pages +document  one item at a time, yields children  reads file ",
        r"^  Ocr +page +batches of up to 32 +reads split\(page, 'scan'\) ",
        r"^  join +page +one item at a time +reads merge\(.*, b=file@page ",
        r"^  Ocr +4 workers  2 cores each  Ocr\('w', big=<str>\)  for Ocr$",
        r"^  page +split page by page\['kind'\] into 'scan', 'te\"xt', \.\.\.",
        r'^  page +merge .*, default=None, failed="next"',
        r'^  document  gather filter\(join\) of each page, failed="mark"',
        r"^broadcasts, each one level down$",
        r"^  file  document to page ",
        r"^  all   record\(pages, whole\)  one record per document$",
        r"^  page  filter\(join\)          one record per page$",
        r"^  port 'pages' is read unexpanded beside its level 'page': every child is kept",
        r"^  source 'extra' is never read$",
    ):
        assert re.search(pattern, text, re.MULTILINE), f"{pattern}\n\n{text}"


def test_threads_asynchronous_stages_and_secrets_are_shown_as_they_are():
    async def fetch(item, *, token):
        return item

    async def fetch_all(items):
        return items

    one = ff.stage(
        fetch, name="one", max_in_flight=4, workers="thread", replicas=2, rate_limit="30/min"
    )
    many = ff.stage(fetch_all, name="many", batch_size=8, max_in_flight=2)

    @ff.pipeline
    def pipeline(item):
        return many(one(ocr(ff.Secret("TOKEN"))(item), token=ff.Secret("TOKEN")))

    text = pipeline.explain()
    for pattern in (
        r"^  one +item +4 items going, at most 30 calls a minute ",
        r"^  many +item +batches of up to 8, 2 going ",
        r"^  one +2 threads ",
        r"^  many +1 worker ",
        r"Ocr\(Secret\(name='TOKEN'\)\)",
    ):
        assert re.search(pattern, text, re.MULTILINE), f"{pattern}\n\n{text}"


def test_sections_without_content_are_left_out():
    text = compiled_explain(lambda document: document)
    assert "calls" not in text and "broadcasts" not in text and "warnings" not in text


def compiled_explain(function):
    return ff.pipeline(function).explain()


def test_the_picture_has_every_level_call_and_arrow():
    picture = to_text.explain("mermaid")
    lines = [line.strip() for line in picture.splitlines()]
    assert lines[0] == "flowchart TB"
    assert lines.count("end") == 2
    plan = to_text.plan()
    for node in plan.nodes:
        shapes = [line for line in lines if re.match(rf"N{node.index}\W", line) and "-" not in line]
        assert len(shapes) == 1, (node, shapes)
    assert 'L0["document"]' in picture and 'L1["page"]' in picture
    assert "4 × Ocr, batch 32" in picture
    assert "te&quot;xt" in picture, "a quote would end the label"
    assert len([line for line in lines if "-.->" in line]) == 2, "one label, one mask"
    assert sum("--> O" in line for line in lines) == 2
    made = set(re.findall(r"^\s*([NSO]\d+)[\[(]", picture, re.MULTILINE))
    used = set(re.findall(r"\b([NSO]\d+)\b(?= -)|(?<=> )([NSO]\d+)", picture))
    assert {name for pair in used for name in pair if name} <= made


def test_names_that_would_be_read_as_markup_are_escaped():
    nameless = ff.stage(lambda item: item)
    picture = ff.pipeline(lambda item: nameless(item)).explain("mermaid")
    assert "<lambda>" not in picture and picture.count("&lt;lambda&gt;") == 2


def test_another_format_is_refused():
    with pytest.raises(ff.UsageError, match="FF226"):
        to_text.explain("svg")  # type: ignore[arg-type]


def test_a_generator_read_unexpanded_draws_a_warning():
    (warning,) = advice(compiled(lambda document: read(pages(document))))
    assert "generator" in warning


def gathered(**options):
    def pipeline(document):
        page = ff.expand(pages(document), "page")
        text = read(page)
        if "members" in options:
            options["members"] = page
        return ff.gather(text, **options)

    return pipeline


def test_what_a_gather_asks_of_its_members_is_told():
    text = compiled_explain(gathered(failed="drop", at_least=0.9, members=...))
    assert 'gather read of each page, failed="drop", at_least=0.9, members=page  ' in text
    assert "at_least=3  " in compiled_explain(gathered(at_least=3))
    assert "at_least=1.0  " in compiled_explain(gathered(failed="mark", at_least=1.0))
    picture = ff.pipeline(gathered(members=...)).explain("mermaid")
    assert len(re.findall(r"-\.->", picture)) == 1, "members are looked at for their outcomes alone"


def test_a_share_beside_which_the_first_failure_decides_draws_a_warning():
    (warning,) = advice(compiled(gathered(at_least=0.9)))
    assert re.match(r"gather of read \(test_explain\.py:\d+\) has at_least=0\.9 with", warning)
    for options in ({"at_least": 3}, {"at_least": 0.9, "failed": "drop"}):
        assert advice(compiled(gathered(**options))) == ()


def audited(document):
    page = ff.expand(pages(document), "page")
    read(page)
    return ff.gather(page)


def test_effects_are_told_in_the_text_and_in_the_picture():
    text = compiled_explain(audited)
    assert re.search(
        r"^effects, which no output depends on\n  read  once per page  test_explain\.py:\d+$",
        text,
        re.MULTILINE,
    )
    picture = ff.pipeline(audited).explain("mermaid")
    assert picture.count("<br/>effect") == 1 and "1 × read<br/>effect" in picture
    assert "effect" not in compiled_explain(lambda document: read(document))


def test_an_ordinary_plan_draws_none():
    assert advice(compiled(lambda document: ff.gather(ff.expand(pages(document), "page")))) == ()


def routed(returned):
    def pipeline(document, kind):
        a, b = ff.split(document, kind, into=("a", "b"))
        return returned(a, b)

    return pipeline


def test_a_call_that_needs_two_routes_draws_a_warning():
    for returned in (join, lambda a, b: join(read(a), ff.gather(ff.expand(pages(b), "page")))):
        (warning,) = advice(compiled(routed(returned)))
        assert re.match(
            r"call 'join' reads two routes of one split \(test_explain\.py:\d+\)", warning
        )


def test_a_record_that_needs_two_routes_draws_a_warning():
    plan = compiled(routed(lambda a, b: ff.record(x=a, y=read(b))))
    assert advice(plan)[0].startswith("record (test_explain.py:")


def test_a_filter_and_a_split_by_the_other_route_draw_a_warning():
    plan = compiled(routed(lambda a, b: ff.filter(a, read(b))))
    assert advice(plan)[0].startswith("filter (test_explain.py:")
    plan = compiled(routed(lambda a, b: ff.split(a, read(b), into=("x", ...))[0]))
    assert advice(plan)[0].startswith("split (test_explain.py:")


def test_two_routes_returned_at_the_root_level_draw_a_warning():
    both_routes = ff.pipeline(level="shard")(routed(lambda a, b: {"a": read(a), "b": b}))
    assert "every shard is dropped at one of them" in both_routes.explain()


def test_routes_that_meet_again_draw_none():
    for returned in (
        lambda a, b: ff.merge(read(a), b),
        lambda a, b: join(a, ff.merge(read(a), b)),
        lambda a, b: join(a, ff.merge(b, default=None)),
        lambda a, b: read(a),
    ):
        assert advice(compiled(routed(returned))) == ()


def test_routes_below_the_root_level_may_both_be_returned():
    def pipeline(document):
        page = ff.expand(pages(document), "page")
        a, b = ff.split(page, read(page), into=("a", "b"))
        return {"a": a, "b": b, "all": ff.record(a=ff.gather(a), b=ff.gather(b))}

    assert advice(compiled(pipeline)) == ()
