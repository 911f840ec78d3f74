"""One process's view of all arenas: it writes to its own and reads every one.

A block's reference is the tuple ``(arena, offset, size, serial)``, with a serial number that no other block of
the arena has, ever: so what is remembered of a block cannot be taken for what came to lie in its place.
"""

from __future__ import annotations

import itertools
import resource
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, TypeAlias

from fanfold.backends.values import Unstorable
from fanfold.blocks.arena import ARENA_BYTES, DiskReader, FileTooLarge, Reader, Writer
from fanfold.blocks.codec import (
    LOADER,
    Block,
    Encoder,
    HarmlessLoader,
    Loader,
    Unpicklable,
    write,
)
from fanfold.columns import Column, assemble, is_stored
from fanfold.failures import Failure
from fanfold.protocol import Rows

BlockRef: TypeAlias = tuple[int, int, int, int]
"""Arena, offset, size in bytes, serial number."""

_NOTHING: Final[Mapping[BlockRef, Sequence[Any]]] = {}
SPILLED: Final = -4
"""In the place of an arena's number: the file of blocks that have left memory."""
AHEAD_BYTES: Final = 64 * 1024 * 1024
"""So much of a batch that has not begun a worker may hold."""
KEPT_BLOCKS: Final = 256
"""How many blocks' tables of contents a reader remembers. Values it forgets when it has read a batch."""


class ArenaValues:
    """Implements :class:`fanfold.backends.values.Values` over arenas.

    Args:
        descriptors: The arenas' files, by number.
        own: The arena that this process may write to, or None for a mere reader.
        used: Blocks of the own arena that a predecessor left in use.
        serials_from: The first serial number, above all that the arena's blocks ever had.
        limit_bytes: How much the own arena may hold.
        keep_bytes: How much free memory it keeps.
        contain: Exceptions of users' code that make a value unpicklable; others go through.
        kept: Blocks that lie in this process as they are.
    """

    def __init__(
        self,
        descriptors: Mapping[int, int],
        own: int | None,
        used: Iterable[BlockRef] = (),
        *,
        serials_from: int = 1,
        limit_bytes: int = ARENA_BYTES,
        keep_bytes: int = ARENA_BYTES,
        contain: type[BaseException] = BaseException,
        kept: Mapping[BlockRef, Sequence[Any]] = _NOTHING,
    ) -> None:
        self._own = own
        self._kept = kept
        self._limit = limit_bytes
        self._contain = contain
        self._readers = {
            number: (DiskReader if number == SPILLED else Reader)(fd)
            for number, fd in descriptors.items()
        }
        self._writer = (
            None
            if own is None
            else Writer(descriptors[own], [ref[1:3] for ref in used], limit_bytes, keep_bytes)
        )
        self._lock = threading.Lock()
        """One thread writes at a time."""
        self._serials = itertools.count(serials_from)
        self._encoders: dict[int, Encoder] = {}
        self._blocks: OrderedDict[BlockRef, Block] = OrderedDict()

    # ------------------------------------------------------------------------------ reading

    def read(self, columns: Sequence[Column]) -> list[list[Any]]:
        """The values of columns, each decoded once."""
        return self._read(columns, LOADER)

    def read_ahead(self, columns: Sequence[Column]) -> list[list[Any]] | None:
        """The same for values of built-in types, arrays and images, up to :data:`AHEAD_BYTES`."""
        if not all(map(is_stored, columns)):
            return None
        try:
            return self._read(columns, HarmlessLoader(AHEAD_BYTES))
        except Exception:
            return None  # whatever it is, a worker meets it again when the batch begins

    def _read(self, columns: Sequence[Column], loader: Loader) -> list[list[Any]]:
        opened: dict[BlockRef, Block] = {}

        def block(ref: Any) -> Sequence[Any]:
            if ref in self._kept:
                return self._kept[ref]
            found = opened.get(ref)
            if found is None:
                found = opened[ref] = self._open(ref)
                found.loader = loader
            return found

        try:
            return [assemble(column, block) for column in columns]
        finally:
            for each in opened.values():
                each.forget()

    def _open(self, ref: BlockRef) -> Block:
        block = self._blocks.get(ref)
        if block is None:
            arena, offset, size, _ = ref
            block = Block(self._readers[arena].view(offset, size))
            if arena == SPILLED:
                return block  # its memory is to go when it has been read
            self._blocks[ref] = block
            if len(self._blocks) > KEPT_BLOCKS:
                self._blocks.popitem(last=False)
        return block

    # ------------------------------------------------------------------------------ writing

    def put(self, port: int, rows: Sequence[Any]) -> Rows:
        """Store rows in the own arena.

        Raises:
            Unstorable: Some cannot be pickled, or do not fit.
        """
        assert self._writer is not None and self._own is not None, "a mere reader"
        encoder = self._encoders.get(port)
        if encoder is None:
            encoder = self._encoders[port] = Encoder(self._contain)
        try:
            with self._lock:
                parts, size = encoder.encode(rows)
                offset, memory = self._writer.allocate(size)
                write(parts, memory)
        except Unpicklable as error:
            raise Unstorable([(row, _unpicklable(rows[row], e)) for row, e in error.rows]) from None
        except FileTooLarge:
            limit = resource.getrlimit(resource.RLIMIT_FSIZE)[0]
            raise Unstorable(_blamed(rows, limit, _file_too_large)) from None
        except MemoryError:
            raise Unstorable(_blamed(rows, self._limit, _too_large)) from None
        return Rows((self._own, offset, size, next(self._serials)), len(rows), size)

    def take_back(self, rows: Rows) -> None:
        """A block that nobody was told of."""
        assert isinstance(rows.ref, tuple)
        self.free((rows.ref,))

    def copies(self, port: int) -> bool:
        """What lies in an arena is a copy."""
        return True

    def row_bytes(self, port: int) -> int:
        """What a row at ``port`` took lately."""
        encoder = self._encoders.get(port)
        return 0 if encoder is None else encoder.row_bytes

    def free(self, refs: Iterable[BlockRef]) -> None:
        """Blocks of the own arena that nobody reads any more."""
        assert self._writer is not None, "a mere reader"
        with self._lock:
            for _, offset, size, _ in refs:
                self._writer.free(offset, size)


