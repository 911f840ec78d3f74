"""The contract between the driver and a backend.

A backend starts workers, carries batches and values, and reports what happened; it knows calls and
streams, but no pipeline, no membership and no outcome. Nothing waits for workers but ``poll`` and ``close``;
``put`` and ``read`` may wait for values to be stored or fetched.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple, Protocol, TypeAlias

from fanfold.columns import Column, Ref
from fanfold.errors import FanfoldError, SinkValueError
from fanfold.failures import Failure
from fanfold.plan import Plan
from fanfold.protocol import Event, RootResult, Rows, RunBatch, WorkerFailed
from fanfold.secret import redacted


class RunFacts(NamedTuple):
    """What stages may know of the run that they are in."""

    name: str = ""
    seed: int = 0
    """What items' seeds follow from."""
    budget_bytes: int | None = None
    """How much values may take; None: as much as it comes to."""


NO_RUN: Final = RunFacts()
"""For workers that are started by themselves."""


@dataclass(frozen=True, slots=True)
class WorkerSpec:
    """One replica to start: ``worker`` is its number in this run, for ever (a replacement keeps it)."""

    worker: int
    stage: int
    name: str
    """``Ocr[2]``: the stage's name and the replica's number."""
    run: RunFacts = NO_RUN
    """The same for all workers of a run."""
    gpus: tuple[str, ...] | None = None
    """The GPUs that it is to see, as ``CUDA_VISIBLE_DEVICES`` names them, through all its lives; None: those
    that the program sees."""
    parked: bool = False
    """It is not started with the others, but when it is added."""


class RecordWriter(Protocol):
    """A sink's side of the bargain, run where values may be read (locally: in a process of its own).

    It must pickle (cloudpickle). ``open`` and ``close`` are called once, in the writing process.
    """

    def open(self) -> None: ...

    def write(self, result: RootResult, values: Sequence[Any]) -> None:
        """Commit one root atomically and idempotently by its key.

        ``values`` are its outputs as :func:`output_values` gives them; a root that failed or was dropped
        has none, and what an earlier run wrote for its key goes.

        Raises:
            SinkValueError: A value cannot be written: this root fails, and nothing of it is there.
        """
        ...

    def refuse(self, result: RootResult, output: int) -> str:
        """A root fails since a value of this output cannot be loaded; what an earlier run wrote for its key
        goes. Returns where the value should have gone, in words."""
        ...

    def close(self) -> None: ...


class RecordsWritten(NamedTuple):
    """The writer committed these roots."""

    roots: tuple[int, ...]
    time_s: float = 0.0


class RecordRefused(NamedTuple):
    """A value of this root cannot be loaded, or a sink has no form for it: the root fails, and nothing of it is
    written."""

    root: int
    failure: Failure
    """Its ``call`` is the sink."""
    time_s: float = 0.0


class WriteFailed(NamedTuple):
    """The writer could not commit a root; the run cannot go on.

    The writer commits nothing after it, whatever it was given; it can still be closed, unless ``root`` is -1.
    """

    root: int
    """-1: it failed in opening or closing the sinks."""
    message: str
    traceback: str = ""
    time_s: float = 0.0


class WriterClosed(NamedTuple):
    """All that was committed is where it belongs, and the sinks are closed."""

    time_s: float = 0.0


BackendEvent: TypeAlias = RecordsWritten | RecordRefused | WriteFailed | WriterClosed


class Backend(Protocol):
    """Where workers live. One object serves one run; ``close`` is idempotent and leaves nothing behind.

    It is used by one thread at a time. A backend with threads of its own hands over in ``poll`` what they
    hear.
    """

    def start(self, plan: Plan, workers: Sequence[WorkerSpec], writer: RecordWriter | None) -> None:
        """Start all workers but those that are parked (and the writer) in parallel, and return without waiting
        for them."""
        ...

    def submit(self, worker: int, batch: RunBatch) -> None:
        """Send a batch; a worker begins its batches in the order of submission, one at a time, or up to
        ``max_in_flight`` at a time if its stage is asynchronous. Never blocks; it may go out with the next
        ``poll``, together with others."""
        ...

    def trim(self, worker: int, batch: int, tasks: int) -> None:
        """Some tasks of a batch that was submitted need not run any more, a bit for each.

        A worker leaves out those that it has not begun (and closes a generator that it has), and tells of them
        as failed, which nobody heeds. What comes too late has no effect. Never blocks.
        """
        ...

    def grant(self, worker: int, batch: int, room: int) -> None:
        """A batch that was submitted with a bounded ``room`` may release so many more bytes of children.

        If it had paused, it goes on before batches that its worker has not begun. What comes too late has no
        effect. Never blocks.
        """
        ...

    def restart(self, worker: int) -> None:
        """Replace a worker that died. Its number stays; ``WorkerStarted`` comes again."""
        ...

    def recycle(self, worker: int) -> None:
        """Replace a worker that holds no batch. Its stage's ``close()`` is called; its number stays, and
        ``WorkerStarted`` comes again. However the old one ends, it is not told of as dead. Never blocks."""
        ...

    def add(self, worker: int) -> None:
        """Start a worker that is parked. ``WorkerStarted`` comes when it is ready. Never blocks."""
        ...

    def retire(self, worker: int) -> None:
        """Let a worker go that is ready and holds no batch: it is parked from now on, and what its stage has
        made stays readable. Its stage's ``close()`` is called; it is not told of as dead. Never blocks."""
        ...

    def write(self, results: Sequence[RootResult]) -> None:
        """Have the writer commit these roots in this order; each is answered by an event."""
        ...

    def close_writer(self) -> None:
        """Have the writer close its sinks after all it was given; answered by an event.

        Without it (the driver is killed), sinks are left as they are after their last commit.
        """
        ...

    def put(self, values: Sequence[Any]) -> Rows:
        """Store values of the driver's own process (a source's items) as one block."""
        ...

    def read(self, column: Column) -> list[Any]:
        """Read values into the driver's own process (for ``stream``)."""
        ...

    def spill(self, refs: Sequence[Ref]) -> None:
        """Move blocks that no batch at a worker reads out of memory, as far as it can be done.

        Answered by ``BlocksSpilled`` from the next ``poll`` on. The references stay what they are; to read what
        was moved takes longer. May wait for a disk.
        """
        ...

    def release(self, refs: Iterable[Ref]) -> None:
        """These blocks are read by nobody any more."""
        ...

    def poll(self, timeout_s: float | None) -> list[Event | BackendEvent]:
        """Wait until something happened, at most ``timeout_s`` (None: no limit), and tell all of it."""
        ...

    def worker_log_tail(self, worker: int, limit_bytes: int = 4_096) -> str:
        """The last output (stdout and stderr) of a worker, for messages; nothing where none can be had."""
        ...

    def close(self) -> None:
        """End all workers and free everything.

        Workers that are idle have a moment in which their stages' ``close()`` is called.
        """
        ...


def record_refused(result: RootResult, error: SinkValueError) -> RecordRefused:
    """The event for a root whose values a sink refuses."""
    failure = Failure(
        kind="contract",
        code=error.code,
        message=f"{error.message} {error.hint}".rstrip(),
        call=error.sink,
        key=result.key,
        ordinals=(result.root,),
    )
    return RecordRefused(result.root, failure)


def write_root(
    writer: RecordWriter,
    result: RootResult,
    read: Callable[[Sequence[Column]], list[list[Any]]],
    contain: tuple[type[BaseException], ...],
) -> RecordRefused | None:
    """Have one root written; the event if that fails the root instead.

    Args:
        writer: Writes it.
        result: The root.
        read: Gives the values of columns, which may run users' code.
        contain: Exceptions of that code that fail the root; others go through.

    Raises:
        BaseException: What the writer raises, but for a value that it refuses.
    """
    try:
        values = output_values(result, read)
    except contain as error:
        output = guilty_output(result, read, contain)
        return RecordRefused(result.root, unread(result, error, writer.refuse(result, output)))
    try:
        writer.write(result, values)
    except SinkValueError as error:
        return record_refused(result, error)
    return None


def unread(result: RootResult, error: BaseException, where: str) -> Failure:
    """The failure of a root of which a value cannot be loaded.

    Args:
        result: The root.
        error: What was raised.
        where: The failure's ``call``: where the value was to go, or what made it.
    """
    raised = Failure.from_exception(error)
    return replace(
        raised,
        kind="unpicklable",
        message=f"a value of it cannot be loaded: {raised.message}",
        call=where,
        key=result.key,
        ordinals=(result.root,),
    )


def write_failed(root: int, error: BaseException) -> WriteFailed:
    """The event for an exception of a writer; Fanfold's own errors say all that is needed."""
    if isinstance(error, FanfoldError):
        return WriteFailed(root, str(error))
    text = "".join(traceback.format_exception(error))
    return WriteFailed(root, f"{type(error).__name__}: {error}", text)


def worker_failed(worker: int, error: BaseException, name: str = "") -> WorkerFailed:
    """The event for an exception that kept a worker, called ``name``, from being made.

    Of Fanfold's own errors the words travel, as plain text: a user may have derived a class from them that the
    driver cannot load.
    """
    told = None
    if isinstance(error, FanfoldError):
        told = (str(error.code), redacted(str(error.message)), redacted(str(error.hint)))
    return WorkerFailed(worker, Failure.from_exception(error, worker=name), told=told)


def output_values(
    result: RootResult, read: Callable[[Sequence[Column]], list[list[Any]]]
) -> list[Any]:
    """The values of a root's outputs, in plan order: one value for a root-level output, a list of values
    for a child-level one."""
    columns = [column for column in result.columns if column is not None]
    values = iter(read(columns))
    return [
        [] if column is None else next(values) if index in result.ordinals else next(values)[0]
        for index, column in enumerate(result.columns)
    ]


def guilty_output(
    result: RootResult,
    read: Callable[[Sequence[Column]], list[list[Any]]],
    contain: tuple[type[BaseException], ...],
) -> int:
    """The first output whose values cannot be read by themselves, or the last one."""
    columns = [(index, column) for index, column in enumerate(result.columns) if column is not None]
    for index, column in columns[:-1]:
        try:
            read([column])
        except contain:
            return index
    return columns[-1][0]
