"""Bit arithmetic against its definition in terms of Python sets."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fanfold.engine.bits import (
    below,
    bit_positions,
    deposit,
    extract,
    is_run,
    low_offset,
    lowest,
)

SETS = st.sets(st.integers(0, 80))


def as_bits(members: set[int]) -> int:
    return sum(1 << m for m in members)


@given(SETS)
def test_positions_are_the_members_in_order(members: set[int]) -> None:
    assert list(bit_positions(as_bits(members))) == sorted(members)


@given(SETS)
def test_a_run_is_a_set_without_gaps(members: set[int]) -> None:
    gapless = not members or max(members) - min(members) + 1 == len(members)
    assert is_run(as_bits(members)) == gapless


@given(st.integers(0, 60), st.integers(0, 60))
def test_runs_are_runs(start: int, length: int) -> None:
    assert is_run(below(length) << start)


@given(SETS.filter(bool), st.data())
def test_lowest_members(members: set[int], data: st.DataObject) -> None:
    count = data.draw(st.integers(1, len(members)))
    assert lowest(as_bits(members), count) == as_bits(set(sorted(members)[:count]))
    assert low_offset(as_bits(members)) == min(members)


@given(SETS, st.data())
def test_extract_renumbers_by_rank_and_deposit_undoes_it(
    within: set[int], data: st.DataObject
) -> None:
    chosen = data.draw(st.sets(st.sampled_from(sorted(within)))) if within else set()
    ranks = {rank for rank, member in enumerate(sorted(within)) if member in chosen}
    assert extract(as_bits(chosen), as_bits(within)) == as_bits(ranks)
    assert deposit(as_bits(ranks), as_bits(within)) == as_bits(chosen)
