"""How rows of values become one stretch of bytes and come back, as few at a time as a reader needs.

Layout of a block, all numbers little-endian 64-bit:

    count of sections, then per section: rows, pickle length, number of buffers, buffer lengths …;
    then the sections' bytes in the same order: pickle, buffers (each aligned to 64 bytes).

A section is some rows pickled together (protocol 5, buffers out of band). Tiny rows share a section, so
that a batch of numbers costs one pickle; rows of more than :data:`SECTION_BYTES` stand alone, so that a
reader of one image need not touch its neighbours. Owns the layout; knows no arena.
"""

from __future__ import annotations

import io
import itertools
import pickle
import struct
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, TypeAlias, overload

from fanfold.columns import picked

SECTION_BYTES: Final = 64 * 1024
SECTION_ROWS: Final = 512
"""A reader of a few rows decodes no more than so many."""
ALIGN: Final = 64
RAW_BYTES: Final = 8 * 1024
"""``bytes`` of this size and more are stored as they are, without a pickle that would copy them."""
_RAW: Final = -1
"""In place of a pickle's length: the section is one ``bytes`` value."""

Part: TypeAlias = bytes | memoryview


class Unpicklable(Exception):
    """Some rows cannot be pickled.

    Args:
        rows: Pairs of a row's number and the reason.
    """

    def __init__(self, rows: Sequence[tuple[int, BaseException]]) -> None:
        super().__init__(f"{len(rows)} values cannot be pickled")
        self.rows = rows


