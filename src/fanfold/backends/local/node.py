"""What is done once on this machine, among all workers of a run: the set-up of classes.

Owns the agreement: a lock that a dead process cannot keep, and a note of what was done, in a memory file that
all processes of a run inherit.
"""

from __future__ import annotations

import fcntl
import mmap
import os
import threading
from collections.abc import Callable


class Node:
    """One process's view of what was done; the threads of a process share one.

    Args:
        descriptor: The file, which is locked and mapped here and nowhere else in this process: to close another
            descriptor of it would give the lock away.
        classes: How many classes there may be; whoever makes the file tells it.
    """

    def __init__(self, descriptor: int, classes: int | None = None) -> None:
        if classes is not None:
            os.ftruncate(descriptor, max(1, classes))
        self._descriptor = descriptor
        self._done = mmap.mmap(descriptor, os.fstat(descriptor).st_size)
        self._threads = threading.Lock()

    def once(self, number: int, setup: Callable[[], object]) -> None:
        """Call ``setup`` if nobody has done so for this number; otherwise wait until whoever does has done it.

        Raises:
            BaseException: What ``setup`` raises. Then it counts as not done, and the next one tries.
        """
        with self._threads:
            fcntl.lockf(self._descriptor, fcntl.LOCK_EX, 1, number)
            try:
                if not self._done[number]:
                    setup()
                    self._done[number] = 1
            finally:
                fcntl.lockf(self._descriptor, fcntl.LOCK_UN, 1, number)
