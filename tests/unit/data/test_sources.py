"""Sources of plain values: laziness, keys, what is refused."""

import enum

import numpy as np
import pytest

from fanfold.data.sources import Source, from_items
from fanfold.errors import SourceError, UsageError


class Word(enum.Enum):
    ONE = "one"


def test_keys_are_positions_unless_said_otherwise():
    assert list(from_items("ab")) == [("0", "a"), ("1", "b")]
    assert from_items("ab").unique_keys


@pytest.mark.parametrize(
    ("key", "found"),
    [("name", "x"), (lambda item: item["n"], "3"), (lambda item: np.int64(item["n"]), "3")],
)
def test_keys_come_from_a_field_or_a_function(key, found):
    source = from_items([{"name": "x", "n": 3}], key=key)
    assert [k for k, _ in source] == [found]
    assert not source.unique_keys


@pytest.mark.parametrize("key", [None, "", 1.5, True, b"x", Word.ONE])
def test_what_cannot_name_anything_is_no_key(key):
    with pytest.raises(SourceError, match=r"FF305 item 0 has the key"):
        list(from_items([key], key=lambda item: item))


def test_a_missing_key_field_is_told_with_what_there_is():
    with pytest.raises(SourceError, match=r"FF304 item 1 has no field 'id' .* fields are name"):
        list(from_items([{"id": 1}, {"name": 2}], key="id"))


def test_nothing_is_pulled_before_it_is_asked_for():
    pulled: list[int] = []

    def numbers():
        for n in range(10):
            pulled.append(n)
            yield n

    source = iter(from_items(numbers()).take(5))
    assert pulled == []
    assert next(source) == ("0", 0)
    assert pulled == [0]
    assert [key for key, _ in source] == ["1", "2", "3", "4"]
    assert pulled == [0, 1, 2, 3, 4]


def test_an_iterator_that_was_read_is_not_an_empty_source():
    source = from_items(iter([1, 2]))
    assert len(list(source)) == 2
    with pytest.raises(SourceError, match="FF303"):
        iter(source)


def test_a_list_can_be_read_again():
    source = from_items([1, 2])
    assert list(source) == list(source)


def test_take_keeps_what_is_known_of_keys_and_says_what_it_is():
    class Own(Source[int]):
        unique_keys = True

        def __iter__(self):
            yield "a", 1

        def __repr__(self) -> str:
            return "own"

    assert Own().take(3).unique_keys
    assert repr(Own().take(3)) == "own.take(3)"
    with pytest.raises(UsageError, match="FF302"):
        Own().take(-1)


def test_what_is_no_iterable_is_refused():
    with pytest.raises(UsageError, match="FF301"):
        from_items(3)  # type: ignore[arg-type]
