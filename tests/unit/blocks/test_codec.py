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


class Unloadable:
    """It can be pickled, and loading it raises."""

    def __reduce__(self) -> Any:
        return _refuse, ()


def _refuse() -> Any:
    raise ValueError("cannot be loaded")


@pytest.mark.parametrize("wrapped", [False, True])
def test_a_row_that_cannot_be_loaded_harms_those_only_who_read_it(wrapped):
    encoder = Encoder()
    encoder.encode(list(range(1_000)))
    bad: Any = [0, {"a": Unloadable()}] if wrapped else Unloadable()
    rows: list[Any] = [bad if i == 5 else i for i in range(20)]
    block = block_of(rows, encoder)
    assert block[:5] == rows[:5] and block[6:] == rows[6:] and block[19] == 19
    assert block.pick(3, 0b1011) == [3, 4, 6]
    for read in (lambda: block[5], lambda: block[4:6], lambda: block.pick(3, 0b110)):
        with pytest.raises(ValueError, match="cannot be loaded"):
            read()


def test_rows_with_a_pickle_of_their_own_are_decoded_once_until_they_are_forgotten():
    block = block_of([7, frozenset({1}), Settled(1), Settled(2), 5], warm_encoder())
    first = block[3]
    assert first == Settled(2) and block[2:4][1] is first and block.pick(3, 1)[0] is first
    block.forget()
    assert block[3] == first and block[3] is not first


@dataclass(frozen=True)
class Settled:
    n: int


def warm_encoder() -> Encoder:
    """One that expects tiny rows."""
    encoder = Encoder()
    encoder.encode(list(range(1_000)))
    return encoder


def test_large_buffers_stand_alone_among_tiny_rows():
    numpy = pytest.importorskip("numpy")
    tiny, large = numpy.arange(10), numpy.arange(10_000)
    rows = [Settled(0), tiny, large, tiny, Settled(1), large]
    found = block_of(rows, warm_encoder())[:]
    assert (found[0], found[4]) == (Settled(0), Settled(1))
    for row in (1, 2, 3, 5):
        assert (found[row] == rows[row]).all()
        found[row][0] = 1  # a copy of its own is writable


@pytest.mark.parametrize("error", [SystemExit, KeyboardInterrupt])
def test_what_raises_when_it_is_pickled_is_named_whatever_it_raises(error):
    class Exits:
        def __reduce__(self) -> Any:
            raise error

    with pytest.raises(Unpicklable) as caught:
        warm_encoder().encode([1, Exits(), 2])
    assert [row for row, _ in caught.value.rows] == [1]
    with pytest.raises(error):
        Encoder(contain=Exception).encode([1, Exits(), 2])