def _blamed(
    rows: Sequence[Any], limit: int, tell: Callable[[Any, int | None, int], Failure]
) -> list[tuple[int, Failure]]:
    """Which rows to blame when a block does not fit: the large ones, if they are to blame."""
    sizes = [_size_bytes(row) for row in rows]
    share = limit // 4
    guilty = [row for row, size in enumerate(sizes) if size is None or size > share]
    return [(row, tell(rows[row], sizes[row], limit)) for row in guilty or range(len(rows))]


def _size_bytes(value: Any) -> int | None:
    """How much a value takes by itself; None if there is no memory to find out."""
    try:
        return Encoder().encode([value])[1]
    except MemoryError:
        return None


def _too_large(value: Any, size: int | None, limit: int) -> Failure:
    return Failure(
        kind="too_large",
        message=f"{_sized(value, size)} does not fit the store of its worker, which may hold {limit:,} bytes "
        "as long as the machine has them. Give smaller values, or release the value before it is stored.",
    )


def _file_too_large(value: Any, size: int | None, limit: int) -> Failure:
    return Failure(
        kind="too_large",
        message=f"{_sized(value, size)} cannot be stored: values lie in memory files, and this process "
        f"may have none of more than {limit:,} bytes. Raise the limit on the size of files (ulimit -f, or "
        "LimitFSIZE of the service).",
    )


def _sized(value: Any, size: int | None) -> str:
    return _typed(value) if size is None else f"{_typed(value)} ({size:,} bytes)"


def _typed(value: Any) -> str:
    return f"a value of type {type(value).__module__}.{type(value).__qualname__}"


def _unpicklable(value: Any, error: BaseException) -> Failure:
    told = Failure.from_exception(error).message  # its text is a user's, and may be anything
    return Failure(
        kind="unpicklable",
        message=f"{_typed(value)} cannot leave its worker: {told}",
        exception=type(error).__qualname__,
    )
