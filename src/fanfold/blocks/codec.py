"""How rows of values become one stretch of bytes and come back, as few at a time as a reader needs.

Layout of a block, all numbers little-endian 64-bit:

    count of sections, then per section: rows, pickle length, number of buffers, buffer lengths …;
    then the sections' bytes in the same order: pickle, buffers (each aligned to 64 bytes).

A section is some rows that lie together (protocol 5, buffers out of band). Tiny rows share a section; rows of
more than :data:`SECTION_BYTES` stand alone, so that a reader of one image need not touch its neighbours.

Rows of a section share one pickle if they are made of built-in types alone, so that a batch of numbers costs
one pickle. To load anything else is to run code, which may raise or end the process; such rows have a pickle
each, so that one that cannot be loaded harms those only who read it. Owns the layout; knows no arena.
"""

from __future__ import annotations

import contextlib
import io
import itertools
import pickle
import struct
import sys
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import Any, Final, TypeAlias, overload

from fanfold.columns import bit_positions, picked

SECTION_BYTES: Final = 64 * 1024
SECTION_ROWS: Final = 512
"""A reader of a few rows decodes no more than so many."""
ALIGN: Final = 64
RAW_BYTES: Final = 8 * 1024
"""``bytes`` of this size and more are stored as they are, without a pickle that would copy them."""
_RAW: Final = -1
"""In place of a pickle's length: the section is one ``bytes`` value."""
_EACH: Final = -2
"""In place of a pickle's length: a pickle for each row, close together; the "buffers" are their lengths."""

HARMLESS_MODULES: Final = frozenset({"numpy", "PIL"})
"""Loading what these packages have pickled runs nobody else's code."""
HARMLESS_NAMES: Final = frozenset(
    f"{module}.{name}"
    for module, names in {
        "builtins": "bytearray complex frozenset range set slice",
        "collections": "Counter OrderedDict deque",
        "datetime": "date datetime time timedelta timezone",
        "decimal": "Decimal",
        "fractions": "Fraction",
        "pathlib": "Path PosixPath PurePath PurePosixPath",
        "uuid": "UUID",
    }.items()
    for name in names.split()
)

Part: TypeAlias = bytes | memoryview


class Unpicklable(Exception):
    """Some rows cannot be pickled.

    Args:
        rows: Pairs of a row's number and the reason.
    """

    def __init__(self, rows: Sequence[tuple[int, BaseException]]) -> None:
        super().__init__(f"{len(rows)} values cannot be pickled")
        self.rows = rows


class _NotPlain(Exception):
    """Something is not of a built-in type."""


class _PlainPickler(pickle.Pickler):
    """Pickles what can be loaded without running anybody's code: numbers, texts, bytes and their containers."""

    def reducer_override(self, obj: Any) -> Any:
        # Asked for all but exact instances of built-in types, so those cost nothing here.
        raise _NotPlain


