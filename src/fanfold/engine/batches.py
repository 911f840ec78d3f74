"""Batches at workers: which items they hold, and how the positions of their tasks map to items."""

from __future__ import annotations

from collections.abc import Iterator

from fanfold.columns import Ref
from fanfold.engine.bits import below, bit_positions, lowest
from fanfold.engine.chunks import Chunk
from fanfold.engine.ready import Entry


class Batch:
    """Items of one call that were taken from its ready queue together."""

    __slots__ = (
        "_items",
        "alone",
        "attempt",
        "call",
        "count",
        "deaths",
        "entries",
        "errors",
        "finished",
        "refs",
        "returned",
        "sealed",
    )

    def __init__(
        self,
        call: int,
        entries: list[Entry],
        count: int,
        refs: set[Ref],
        *,
        attempt: int = 1,
        deaths: int = 0,
        errors: int = 0,
        alone: bool = False,
    ) -> None:
        self.call = call
        self.entries = entries
        self.count = count
        self.refs = refs
        """Blocks that it reads; they stay until it has ended."""
        self.attempt = attempt
        self.deaths = deaths
        """Workers that died while they ran its one item (batches that run alone)."""
        self.errors = errors
        """Exceptions that its one item alone has raised before."""
        self.alone = alone
        self.finished = 0
        """Tasks that have ended, as a set of positions."""
        self.returned = 0
        """How many of them were given back without being run."""
        self.sealed: dict[int, int] = {}
        """By slot of an expansion: tasks that have released all their children, as a set of positions."""
        self._items: list[tuple[Chunk, int]] | None = None

    def item(self, task: int) -> tuple[Chunk, int]:
        """The item of a task: its chunk and offset."""
        if self._items is None:
            self._items = [
                (chunk, offset) for chunk, bits in self.entries for offset in bit_positions(bits)
            ]
        return self._items[task]

    def find(self, task: int) -> tuple[Chunk, int]:
        """The same for a few tasks of many, without listing them all."""
        rank = task
        for chunk, bits in self.entries:
            count = bits.bit_count()
            if rank < count:
                return chunk, lowest(bits, rank + 1).bit_length() - 1
            rank -= count
        raise IndexError(f"task {task} of a batch of {self.count}")

    def runs(self, first: int, count: int) -> Iterator[Entry]:
        """The entries of tasks ``first`` to ``first + count - 1``, in task order."""
        if first == 0 and count == self.count:
            yield from self.entries
            return
        last: Chunk | None = None
        bits = 0
        for task in range(first, first + count):
            chunk, offset = self.item(task)
            # Items that were taken again may come before others of their chunk: a set would lose that.
            if last is not None and (chunk is not last or bits >> offset):
                yield last, bits
                bits = 0
            last = chunk
            bits |= 1 << offset
        if last is not None:
            yield last, bits

    def tasks_of(self, chunk: Chunk, items: int) -> int:
        """Those of its tasks that are among some items, and have not ended."""
        if not any(entry is chunk and bits & items for entry, bits in self.entries):
            return 0
        return sum(
            1 << task
            for task in range(self.count)
            if not self.finished >> task & 1
            and self.item(task)[0] is chunk
            and items >> self.item(task)[1] & 1
        )

    def among(self, tasks: int) -> list[Entry]:
        """The entries of some tasks."""
        if tasks.bit_count() == self.count:
            return self.entries
        found: dict[Chunk, int] = {}
        for task in bit_positions(tasks):
            chunk, offset = self.item(task)
            found[chunk] = found.get(chunk, 0) | 1 << offset
        return list(found.items())

    def give_back(self, begun: int) -> list[Entry]:
        """Tasks from ``begun`` on will not be run here: they are as if they had ended. Their entries."""
        rest = below(self.count) & ~below(begun) & ~self.finished
        self.finished |= rest
        return self.among(rest) if rest else []

    def unfinished(self) -> list[Entry]:
        """The entries without the tasks that have ended."""
        if not self.finished:
            return list(self.entries)
        left: dict[int, Entry] = {}
        for task in range(self.count):
            if not self.finished >> task & 1:
                chunk, offset = self.item(task)
                bits = left[id(chunk)][1] if id(chunk) in left else 0
                left[id(chunk)] = (chunk, bits | 1 << offset)
        return list(left.values())
