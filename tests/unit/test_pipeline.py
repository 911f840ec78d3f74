"""The front door: compiling, changing, inlining, and what is handed to the driver."""

import pickle
import re
import subprocess
import sys
import threading
import types
from typing import Any

import cloudpickle
import pytest

import fanfold as ff
import fanfold.driver
from fanfold.plan import BroadcastNode, CallNode
from tests.pipelines import compiled, join, lines, named, pages, problem_of, read


class Ocr:
    def __init__(self, weights, size=1):
        self.weights = weights

    def __call__(self, images):
        return [str(image) for image in images]


ocr = ff.stage(Ocr, batch_size=32)


@ff.pipeline(level="document")
def to_text(file: ff.Port[str], *, weights: str = "a.onnx", dpi: int = 150) -> ff.Port[object]:
    """Read documents."""
    page = ff.expand(pages(file), "page")
    return ff.gather(read(ocr(weights)(page)))


@pytest.fixture
def driver(monkeypatch):
    """A driver that notes what it is asked for."""
    asked = []

    def note(name):
        def function(*args, **kwargs):
            asked.append((name, args, kwargs))
            return name

        return function

    names = ("run", "stream", "call", "check")
    fake = types.SimpleNamespace(asked=asked, **{name: note(name) for name in names})
    monkeypatch.setattr(fanfold.driver, "run", fake, raising=False)
    return fake


# ------------------------------------------------------------------------------------------ declaring


def test_a_pipeline_keeps_the_name_and_words_of_its_function():
    assert to_text.name == to_text.__name__ == "to_text"
    assert to_text.__doc__ == "Read documents."
    assert repr(to_text) == "<Pipeline to_text(file)>"
    assert ff.pipeline(name="other")(lambda item: item).name == "other"
    assert ff.pipeline(lambda item: item).plan().levels[0].name == "item"


@pytest.mark.parametrize("level", ["", None, 3])
def test_the_root_level_has_a_name(level):
    with pytest.raises(ff.DefinitionError, match="FF220"):
        ff.pipeline(level=level)(lambda item: item)


def test_only_plain_functions_are_pipelines():
    def generator(item):
        yield item

    async def coroutine(item):
        return item

    for wrong in (generator, coroutine, len, Ocr):
        with pytest.raises(ff.DefinitionError, match="FF220"):
            ff.pipeline(wrong)
    with pytest.raises(
        ff.DefinitionError, match=r"FF220 .*<Stage read>.*\(def\) that calls stages"
    ):
        ff.pipeline(read)


def test_sources_are_plain_positional_parameters():
    for wrong in (lambda *items: items[0], lambda item, **more: item, lambda item=None: item):
        assert problem_of(wrong).code == "FF220"
    assert compiled(lambda item, /, other: join(item, other)).sources[1].name == "other"


def test_the_plan_is_made_once():
    assert to_text.plan() is to_text.plan()
    assert to_text.stages == ("Ocr", "pages", "read")


# ------------------------------------------------------------------------------------------- changing


def test_using_changes_a_copy():
    changed = to_text.using({"weights": "b.onnx", "Ocr.batch_size": 8, "read.replicas": 3})
    by_name = {stage.name: stage for stage in changed.plan().stages}
    assert by_name["Ocr"].args == ("b.onnx",) and by_name["Ocr"].batch_size == 8
    assert by_name["read"].replicas == 3
    assert to_text.plan().stages[1].args == ("a.onnx",)
    assert changed.settings == {"weights": "b.onnx", "dpi": 150}
    assert to_text.settings == {"weights": "a.onnx", "dpi": 150}


def test_later_changes_go_on_top_of_earlier_ones():
    changed = to_text.using({"Ocr.batch_size": 8, "Ocr.cpus": 2}).using({"Ocr.batch_size": 4})
    stage = changed.plan().stages[1]
    assert (stage.batch_size, stage.cpus) == (4, 2)


