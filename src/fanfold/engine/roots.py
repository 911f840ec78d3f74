"""The roots' side of the engine: keys, where an item is in words, how roots end and are forgotten.

Owns the chunks of the roots, their statuses and the failures under each; has their values freed.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence

from fanfold.columns import Column
from fanfold.engine.bits import below, bit_positions
from fanfold.engine.chunks import Chunk, descend
from fanfold.engine.held import HeldBlocks
from fanfold.engine.membership import Arrived
from fanfold.engine.program import Program
from fanfold.engine.ready import Among, Entry
from fanfold.engine.resolve import Resolvers
from fanfold.errors import InternalError
from fanfold.failures import Failure
from fanfold.outcomes import Status
from fanfold.protocol import RootResult


class Roots:
    """All roots that are open or not yet committed. The root with index ``i`` is the item at offset
    ``i % span`` of the roots' chunk number ``i // span``."""

    def __init__(self, program: Program, resolvers: Resolvers, held: HeldBlocks, span: int) -> None:
        self._program = program
        self._plan = program.plan
        self._resolvers = resolvers
        self._held = held
        self._span = span
        self.admitted = 0
        self.ended = 0
        self.committed = 0
        self._oldest = 0
        """No root before it is open."""
        self.by_status = {status.value: 0 for status in Status}
        self._keys: dict[int, list[str]] = {}
        """By chunk number: the keys of its roots."""
        self._chunks: dict[int, Chunk] = {}
        self._gone: dict[Chunk, int] = {}
        """The committed roots of chunks that hold others still."""
        self._failures: dict[int, list[Failure]] = {}
        self._results: list[RootResult] = []
        plan = program.plan
        self._root_outputs = [o.port for o in plan.outputs if plan.ports[o.port].level == 0]
        self._child_outputs = [o.port for o in plan.outputs if plan.ports[o.port].level != 0]

    # ------------------------------------------------------------------------------ entering

    def admit(self, keys: Sequence[str], arrived: Arrived) -> None:
        """Keys of the roots that enter now, in order; ``arrived`` is told of the new items."""
        span = self._span
        position = 0
        while position < len(keys):
            number, offset = divmod(self.admitted, span)
            part = keys[position : position + span - offset]
            if offset:
                chunk = self._chunks[number]
            else:
                chunk = Chunk(0, None, self._program.slots[0], self.admitted)
                self._chunks[number], self._keys[number] = chunk, []
            self._keys[number] += part
            self.admitted += len(part)
            chunk.size += len(part)
            arrived(chunk, (1 << chunk.size) - (1 << offset), position)
            position += len(part)

    def key(self, root: int) -> str:
        """A root's key; empty once its chunk is forgotten."""
        keys = self._keys.get(root // self._span)
        return keys[root % self._span] if keys is not None else ""

    def chunk(self, root: int) -> Chunk:
        """The chunk of a root that is not committed."""
        return self._chunks[root // self._span]

    def oldest_open(self) -> int | None:
        """The first root that has not ended."""
        while self._oldest < self.admitted:
            chunk = self._chunks.get(self._oldest // self._span)
            if chunk is not None and not chunk.ended >> self._oldest % self._span & 1:
                return self._oldest
            self._oldest += 1
        return None

    def known_chunks(self) -> list[Chunk]:
        """The chunks that hold roots which are not committed (and maybe some that are)."""
        return list(self._chunks.values())

    def gone(self, chunk: Chunk) -> int:
        """The roots of a chunk that are committed."""
        return self._gone.get(chunk, 0)

    # ------------------------------------------------------------------------------ naming

    def ordinals(self, chunk: Chunk, offset: int) -> tuple[int, ...]:
        """An item's ordinals, the root's position first."""
        path: list[int] = []
        while chunk.parent is not None:
            offset, ordinal = chunk.place(offset)
            path.append(ordinal)
            chunk = chunk.parent
        path.append(chunk.base + offset)
        return tuple(reversed(path))

    def placed(
        self, chunk: Chunk, bit: int, failure: Failure, *, call: str, attempts: int = 1
    ) -> Failure:
        """A new failure with the item's identity; noted under its root, where it counts once."""
        ordinals = self.ordinals(chunk, bit.bit_length() - 1)
        levels = self._plan.levels
        names: list[str] = []
        level: int | None = chunk.level
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

    def open_failures(self) -> tuple[Failure, ...]:
        """What has failed under roots that have not ended, in the order of the roots."""
        return tuple(failure for _, some in sorted(self._failures.items()) for failure in some)

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
        for child, items in descend(chunk, failed | dropped | partial):
            child.ended |= items

    def _losses(self, chunk: Chunk, bits: int) -> tuple[int, int, int]:
        """Which of the roots ``bits`` failed, were dropped, are partial."""
        program, plan = self._program, self._plan
        failed = dropped = partial = 0
        for port in self._root_outputs:
            lost = chunk.lost_at(program.port[port])
            if lost is not None:
                failed |= lost.failed | lost.suppressed
                dropped |= lost.dropped
        for port in self._child_outputs:
            path = self._path(plan.ports[port].level)
            expansion_failed, item_failed = self._below(chunk, bits, path, port)
            failed |= expansion_failed
            partial |= item_failed
        for port in program.effect_ports:
            level = plan.ports[port].level
            if level == 0:
                lost = chunk.lost_at(program.port[port])
                partial |= 0 if lost is None else lost.failed | lost.suppressed
            else:
                for losses in self._below(chunk, bits, self._path(level), port):
                    partial |= losses
        return failed, dropped, partial

    def _path(self, level: int) -> list[int]:
        """The levels from below the root down to ``level``."""
        path = [level]
        levels = self._plan.levels
        while (parent := levels[path[0]].parent) is not None and parent != 0:
            path.insert(0, parent)
        return path

    def _below(self, chunk: Chunk, bits: int, path: list[int], port: int) -> tuple[int, int]:
        """The items above a child-level output for which an expansion on the way to it failed, and those
        for which an item of it did."""
        program, level = self._program, path[0]
        lost = chunk.lost_at(program.expansion[level])
        failed = 0 if lost is None else lost.failed & bits
        partial = 0
        children = chunk.children.get(level)
        for child in () if children is None else children.chunks(bits):
            if len(path) > 1:
                deeper = self._below(child, child.items_of(bits), path[1:], port)
                failed |= child.parents_of(deeper[0])
                partial |= child.parents_of(deeper[1])
            elif (lost := child.lost_at(program.port[port])) is not None:
                members = child.items_of(bits) & (lost.failed | lost.suppressed)
                partial |= child.parents_of(members)
        return failed, partial

    def _add_results(self, chunk: Chunk, bits: int, status: Status) -> None:
        """Roots of one status; only the done and the partial have anything to read."""
        outputs = self._plan.outputs
        readable = status in (Status.DONE, Status.PARTIAL)
        plain = readable and not self._child_outputs
        ordinals: dict[int, tuple[tuple[int, ...], ...]] = {}
        columns: tuple[Column | None, ...] = (None,) * len(outputs)
        base, value, failures = chunk.base, status.value, self._failures
        keys = self._keys[base // self._span]
        rows: Iterator[tuple[Column, ...]] = iter(())
        if plain:
            each = self._resolvers.each
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
        columns: list[Column | None] = []
        ordinals: dict[int, tuple[tuple[int, ...], ...]] = {}
        for index, output in enumerate(self._plan.outputs):
            level = self._plan.ports[output.port].level
            resolver = self._resolvers[output.port]
            if level == 0:
                columns.append(resolver(((chunk, bit),), set()))
                continue
            slot = self._program.port[output.port]
            entries = [
                (child, done)
                for child, members in self.items_below(chunk, bit, level)
                if (done := members & child.done[slot])
            ]
            columns.append(resolver(entries, set()) if entries else None)
            ordinals[index] = tuple(
                self.ordinals(child, offset)[1:]
                for child, bits in entries
                for offset in bit_positions(bits)
            )
        return tuple(columns), ordinals

    def items_below(self, chunk: Chunk, bits: int, level: int) -> list[Entry]:
        """The items of ``level`` under some roots, in the order of their ordinals."""
        entries: list[Entry] = [(chunk, bits)]
        for step in self._path(level):
            entries = [
                run
                for parent, members in entries
                if step in parent.children
                for run in parent.children[step].runs(members)
            ]
        return entries

    def items_of(self, root: int) -> Among:
        """Given some items of a chunk, tells those that are under a root, or the root itself."""
        top, bit = self.chunk(root), 1 << root % self._span

        def among(chunk: Chunk, items: int) -> int:
            path: list[Chunk] = []
            above = items
            while chunk.parent is not None:
                path.append(chunk)
                above, chunk = chunk.parents_of(above), chunk.parent
            if chunk is not top or not above & bit:
                return 0
            found = bit
            for part in reversed(path):
                found = part.items_of(found)
            return found & items

        return among

    def take_results(self) -> tuple[RootResult, ...]:
        """The roots that ended since the last call."""
        if not self._results:
            return ()
        results = tuple(self._results)
        self._results.clear()
        return results

    # ------------------------------------------------------------------------------ forgetting

    def commit(self, roots: Sequence[int]) -> None:
        """Records are written: free all values under these roots and forget them."""
        span = self._span
        by_chunk: dict[int, int] = {}
        for root in roots:
            number = root // span
            by_chunk[number] = by_chunk.get(number, 0) | 1 << root % span
        self.committed += len(roots)
        for number, bits in by_chunk.items():
            chunk = self._ended_chunk(number, bits)
            self._forget(chunk, bits)
            gone = self._gone.pop(chunk, 0) | bits
            if gone == below(span):
                del self._chunks[number], self._keys[number]
            else:
                self._gone[chunk] = gone

    def _forget(self, chunk: Chunk, items: int) -> None:
        self._held.free(chunk, items)
        for children in chunk.children.values():
            for child in children.chunks(items):
                members = child.items_of(items)
                child.ended |= members
                self._forget(child, members)
            children.forget(items)  # no cycles: what is dropped goes without the collector's help

    def _ended_chunk(self, number: int, bits: int) -> Chunk:
        """The chunk of roots that are committed now: all ended, none committed before."""
        chunk = self._chunks.get(number)
        if chunk is None or bits & ~chunk.ended or bits & self.gone(chunk):
            raise InternalError(
                "FF904",
                f"some of the roots {[number * self._span + o for o in bit_positions(bits)][:8]} were "
                "reported as committed, but have not ended or were committed before.",
                "Each root is committed once, after it has ended.",
            )
        return chunk
