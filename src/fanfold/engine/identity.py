"""Who the items of a batch are, for stages that ask: keys and ordinals, one entry for each run of siblings.

Owns the telling. It costs something for each parent in a batch, so batches of other stages go without.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fanfold.engine.bits import bit_positions, low_offset
from fanfold.engine.chunks import Chunk
from fanfold.engine.ready import Entry
from fanfold.engine.roots import Roots
from fanfold.protocol import ItemRun


def identify(roots: Roots, entries: Sequence[Entry]) -> tuple[ItemRun, ...]:
    """The items of a batch, in task order."""
    return tuple(run for chunk, bits in entries for run in _runs(roots, chunk, bits))


def _runs(roots: Roots, chunk: Chunk, bits: int) -> Iterator[ItemRun]:
    if chunk.parent is None:
        for offset in bit_positions(bits):
            root = chunk.base + offset
            yield ItemRun(roots.key(root), (), root, 1)
        return
    for parent in bit_positions(chunk.parents_of(bits)):
        items = bits & chunk.items_of(1 << parent)
        first = low_offset(items)
        above = roots.ordinals(chunk.parent, parent)
        _, ordinal = chunk.place(first)
        yield ItemRun(roots.key(above[0]), above, ordinal, items >> first)