def test_a_plain_callable_takes_the_place_and_the_options_of_a_stage():
    def fake(images):
        return images

    changed = to_text.using({"Ocr": fake, "Ocr.batch_size": 2})
    stage = changed.plan().stages[1]
    assert (stage.name, stage.target, stage.is_class, stage.args) == ("Ocr", fake, False, ())
    assert stage.batch_size == 2
    assert [call.name for call in changed.plan().calls()] == ["pages", "Ocr", "read"]
    assert to_text.using({"Ocr": fake}).plan().stages[1].batch_size == 32


def test_what_an_error_comes_to_is_an_option_that_a_plain_callable_takes_over():
    strict = ff.stage(len, name="strict", on_error="stop")
    measured = ff.pipeline(lambda item: strict(item))
    assert measured.using({"strict": sum}).plan().stages[0].on_error == "stop"
    assert measured.using({"strict.on_error": "fail"}).plan().stages[0].on_error == "fail"
    assert measured.parse("strict.on_error", "stop") == "stop"


def test_a_class_takes_over_the_constructor_arguments_if_they_fit():
    class Fake(Ocr):
        pass

    class Plain:
        def __call__(self, images):
            return images

    assert to_text.using({"Ocr": Fake}).plan().stages[1].args == ("a.onnx",)
    assert to_text.using({"Ocr": Plain}).plan().stages[1].args == ()


def test_a_stage_takes_the_place_with_its_own_options():
    changed = to_text.using({"Ocr": ff.stage(Ocr, batch_size=5, name="Small")("w")})
    stage = changed.plan().stages[1]
    assert (stage.name, stage.args, stage.batch_size) == ("Ocr", ("w",), 5)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"read.batch_size": 8}, "stage 'read' was declared without batch_size"),
        ({"Ocr.batch_size": None}, "stage 'Ocr' was declared with batch_size=32"),
        ({"Ocr": ff.stage(len), "Ocr.batch_size": 8}, "stage 'Ocr' was declared without"),
    ],
)
def test_what_was_written_for_items_is_not_given_lists_nor_the_other_way_round(changes, told):
    with pytest.raises(ff.DefinitionError, match="FF109") as caught:
        to_text.using(changes)
    assert told in str(caught.value)


def test_a_callable_that_takes_a_stages_place_may_be_batched_anew():
    changed = to_text.using({"read": lambda items: items, "read.batch_size": 8})
    assert {stage.name: stage.batch_size for stage in changed.plan().stages}["read"] == 8


def test_one_replacement_is_one_pool():
    @ff.pipeline
    def twice(item):
        return read(read(item))

    plan = twice.using({"read": lambda item: item}).plan()
    assert len(plan.stages) == 1 and [call.name for call in plan.calls()] == ["read", "read#2"]


def test_only_a_callable_takes_a_stages_place():
    words = "FF221 .*'to_text': 5 cannot take the place of stage 'read'. Only a stage or another callable"
    with pytest.raises(ff.DefinitionError, match=words):
        to_text.using({"read": 5})
    with pytest.raises(ff.DefinitionError, match=r"'5' cannot .* options are read\.batch_size"):
        to_text.parse("read", "5")


def test_a_replacement_must_have_as_many_outputs():
    with pytest.raises(ff.DefinitionError, match=r"FF102 .*has 2 outputs, not 1"):
        to_text.using({"read": ff.stage(len, outputs=2)})


