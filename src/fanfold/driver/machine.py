"""What this machine lets a run use: cores, memory, GPUs.

Owns the asking: of the system, of the control groups that this process is in, of the environment. A container's
limits are the limits. Nothing here knows stages; what comes of it is :mod:`fanfold.driver.resources`'s.
"""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

VISIBLE: Final = "CUDA_VISIBLE_DEVICES"
"""Names the GPUs that a program sees, and that its workers may be given."""
_NONE: Final = ("", "-1", "NoDevFiles")
"""What people write for no GPU at all."""
_ASK_S: Final = 20.0
"""A driver that does not answer within this time has no GPU to give."""
_GPU: Final = re.compile(r"GPU \d+: ")
_SLICE: Final = re.compile(r"\s+MIG .*\(UUID: (MIG-[^)]+)\)")


@dataclass(frozen=True)
class Machine:
    """What there is."""

    cores: int
    memory_bytes: int | None
    """What can be had in all, not what is free now; None: the system does not tell."""
    ask_gpus: Callable[[], tuple[str, ...]] = field(default=lambda: ())
    """Gives the GPUs, as :data:`VISIBLE` names them. To ask may take a second, so it is done for those who
    need one."""


def this_machine() -> Machine:
    """The machine, or the container, that this process runs in."""
    return Machine(usable_cores(), usable_bytes(), visible_gpus)


def usable_cores(groups: Path = Path("/sys/fs/cgroup")) -> int:
    """Cores that this process may use: fewer than the machine has, if it is confined to some or to a share of
    their time."""
    if hasattr(os, "sched_getaffinity"):
        cores = len(os.sched_getaffinity(0))
    else:
        cores = os.cpu_count() or 1
    for text in _told(groups, "cpu.max"):  # such as "150000 100000", or "max 100000"
        quota, _, period = text.partition(" ")
        if quota.isdecimal() and period.isdecimal():
            cores = min(cores, int(quota) // int(period))
    with contextlib.suppress(OSError, ValueError):
        quota_us = int((groups / "cpu/cpu.cfs_quota_us").read_text("ascii"))
        period_us = int((groups / "cpu/cpu.cfs_period_us").read_text("ascii"))
        if quota_us > 0:
            cores = min(cores, quota_us // period_us)
    return max(1, cores)


def usable_bytes(groups: Path = Path("/sys/fs/cgroup")) -> int | None:
    """Memory that this process and its children may take in all; None where nobody tells."""
    found: list[int] = []
    with contextlib.suppress(OSError, ValueError):
        found.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    found += [int(text) for text in _told(groups, "memory.max") if text.isdecimal()]
    with contextlib.suppress(OSError, ValueError):
        found.append(int((groups / "memory/memory.limit_in_bytes").read_text("ascii")))
    return min(found, default=None)


def _told(groups: Path, name: str) -> Iterator[str]:
    """What this process's control group and those above it say of something."""
    folder = groups
    with contextlib.suppress(OSError, StopIteration):
        with open("/proc/self/cgroup", encoding="utf-8") as lines:
            path = next(line for line in lines if line.startswith("0::"))[3:].strip()
        folder = groups / path.strip("/")
    for place in (folder, *folder.parents):
        with contextlib.suppress(OSError):  # a container may not see where it is
            yield (place / name).read_text("ascii").strip()
        if place == groups:
            return


def visible_gpus() -> tuple[str, ...]:
    """The GPUs that this process sees, as CUDA names them: those of :data:`VISIBLE` if it is set, else all.

    No library is imported, and no GPU is touched: a process that has opened one could not be forked safely.
    """
    named = os.environ.get(VISIBLE)
    return _all_gpus() if named is None else named_gpus(named)


def named_gpus(named: str) -> tuple[str, ...]:
    """The GPUs in a value of :data:`VISIBLE`: indices or UUIDs, up to the first that is none, as CUDA reads it.

    >>> named_gpus("0,2"), named_gpus("GPU-8f1c, MIG-07aa"), named_gpus("1,-1,0"), named_gpus("")
    (('0', '2'), ('GPU-8f1c', 'MIG-07aa'), ('1',), ())
    """
    found: list[str] = []
    for name in map(str.strip, named.split(",")):
        if name in _NONE or not (name.isdecimal() or name.startswith(("GPU-", "MIG-"))):
            break
        if name not in found:
            found.append(name)
    return tuple(found)


def _all_gpus() -> tuple[str, ...]:
    """Asks the driver's tool, which knows what a container may use; else counts what the system shows."""
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        done = subprocess.run(
            ["nvidia-smi", "-L"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_ASK_S,
            check=True,
        )
        return listed_gpus(done.stdout)
    devices = sum(re.fullmatch(r"nvidia\d+", name) is not None for name in _names("/dev"))
    return tuple(map(str, range(devices or len(_names("/proc/driver/nvidia/gpus")))))


def listed_gpus(listing: str) -> tuple[str, ...]:
    """The GPUs in what ``nvidia-smi -L`` prints: by index, or if one is cut into slices, the slices' UUIDs.

    A program sees one slice and no other GPU beside it, so where there are slices, whole GPUs are left out.
    """
    slices = _SLICE.findall(listing)
    if slices:
        return tuple(slices)
    return tuple(map(str, range(sum(map(bool, map(_GPU.match, listing.splitlines()))))))


def _names(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []
