"""Which part of a value goes to which parameter."""

import pytest

from fanfold.data.binding import binder
from fanfold.errors import SourceError
from fanfold.plan import Source, Stream

TWO = [Source("image", Stream(0, 0)), Source("text", Stream(1, 0))]


def test_one_parameter_takes_anything_whole():
    bind = binder(TWO[:1])
    for value in ({"image": 1}, (1, 2), None):
        assert bind("k", value) == (value,)


def test_several_take_mappings_by_name_and_tuples_by_position():
    bind = binder(TWO)
    assert bind("k", {"text": 2, "image": 1, "more": 3}) == (1, 2)
    assert bind("k", (1, 2)) == bind("k", [1, 2]) == (1, 2)


@pytest.mark.parametrize(
    ("value", "words"),
    [({"image": 1}, "a mapping without 'text'"), ((1, 2, 3), "a tuple of 3"), ("ab", "a str")],
)
def test_what_does_not_fit_is_told_with_its_key(value, words):
    with pytest.raises(SourceError, match=f"FF312 .*image, text.*key 'k7' is {words}"):
        binder(TWO)("k7", value)
