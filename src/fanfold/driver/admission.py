"""Admission: items of a source become roots of the run, in blocks.

Owns keys (which may occur only once), the binding of values to the pipeline's parameters and what is reported
of them. Pulls no more than it is asked for, and hands over what it has when pulling takes long.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, Literal, NamedTuple

from fanfold.backends.base import Backend
from fanfold.backends.values import Unstorable
from fanfold.data.binding import binder
from fanfold.data.files import File
from fanfold.data.sources import Source, Unreadable
from fanfold.errors import FanfoldError, SourceError, UsageError
from fanfold.extract import told
from fanfold.failures import Failure
from fanfold.observe.report import plural
from fanfold.plan import Plan
from fanfold.protocol import RootsAdmitted, Rows, StreamRows

CHUNK_ROOTS: Final = 1024
PULL_S: Final = 0.005
"""So long a slow source may keep the loop from its workers before what it gave so far is admitted."""

Duplicates = Literal["error", "first"]


class _NotStorable(Exception):
    """The item in row ``row`` cannot be stored."""

    def __init__(self, row: int, why: str) -> None:
        super().__init__(row, why)
        self.row = row
        self.why = why

    def told(self, source: str, key: str) -> SourceError:
        return SourceError(
            "FF315",
            f"the item with key {key!r} of {source} cannot be sent to a worker: {self.why}.",
            "Give the source plain data (paths, text, arrays), and open or build the rest in a stage.",
        )


class Opened(NamedTuple):
    """A source of which reading has begun."""

    name: str
    items: Iterator[tuple[str, Any]]
    unique_keys: bool


def opened(source: Source[Any]) -> Opened:
    """Begin to read a source. It lists its files now: a missing one shows before any worker starts.

    Raises:
        UsageError: What it was told to read is not there.
        SourceError: It cannot be opened.
    """
    try:
        return Opened(repr(source), iter(source), source.unique_keys)
    except Exception as error:
        told = _told(repr(source), error, 0)
        raise told from told.__cause__


class Admission:
    """The source's side of a run.

    Args:
        plan: The pipeline.
        source: Opened, not read from yet.
        backend: Stores the values.
        clock: Seconds, for bounding how long a pull takes.
        duplicates: Whether a key that comes again is an ``"error"``, or the ``"first"`` item with it counts.
        on_unreadable: Told of each item that the source cannot read and gives as such; it is left out.

    Raises:
        UsageError: ``duplicates`` is unknown.
    """

    def __init__(
        self,
        plan: Plan,
        source: Opened,
        backend: Backend,
        clock: Callable[[], float],
        duplicates: Duplicates = "error",
        on_unreadable: Callable[[Failure], None] = lambda _: None,
    ) -> None:
        if duplicates not in ("error", "first"):
            raise UsageError(
                "FF313", f"duplicates={duplicates!r} is unknown.", 'Use "error" or "first".'
            )
        self._plan = plan
        self._source = source
        self._backend = backend
        self._clock = clock
        self._bind = binder(plan.sources) if len(plan.sources) > 1 else None
        self._first_only = duplicates == "first"
        self._on_unreadable = on_unreadable
        self._seen: set[str] | None = None if source.unique_keys else set()
        self._error: FanfoldError | None = None
        self._copies: dict[int, list[File]] = {}
        self.admitted = 0
        self.skipped = 0
        """Items left out because their key had come before."""
        self.unreadable = 0
        """Items left out because the source could not read them."""
        self.exhausted = False

    def pull(self, room: int) -> RootsAdmitted | None:
        """Admit up to ``room`` roots; None if there is none (any more).

        Raises:
            SourceError: The source raised, a key came twice, or an item is not what it must be. What the
                source gave before was admitted by the calls before.
        """
        if self._error is not None:
            error, self._error = self._error, None
            raise error
        keys: list[str] = []
        values: list[Any] = []
        try:
            self._collect(min(room, CHUNK_ROOTS), keys, values)
        except Exception as error:
            told = _told(self._source.name, error, self._given(len(keys)))
            if not keys:
                raise told from told.__cause__
            self._error = told  # the next call raises it, after these are admitted
        if not keys:
            return None
        try:
            event = self._event(keys, values)
        except _NotStorable as found:
            # What came before it is admitted; it stops the run when that is done.
            self._error = found.told(self._source.name, keys[found.row])
            self.exhausted = False
            if found.row == 0:
                return self.pull(0)
            keys, values = keys[: found.row], values[: found.row]
            event = self._event(keys, values)
        self.admitted += len(keys)
        return event

    def committed(self, roots: Sequence[int]) -> None:
        """These roots are done with: local copies of remote files may go."""
        if self._copies:
            for root in roots:
                for file in self._copies.pop(root, ()):
                    file.drop_local_copy()

    def _collect(self, limit: int, keys: list[str], values: list[Any]) -> None:
        items, seen, bind = self._source.items, self._seen, self._bind
        clock = self._clock
        deadline_s = clock() + PULL_S
        while len(keys) < limit:
            pair = next(items, None)
            if pair is None:
                self.exhausted = True
                return
            key, value = pair
            if type(value) is Unreadable:
                self._leave_out(key, value, len(keys))
                continue
            if seen is not None:
                if key in seen:
                    self._seen_before(key)
                    continue
                seen.add(key)
            values.append(value if bind is None else bind(key, value))
            keys.append(key)
            if clock() > deadline_s:
                return

    def _given(self, collected: int) -> int:
        """How many items the source gave so far, those included that are not admitted yet."""
        return self.admitted + self.skipped + self.unreadable + collected

    def _seen_before(self, key: str) -> None:
        if not self._first_only:
            raise SourceError(
                "FF314",
                f"{self._source.name} gives the key {key!r} twice; a key names one root.",
                'Take keys from another field (key=…), or keep the first with duplicates="first".',
            )
        self.skipped += 1

    def _leave_out(self, key: str, item: Unreadable, collected: int) -> None:
        level = self._plan.levels[0].name
        position = self._given(collected)
        self.unreadable += 1
        self._on_unreadable(
            Failure(
                kind="contract",
                message=item.reason,
                call=self._source.name,
                key=key,
                levels=(level,),
                ordinals=(position,),
            )
        )

    def _event(self, keys: list[str], values: list[Any]) -> RootsAdmitted:
        streams: list[StreamRows] = []
        for position, parameter in enumerate(self._plan.sources):
            stream = parameter.stream
            rows = values if self._bind is None else [value[position] for value in values]
            self._note_copies(rows)
            stored = self._stored(rows) if stream.stored else None
            streams.append(told(self._plan, stream, rows, stored))
        return RootsAdmitted(tuple(keys), tuple(streams), self._clock())

    def _stored(self, rows: list[Any]) -> Rows:
        try:
            return self._backend.put(rows)
        except Unstorable as error:
            row, failure = min(error.rows, key=lambda pair: pair[0])
            raise _NotStorable(row, failure.message) from error

    def _note_copies(self, rows: Sequence[Any]) -> None:
        for root, value in enumerate(rows, self.admitted):
            if type(value) is File and not value.is_local:
                self._copies.setdefault(root, []).append(value)


def _told(source: str, error: Exception, items: int) -> FanfoldError:
    """The error to stop the run with."""
    if isinstance(error, FanfoldError):
        return error
    told = SourceError(
        "FF316",
        f"{source} raised {type(error).__name__} after {plural(items, 'item')}: {error}.",
        "What it gave before was run to its end; mend the source and run again.",
    )
    told.__cause__ = error
    return told
