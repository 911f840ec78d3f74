"""What the local backend's processes tell each other, beside the protocol's batches and events.

Owns the rare messages: driver → zygote, zygote → driver, driver → new processes and writer. Named tuples of
built-in types, so that neither end unpickles anything of a user's by accident. The frequent ones are in
:mod:`fanfold.backends.local.wire`.
"""

from __future__ import annotations

from typing import NamedTuple

from fanfold.backends.base import RunFacts
from fanfold.backends.local.store import BlockRef
from fanfold.protocol import RootResult

# ------------------------------------------------------------------------------------------- to the zygote


class Fork(NamedTuple):
    """Make a process; two descriptors come along: its channel and its log."""

    worker: int
    threads: int
    """Cores that it owns: what OpenMP, BLAS and the like are sized to."""
    gpus: tuple[str, ...] | None = None
    """GPUs that it is to see; None: those that the zygote sees, and so the program."""


class Retire(NamedTuple):
    """A process is to end by itself, since its channel is closed; it is killed if it takes long."""

    pid: int


class End(NamedTuple):
    """End all processes, those that are idle in peace, and go."""

    closing: tuple[int, ...] = ()
    """Idle workers whose stages have a ``close()``, for which there is more time."""


# ------------------------------------------------------------------------------------------- from the zygote


class Forked(NamedTuple):
    """A process was made."""

    worker: int
    pid: int


class Ended(NamedTuple):
    """A process ended; ``status`` as :func:`os.waitpid` gives it."""

    worker: int
    pid: int
    status: int


# ------------------------------------------------------------------------------- to workers and the writer


class Setup(NamedTuple):
    """The first message: what the process is to be."""

    worker: int
    name: str
    payload: bytes
    """By cloudpickle: the stage's part of the plan, or the record writer."""
    writes: bool
    """Whether it writes records rather than runs a stage."""
    arenas: dict[int, int]
    """By number: descriptors, inherited."""
    board: int
    """Descriptor of the board, inherited."""
    node: int
    """Descriptor of what was done on this machine, inherited."""
    used: tuple[BlockRef, ...]
    """Blocks of its arena that an earlier process with this number made, and that are still in use."""
    serials_from: int
    limit_bytes: int
    keep_bytes: int
    """How much free memory its arena keeps."""
    run: RunFacts


class Write(NamedTuple):
    """To the writer: roots to commit, in order."""

    results: tuple[RootResult, ...]


class CloseWriter(NamedTuple):
    """To the writer: close the sinks, there is no more."""
