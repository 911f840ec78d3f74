"""Calling stages, with values and with ports; binding class stages; names."""

import pickle
from typing import Any

import cloudpickle
import pytest

import fanfold as ff
from fanfold.plan import CallNode
from tests.pipelines import compiled, named, pages, problem_of, read


class Ocr:
    made = 0

    def __init__(self, weights="a", *, size=1):
        type(self).made += 1
        self.weights = weights

    def __call__(self, images):
        return [f"{self.weights}:{image}" for image in images]


@pytest.fixture(autouse=True)
def _count_from_zero():
    Ocr.made = 0


def test_a_function_stage_called_with_values_runs_the_function_here():
    @ff.stage(batch_size=2)
    def double(xs: list[int]) -> list[int]:
        return [2 * x for x in xs]

    assert double([1, 2, 3]) == [2, 4, 6]
    with pytest.raises(TypeError):
        double(3)  # type: ignore[call-overload]


def test_a_generator_stage_called_with_values_gives_the_generator():
    assert list(pages([1, 2])) == [1, 2]


def test_a_class_stage_is_constructed_at_the_first_direct_call_and_once():
    ocr = ff.stage(Ocr, batch_size=2)("w")
    assert Ocr.made == 0
    assert ocr(["x"]) == ["w:x"]
    assert ocr(["y"]) == ["w:y"]
    assert Ocr.made == 1


def test_method_is_called_directly_too():
    class Model:
        def run(self, text):
            return text.upper()

    assert ff.stage(Model, method="run")()("a") == "A"
    assert ff.stage(Model(), method="run")("a") == "A"


def test_a_class_stays_what_it_was():
    ff.stage(Ocr, batch_size=2)
    assert Ocr("v").weights == "v"


def test_binding_twice_with_equal_arguments_gives_the_same_stage():
    ocr = ff.stage(Ocr)
    assert ocr("w") is ocr("w") is ocr(weights="w")
    assert ocr("w") is not ocr("v")
    assert ocr("w", size=1) is not ocr("w", size=True)
    assert ff.stage(Ocr)("w") is not ocr("w")


def test_arguments_whose_comparison_has_no_truth_value_are_equal_to_themselves_only():
    class Array:
        def __eq__(self, other) -> Any:
            return self

        def __bool__(self):
            raise ValueError("the truth value of an array is ambiguous")

        __hash__ = object.__hash__

    ocr, array = ff.stage(Ocr), Array()
    assert ocr(array) is ocr(array)
    assert ocr(array) is not ocr(Array())
    assert ocr([array]) is ocr([array])


def test_wrong_constructor_arguments_are_told_at_the_first_call():
    with pytest.raises(ff.DefinitionError, match=r"FF217 .*Ocr\(weights='a', \*, size=1\)"):
        ff.stage(Ocr)(colour=3)


def test_one_stage_object_is_one_pool_and_its_calls_are_numbered():
    ocr = ff.stage(Ocr, batch_size=4)

    def pipeline(document):
        return ocr("w")(ocr("w")(document)), ocr("v")(document)

    plan = compiled(pipeline)
    assert [(call.name, call.stage) for call in plan.calls()] == [
        ("Ocr", 0),
        ("Ocr#2", 0),
        ("Ocr#3", 1),
    ]
    assert [(stage.args, stage.is_class, stage.batch_size) for stage in plan.stages] == [
        (("w",), True, 4),
        (("v",), True, 4),
    ]


def test_static_keyword_arguments_pass_unchanged_and_ports_pass_by_keyword():
    options = {"dpi": [1, 2]}

    @ff.stage
    def render(page, other, *, how):
        return page

    call = named(compiled(lambda a, b: render(other=a, page=b, how=options)), CallNode)
    assert [(item.port, item.keyword) for item in call.inputs] == [(0, "other"), (1, "page")]
    assert call.static == {"how": options} and call.static["how"] is options


def test_named_outputs_are_attributes_and_unpack():
    @ff.stage(outputs=("text", "score"))
    def recognize(page):
        return page, 1.0

    def pipeline(document):
        both = recognize(document)
        text, score = both
        assert (both.text, both.score) == (text, score)
        return both.score, text

    plan = compiled(pipeline)
    assert [plan.ports[output.port].name for output in plan.outputs] == [
        "recognize.score",
        "recognize.text",
    ]


def test_two_stages_of_one_class_with_equal_arguments_draw_a_warning_that_names_both():
    one, other = ff.stage(Ocr, name="One"), ff.stage(Ocr, name="Other")
    told = r"FF108 stages 'One' \(test_stage\.py:\d+\) and 'Other' \(test_stage\.py:\d+\) are two pools of Ocr"
    with pytest.warns(UserWarning, match=told):
        plan = compiled(lambda document: other("w")(one("w")(document)))
    assert len(plan.stages) == 2


def test_stages_that_differ_in_class_arguments_or_method_are_no_twins():
    class Other(Ocr):
        def again(self, images):
            return images

    pairs = [
        (ff.stage(Ocr)("w"), ff.stage(Ocr)("v")),
        (ff.stage(Ocr)("w"), ff.stage(Other)("w")),
        (ff.stage(Other)("w"), ff.stage(Other, method="again")("w")),
        (ff.stage(len), ff.stage(len)),
    ]
    for one, other in pairs:
        compiled(
            lambda document, *, one=one, other=other: other(one(document))
        )  # a warning is an error


def test_a_class_stage_called_with_a_port_first_is_told_how_to_write_it():
    ocr = ff.stage(Ocr)
    problem = problem_of(lambda document: ocr(document))
    assert problem.code == "FF222" and "Ocr()(port)" in problem.hint


def test_a_port_outside_of_any_pipeline_is_refused():
    kept = []

    def pipeline(document):
        kept.append(document)
        return document

    compiled(pipeline)
    for use in (read, ff.stage(Ocr), ff.gather, lambda port: port["x"], bool):
        with pytest.raises(ff.DefinitionError, match=r"FF205|FF222"):
            use(kept[0])


def test_a_stage_that_other_code_mentions_can_travel():
    ocr = ff.stage(Ocr)("w")
    ocr(["x"])
    again = cloudpickle.loads(cloudpickle.dumps(ocr))
    assert again.name == "Ocr" and again(["x"]) == ["w:x"]
    assert pickle.loads(pickle.dumps(read)).name == "read"


def test_a_stage_looks_like_its_function():
    assert read.__name__ == "read"
    assert repr(read) == "<Stage read>"
    assert repr(ff.stage(Ocr)) == "<ClassStage Ocr>"
    assert ff.stage(Ocr).target is Ocr
