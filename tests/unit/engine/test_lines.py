"""The order in which ready items stand in line."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count, pairwise

from fanfold.engine.bits import below, bit_positions
from fanfold.engine.chunks import Chunk
from fanfold.engine.lines import FairLine, FifoLine, Line

QUANTUM = 4


def families(*sizes: int, parent: Chunk | None = None, offset: int = 0) -> Chunk:
    """A chunk with a family of each size, of consecutive parents."""
    top = Chunk(0, None, 1) if parent is None else parent
    chunk = Chunk(top.level + 1, top, 1)
    ends = [sum(sizes[: i + 1]) for i in range(len(sizes))]
    chunk.append(below(len(sizes)) << offset, ends)
    return chunk


def taken(line: Line, names: Sequence[Chunk]) -> list[tuple[int, list[int]]]:
    """All that stands in line, run by run: the number of the chunk, and the offsets."""
    found = []
    while line:
        _, chunk, bits = line.popleft()
        found.append((names.index(chunk), list(bit_positions(bits))))
    return found


def test_first_in_first_out_takes_runs_whole() -> None:
    chunk = families(10, 2)
    line = FifoLine()
    line.append((1, chunk, 0b1111111111))
    line.append((2, chunk, 0b110000000000))
    assert taken(line, [chunk]) == [(0, list(range(10))), (0, [10, 11])]


def test_a_large_family_gives_way_after_its_quantum() -> None:
    chunk = families(10, 2, 3)
    line = FairLine(QUANTUM)
    line.append((1, chunk, below(15)))
    assert taken(line, [chunk]) == [
        (0, [0, 1, 2, 3]),
        (0, [10, 11, 12, 13, 14]),
        (0, [4, 5, 6, 7]),
        (0, [8, 9]),
    ]


def test_who_comes_later_waits_for_a_turn_of_those_before() -> None:
    top = Chunk(0, None, 1)
    large, small = families(12, parent=top), families(2, parent=top, offset=5)
    line = FairLine(QUANTUM)
    line.append((1, large, below(12)))
    assert line.popleft() == (1, large, 0b1111)
    line.append((2, small, 0b11))
    assert taken(line, [large, small]) == [
        (0, [4, 5, 6, 7]),
        (1, [0, 1]),
        (0, [8, 9, 10, 11]),
    ]


def test_a_root_that_comes_in_many_pieces_has_one_turn() -> None:
    """A generator's children become ready a few at a time, in chunks of their own."""
    top = Chunk(0, None, 1)
    pieces = [families(2, parent=top) for _ in range(5)]
    for number, (piece, further) in enumerate(pairwise(pieces), 1):
        piece.further, further.continued = {0: further}, {0: 2 * number}
    small = families(3, parent=top, offset=1)
    line = FairLine(QUANTUM)
    sequence = count(1)
    for piece in pieces:
        line.append((next(sequence), piece, 0b11))
    line.append((next(sequence), small, 0b111))
    order = [number for number, _ in taken(line, [*pieces, small])]
    assert order == [0, 1, 5, 2, 3, 4]


def test_turns_are_by_root_however_deep_the_level_is() -> None:
    pages = families(6, 1)
    regions = families(2, 2, 2, 2, 2, 2, 3, parent=pages)
    line = FairLine(QUANTUM)
    line.append((1, regions, below(15)))
    assert taken(line, [regions]) == [
        (0, [0, 1, 2, 3]),
        (0, [12, 13, 14]),
        (0, [4, 5, 6, 7]),
        (0, [8, 9, 10, 11]),
    ]


def test_roots_and_small_families_go_as_they_came() -> None:
    top = Chunk(0, None, 1)
    small = families(*[2] * 30, parent=top)
    line = FairLine(QUANTUM)
    line.append((1, top, below(30)))
    line.append((2, small, below(60)))
    assert taken(line, [top, small]) == [(0, list(range(30))), (1, list(range(60)))]


def test_small_families_go_before_a_large_one_that_came_later() -> None:
    top = Chunk(0, None, 1)
    small, late = families(2, 2, 2, parent=top), families(2, parent=top, offset=9)
    large = families(10, parent=top, offset=5)
    line = FairLine(QUANTUM)
    line.append((1, small, below(3)))
    assert line.join(small, 0b111000, after=0)
    line.append((2, large, below(10)))
    line.append((3, late, 0b01))
    assert line.join(late, 0b10, after=0)
    assert taken(line, [small, large, late]) == [
        (0, list(range(6))),
        (1, [0, 1, 2, 3]),
        (2, [0, 1]),
        (1, [4, 5, 6, 7]),
        (1, [8, 9]),
    ]


def test_what_joins_a_run_is_of_its_root() -> None:
    chunk = families(9, 9)
    line = FairLine(QUANTUM)
    line.append((1, chunk, 0b1))
    assert line.join(chunk, 0b10, after=0)
    assert not line.join(chunk, 0b100, after=1), "what was marked grows no more"
    assert not line.join(chunk, 1 << 9, after=0), "it is another root's"
    assert taken(line, [chunk]) == [(0, [0, 1])]


def test_what_was_not_taken_is_next_and_what_was_let_through_takes_turns() -> None:
    chunk = families(9, 9)
    line = FairLine(QUANTUM)
    line.append((3, chunk, 0b111 << 9))
    line.appendleft((2, chunk, 0b11))
    line.let_through((1, chunk, 0b1111100))
    assert line.first() == 2
    assert line.oldest() == 1
    assert taken(line, [chunk]) == [
        (0, [0, 1]),
        (0, [2, 3, 4, 5]),
        (0, [9, 10, 11]),
        (0, [6]),
    ]


def test_items_are_removed_from_wherever_they_stand() -> None:
    chunk = families(9, 9)
    for line in (FifoLine(), FairLine(QUANTUM)):
        line.append((1, chunk, 0b111))
        line.append((2, chunk, 0b111 << 9))
        line.remove_items(chunk, 0b10)
        line.remove_items(chunk, 1 << 9)
        assert taken(line, [chunk]) == [(0, [0, 2]), (0, [10, 11])]


def test_a_line_that_is_empty_knows_nothing() -> None:
    for line in (FifoLine(), FairLine(QUANTUM)):
        assert not line
        assert line.first() is None
        assert line.oldest() is None