@pytest.mark.parametrize(
    ("key", "hint"),
    [
        ("weight", "Did you mean 'weights'?"),
        ("Ocrr", "Did you mean 'Ocr'?"),
        ("Ocrr.batch_size", "Did you mean"),
        ("nothing.replicas", "Stages: Ocr, pages, read"),
        ("zzz", "Settings: weights, dpi. Stages: Ocr, pages, read."),
        ("Ocr.batchsize", "Did you mean 'batch_size'?"),
        ("Ocr.cores", "Here it is cpus=, the cores of one replica."),
        (
            "Ocr.outputs",
            "Known: batch_by, batch_bytes, batch_cost, batch_size, cpus, gpus, linger_s, max_batch_cost",
        ),
    ],
)
def test_an_unknown_key_is_told_with_the_known_ones(key, hint):
    for value in (3, len):
        with pytest.raises(ff.DefinitionError) as caught:
            to_text.using({key: value})
        assert caught.value.code == "FF221" and hint in caught.value.hint


def test_how_batches_form_may_be_changed_also_by_text():
    changed = to_text.using({"Ocr.linger_s": to_text.parse("Ocr.linger_s", "0.25")})
    assert {stage.name: stage.linger_s for stage in changed.plan().stages}["Ocr"] == 0.25
    for text in ("128MB", "128000000"):
        size = to_text.parse("Ocr.batch_bytes", text)
        changed = changed.using({"Ocr.batch_bytes": size})
        assert {stage.name: stage.batch_bytes for stage in changed.plan().stages}[
            "Ocr"
        ] == 128 * 10**6
    fake = changed.using({"Ocr": lambda images, **_: images})
    (kept,) = [stage for stage in fake.plan().stages if stage.name == "Ocr"]
    assert (kept.linger_s, kept.batch_bytes) == (0.25, 128 * 10**6)
    assert "batches of up to 32 or 128,000,000 bytes, lingering 0.25 s" in changed.explain()
    grouped = changed.using({"Ocr.batch_by": len})
    assert "32 or 128,000,000 bytes of equal len, lingering" in grouped.explain()
    with pytest.raises(ff.DefinitionError, match=r"batch_by='len' is not a function"):
        to_text.using({"Ocr.batch_by": to_text.parse("Ocr.batch_by", "len")})
    with pytest.raises(ff.DefinitionError, match=r"FF112 .* stage 'read' takes one item at a time"):
        to_text.using({"read.linger_s": 1.0})


def test_a_wrong_value_of_an_option_is_told():
    with pytest.raises(ff.DefinitionError, match="FF102"):
        to_text.using({"Ocr.batch_size": 0})
    with pytest.raises(ff.DefinitionError, match="FF105"):
        to_text.using({"pages.batch_size": 2})


def test_a_setting_without_a_default_must_be_given():
    @ff.pipeline
    def needy(item, *, weights, more=1):
        return ocr(weights)(item)

    with pytest.raises(
        ff.PipelineError, match=r"FF224 .*'weights'.* or weights=… in a direct call\."
    ):
        needy.plan()
    assert "weights" not in needy.settings
    changed = needy.using({"Ocr.batch_size": 4}).using({"weights": "w"})
    assert changed.plan().stages[0].batch_size == 4


def test_text_becomes_values_for_using():
    assert to_text.parse("dpi", "300") == 300
    assert to_text.parse("weights", "300") == "300"
    assert to_text.parse("Ocr.batch_size", "8") == 8
    assert to_text.parse("Ocr.batch_size", "none") is None
    with pytest.raises(ff.DefinitionError, match="FF224"):
        to_text.parse("dpi", "high")
    with pytest.raises(ff.DefinitionError, match="FF224"):
        to_text.parse("Ocr.replicas", "many")
    for unknown in ("dpii", "Ocr.batch", "Ocr"):
        with pytest.raises(ff.DefinitionError, match="FF221"):
            to_text.parse(unknown, "1")


# ------------------------------------------------------------------------------------------- inlining


@ff.pipeline(level="page")
def page_text(page, *, level="line"):
    line = ff.expand(lines(page), level)
    return {"text": ff.gather(read(line)), "page": page}