class Encoder:
    """Turns rows of one kind into blocks; learns from each what the next will be like.

    Args:
        contain: Exceptions of users' code, run to pickle a value, that make the value unpicklable.
    """

    def __init__(self, contain: type[BaseException] = BaseException) -> None:
        self.row_bytes = 0
        """What a row took in the latest block; 0 before the first."""
        self._contain = contain
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
            try:
                head, pieces = self._section(rows, first, min(stop, len(rows)))
            except MemoryError:
                raise
            except self._contain:
                raise Unpicklable(list(_guilty(rows, first, self._contain))) from None
            numbers += head
            taken = sum(aligned(len_of(piece)) for piece in pieces)
            self.row_bytes = max(1, taken // head[0])
            size += taken
            parts += pieces
            sections += 1
            first += head[0]
        header = struct.pack(f"<{len(numbers) + 1}q", sections, *numbers)
        size += aligned(len(header))
        self.row_bytes = max(1, size // len(rows)) if rows else self.row_bytes
        return [header, *parts], size

    def _section(self, rows: Sequence[Any], first: int, stop: int) -> tuple[list[int], list[Part]]:
        """A section of the rows from ``first`` on, at most to ``stop``: its numbers and its parts."""
        row = rows[first]
        if type(row) is bytes and len(row) >= RAW_BYTES:
            return [1, _RAW, 1, len(row)], [row]
        if stop - first > 1:
            file = io.BytesIO()
            with contextlib.suppress(_NotPlain, RecursionError):
                _PlainPickler(file, 5).dump(rows[first:stop])
                body = file.getvalue()
                return [stop - first, len(body), 0], [body]
        bodies: list[bytes] = []
        for number in range(first, stop):
            body, buffers = self._pickled(rows[number])
            if buffers:  # it stands alone: before it, what came before
                if bodies:
                    break
                return [1, len(body), len(buffers), *map(len_of, buffers)], [body, *buffers]
            bodies.append(body)
        if len(bodies) == 1:
            return [1, len(bodies[0]), 0], [bodies[0]]
        return [len(bodies), _EACH, len(bodies), *map(len, bodies)], [b"".join(bodies)]

    def _pickled(self, row: Any) -> tuple[bytes, list[memoryview]]:
        """The pickle of a row and its large buffers."""
        buffers: list[memoryview] = []

        def in_band(buffer: pickle.PickleBuffer) -> bool:
            memory = buffer.raw()  # as bytes, whatever its shape
            if memory.nbytes < RAW_BYTES:
                return True
            buffers.append(memory)
            return False

        if not self._by_value:
            try:
                body: bytes = pickle.dumps(row, protocol=5, buffer_callback=in_band)
                if b"__main__" not in body:
                    return body, buffers
                buffers.clear()  # a class of the program's own script: other processes have another
            except MemoryError:
                raise
            except Exception:
                buffers.clear()  # what cannot be imported, a class of a notebook say, goes by value
        from fanfold import byvalue

        body = byvalue.dumps(row, buffer_callback=in_band)
        self._by_value = True
        return body, buffers


def _guilty(
    rows: Sequence[Any], first: int, contain: type[BaseException]
) -> Iterator[tuple[int, BaseException]]:
    """The rows from ``first`` on that cannot be pickled by any means."""
    from fanfold import byvalue

    for number in range(first, len(rows)):
        try:
            byvalue.dumps(rows[number], buffer_callback=lambda _: None)
        except contain as error:
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


class Loader:
    """How stored bytes become values. Buffers are copied: a value may be kept when its block is gone."""

    def raw(self, memory: memoryview) -> bytes:
        """A value that is ``bytes``."""
        return bytes(memory)

    def pickled(self, body: memoryview, buffers: Sequence[memoryview] = ()) -> Any:
        """A pickle's value.

        Raises:
            Exception: Whatever a user's class raises when it is unpickled.
        """
        return pickle.loads(body, buffers=list(map(bytearray, buffers)))


LOADER: Final = Loader()


class Unwelcome(Exception):
    """It is not to be loaded by a :class:`HarmlessLoader`."""


class _HarmlessUnpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if (
            module in sys.modules and module.partition(".")[0] in HARMLESS_MODULES
        ) or f"{module}.{name}" in HARMLESS_NAMES:
            return super().find_class(module, name)
        raise Unwelcome


class HarmlessLoader(Loader):
    """Loads what is made of built-in types and of classes that are known to do nothing else.

    Args:
        limit_bytes: So much in all.
    """

    def __init__(self, limit_bytes: int) -> None:
        self._left = limit_bytes

    def raw(self, memory: memoryview) -> bytes:
        """As any loader.

        Raises:
            Unwelcome: It is too much.
        """
        self._take(memory)
        return super().raw(memory)

    def pickled(self, body: memoryview, buffers: Sequence[memoryview] = ()) -> Any:
        """As any loader.

        Raises:
            Unwelcome: It is too much, or it needs other classes.
        """
        self._take(body, *buffers)
        copies = list(map(bytearray, buffers))
        return _HarmlessUnpickler(io.BytesIO(body), buffers=copies).load()

    def _take(self, *parts: memoryview) -> None:
        self._left -= sum(part.nbytes for part in parts)
        if self._left < 0:
            raise Unwelcome


class Block(Sequence[Any]):
    """The rows of a block, decoded a section at a time as they are asked for.

    What was decoded is kept until :meth:`forget`.
    """

    def __init__(self, memory: memoryview) -> None:
        self._memory = memory
        self.loader = LOADER
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
            if length == _EACH:
                offset += aligned(sum(sizes))
            else:
                offset += aligned(max(length, 0)) + sum(map(aligned, sizes))
        self._ends: dict[int, list[int]] = {}
        """By section of single pickles: where each ends."""
        self._decoded: dict[int, list[Any]] = {}
        """By section."""
        self._singles: dict[int, Any] = {}
        """By row: those that have a pickle of their own."""

    def __len__(self) -> int:
        return self._count

    def forget(self) -> None:
        """Let go of the values; they are decoded anew when they are asked for again."""
        self._decoded = {}
        self._singles = {}

    @overload
    def __getitem__(self, index: int) -> Any: ...
    @overload
    def __getitem__(self, index: slice) -> list[Any]: ...
    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, int):
            if not 0 <= index < self._count:
                raise IndexError(f"row {index} of a block of {self._count}")
            section = bisect_right(self._starts, index) - 1
            start = index - self._starts[section]
            return self._part(section, start, start + 1)[0]
        first, stop, _ = index.indices(self._count)
        if first >= stop:
            return []
        low = bisect_right(self._starts, first) - 1
        high = bisect_right(self._starts, stop - 1) - 1
        rows: list[Any] = []
        for number in range(low, high + 1):
            start = self._starts[number]
            rows += self._part(number, max(first - start, 0), min(stop, self._end(number)) - start)
        return rows

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
            bits = mask << first >> start & ((1 << self._end(number) - start) - 1)
            if not bits:
                continue
            if self._sections[number][0] == _EACH:
                rows += [self._single(number, row) for row in bit_positions(bits)]
            else:
                rows += picked(self._section(number), bits)
        return rows

    def _end(self, number: int) -> int:
        """The row after a section."""
        return self._starts[number + 1] if number + 1 < len(self._starts) else self._count

    def _part(self, number: int, start: int, stop: int) -> list[Any]:
        """Some rows of a section, counted from its first."""
        if self._sections[number][0] == _EACH:
            return [self._single(number, row) for row in range(start, stop)]
        return self._section(number)[start:stop]

    def _single(self, number: int, row: int) -> Any:
        """One row, counted from its section's first, that has a pickle of its own."""
        key = self._starts[number] + row
        try:
            return self._singles[key]
        except KeyError:
            ends = self._ends.get(number)
            if ends is None:
                sizes = self._sections[number][1]
                ends = self._ends[number] = list(itertools.accumulate(sizes, initial=0))
            offset = self._offsets[number]
            body = self._memory[offset + ends[row] : offset + ends[row + 1]]
        value = self._singles[key] = self.loader.pickled(body)
        return value

    def _section(self, number: int) -> list[Any]:
        rows = self._decoded.get(number)
        if rows is None:
            rows = self._decoded[number] = self._decode(number)
        return rows

    def _decode(self, number: int) -> list[Any]:
        length, sizes = self._sections[number]
        offset = self._offsets[number]
        if length == _RAW:
            return [self.loader.raw(self._memory[offset : offset + sizes[0]])]
        body = self._memory[offset : offset + length]
        if self._end(number) - self._starts[number] > 1:
            rows: list[Any] = self.loader.pickled(body)
            return rows
        offset += aligned(length)
        buffers = []
        for size in sizes:
            buffers.append(self._memory[offset : offset + size])
            offset += aligned(size)
        return [self.loader.pickled(body, buffers)]
