"""Blocks that have left memory: one file on disk, written by the driver, read by every process.

Owns the file and where each block lies in it. A block's reference stays what it is to everybody else: columns
are told of the new place as they are sent (:meth:`Spill.relocated`). The file has no name, so nothing of it is
left after the run, however that ends.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Mapping
from typing import Final

from fanfold.backends.local.store import SPILLED, BlockRef
from fanfold.blocks.arena import Writer, create
from fanfold.columns import Column, relocated
from fanfold.errors import SetupError
from fanfold.protocol import RootResult

DIR_VARIABLE: Final = "FANFOLD_SPILL_DIR"
"""Names a directory for values that have no room in memory."""
_STEP_BYTES: Final = 1 << 30


def spill_file(directory: str | None) -> int:
    """The descriptor of an empty file without a name.

    Args:
        directory: Where it is; None: where the environment variable says, else among temporary files.

    Raises:
        SetupError: There can be none (FF410).
    """
    folder = directory or os.environ.get(DIR_VARIABLE) or tempfile.gettempdir()
    try:
        return create("spill", directory=folder)
    except OSError as error:
        raise SetupError(
            "FF410",
            f"values that have no room in memory cannot go to the folder {folder!r}: {error.strerror}.",
            "Make the folder, or name another one, on a local disk, in the environment variable "
            f"{DIR_VARIABLE}.",
        ) from error


class Spill:
    """The blocks on disk.

    Args:
        descriptor: Of an empty file.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._writer = Writer(descriptor)
        self._places: dict[BlockRef, BlockRef] = {}
        self._serial = 0

    def move(self, refs: Iterable[BlockRef], arenas: Mapping[int, int]) -> list[BlockRef]:
        """Copy blocks to the file, as many as it takes.

        Args:
            refs: The blocks, none of which is here.
            arenas: The files that they are in, by number.

        Returns:
            Those that are here now.
        """
        moved: list[BlockRef] = []
        for ref in refs:
            number, offset, size, _ = ref
            try:
                place, _ = self._writer.allocate(size)
            except MemoryError:  # the disk is full
                break
            try:
                self._copy(arenas[number], offset, place, size)
            except OSError:
                self._writer.free(place, size)
                break
            self._serial += 1
            self._places[ref] = (SPILLED, place, size, self._serial)
            moved.append(ref)
        return moved

    def _copy(self, source: int, offset: int, place: int, size: int) -> None:
        """Without a way through this process's memory."""
        os.lseek(self._descriptor, place, os.SEEK_SET)
        while size:
            sent = os.sendfile(self._descriptor, source, offset, min(size, _STEP_BYTES))
            if not sent:
                raise OSError("a block ended early")
            offset += sent
            size -= sent

    def forget(self, ref: BlockRef) -> bool:
        """Nobody reads a block any more; whether it was here."""
        place = self._places.pop(ref, None)
        if place is None:
            return False
        self._writer.free(place[1], place[2])
        return True

    def relocated(self, column: Column) -> Column:
        """A column as readers have to have it."""
        return relocated(column, self._places) if self._places else column

    def relocated_result(self, result: RootResult) -> RootResult:
        """A root's outputs as the writer has to have them."""
        if not self._places:
            return result
        columns = (None if c is None else self.relocated(c) for c in result.columns)
        return result._replace(columns=tuple(columns))

    def __bool__(self) -> bool:
        """Whether there is any block here."""
        return bool(self._places)
