"""Planted faults of membership: which children there are, in which order, and whose."""

from __future__ import annotations

from typing import Final

from tests.mutants.mutant import Mutant

MEMBERSHIP: Final = (
    Mutant(
        "a gather is reordered",
        "engine/resolve.py",
        'inner(members, refs) if members else ("cat", ())',
        'inner(members[::-1], refs) if members else ("cat", ())',
        ("meaning",),
    ),
    Mutant(
        "a child is dropped",
        "engine/machine.py",
        "            if not closed and 0 not in counts:\n",
        "            counts = (*counts[:-1], counts[-1] - 1)\n"
        "            if not closed and 0 not in counts:\n",
        ("meaning",),
    ),
    Mutant(
        "children are taken in twice",
        "engine/machine.py",
        "                total = sum(counts)\n                taken += total\n",
        "                add(chunk, bits, counts, row)\n"
        "                total = sum(counts)\n                taken += 2 * total\n",
        ("meaning", "failures"),
    ),
    Mutant(
        "an item gets its neighbour's value",
        "engine/stored.py",
        "row = first + (items & (low - 1)).bit_count()",
        "row = first",
        ("meaning",),
    ),
    Mutant(
        "a broadcast goes to a sibling's children",
        "engine/resolve.py",
        'return ("spread", inner(parents, refs), tuple(counts))',
        'return ("spread", inner(parents, refs), tuple(counts[::-1]))',
        ("meaning", "failures"),
    ),
    Mutant(
        "an ordinal is off by one",
        "engine/roots.py",
        "return tuple(reversed(path))",
        "return (*path[:0:-1], path[0] + (len(path) > 1))",
        ("meaning", "failures"),
    ),
    Mutant(
        "a generator's new attempt releases everything again",
        "engine/ledger.py",
        "skip = () if attempt == 1 else self._released(call, entries[0])",
        "skip = ()",
        ("meaning", "again"),
    ),
    Mutant(
        "a ready item is forgotten",
        "engine/rules.py",
        "self.queue.push(chunk, ready & ~chunk.ended)",
        "self.queue.push(chunk, (ready & (ready - 1) or ready) & ~chunk.ended)",
        ("stand-still",),
    ),
    Mutant(
        "children that go on elsewhere are counted from 0 again",
        "engine/families.py",
        "ordinal += self.continued.get(parent, 0)",
        "ordinal += 0",
        ("invariant",),
    ),
    Mutant(
        "of the parents of neighbours only the first is found",
        "engine/families.py",
        "last = bisect_right(self.heads, items.bit_length() - 1) - 1",
        "last = first",
        (
            "invariant",
            "stand-still",
            "meaning",
            "error:AssertionError",
        ),
    ),
    Mutant(
        "of the parents of scattered items only the last is found",
        "engine/families.py",
        "found |= 1 << self._owners[rank]",
        "found = 1 << self._owners[rank]",
        ("invariant", "stand-still", "meaning", "error:AssertionError"),
    ),
    Mutant(
        "many parents of scattered items are renumbered wrongly",
        "engine/families.py",
        "return deposit(extract(touched, lasts), self.parents)",
        "return deposit(extract(touched, lasts) >> 1, self.parents)",
        test="tests/unit/engine/test_families.py::test_many_scattered_families_are_looked_up_together",
    ),
    Mutant(
        "an item counts for the next parent as well",
        "engine/families.py",
        "inner = ((1 << self.size) - 1) & ~lasts",
        "inner = (1 << self.size) - 1",
        ("invariant", "stand-still", "meaning", "error:AssertionError"),
    ),
    Mutant(
        "the last child of scattered families is left out",
        "engine/families.py",
        "return (deposit(ranks, self._lasts()) << 1) - deposit(ranks, self._starts)",
        "return deposit(ranks, self._lasts()) - deposit(ranks, self._starts)",
        (
            "invariant",
            "stand-still",
            "meaning",
        ),
    ),
    Mutant(
        "of neighbouring families only the first has children",
        "engine/families.py",
        "return (1 << self._end(stop)) - (1 << self.heads[first])",
        "return (1 << self._end(first + 1)) - (1 << self.heads[first])",
        (
            "invariant",
            "stand-still",
            "meaning",
        ),
    ),
    Mutant(
        "a list that goes on in another chunk is cut",
        "engine/resolve.py",
        "self._sizes[-1] += sizes.pop(0)",
        "sizes.pop(0)",
        (
            "meaning",
            "error:ValueError",
            "error:AssertionError",
        ),
    ),
    Mutant(
        "children that come later get no copies",
        "engine/settling.py",
        "for broadcast in self._wiring.broadcasts[level]:",
        "for broadcast in self._wiring.broadcasts[level][:0]:",
        ("stand-still",),
    ),
    Mutant(
        "all expansions of a batch are sealed with the first",
        "engine/machine.py",
        "for chunk, bits in batch.among(sealed & told):",
        "for chunk, bits in batch.entries:",
        ("meaning", "invariant", "stand-still"),
        case="sealed-with-the-first",
    ),
)
