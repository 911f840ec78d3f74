"""Text turned into values of settings."""

import enum
from pathlib import Path
from typing import Annotated, Any, Literal, Optional

import pytest

import fanfold as ff
from fanfold.model.declaration import declare
from fanfold.model.settings import Setting, parse_text


class Kind(enum.Enum):
    SCAN = "scan"
    TEXT = 2


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        ("a b", str, "a b"),
        ("8", int, 8),
        ("0.5", float, 0.5),
        ("1e3", float, 1000.0),
        ("yes", bool, True),
        ("False", bool, False),
        ("scan", Kind, Kind.SCAN),
        ("2", Kind, Kind.TEXT),
        ("TEXT", Kind, Kind.TEXT),
        ("fast", Literal["fast", 3], "fast"),
        ("3", Literal["fast", 3], 3),
        ("none", int | None, None),
        ("7", Optional[int], 7),  # noqa: UP045  the old form is read as well
        ("x", int | str, "x"),
        ("5", str | int, 5),
        ("a/b", Path, Path("a/b")),
        ("1, 2", list[int], [1, 2]),
        ("a,b", tuple[str, ...], ("a", "b")),
        ("[1, 2]", list[int], [1, 2]),
        ("", list[int], []),
        ('{"a": 1}', dict[str, int], {"a": 1}),
        ("3", Annotated[int, "dots per inch"], 3),
        ("text", Any, "text"),
        ("text", complex, "text"),
    ],
)
def test_text_is_read_by_type(text, kind, value):
    found = parse_text("setting 'x'", text, kind)
    assert found == value and type(found) is type(value)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("x", int),
        ("1.5", int),
        ("maybe", bool),
        ("photo", Kind),
        ("slow", Literal["fast"]),
        ("x", int | None),
        ("1,x", list[int]),
        ("[1", list[int]),
        ("[1]", dict[str, int]),
    ],
)
def test_text_that_is_no_such_value_is_refused(text, kind):
    with pytest.raises(ff.DefinitionError) as caught:
        parse_text("setting 'x'", text, kind)
    assert caught.value.code == "FF224"
    assert "setting 'x'" in caught.value.message and repr(text) in caught.value.message


def test_choices_are_told_in_words():
    with pytest.raises(ff.DefinitionError) as caught:
        parse_text("setting 'x'", "slow", Literal["fast", "exact"])
    assert str(caught.value) == (
        "FF224 setting 'x': 'slow' is none of its values. Give one of 'fast', 'exact'."
    )


@pytest.mark.parametrize(
    ("text", "kind", "told"),
    [
        ("x", int, "'x' is no int. Give a whole number such as 8."),
        ("x", float, "'x' is no float. Give a number such as 0.5."),
        ("x", int | None, "'x' is no int or None. Give a whole number such as 8, or none."),
        ("x", Optional[int], "'x' is no int or None. Give a whole number such as 8, or none."),  # noqa: UP045
        (
            "x",
            int | bool,
            "'x' is no int or bool. Give a whole number such as 8, or true or false.",
        ),
        ("1,x", list[int], "'1,x' is no list[int]. Give a whole number such as 8."),
    ],
)
def test_what_a_setting_takes_is_told_in_words(text, kind, told):
    with pytest.raises(ff.DefinitionError) as caught:
        parse_text("setting 'x'", text, kind)
    assert str(caught.value) == f"FF224 setting 'x': {told}"


def test_a_setting_without_an_annotation_is_read_by_its_default():
    def function(item, *, a=1, b=None, c, d: "int | None" = None, e: "Nowhere" = 2.5):  # type: ignore[name-defined]  # noqa: F821
        return item

    settings = declare(function, name=None, level="item").settings
    assert settings["a"].parse("3") == 3
    assert settings["b"].parse("3") == "3"
    assert settings["c"].required and settings["c"].parse("3") == "3"
    assert settings["d"].default is None and not settings["d"].required
    assert settings["e"].parse("3") == 3.0, "an annotation that means nothing here is passed over"


def test_annotations_as_text_are_understood():
    assert Setting("x", 1, int).parse("4") == 4
    assert Setting("x", 1, "int").parse("4") == 4