class Encoder:
    """Turns rows of one kind into blocks; learns from each what the next will be like."""

    def __init__(self) -> None:
        self.row_bytes = 0
        """What a row took in the latest block; 0 before the first."""
        self._by_value = False
        """Whether plain pickle has failed on such values."""

    def encode(self, rows: Sequence[Any]) -> tuple[list[Part], int]:
        """The parts of a block and the size in bytes that it needs.

        Raises:
            Unpicklable: Names every row that cannot be pickled.
            MemoryError: There is no memory to pickle them.
        """
        numbers: list[int] = []
        parts: list[Part] = []
        size = sections = first = 0
        while first < len(rows):
            fitting = SECTION_BYTES // self.row_bytes if self.row_bytes else 1
            stop = first + max(1, min(SECTION_ROWS, fitting))
            if type(rows[first]) is bytes and len(rows[first]) >= RAW_BYTES:
                stop = first + 1
                pieces: list[Part] = [rows[first]]
                numbers += (1, _RAW, 1, len(rows[first]))
            else:
                section = rows[first:stop]
                stop = first + len(section)
                pieces = self._pickled(section, first, rows)
                numbers += (len(section), len(pieces[0]), len(pieces) - 1)
                numbers += map(len_of, pieces[1:])
            taken = sum(aligned(len_of(piece)) for piece in pieces)
            self.row_bytes = max(1, taken // (stop - first))
            size += taken
            parts += pieces
            sections += 1
            first = stop
        head = struct.pack(f"<{len(numbers) + 1}q", sections, *numbers)
        size += aligned(len(head))
        self.row_bytes = max(1, size // len(rows)) if rows else self.row_bytes
        return [head, *parts], size

    def _pickled(self, section: Sequence[Any], first: int, rows: Sequence[Any]) -> list[Part]:
        """The pickle of a section, and its buffers."""
        buffers: list[pickle.PickleBuffer] = []
        if not self._by_value:
            try:
                body = pickle.dumps(section, protocol=5, buffer_callback=buffers.append)
                return [body, *map(_flat, buffers)]
            except MemoryError:
                raise
            except Exception:
                buffers.clear()  # what plain pickle refuses, classes of a notebook say, cloudpickle may do
        try:
            body = _pickled_by_value(section, buffers.append)
        except MemoryError:
            raise
        except Exception:
            raise Unpicklable(list(_guilty(rows, first))) from None
        self._by_value = True
        return [body, *map(_flat, buffers)]


def _pickled_by_value(thing: Any, keep: Callable[[pickle.PickleBuffer], Any]) -> bytes:
    from cloudpickle import Pickler  # 25 ms that most processes save

    file = io.BytesIO()
    pickler: Any = (
        Pickler  # type checkers see the variant for another interpreter, which keeps no buffers
    )
    pickler(file, protocol=5, buffer_callback=keep).dump(thing)
    return file.getvalue()


def _flat(buffer: pickle.PickleBuffer) -> memoryview:
    """A buffer's memory as bytes, whatever its shape (it is contiguous, or it would be in the pickle)."""
    return buffer.raw()


def _guilty(rows: Sequence[Any], first: int) -> Iterator[tuple[int, BaseException]]:
    """The rows from ``first`` on that cannot be pickled by any means."""
    for number in range(first, len(rows)):
        try:
            _pickled_by_value(rows[number], lambda _: None)
        except Exception as error:
            yield number, error


def len_of(part: Part) -> int:
    """A part's size in bytes."""
    return len(part) if isinstance(part, bytes) else part.nbytes


def aligned(size: int) -> int:
    """``size`` rounded up to where the next part may begin."""
    return -(-size // ALIGN) * ALIGN


def write(parts: Sequence[Part], target: memoryview) -> None:
    """Lay out a block's parts in memory of the size that :meth:`Encoder.encode` told."""
    offset = 0
    for part in parts:
        size = len_of(part)
        target[offset : offset + size] = part
        offset += aligned(size)


class Block(Sequence[Any]):
    """The rows of a block, decoded a section at a time as they are asked for.

    What was decoded is kept until :meth:`forget`. Buffers are copied out of ``memory``, so that a value may
    be kept when the block is gone.
    """

    def __init__(self, memory: memoryview) -> None:
        self._memory = memory
        (sections,) = struct.unpack_from("<q", memory)
        numbers = 8
        self._starts: list[int] = []
        self._sections: list[tuple[int, tuple[int, ...]]] = []
        rows = 0
        for _ in range(sections):
            count, length, buffers = struct.unpack_from("<3q", memory, numbers)
            sizes = struct.unpack_from(f"<{buffers}q", memory, numbers + 24) if buffers else ()
            numbers += 24 + 8 * buffers
            self._starts.append(rows)
            self._sections.append((length, sizes))
            rows += count
        self._count = rows
        offset = aligned(numbers)
        self._offsets: list[int] = []
        for length, sizes in self._sections:
            self._offsets.append(offset)
            offset += aligned(max(length, 0)) + sum(map(aligned, sizes))
        self._decoded: dict[int, list[Any]] = {}

    def __len__(self) -> int:
        return self._count

    def forget(self) -> None:
        """Let go of the values; they are decoded anew when they are asked for again."""
        self._decoded = {}

    @overload
    def __getitem__(self, index: int) -> Any: ...
    @overload
    def __getitem__(self, index: slice) -> list[Any]: ...
    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, int):
            if not 0 <= index < self._count:
                raise IndexError(f"row {index} of a block of {self._count}")
            section = bisect_right(self._starts, index) - 1
            return self._section(section)[index - self._starts[section]]
        first, stop, _ = index.indices(self._count)
        if first >= stop:
            return []
        low = bisect_right(self._starts, first) - 1
        high = bisect_right(self._starts, stop - 1) - 1
        start = self._starts[low]
        if low == high:
            return self._section(low)[first - start : stop - start]
        rows = itertools.chain.from_iterable(map(self._section, range(low, high + 1)))
        return list(itertools.islice(rows, first - start, stop - start))

    def pick(self, first: int, mask: int) -> list[Any]:
        """The rows ``first + i`` for each bit ``i`` of ``mask``; sections without any are not decoded."""
        stop = first + mask.bit_length()
        low = bisect_right(self._starts, first) - 1
        rows: list[Any] = []
        for number in range(low, len(self._starts)):
            start = self._starts[number]
            if start >= stop:
                break
            # Bits below the section are shifted out, those above it cut off.
            end = self._starts[number + 1] if number + 1 < len(self._starts) else self._count
            bits = mask << first >> start & ((1 << end - start) - 1)
            if bits:
                rows += picked(self._section(number), bits)
        return rows

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
        if not sizes:
            rows: list[Any] = pickle.loads(body)
            return rows
        offset += aligned(length)
        buffers = []
        for size in sizes:
            buffers.append(bytearray(self._memory[offset : offset + size]))
            offset += aligned(size)
        rows = pickle.loads(body, buffers=buffers)
        return rows
