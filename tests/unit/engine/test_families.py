"""Families: what they say of sets of parents and children is what a list of pairs says."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fanfold.engine.bits import bit_positions
from fanfold.engine.families import FEW, Families

FAMILIES = st.dictionaries(
    st.integers(0, 60), st.integers(1, 9), min_size=1, max_size=30
) | st.dictionaries(st.integers(0, 60), st.integers(1, 9), min_size=FEW + 3, max_size=30)
"""Few or many: they are looked up in two ways."""
SETS = (
    st.integers(0, 2**61 - 1)
    | st.binary(min_size=34, max_size=34).map(lambda drawn: int.from_bytes(drawn, "big"))
    | st.builds(lambda low, n: ((1 << n) - 1) << low, st.integers(0, 60), st.integers(0, 40))
)
"""Scattered ones, among a few families and among all there can be, and stretches."""


def laid_out(counts: dict[int, int], parts: int = 1) -> tuple[Families, list[int]]:
    """Families added in some parts, and each child's parent."""
    families, children = Families(), list[int]()
    parents = sorted(counts)
    step = -(-len(parents) // parts)
    for start in range(0, len(parents), step):
        part = parents[start : start + step]
        ends = list[int]()
        for parent in part:
            children += [parent] * counts[parent]
            ends.append(len(children))
        families.append(sum(1 << parent for parent in part), ends)
    return families, children


def bits_of(offsets: list[int]) -> int:
    return sum(1 << offset for offset in offsets)


@given(FAMILIES, SETS, st.integers(1, 4))
def test_items_of_parents(counts: dict[int, int], parents: int, parts: int) -> None:
    families, children = laid_out(counts, parts)
    expected = [child for child, parent in enumerate(children) if parents >> parent & 1]
    assert families.items_of(parents) == bits_of(expected)


@given(FAMILIES, SETS)
def test_parents_of_items(counts: dict[int, int], wanted: int) -> None:
    families, children = laid_out(counts)
    items = wanted & (1 << families.size) - 1
    expected = {parent for child, parent in enumerate(children) if items >> child & 1}
    assert families.parents_of(items) == bits_of(list(expected))


@given(FAMILIES, SETS)
def test_whole_families(counts: dict[int, int], left_out: int) -> None:
    families, children = laid_out(counts)
    items = (1 << families.size) - 1 & ~left_out
    broken = {parent for child, parent in enumerate(children) if not items >> child & 1}
    assert families.whole(items) == bits_of([p for p in counts if p not in broken])


@given(FAMILIES, SETS, SETS)
def test_sizes(counts: dict[int, int], wanted: int, kept: int) -> None:
    families, children = laid_out(counts)
    parents = wanted & families.parents
    if not parents:
        return
    for items in (families.items_of(parents), families.items_of(parents) & kept):
        assert families.sizes(parents, items) == [
            sum(1 for child, p in enumerate(children) if p == parent and items >> child & 1)
            for parent in bit_positions(parents)
        ]


@given(FAMILIES)
def test_places(counts: dict[int, int]) -> None:
    families, children = laid_out(counts)
    ordinals = dict.fromkeys(counts, 0)
    for child, parent in enumerate(children):
        assert families.place(child) == (parent, ordinals[parent])
        ordinals[parent] += 1


def test_a_family_that_goes_on_keeps_counting() -> None:
    families, _ = laid_out({7: 3})
    families.continued = {7: 1024}
    assert [families.place(child) for child in range(3)] == [(7, 1024), (7, 1025), (7, 1026)]


def test_many_scattered_families_are_looked_up_together() -> None:
    counts = dict.fromkeys(range(0, 3 * FEW, 2), 3)  # every other parent has three children
    families, children = laid_out(counts)
    some = [child for child in range(0, len(children), 3) if child % 5]  # first ones, with gaps
    parents = bits_of(sorted({children[child] for child in some}))
    assert FEW < parents.bit_count() < len(counts)
    assert families.parents_of(bits_of(some)) == parents
    assert families.items_of(parents) == bits_of(
        [child for child, parent in enumerate(children) if parents >> parent & 1]
    )