def test_a_pipeline_called_with_ports_is_inlined_where_the_port_is():
    @ff.pipeline(level="document")
    def outer(document):
        page = ff.expand(pages(document), "page")
        parts = page_text(page)
        other = page_text(page=page, level="row")
        return ff.record(a=ff.gather(parts["text"]), b=ff.gather(other["text"]))

    plan = outer.plan()
    assert [level.name for level in plan.levels] == ["document", "page", "line", "row"]
    assert [call.name for call in plan.calls()] == ["pages", "lines", "read", "lines#2", "read#2"]
    assert len(plan.stages) == 3


def test_inlining_twice_with_one_level_name_says_what_to_do():
    problem = problem_of(lambda d: (page_text(d)["text"], page_text(d)["text"]))
    assert problem.code == "FF211" and "make the name a setting" in problem.hint


def test_changes_of_an_inlined_pipeline_hold_inside_of_it_and_the_outer_ones_on_top():
    inner = page_text.using({"read.replicas": 3, "read.cpus": 2})

    @ff.pipeline
    def outer(item):
        return inner(item)["text"], read(item)

    def replicas(pipeline):
        return {
            (stage.replicas, stage.cpus) for stage in pipeline.plan().stages if stage.name == "read"
        }

    assert replicas(outer) == {(3, 2), (1, None)}
    assert replicas(outer.using({"read.replicas": 5})) == {(5, 2), (5, None)}
    assert replicas(outer.using({"read": lambda item: item})) == {(3, 2), (1, None)}


def test_an_inlined_record_can_be_read_and_broadcast():
    @ff.pipeline
    def inner(item):
        return ff.record(a=read(item), b=1)

    @ff.pipeline
    def outer(item):
        part = ff.expand(lines(item), "part")
        return join(inner(item)["a"], part)

    assert isinstance(named(outer.plan(), BroadcastNode), BroadcastNode)


def test_an_inlined_pipeline_takes_ports():
    assert problem_of(lambda document: page_text(3)).code == "FF210"
    for wrong in (
        lambda document: page_text(document, document),
        lambda document: page_text(),
        lambda document: page_text(document, colour=document),
    ):
        problem = problem_of(wrong)
        assert problem.code == "FF227" and "It takes page, level=." in problem.hint


# ------------------------------------------------------------------------------------------- pickling

SCRIPT = """\
import pickle, sys
import fanfold as ff

@ff.stage
def shout(text):
    return text.upper()

@ff.pipeline
def loud(text, *, mark="!"):
    return shout(text)

if __name__ == "__main__":
    for one in (loud, loud.using({"mark": "?"})):
        with open(sys.argv[1], "ab") as file:
            pickle.dump(one, file)
"""


def test_a_pipeline_of_a_module_is_pickled_by_name():
    data = pickle.dumps(to_text)
    assert len(data) < 100 and pickle.loads(data) is to_text


@pytest.mark.parametrize("dumps", [pickle.dumps, cloudpickle.dumps])
def test_any_other_pipeline_is_pickled_by_value(dumps):
    @ff.pipeline(level="line")
    def local(item, *, size=1):
        return read(item)

    for one in (local, local.using({"size": 3, "read.replicas": 2}), to_text.using({"dpi": 3})):
        again = pickle.loads(dumps(one))
        assert again is not one and again.settings == one.settings
        assert again.explain() == one.explain()


def test_a_pipeline_of_a_script_can_be_read_where_the_script_is_not(tmp_path):
    (tmp_path / "script.py").write_text(SCRIPT)
    subprocess.run([sys.executable, "script.py", "pickled"], cwd=tmp_path, check=True)
    with (tmp_path / "pickled").open("rb") as file:
        one, changed = pickle.load(file), pickle.load(file)
    assert one("a") == "A" and changed.settings["mark"] == "?"


def test_a_pipeline_that_holds_what_cannot_be_pickled_says_so():
    lock = threading.Lock()

    @ff.pipeline
    def locked(item):
        return ff.stage(lambda text: lock)(item)

    with pytest.raises(ff.DefinitionError, match=r"FF229 pipeline 'locked' .*lock") as told:
        pickle.dumps(locked)
    assert "module" in told.value.hint


