"""What has a form in JSON, and what is said of what has none."""

import dataclasses
import datetime
import enum
import json
from collections import UserDict, namedtuple
from pathlib import Path

import numpy as np
import pytest

from fanfold.data.files import File
from fanfold.data.json_values import NotJson, as_fields, encode
from fanfold.failures import Failure

Point = namedtuple("Point", "x y")


@dataclasses.dataclass
class Box:
    left: int
    label: str


class Kind(enum.Enum):
    SCAN = "scan"


class Level(enum.IntEnum):
    LOW = 1


class Word(enum.StrEnum):
    YES = "yes"


@pytest.mark.parametrize(
    ("value", "form"),
    [
        ("é\n\u2028", "é\n\u2028"),
        (float("nan"), None),
        ([1.5, float("-inf")], [1.5, None]),
        (np.float32(0.5), 0.5),
        (np.float32("nan"), None),
        (np.int64(3), 3),
        (np.bool_(True), True),
        (np.arange(6).reshape(2, 3), [[0, 1, 2], [3, 4, 5]]),
        ((1, (2,)), [1, [2]]),
        (Point(1, 2), [1, 2]),
        (Box(3, "a"), {"left": 3, "label": "a"}),
        ([Box(3, float("inf"))], [{"left": 3, "label": None}]),  # type: ignore[arg-type]
        (UserDict(a=1), {"a": 1}),
        (Kind.SCAN, "scan"),
        (Level.LOW, 1),
        (Word.YES, "yes"),
        (
            {Kind.SCAN: 1, np.int64(2): 2, None: float("nan"), True: 4},
            {"scan": 1, "2": 2, "null": None, "true": 4},
        ),
        (datetime.date(2031, 2, 3), "2031-02-03"),
        (Path("a/b"), "a/b"),
        (File("a/b.pdf"), "a/b.pdf"),
        ("\udc80", "\udc80"),
        (10**30, 10**30),
    ],
)
def test_it_has_a_form(value, form):
    line = encode({"key": "k", "value": value})
    assert line.endswith(b"}\n")
    assert line.count(b"\n") == 1
    again = json.loads(line, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))
    assert again == {"key": "k", "value": form}


def test_a_model_of_pydantic_is_what_it_dumps_itself_as():
    pydantic = pytest.importorskip("pydantic")
    model = pydantic.create_model("Page", when=(datetime.date, ...), score=(float, 0.5))
    page = model(when="2031-02-03", score=float("nan"))
    form = {"when": "2031-02-03", "score": None}
    assert as_fields(page).keys() == form.keys() and as_fields(model) is model
    assert json.loads(encode({"pages": [page]})) == {"pages": [form]}
    assert json.loads(encode({"page": page})) == {"page": form}
    with pytest.raises(NotJson, match=r"record\['page'\] is a .*, which JSON has no form for"):
        encode({"page": model})


def test_a_failure_in_a_record_holds_nothing_that_changes_from_run_to_run():
    failure = Failure(
        kind="declared",
        message="too big",
        code="page.too_large",
        call="render",
        key="a.pdf",
        levels=("document", "page"),
        ordinals=(7, 3),
        attempts=2,
        worker="render[1]",
        traceback="…",
    )
    assert json.loads(encode({"pages": [failure]})) == {
        "pages": [
            {
                "failure": {
                    "kind": "declared",
                    "code": "page.too_large",
                    "message": "too big",
                    "exception": "",
                    "call": "render",
                    "ordinals": {"page": 3},
                }
            }
        ]
    }


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (b"x", r"record\['value'\]\[1\] is bytes"),
        ({1, 2}, r"record\['value'\]\[1\] is a set"),
        (object(), r"record\['value'\]\[1\] is an object"),
        (Box, r"record\['value'\]\[1\] is a type"),
        ({(1, 2): 3}, r"record\['value'\]\[1\] has the field name \(1, 2\) \(tuple\)"),
    ],
)
def test_what_has_none_is_named_with_its_place(value, words):
    with pytest.raises(NotJson, match=words):
        encode({"value": [0, value]})


def test_a_value_that_contains_itself_is_told():
    value: list[object] = []
    value.append(value)
    with pytest.raises(NotJson, match="contains itself"):
        encode({"value": value})


@pytest.mark.parametrize(
    "value", [{1: "a", "1": "b"}, [({None: 1, "null": 2},)], {1.5: 1, "1.5": 2}]
)
def test_two_names_that_json_cannot_tell_apart_are_refused(value):
    with pytest.raises(NotJson, match=r"has two fields whose name in JSON is '(1|null|1\.5)'"):
        encode({"key": "a", "v": value})


def test_names_that_are_not_text_become_text():
    names = {1: "a", "2": "b", None: "c", 1.5: "d"}
    assert encode({"v": names}) == b'{"v": {"1": "a", "2": "b", "null": "c", "1.5": "d"}}\n'


def test_an_integer_that_python_does_not_write_is_refused():
    with pytest.raises(NotJson, match=r"record\['v'\] has an integer of 33220 bits"):
        encode({"v": 10**10_000})
