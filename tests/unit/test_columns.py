"""Columns: each tag of the grammar, from lists and from blocks."""

from __future__ import annotations

import pickle
from collections import UserDict
from types import SimpleNamespace
from typing import Any

import pytest

from fanfold.blocks.codec import Block, Encoder, write
from fanfold.columns import assemble, bit_positions, constant_blob, get_field
from fanfold.failures import Failure

LETTERS = list("abcdefgh")


def as_block(rows: list[Any]) -> Block:
    parts, size = Encoder().encode(rows)
    memory = bytearray(size)
    write(parts, memoryview(memory))
    return Block(memoryview(memory))


BLOCKS: dict[Any, list[Any]] = {
    "letters": LETTERS,
    "numbers": list(range(8)),
    "dicts": [{"a": i, "b": -i} for i in range(8)],
    "objects": [{"a": 0}, SimpleNamespace(a=1), UserDict(a=2)],
}


@pytest.fixture(params=["lists", "blocks"])
def read(request):
    if request.param == "lists":
        return BLOCKS.__getitem__
    blocks = {name: as_block(rows) for name, rows in BLOCKS.items()}
    return blocks.__getitem__


ROWS = ("rows", "letters", 2, 3)
FAILURE = Failure(kind="raised", message="m")


@pytest.mark.parametrize(
    ("column", "values"),
    [
        (ROWS, ["c", "d", "e"]),
        (("rows", "letters", 0, 0), []),
        (("pick", "letters", 1, 0b10011), ["b", "c", "f"]),
        (("pick", "letters", 7, 1), ["h"]),
        (("cat", (ROWS, ("pick", "numbers", 0, 0b100))), ["c", "d", "e", 2]),
        (("cat", ()), []),
        (("weave", 0b0110, ("rows", "numbers", 0, 2), ("rows", "letters", 0, 2)), ["a", 0, 1, "b"]),
        (("weave", 0, ("cat", ()), ROWS), ["c", "d", "e"]),
        (("spread", ROWS, (2, 0, 1)), ["c", "c", "e"]),
        (("const", constant_blob([1]), 2), [[1], [1]]),
        (("failures", (FAILURE,)), [FAILURE]),
        (("field", ("rows", "dicts", 1, 2), "b"), [-1, -2]),
        (("field", ("rows", "objects", 0, 3), "a"), [0, 1, 2]),
        (("field", ("cat", ()), "a"), []),
        (
            ("record", ("x", "y"), (ROWS, ("rows", "numbers", 0, 3)), 3),
            [{"x": "c", "y": 0}, {"x": "d", "y": 1}, {"x": "e", "y": 2}],
        ),
        (("record", (), (), 2), [{}, {}]),
        (("lists", ("rows", "numbers", 0, 5), (2, 0, 3)), [[0, 1], [], [2, 3, 4]]),
        (("lists", ("lists", ("rows", "numbers", 0, 4), (1, 3)), (2,)), [[[0], [1, 2, 3]]]),
    ],
)
def test_a_column_is_assembled(column, values, read):
    assert assemble(column, read) == values


def test_a_broadcast_value_is_one_object(read):
    first, second = assemble(("spread", ("rows", "dicts", 3, 1), (2,)), read)
    assert first is second


def test_an_unknown_column_is_refused():
    with pytest.raises(ValueError, match="unknown column"):
        assemble(("rats", 1), BLOCKS.__getitem__)


def test_a_constant_that_plain_pickle_refuses_goes_by_value():
    assert pickle.loads(constant_blob(lambda: 3))() == 3


def test_fields_of_mappings_and_objects():
    assert get_field({"a": 1}, "a") == get_field(SimpleNamespace(a=1), "a") == 1
    nothing: list[Any] = [{}, SimpleNamespace(), 3]
    for lacking in nothing:
        with pytest.raises(LookupError):
            get_field(lacking, "a")
    with pytest.raises(LookupError):
        get_field({"a": 1}, "keys")  # a mapping's methods are no fields


@pytest.mark.parametrize("mask", [0, 1, 0b10110, 1 << 5_000, (1 << 5_000) - 1])
def test_bit_positions(mask):
    assert list(bit_positions(mask)) == [i for i in range(mask.bit_length()) if mask >> i & 1]
