"""What the core asks of the outside, in the imperative; the driver carries it out, in order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from fanfold.columns import Ref
from fanfold.failures import Failure
from fanfold.protocol import RootResult, RunBatch


@dataclass(frozen=True, slots=True)
class StartBatch:
    """Send ``batch`` to ``worker``."""

    worker: int
    batch: RunBatch


@dataclass(frozen=True, slots=True)
class RestartWorker:
    """Replace a worker that died."""

    worker: int


@dataclass(frozen=True, slots=True)
class RecycleWorker:
    """Replace a worker that holds nothing, and has done enough or grown too large: that is no death."""

    worker: int


@dataclass(frozen=True, slots=True)
class TrimBatch:
    """Tasks of a batch at a worker need not run any more: a bit for each."""

    worker: int
    batch: int
    tasks: int


@dataclass(frozen=True, slots=True)
class GrantRoom:
    """A batch at a worker may release so many more bytes of children."""

    worker: int
    batch: int
    room: int


@dataclass(frozen=True, slots=True)
class SpillBlocks:
    """Nobody reads these blocks soon: move them out of memory, and tell of it (``BlocksSpilled``)."""

    refs: tuple[Ref, ...]


@dataclass(frozen=True, slots=True)
class ReleaseBlocks:
    """Nobody reads these blocks any more."""

    refs: tuple[Ref, ...]


@dataclass(frozen=True, slots=True)
class FinishRoots:
    """These roots ended, in order of their ending: write or hand over their outputs, then report
    ``RootsCommitted``. Their values stay readable until then."""

    results: tuple[RootResult, ...]


@dataclass(frozen=True, slots=True)
class StopRun:
    """The run is not to go on: a stage cannot be constructed, or a rule of failing fast holds."""

    failure: Failure
    """The first that led to it."""
    message: str
    """What happened, where and why, with the failure's own words: a sentence, and its traceback."""
    hint: str = ""
    """What to do about it."""


Command: TypeAlias = (
    StartBatch
    | TrimBatch
    | GrantRoom
    | SpillBlocks
    | RestartWorker
    | RecycleWorker
    | ReleaseBlocks
    | FinishRoots
    | StopRun
)
