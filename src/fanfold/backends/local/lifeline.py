"""How no process outlives its run: death signals, watching a parent, ending whole families.

Owns the calls that only Linux has; each has a fallback that does less. Nothing here knows workers.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import signal
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

_PR_SET_PDEATHSIG: Final = 1
_PR_SET_CHILD_SUBREAPER: Final = 36
_PROC: Final = "/proc"


def _system_call(name: str) -> Any:
    try:
        return getattr(ctypes.CDLL(None, use_errno=True), name)
    except (OSError, AttributeError):
        return lambda *_: -1


_prctl = _system_call("prctl")
"""Looked up before any fork: in each new process that would cost half of what starting it does."""


def allow_descriptors(wanted: int) -> int:
    """Raise the soft limit on open files as far as the hard one allows, if it is below ``wanted``; it stays
    raised, since taking it back could fail what was opened meanwhile. Returns the limit in force."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        soft = wanted if hard == resource.RLIM_INFINITY else min(hard, wanted)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return soft


def die_with_parent(parent: int) -> None:
    """Have this process killed when its parent's thread that made it ends; end now if it has already."""
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)


def adopt_orphans() -> None:
    """Become the parent of all descendants whose own parents end, so that none escapes."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def keep_to_oneself() -> None:
    """No program that this process, or a fork of it, executes gets its descriptors."""
    with contextlib.suppress(OSError):
        for name in os.listdir("/dev/fd"):
            if int(name) > 2:
                with contextlib.suppress(OSError):  # the one by which this was listed is closed
                    os.set_inheritable(int(name), False)


def watch(pid: int) -> int | None:
    """A descriptor that becomes readable when process ``pid`` ends; None where that is not to be had."""
    if not hasattr(os, "pidfd_open"):
        return None
    try:
        return os.pidfd_open(pid)
    except OSError:
        return None


class Relative(NamedTuple):
    """A process, as the system's table has it."""

    pid: int
    parent: int
    group: int
    session: int


def processes() -> Iterator[Relative]:
    """All processes that the system tells of (none where there is no ``/proc``)."""
    for name in filter(str.isdigit, os.listdir(_PROC) if os.path.isdir(_PROC) else ()):
        with contextlib.suppress(OSError, ValueError):  # it ended meanwhile
            with open(f"{_PROC}/{name}/stat", encoding="utf-8", errors="replace") as file:
                fields = file.read().rpartition(")")[2].split()
            if fields[0] != "Z":
                yield Relative(int(name), *map(int, fields[1:4]))


def children() -> list[Relative]:
    """The living children of this process, those adopted included."""
    me = os.getpid()
    return [process for process in processes() if process.parent == me]


def environment_of(pid: int, name: str) -> str | None:
    """A variable of the environment that a process was executed with."""
    with contextlib.suppress(OSError):
        with open(f"{_PROC}/{pid}/environ", "rb") as file:
            entries = file.read().split(b"\0")
        for entry in entries:
            key, _, value = entry.partition(b"=")
            if key == name.encode():
                return value.decode(errors="replace")
    return None


def kill(pid: int) -> None:
    """Kill a process and all that is in the process group that it leads."""
    for send in (os.killpg, os.kill):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            send(pid, signal.SIGKILL)
