"""How rows of values become one stretch of bytes and come back, as few at a time as a reader needs.

Layout of a block, all numbers little-endian 64-bit:

    count of sections, then per section: rows, pickle length, number of buffers, buffer lengths …;
    then the sections' bytes in the same order: pickle, buffers (each aligned to 64 bytes).

A section is some rows pickled together (protocol 5, buffers out of band). Tiny rows share a section, so
that a batch of numbers costs one pickle; rows of more than :data:`SECTION_BYTES` stand alone, so that a
reader of one image need not touch its neighbours. Owns the layout; knows no arena.
"""

from __future__ import annotations

import itertools
import pickle
import struct
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import Any, Final, overload

SECTION_BYTES: Final = 64 * 1024
ALIGN: Final = 64
_RAW: Final = -1
"""In place of a pickle's length: the section is one ``bytes`` value, stored as it is."""

Part = bytes | memoryview


class Unpicklable(Exception):
    """Some rows cannot be pickled; ``rows`` pairs their numbers with the reasons."""

    def __init__(self, rows: list[tuple[int, BaseException]]) -> None:
        super().__init__(f"{len(rows)} values cannot be pickled")
        self.rows = rows


def encode(rows: Sequence[Any], hint_bytes: int = 0) -> tuple[list[Part], int]:
    """The parts of a block and their total size in bytes.

    Args:
        rows: The values.
        hint_bytes: How large a row is expected to be (from earlier blocks of the same stream); 0 if unknown.

    Raises:
        Unpicklable: Names every row that cannot be pickled.
    """
    header: list[int] = []
    parts: list[Part] = []
    sections = position = 0
    per_section = max(1, SECTION_BYTES // hint_bytes) if hint_bytes else 1
    while position < len(rows):
        section = rows[position : position + per_section]
        first = section[0]
        if type(first) is bytes and len(first) >= SECTION_BYTES // 8:
            header += (1, _RAW, 1, len(first))
            parts.append(memoryview(first))
            position += 1
            sections += 1
            continue
        buffers: list[pickle.PickleBuffer] = []
        body = _dumps(section, position, rows, buffers)
        raw = [buffer.raw() for buffer in buffers]
        header += (len(section), len(body), len(raw), *(part.nbytes for part in raw))
        parts.append(body)
        parts += raw
        sections += 1
        position += len(section)
        size = (len(body) + sum(part.nbytes for part in raw)) // len(section)
        per_section = max(1, SECTION_BYTES // max(1, size))
    head = struct.pack(f"<{len(header) + 1}q", sections, *header)
    return [head, *parts], _aligned(len(head)) + sum(_aligned(len_of(part)) for part in parts)


def _dumps(
    section: Sequence[Any], position: int, rows: Sequence[Any], buffers: list[pickle.PickleBuffer]
) -> bytes:
    try:
        return pickle.dumps(section, protocol=5, buffer_callback=buffers.append)
    except Exception:
        buffers.clear()
    import cloudpickle

    try:
        body: bytes = cloudpickle.dumps(section, protocol=5, buffer_callback=buffers.append)
        return body
    except Exception:
        buffers.clear()
    raise Unpicklable(list(_guilty(rows, cloudpickle)))


def _guilty(rows: Sequence[Any], cloudpickle: Any) -> Iterator[tuple[int, BaseException]]:
    for number, row in enumerate(rows):
        try:
            cloudpickle.dumps(row, protocol=5, buffer_callback=lambda _: None)
        except Exception as error:
            yield number, error


def len_of(part: Part) -> int:
    """A part's size in bytes."""
    return len(part) if isinstance(part, bytes) else part.nbytes


def _aligned(size: int) -> int:
    return -(-size // ALIGN) * ALIGN


def write(parts: Sequence[Part], target: memoryview) -> None:
    """Lay out a block's parts in memory of the size that :func:`encode` told."""
    offset = 0
    for part in parts:
        size = len_of(part)
        target[offset : offset + size] = part
        offset += _aligned(size)


class BlockRows(Sequence[Any]):
    """The rows of a block, decoded a section at a time as they are asked for, and kept.

    Buffers are copied out of ``memory``, so a value may be kept after the block is gone.
    """

    def __init__(self, memory: memoryview) -> None:
        self._memory = memory
        (sections,) = struct.unpack_from("<q", memory)
        numbers = 8
        self._starts: list[int] = []
        self._sections: list[tuple[int, list[int]]] = []
        rows = 0
        for _ in range(sections):
            count, length, buffers = struct.unpack_from("<3q", memory, numbers)
            sizes = list(struct.unpack_from(f"<{buffers}q", memory, numbers + 24))
            numbers += 24 + 8 * buffers
            self._starts.append(rows)
            self._sections.append((length, sizes))
            rows += count
        self._count = rows
        offset = _aligned(numbers)
        self._offsets: list[int] = []
        for length, sizes in self._sections:
            self._offsets.append(offset)
            offset += _aligned(max(length, 0)) + sum(map(_aligned, sizes))
        self._decoded: dict[int, list[Any]] = {}

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, index: int) -> Any: ...
    @overload
    def __getitem__(self, index: slice) -> list[Any]: ...
    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, int):
            section = bisect_right(self._starts, index) - 1
            return self._section(section)[index - self._starts[section]]
        first, stop, _ = index.indices(self._count)
        if first >= stop:
            return []
        low = bisect_right(self._starts, first) - 1
        high = bisect_right(self._starts, stop - 1) - 1
        if low == high:
            start = self._starts[low]
            return self._section(low)[first - start : stop - start]
        parts = [self._section(number) for number in range(low, high + 1)]
        start = self._starts[low]
        return list(itertools.islice(itertools.chain(*parts), first - start, stop - start))

    def _section(self, number: int) -> list[Any]:
        rows = self._decoded.get(number)
        if rows is None:
            rows = self._decoded[number] = self._decode(number)
        return rows

    def _decode(self, number: int) -> list[Any]:
        length, sizes = self._sections[number]
        offset = self._offsets[number]
        if length == _RAW:
            return [bytes(self._memory[offset : offset + sizes[0]])]
        body = self._memory[offset : offset + length]
        offset += _aligned(length)
        buffers = []
        for size in sizes:
            buffers.append(bytearray(self._memory[offset : offset + size]))
            offset += _aligned(size)
        rows: list[Any] = pickle.loads(body, buffers=buffers)
        return rows
