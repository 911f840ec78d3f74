"""Blocks: rows go in and come out, only as many as are asked for, and what cannot go in is named."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

import pytest

from fanfold.blocks.codec import SECTION_ROWS, Block, Encoder, Unpicklable, write


def block_of(rows: Sequence[Any], encoder: Encoder | None = None) -> Block:
    parts, size = (encoder or Encoder()).encode(rows)
    memory = bytearray(size)
    write(parts, memoryview(memory))
    return Block(memoryview(memory).toreadonly())


def mixed(count: int) -> list[Any]:
    random = Random(count)
    kinds = [
        lambda: random.randrange(10**6),
        lambda: "text " * random.randrange(40),
        lambda: b"x" * random.choice((0, 10, 9_000, 70_000)),
        lambda: {"a": [1, None], "b": bytearray(random.randrange(100_000))},
        lambda: None,
    ]
    return [random.choice(kinds)() for _ in range(count)]


@pytest.mark.parametrize("count", [1, 2, 100, 1_300])
def test_rows_come_back_as_they_went(count):
    rows = mixed(count)
    block = block_of(rows)
    assert len(block) == count
    assert block[:] == rows and list(block) == rows
    random = Random(1)
    for _ in range(50):
        first = random.randrange(count)
        stop = random.randrange(first, count + 1)
        assert block[first:stop] == rows[first:stop]
        assert block[first] == rows[first]
        mask = random.getrandbits(count - first)
        expected = [rows[first + i] for i in range(count - first) if mask >> i & 1]
        assert block.pick(first, mask) == expected
        block.forget()


def test_no_row_beyond_the_last():
    block = block_of([1, 2])
    assert block[2:5] == []
    with pytest.raises(IndexError):
        block[2]
    with pytest.raises(IndexError):
        block[-1]


def test_an_encoder_learns_the_size_of_rows():
    encoder = Encoder()
    assert encoder.row_bytes == 0
    block_of([b"x" * 100_000] * 3, encoder)
    assert 100_000 <= encoder.row_bytes < 100_200
    block_of(list(range(1_000)), encoder)
    assert 0 < encoder.row_bytes < 200


def test_tiny_rows_share_a_pickle_and_large_ones_stand_alone():
    encoder = Encoder()
    encoder.encode(list(range(100)))
    parts, _ = encoder.encode(list(range(2 * SECTION_ROWS)))
    assert len(parts) == 3, "a head and two sections"
    assert len(Encoder().encode(["x" * 100_000] * 4)[0]) == 5, "a head and four sections"


def test_only_the_sections_that_are_asked_for_are_decoded(monkeypatch):
    block = block_of([f"{i}" * 100_000 for i in range(6)])
    decoded: list[int] = []
    original = Block._decode

    def counting(self: Block, number: int) -> list[Any]:
        decoded.append(number)
        return original(self, number)

    monkeypatch.setattr(Block, "_decode", counting)
    assert block[2][0] == "2"
    assert block.pick(1, 0b1010)[0][0] == "2"
    assert decoded == [2, 4], "once each, and no neighbours"
    block.forget()
    assert block[2:4][1][0] == "3" and decoded == [2, 4, 2, 3]


def test_arrays_keep_dtype_shape_and_contents():
    numpy = pytest.importorskip("numpy")
    rows = [
        numpy.arange(100_000, dtype="float32").reshape(100, -1),
        numpy.asfortranarray(numpy.arange(20_000).reshape(100, -1)),
        numpy.arange(1_000)[::3],
        numpy.zeros((0, 3)),
        numpy.array(3),
        numpy.array(["a", None], dtype=object),
    ]
    for before, after in zip(rows, block_of(rows)[:], strict=True):
        assert before.dtype == after.dtype and before.shape == after.shape
        assert (before == after).all()


def test_values_may_be_kept_when_the_block_is_gone():
    numpy = pytest.importorskip("numpy")
    parts, size = Encoder().encode([numpy.arange(50_000), b"y" * 50_000])
    memory = bytearray(size)
    write(parts, memoryview(memory))
    array, data = Block(memoryview(memory))[:]
    memory[:] = b"\xff" * size
    assert array[49_999] == 49_999 and data == b"y" * 50_000
    array[0] = 7  # a copy of its own is writable


def test_classes_without_a_name_travel_by_value():
    @dataclass
    class Local:
        n: int

    encoder = Encoder()
    for start in (0, 10):
        rows = block_of([Local(start), Local(start + 1)], encoder)[:]
        assert [row.n for row in rows] == [start, start + 1]
    assert block_of([lambda x: x + 1])[0](2) == 3


def test_plain_pickle_is_not_tried_again_where_it_has_failed(monkeypatch):
    encoder = Encoder()
    encoder.encode([lambda: 0])
    monkeypatch.setattr("pickle.dumps", lambda *_, **__: pytest.fail("tried again"))
    assert encoder.encode([lambda: 0])[1] > 0


class Refuses:
    def __reduce__(self) -> Any:
        raise ValueError("not me")


def test_every_row_that_cannot_be_pickled_is_named():
    with pytest.raises(Unpicklable) as caught:
        Encoder().encode([1, threading.Lock(), 3, Refuses(), 5])
    assert [row for row, _ in caught.value.rows] == [1, 3]
    assert "not me" in str(caught.value.rows[1][1])


def test_want_of_memory_is_not_taken_for_a_value_that_cannot_be_pickled():
    class Huge:
        def __reduce__(self) -> Any:
            raise MemoryError("no room")

    with pytest.raises(MemoryError):
        Encoder().encode([Huge()])
