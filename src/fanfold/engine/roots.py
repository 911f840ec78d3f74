"""The roots' side of the engine: keys, where an item is in words, how roots end and are forgotten.

Owns the group of the roots, their statuses and the failures under each; asks the machine to free values.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from fanfold.columns import Column
from fanfold.engine.bits import below, bit_positions
from fanfold.engine.groups import SPAN, Chunk, Group
from fanfold.engine.ready import Entry
from fanfold.errors import InternalError
from fanfold.failures import Failure
from fanfold.outcomes import Status
from fanfold.protocol import RootResult

if TYPE_CHECKING:
    from fanfold.engine.machine import Machine


class Roots:
    """All roots that are open or not yet committed. The root with index ``i`` is the item at offset
    ``i % SPAN`` of the roots' chunk number ``i // SPAN``."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self.group = Group(0, None, 0)
        self.admitted = 0
        self.ended = 0
        self.committed = 0
        self.by_status = {status.value: 0 for status in Status}
        self._keys: dict[int, list[str]] = {}
        """By chunk number: the keys of its roots."""
        self._chunks: dict[int, Chunk] = {}
        self._gone: dict[Chunk, int] = {}
        """The committed roots of chunks that hold others still."""
        self._failures: dict[int, list[Failure]] = {}
        self._results: list[RootResult] = []
        plan = machine.plan
        self._root_outputs = [o.port for o in plan.outputs if plan.ports[o.port].level == 0]
        self._child_outputs = [o.port for o in plan.outputs if plan.ports[o.port].level != 0]

    # ------------------------------------------------------------------------------ entering

    def admit(self, keys: Sequence[str]) -> None:
        """Keys of the roots that enter now, in order."""
        position = 0
        while position < len(keys):
            number, offset = divmod(self.admitted, SPAN)
            part = keys[position : position + SPAN - offset]
            self._keys.setdefault(number, []).extend(part)
            self.admitted += len(part)
            position += len(part)

    def key(self, root: int) -> str:
        """A root's key; empty once its chunk is forgotten."""
        keys = self._keys.get(root // SPAN)
        return keys[root % SPAN] if keys is not None else ""

    def enter(self, chunk: Chunk) -> None:
        """A new chunk of roots. The group keeps only the one that grows; all are found by number."""
        self._chunks[chunk.base // SPAN] = chunk
        del self.group.chunks[:-1]

    def chunk(self, root: int) -> Chunk:
        """The chunk of a root that is not committed."""
        return self._chunks[root // SPAN]

    def known_chunks(self) -> list[Chunk]:
        """The chunks that hold roots which are not committed (and maybe some that are)."""
        return list(self._chunks.values())

    def gone(self, chunk: Chunk) -> int:
        """The roots of a chunk that are committed."""
        return self._gone.get(chunk, 0)

    # ------------------------------------------------------------------------------ naming

    def ordinals(self, chunk: Chunk, offset: int) -> tuple[int, ...]:
        """An item's ordinals, the root's position first."""
        path = [chunk.base + offset]
        while (parent := chunk.group.chunk) is not None:
            offset = chunk.group.bit.bit_length() - 1
            chunk = parent
            path.append(chunk.base + offset)
        return tuple(reversed(path))

    def placed(
        self, chunk: Chunk, bit: int, failure: Failure, *, call: str, attempts: int = 1
    ) -> Failure:
        """A new failure with the item's identity; noted under its root, where it counts once."""
        ordinals = self.ordinals(chunk, bit.bit_length() - 1)
        levels = self._machine.plan.levels
        names: list[str] = []
        level: int | None = chunk.group.level
        while level is not None:
            names.append(levels[level].name)
            level = levels[level].parent
        placed = dataclasses.replace(
            failure,
            call=call,
            key=self.key(ordinals[0]),
            levels=tuple(reversed(names)),
            ordinals=ordinals,
            attempts=attempts,
        )
        self._failures.setdefault(ordinals[0], []).append(placed)
        return placed

    # ------------------------------------------------------------------------------ ending

    def end(self, chunk: Chunk, bits: int) -> None:
        """Roots whose every output is terminal."""
        bits &= ~chunk.ended
        chunk.ended |= bits
        failed, dropped, partial = self._losses(chunk, bits)
        failed &= bits
        dropped &= bits & ~failed
        partial &= bits & ~(failed | dropped)
        for status, members in (
            (Status.FAILED, failed),
            (Status.DROPPED, dropped),
            (Status.PARTIAL, partial),
            (Status.DONE, bits & ~(failed | dropped | partial)),
        ):
            if members:
                self.by_status[status.value] += members.bit_count()
                self._add_results(chunk, members, status)
        self.ended += bits.bit_count()
        for group, _, _ in _tree(chunk, failed | dropped | partial):
            group.closed = True
            for child in group.chunks:
                child.ended = -1

    def _losses(self, chunk: Chunk, bits: int) -> tuple[int, int, int]:
        """Which of the roots ``bits`` failed, were dropped, are partial."""
        program, plan = self._machine.program, self._machine.plan
        failed = dropped = partial = 0
        for port in self._root_outputs:
            lost = chunk.lost_at(program.port[port])
            if lost is not None:
                failed |= lost.failed | lost.suppressed
                dropped |= lost.dropped
        for port in self._child_outputs:
            path = self._path(plan.ports[port].level)
            for offset in bit_positions(bits):
                expansion_failed, item_failed = self._below(chunk, 1 << offset, path, port)
                failed |= expansion_failed << offset
                partial |= item_failed << offset
        return failed, dropped, partial

    def _path(self, level: int) -> list[int]:
        """The levels from below the root down to ``level``."""
        path = [level]
        levels = self._machine.plan.levels
        while (parent := levels[path[0]].parent) is not None and parent != 0:
            path.insert(0, parent)
        return path

    def _below(self, chunk: Chunk, bits: int, path: list[int], port: int) -> tuple[int, int]:
        """Whether an expansion on the way to a child-level output failed, and whether an item did."""
        program = self._machine.program
        lost = chunk.lost_at(program.expansion[path[0]])
        failed = int(lost is not None and bool(lost.failed & bits))
        item_failed = 0
        for child in _children(chunk, bits, path[0]):
            if len(path) > 1:
                deeper_failed, deeper_items = self._below(child, below(child.size), path[1:], port)
                failed |= deeper_failed
                item_failed |= deeper_items
            elif (lost := child.lost_at(program.port[port])) is not None:
                item_failed |= int(bool(lost.failed | lost.suppressed))
        return failed, item_failed

    def _add_results(self, chunk: Chunk, bits: int, status: Status) -> None:
        """Roots of one status; only the done and the partial have anything to read."""
        outputs = self._machine.plan.outputs
        readable = status in (Status.DONE, Status.PARTIAL)
        plain = readable and not self._child_outputs
        ordinals: dict[int, tuple[tuple[int, ...], ...]] = {}
        columns: tuple[Column | None, ...] = (None,) * len(outputs)
        base, value, failures = chunk.base, status.value, self._failures
        keys = self._keys[base // SPAN]
        rows: Iterator[tuple[Column, ...]] = iter(())
        if plain:
            each = self._machine.resolvers.each
            rows = zip(*(each(port, chunk, bits) for port in self._root_outputs), strict=True)
        for offset in bit_positions(bits):
            root = base + offset
            if plain:
                columns = next(rows)
            elif readable:
                columns, ordinals = self._read_all(chunk, 1 << offset)
            failed = tuple(failures.pop(root)) if failures and root in failures else ()
            self._results.append(RootResult(root, keys[offset], value, columns, ordinals, failed))

    def _read_all(
        self, chunk: Chunk, bit: int
    ) -> tuple[tuple[Column | None, ...], dict[int, tuple[tuple[int, ...], ...]]]:
        """The columns of one root's outputs of any level, with the ordinals of those below it."""
        machine = self._machine
        columns: list[Column | None] = []
        ordinals: dict[int, tuple[tuple[int, ...], ...]] = {}
        for index, output in enumerate(machine.plan.outputs):
            level = machine.plan.ports[output.port].level
            resolver = machine.resolvers[output.port]
            if level == 0:
                columns.append(resolver(((chunk, bit),), set()))
                continue
            slot = machine.program.port[output.port]
            entries = [
                (child, child.done[slot])
                for child in self.items_below(chunk, bit, level)
                if child.done[slot]
            ]
            columns.append(resolver(entries, set()) if entries else None)
            ordinals[index] = tuple(
                self.ordinals(child, offset)[1:]
                for child, bits in entries
                for offset in bit_positions(bits)
            )
        return tuple(columns), ordinals

    def items_below(self, chunk: Chunk, bits: int, level: int) -> Iterator[Chunk]:
        """The chunks of ``level`` under some roots, in ordinal order."""
        chunks: list[Entry] = [(chunk, bits)]
        for step in self._path(level):
            chunks = [
                (child, below(child.size))
                for parent, members in chunks
                for child in _children(parent, members, step)
            ]
        return (child for child, _ in chunks)

    def take_results(self) -> tuple[RootResult, ...]:
        """The roots that ended since the last call."""
        results = tuple(self._results)
        self._results.clear()
        return results

    # ------------------------------------------------------------------------------ forgetting

    def commit(self, roots: Sequence[int]) -> None:
        """Records are written: free all values under these roots and forget them."""
        by_chunk: dict[int, int] = {}
        for root in roots:
            number = root // SPAN
            by_chunk[number] = by_chunk.get(number, 0) | 1 << root % SPAN
        self.committed += len(roots)
        free = self._machine.free_items
        for number, bits in by_chunk.items():
            chunk = self._ended_chunk(number, bits)
            free(chunk, bits)
            for group, siblings, offset in _tree(chunk, bits):
                group.closed = True
                for child in group.chunks:
                    free(child, (1 << child.size) - 1)
                    child.ended = -1
                group.chunks.clear()  # no cycles: what is dropped goes without the collector's help
                siblings[offset] = None
            gone = self._gone.pop(chunk, 0) | bits
            if gone == below(SPAN):
                del self._chunks[number], self._keys[number]
            else:
                self._gone[chunk] = gone

    def _ended_chunk(self, number: int, bits: int) -> Chunk:
        """The chunk of roots that are committed now: all ended, none committed before."""
        chunk = self._chunks.get(number)
        if chunk is None or bits & ~chunk.ended or bits & self.gone(chunk):
            raise InternalError(
                "FF904",
                f"some of the roots {[number * SPAN + o for o in bit_positions(bits)][:8]} were reported "
                "as committed, but have not ended or were committed before.",
                "Each root is committed once, after it has ended.",
            )
        return chunk


def _tree(chunk: Chunk, bits: int) -> list[tuple[Group, list[Group | None], int]]:
    """All groups under some items, parents first, each with its place in its parent's chunk."""
    found: list[tuple[Group, list[Group | None], int]] = []
    for groups in chunk.groups.values():
        for offset in bit_positions(bits & below(len(groups))):
            group = groups[offset]
            if group is not None:
                found.append((group, groups, offset))
                for child in group.chunks:
                    if child.groups:
                        found += _tree(child, below(child.size))
    return found


def _children(chunk: Chunk, bits: int, level: int) -> Iterator[Chunk]:
    groups = chunk.groups.get(level, ())
    for offset in bit_positions(bits & below(len(groups))):
        group = groups[offset]
        if group is not None:
            yield from group.chunks