# -------------------------------------------------------------------------------------------- running


def test_plain_values_go_to_the_driver_in_the_order_of_the_sources(driver):
    @ff.pipeline
    def two(a, b, *, k=1):
        return join(a, b)

    assert two(1, b=2) == "call"
    assert two(b=2, a=1, k=5) == "call"
    assert [args[1] for _, args, _ in driver.asked] == [(1, 2), (1, 2)]
    assert driver.asked[0][1][0] is two.plan()
    with pytest.raises(
        ff.DefinitionError, match=r"FF227 .* other arguments .* It takes a, b, k=\."
    ):
        two(1)


def test_a_mistyped_argument_is_told_with_the_one_that_was_meant(driver):
    @ff.pipeline
    def marked(text, *, mark="!"):
        return join(text, text)

    with pytest.raises(ff.DefinitionError) as caught:
        marked("a", mrak="?")
    assert "has no argument 'mrak', given at test_pipeline.py:" in caught.value.message
    assert caught.value.hint == "Did you mean 'mark'? It takes text, mark=."
    with pytest.raises(ff.DefinitionError) as caught:
        marked("a", colour="red")
    assert caught.value.code == "FF227" and caught.value.hint == "It takes text, mark=."


def test_ports_outside_of_a_pipeline_are_refused():
    kept = []

    def escaping(document):
        kept.append(document)
        return document

    compiled(escaping)
    with pytest.raises(ff.DefinitionError, match="FF205"):
        to_text(kept[0])


def test_run_stream_and_check_go_to_the_driver(driver):
    given: list[Any] = [
        to_text.run([1], "sink", backend="inline", limit=3),
        to_text.stream([1], order="completed"),
        to_text.check([1], n=2),
    ]
    assert given == ["run", "stream", "check"]
    run, stream, check = driver.asked
    assert run[1] == (to_text.plan(), [1], "sink")
    assert run[2]["backend"] == "inline" and run[2]["limit"] == 3 and run[2]["order"] == "source"
    assert stream[2]["order"] == "completed"
    assert check[1] == (to_text.plan(), [1], 2)


def test_nothing_runs_before_the_pipeline_is_right(driver):
    wrong = ff.pipeline(lambda document: ff.gather(document))
    for use in (wrong.run, wrong.stream, wrong.check, wrong):
        with pytest.raises(ff.PipelineError, match="FF201"):
            use([1])
    assert driver.asked == []


def test_explain_shows_settings_and_their_defaults():
    text = to_text.using({"dpi": 300}).explain()
    assert re.search(
        r"^settings\n  weights  'a.onnx'  the default\n  dpi +300 +default: 150$", text, re.M
    )


def test_run_options_that_come_later_are_refused_by_name(driver):
    for use in (to_text.run, to_text.stream):
        with pytest.raises(ff.UsageError, match=r"FF228 .*'resume' is not available yet"):
            use([1], resume=True)
        for name in ("retries", "timeout"):
            with pytest.raises(ff.UsageError, match=f"FF228 .*{name!r} is not available yet"):
                use([1], **dict[str, Any]({name: 3}))
        with pytest.raises(ff.UsageError, match=r"FF228 .*'weights' is a setting .*\.using"):
            use([1], weights="x")
        with pytest.raises(ff.UsageError, match=r"no option 'bakcend'. Did you mean 'backend'\?"):
            use([1], bakcend="inline")
    with pytest.raises(ff.UsageError, match=r"stream\(\) has no option 'limit'. Known: backend, "):
        to_text.stream([1], limit=1)
    assert driver.asked == []


def test_a_call_node_knows_its_line():
    where = named(to_text.plan(), CallNode).where
    assert where.short().startswith("test_pipeline.py:")
