"""What a family of processes holds and who is in it, read from ``/proc``.

Owns how memory is counted: PSS, where each shared page counts once, and what lies in Fanfold's arenas.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

ARENA = "/memfd:fanfold-"
"""What the system calls an arena's file."""
BLOCK_BYTES = 512
"""The unit of ``st_blocks``."""


class Process(NamedTuple):
    """One process. Numbers are used again, so its start belongs to its name."""

    pid: int
    started: str


class Sample(NamedTuple):
    """What a family held at a time of the monotonic clock."""

    time_s: float
    pss_bytes: int
    arena_bytes: int


def descendants(pid: int) -> list[int]:
    """All children of a process, their children, and so on."""
    found: list[int] = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            children = task.read_text().split()
        except OSError:
            continue  # it has just ended
        for child in map(int, children):
            found += [child, *descendants(child)]
    return found


def alive(pid: int) -> bool:
    """Whether there is such a process that has not ended."""
    found = _stat(pid)
    return bool(found) and found[0] != "Z"


def identified(pids: Iterable[int]) -> set[Process]:
    """Processes in a way that stays true when they have ended."""
    return {Process(pid, stat[19]) for pid in pids if (stat := _stat(pid))}


def end(processes: Iterable[Process]) -> None:
    """Kill those that are still there."""
    for process in processes:
        stat = _stat(process.pid)
        if stat and stat[19] == process.started:
            try:
                os.kill(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                continue  # it was quicker


def pss_bytes(pid: int) -> int:
    """What a process holds, its share of shared pages included."""
    try:
        text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    except OSError:
        return 0
    lines = (line.split() for line in text.splitlines())
    return next((int(words[1]) * 1024 for words in lines if words[0] == "Pss:"), 0)


def arena_bytes(pids: Iterable[int]) -> int:
    """Memory that is taken up by the arenas which any of these processes has open."""
    arenas: dict[int, int] = {}
    for pid in pids:
        for link in Path(f"/proc/{pid}/fd").glob("*"):
            try:
                if os.readlink(link).startswith(ARENA):
                    found = os.stat(link)
                    arenas[found.st_ino] = found.st_blocks * BLOCK_BYTES
            except OSError:
                continue  # closed meanwhile
    return sum(arenas.values())


@contextmanager
def sampled(pid: int, every_s: float = 0.1) -> Iterator[list[Sample]]:
    """Samples of what a process and all its descendants hold, one at least."""
    samples: list[Sample] = []
    done = threading.Event()

    def look() -> None:
        while True:
            family = [pid, *descendants(pid)]
            pss = sum(map(pss_bytes, family))
            samples.append(Sample(time.monotonic(), pss, arena_bytes(family)))
            if done.wait(every_s):
                return

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    try:
        yield samples
    finally:
        done.set()
        thread.join()


def _stat(pid: int) -> list[str]:
    """The fields of a process's status from its state on; none if it is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []
