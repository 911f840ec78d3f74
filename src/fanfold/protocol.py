"""What crosses the boundary between the driver and whoever runs the work.

Owns the messages. Downwards go :class:`RunBatch`es; upwards come *events*, in the past tense, which are
also the engine's only input. Messages hold references and small control values, never users' values, and
nothing but built-in types and Fanfold's own, so that the driver never unpickles anything of a user's.
They are named tuples because these pickle fastest.

Rules
-----
1. Every event about work names its ``batch``; a batch has one ``attempt`` and, for expansions, one
   ``generation``. Events of a batch that the engine no longer waits for are ignored (late results).
2. Rows are positional: the tasks of a batch are numbered from 0 in the order of ``RunBatch``'s columns;
   a stream's block holds one row for each task that did *not* fail, in task order (a child stream: for
   each child, in task order, then ordinal order).
3. Children may be released in any number of events before the expansion is sealed; ordinals go on from
   what was released before. A task's own item streams arrive with ``TasksFinished``.
4. A batch ends with exactly one of ``BatchFinished``, ``BatchRaised`` or its worker's ``WorkerDied``. A worker
   that is recycled holds no batch and is not told of as dead: only ``WorkerStarted`` comes again.
   Before ``BatchFinished``, each of its tasks was in exactly one ``TasksFinished`` (done or failed).
5. A worker begins its batches in the order of submission. It ends them in that order too, unless its stage is
   asynchronous: then up to ``max_in_flight`` of them are under way together and end as they may.
6. Events that a worker tells together (of one flush) and the blocks that they name arrive together, in the
   order in which they were told, or not at all: what was on its way when a worker died may be lost, whole.
7. ``time_s`` is on the driver's clock: the backend sets it when it takes an event in, since clocks of
   different machines do not agree. ``busy_s`` and ``wait_s`` are durations on the worker's own.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from types import EllipsisType
from typing import Final, NamedTuple, TypeAlias

from fanfold.columns import Column, Ref
from fanfold.failures import Failure
from fanfold.plan import Path


class Rows(NamedTuple):
    """A stored block of one stream: ``count`` rows behind ``ref``; ``size_bytes`` as measured."""

    ref: Ref
    count: int  # type: ignore[assignment]  # hides tuple.count, which nobody calls
    size_bytes: int = 0


class ControlRows(NamedTuple):
    """The rows of a stream by the value of one control (see :class:`fanfold.plan.Control`).

    ``labels[i]`` is the bit set of the rows with label ``i``; ``illegal`` pairs rows with a text that
    shows the value.
    """

    control: int
    labels: tuple[int, ...]
    illegal: tuple[tuple[int, str], ...] = ()
    path: Path = ()
    """Where in the stream's values it was read; one control may have values at several places."""


NO_GROUP: Final[EllipsisType] = ...
"""In the place of a group: the function that tells groups told none. Each such row is a group by itself."""


class StreamRows(NamedTuple):
    """What was made at one stream's port: values (None where the plan does not store them) and facts."""

    port: int
    rows: Rows | None = None
    controls: tuple[ControlRows, ...] = ()
    missing: tuple[tuple[int, int, str, Path], ...] = ()
    """A field check, the bit set of the rows that lack the field, what such a value has instead, and where in
    the stream's values that is."""
    sizes: tuple[int, ...] = ()
    """What each row takes in bytes, or a single number if all take the same; none where nobody asks
    (:attr:`fanfold.plan.Stream.sized`)."""
    groups: tuple[tuple[int, Path, tuple[tuple[Hashable, int], ...]], ...] = ()
    """For each pair of :attr:`fanfold.plan.Stream.groups`, and as it has them, the groups with the bit sets of
    their rows. A group is made of built-in types alone."""
    costs: tuple[tuple[int, Path, tuple[float, ...]], ...] = ()
    """For each pair of :attr:`fanfold.plan.Stream.costs`, and as it has them, what each row costs: infinitely
    much where the function tells no cost."""
    untold: tuple[tuple[int, str, int, str], ...] = ()
    """For each call of which the function of an option told nothing of some rows: the call, the option, of how
    many, and one of them in words, with what was wrong."""


# ------------------------------------------------------------------------------------------- downwards


class ItemRun(NamedTuple):
    """Who some consecutive items of a batch are: siblings, in ordinal order.

    Bit ``i`` of ``mask`` stands for the sibling with the ordinal ``first + i``; as many items are in the run as
    bits are set.
    """

    key: str
    """The root's key."""
    above: tuple[int, ...]
    """The ordinals of the siblings' ancestors, from the root's own position down to the direct parent; empty
    for roots."""
    first: int
    mask: int


class RunBatch(NamedTuple):
    """Run ``count`` items of one call together.

    ``columns`` has one column of ``count`` values per input of the call. ``skip[i]`` children of task
    ``i`` were released by an earlier attempt: yield them again, but release only what follows.
    """

    batch: int
    call: int
    count: int  # type: ignore[assignment]  # as above
    columns: tuple[Column, ...]
    attempt: int = 1
    generation: int = 0
    skip: tuple[int, ...] = ()
    identity: tuple[ItemRun, ...] = ()
    """Who the tasks are, in their order; only for stages that ask (``StageSpec.identities``), so that it costs
    the others nothing."""
    room: int | None = None
    """Bytes of children that its generators may release, before they wait for more (``Backend.grant``); the
    last release may go beyond. None: there is no bound."""


# --------------------------------------------------------------------------------------------- upwards


Count: TypeAlias = tuple[str, str, int]
"""A call, the name of something that its stage counts, and how many more (``ff.context().count``)."""


class WorkerStarted(NamedTuple):
    """A worker's constructor returned: it takes batches from now on."""

    worker: int
    time_s: float = 0.0
    pid: int = 0


class WorkerFailed(NamedTuple):
    """A worker could not be made: its constructor raised, or its stage could not be loaded."""

    worker: int
    failure: Failure
    time_s: float = 0.0
    told: tuple[str, str, str] | None = None
    """Code, message and hint of an error of Fanfold's own, which says all that is needed."""


class WorkerDied(NamedTuple):
    """A worker's process ended without being asked; ``reason`` in words (``killed by SIGSEGV``)."""

    worker: int
    reason: str
    time_s: float = 0.0
    running: int | None = None
    """The batch that it had begun and not ended, if any; others at it had not been started. A backend that
    cannot know names the oldest of whose end nothing was heard: it runs alone next, and harms nobody then."""
    alone: bool = True
    """False: the batch cannot be blamed, since an asynchronous stage had begun others as well, or because the
    worker did not end by what it ran (its machine was lost)."""


class ChildrenReleased(NamedTuple):
    """Children came into being: ``counts[i]`` more of task ``first + i``, and their streams' rows."""

    batch: int
    node: int
    """The ExpandNode."""
    first: int
    counts: tuple[int, ...]
    streams: tuple[StreamRows, ...]
    attempt: int = 1
    generation: int = 0
    time_s: float = 0.0


class ExpansionSealed(NamedTuple):
    """The expansions of ``tasks`` by ``node`` have all their children; it counts once the tasks have ended."""

    batch: int
    node: int
    tasks: tuple[int, ...]
    attempt: int = 1
    generation: int = 0
    time_s: float = 0.0


class TasksFinished(NamedTuple):
    """Tasks ``first`` to ``first + count - 1`` ended; ``failures`` pairs task and record.

    A failed task seals nothing: all its outputs fail, and its expansions too, whatever was released.
    """

    batch: int
    first: int
    count: int  # type: ignore[assignment]  # as above
    streams: tuple[StreamRows, ...]
    failures: tuple[tuple[int, Failure], ...] = ()
    attempt: int = 1
    generation: int = 0
    time_s: float = 0.0


class BatchFinished(NamedTuple):
    """All tasks of the batch ended; ``busy_s`` is the time spent in the user's code."""

    batch: int
    busy_s: float = 0.0
    attempt: int = 1
    time_s: float = 0.0
    wait_s: float = 0.0
    """How long the worker had waited for this batch to arrive."""
    counts: tuple[Count, ...] = ()
    """What the stage has counted since the last batch that its worker ended."""
    own_bytes: int = 0
    """How much memory its worker takes by itself now, values apart; 0: not measured, since its stage does not
    ask (``StageSpec.recycle_above``)."""


class BatchPaused(NamedTuple):
    """A generator of the batch has used up its room and waits for more; its worker goes on with other batches.

    It goes on when it is granted room, or when its task need not run any more. The tasks after it are given
    back: the worker has not begun them, and will not.
    """

    batch: int
    begun: int
    """Tasks up to this one, not included, were begun; all but the last of them have ended."""
    room: int
    """What it has been granted in all, as far as its worker knew; if there was more on the way, it goes on."""
    attempt: int = 1
    time_s: float = 0.0


class BatchRaised(NamedTuple):
    """A batched stage raised: nothing of the batch is done, and who is guilty is not known."""

    batch: int
    failure: Failure
    busy_s: float = 0.0
    attempt: int = 1
    time_s: float = 0.0
    counts: tuple[Count, ...] = ()
    """As of :class:`BatchFinished`: what was done is counted, also where it came to nothing."""
    own_bytes: int = 0
    """As of :class:`BatchFinished`."""


class BlocksSpilled(NamedTuple):
    """The backend was asked to move blocks out of memory. Their references stay what they are."""

    asked: tuple[Ref, ...]
    moved: tuple[Ref, ...]
    """Those that take no memory any more; the others cannot be moved, and are not asked for again."""
    time_s: float = 0.0


BatchEvent: TypeAlias = (
    ChildrenReleased | ExpansionSealed | TasksFinished | BatchPaused | BatchFinished | BatchRaised
)
WorkerEvent: TypeAlias = WorkerStarted | WorkerFailed | WorkerDied
Event: TypeAlias = BatchEvent | WorkerEvent | BlocksSpilled


class RootsAdmitted(NamedTuple):
    """Roots entered from the source: one key each, and the rows of each source port."""

    keys: tuple[str, ...]
    streams: tuple[StreamRows, ...]
    time_s: float = 0.0


class RootsCommitted(NamedTuple):
    """Roots' records are written (or there was nothing to write): their values may go."""

    roots: tuple[int, ...]
    time_s: float = 0.0


class RootRefused(NamedTuple):
    """A value of this root, which had ended, cannot be loaded, or its sink has no form for it: it failed after
    all."""

    root: int
    failure: Failure
    """Its ``call`` is where the value was to go."""
    time_s: float = 0.0


class SourceExhausted(NamedTuple):
    """No root will be admitted any more."""

    time_s: float = 0.0


DriverEvent: TypeAlias = RootsAdmitted | RootsCommitted | RootRefused | SourceExhausted


_NO_ORDINALS: Final[Mapping[int, tuple[tuple[int, ...], ...]]] = {}
"""A plain dict, since a read-only view of one cannot be sent to a writer; nobody changes it."""


class RootResult(NamedTuple):
    """What became of a root and where its outputs' values are.

    A named tuple, not a dataclass, since there is one for each root: it is made three times as fast.
    """

    root: int
    key: str
    status: str
    """A :class:`fanfold.outcomes.Status` value."""
    columns: tuple[Column | None, ...]
    """For each output of the plan one column (a root-level output: of one value; a child-level output: of
    its done items) or None where there is nothing to read."""
    ordinals: Mapping[int, tuple[tuple[int, ...], ...]] = _NO_ORDINALS
    """By child-level output: the items' ordinals below the root, one tuple per item."""
    failures: tuple[Failure, ...] = ()
    """What failed under this root, each where it originated."""
