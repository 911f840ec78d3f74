"""Locks on files: two runs must not write to one place.

Owns how a lock is taken: never waited for, held as long as the file is open, and gone with the process however
that ends. It must not know what the file is for.
"""

from __future__ import annotations

import os
from pathlib import Path

from fanfold.errors import SinkError


def open_locked(path: Path, target: str, flags: int = 0) -> tuple[int, bool]:
    """Open a file for reading and writing, and lock it.

    Args:
        path: The file.
        target: What is written, for the message.
        flags: Further flags for ``os.open``.

    Returns:
        The descriptor, and whether it is locked: some file systems and platforms have no locks, which must
        not keep a run from writing there.

    Raises:
        SinkError: Another run holds it (FF327).
        OSError: The file cannot be opened.
    """
    while True:
        handle = os.open(path, os.O_RDWR | flags, 0o666)
        try:
            locked = _lock(handle, target)
            # Whoever held the lock may have moved or removed the file just before it let go: then this is
            # the lock of a file that nobody else will find.
            if _is_at(path, handle):
                return handle, locked
        except BaseException:
            os.close(handle)
            raise
        os.close(handle)


def _lock(handle: int, target: str) -> bool:
    try:
        import fcntl
    except ImportError:  # not on Windows
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise SinkError(
            "FF327",
            f"another run is writing {target}.",
            "Wait for it to end, or write somewhere else.",
        ) from None
    except OSError:  # this file system has no locks
        return False
    return True


def _is_at(path: Path, handle: int) -> bool:
    try:
        return os.path.samestat(os.stat(path), os.fstat(handle))
    except FileNotFoundError:
        return False
