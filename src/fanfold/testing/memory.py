"""Values in memory, for backends that have no processes: blocks are lists, and each is released once.

Owns the complaint about a block that is released twice, or that nobody made: a ``KeyError``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from fanfold.columns import Column, Ref, assemble
from fanfold.protocol import Rows

ROW_BYTES: Final = 4096
"""Rows count as large, so that they are released at their last reader."""


class Blocks:
    """All blocks of one run."""

    def __init__(self) -> None:
        self._blocks: dict[Ref, list[Any]] = {}
        self._next_ref = 0

    def put(self, values: Sequence[Any]) -> Rows:
        """Store values as one block."""
        self._next_ref += 1
        self._blocks[self._next_ref] = list(values)
        return Rows(self._next_ref, len(values), ROW_BYTES * len(values))

    def read(self, column: Column) -> list[Any]:
        """The values of a column."""
        return assemble(column, self._blocks.__getitem__)

    def release(self, refs: Iterable[Ref]) -> None:
        """These blocks are read by nobody any more."""
        for ref in refs:
            del self._blocks[ref]

    @property
    def left(self) -> int:
        """Blocks that nobody released."""
        return len(self._blocks)
