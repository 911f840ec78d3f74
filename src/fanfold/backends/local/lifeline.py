"""How no process outlives its run: death signals, watching a parent, ending whole families.

Owns the calls that only Linux has; each has a fallback that does less. Nothing here knows workers.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
from pathlib import Path
from typing import Final

_PR_SET_PDEATHSIG: Final = 1
_PR_SET_CHILD_SUBREAPER: Final = 36


def _prctl(option: int, value: int) -> bool:
    try:
        function = ctypes.CDLL(None, use_errno=True).prctl
    except (OSError, AttributeError):
        return False
    return bool(function(option, value, 0, 0, 0) == 0)


def die_with_parent(parent: int) -> None:
    """Have this process killed when its parent's thread that made it ends; end now if it has already."""
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def adopt_orphans() -> None:
    """Become the parent of all descendants whose own parents end, so that none escapes."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def watch(pid: int) -> int | None:
    """A descriptor that becomes readable when process ``pid`` ends; None where that is not to be had."""
    if not hasattr(os, "pidfd_open"):
        return None
    try:
        return os.pidfd_open(pid)
    except OSError:
        return None


def kill_group(pid: int) -> None:
    """Kill a process and all that is in the process group that it leads."""
    for kill in (os.killpg, os.kill):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            kill(pid, signal.SIGKILL)


def children() -> list[int]:
    """The children of this process, those adopted included (empty where the system does not tell)."""
    found: list[int] = []
    for task in Path(f"/proc/{os.getpid()}/task").glob("*/children"):
        with contextlib.suppress(OSError):
            found += [int(pid) for pid in task.read_text().split()]
    return found
