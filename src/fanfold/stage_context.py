"""What a stage may ask while it runs: which call, which item, which attempt; and counters of its own.

Owns :func:`context` and the :class:`Context` that it gives, the order of identities in a batch, and the seed
of an item. Whoever runs users' code makes a context current; who the items are is told by the batch.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Final, NoReturn

from fanfold.columns import bit_positions
from fanfold.errors import UsageError
from fanfold.protocol import Count, ItemRun

_CURRENT: Final[ContextVar[Context | None]] = ContextVar("fanfold_context", default=None)


@dataclass(frozen=True, slots=True)
class ItemContext:
    """Who an item is."""

    key: str
    """The key of its root."""
    ordinals: tuple[int, ...]
    """``(7, 3)`` is page 3 of document 7."""
    seed: int
    """A number from 0 to 2⁶³ - 1 that belongs to this item at this call. It follows from the run's seed, the
    call, the key and the ordinals below the root, and from nothing else, be it batches, workers or attempts."""


class Context:
    """What is going on around a stage; see :func:`context`.

    Args:
        run: The run's name.
        call: The call's name; empty in a constructor.
        worker: The replica's name.
        attempt: Which try of these items it is, from 1.
        run_seed: What the items' seeds follow from.
        counts: Where counts are collected: sums by call and name.
    """

    def __init__(
        self,
        *,
        run: str = "",
        call: str = "",
        worker: str = "",
        attempt: int = 1,
        run_seed: int = 0,
        counts: Counts | None = None,
    ) -> None:
        self.run = run
        """The run's name, as in its report; empty outside of a run."""
        self.call = call
        """The call, such as ``Ocr#2``; empty in a constructor."""
        self.worker = worker
        """The worker, such as ``Ocr[0]``; empty outside of a run."""
        self.attempt: int = attempt
        """Which try it is, from 1."""
        self._run_seed = run_seed
        self._counts = counts
        self._identity: Sequence[ItemRun] | None = None
        self._items: tuple[ItemContext, ...] | None = None
        self._position: int | None = None

    @property
    def items(self) -> tuple[ItemContext, ...]:
        """The items that the stage was given, in their order: one for each element of its lists.

        Raises:
            UsageError: The stage's batches do not tell who their items are (FF442).
        """
        if self._items is None:
            if self._identity is None:
                self._unknown()
            self._items = tuple(self._told(self._identity))
        return self._items if self._position is None else self._items[self._position :][:1]

    @property
    def key(self) -> str:
        """The item's key, in a stage that takes one item at a time. Errors as for :attr:`items`."""
        return self._one().key

    @property
    def ordinals(self) -> tuple[int, ...]:
        """The item's ordinals, in a stage that takes one item at a time. Errors as for :attr:`items`."""
        return self._one().ordinals

    @property
    def seed(self) -> int:
        """The item's seed, in a stage that takes one item at a time. Errors as for :attr:`items`."""
        return self._one().seed

    def count(self, name: str, n: int = 1) -> None:
        """Add ``n`` to the counter ``name``; the report has its sum for each call (``CallReport.counters``).

        What was done is counted, each attempt and also where the item fails in the end; not what a worker had
        done of a batch when it died.

        Raises:
            UsageError: It is no whole number, or nobody counts: in a constructor (FF443).
        """
        if not isinstance(n, int) or not self.call:
            raise UsageError(
                "FF443",
                f"count({name!r}, {n!r}): "
                + ("a constructor has no call." if not self.call else "n is not a whole number."),
                "Count whole things in the stage's function.",
            )
        if self._counts is not None:
            self._counts.add(self.call, str(name), int(n))

    def _one(self) -> ItemContext:
        items = self.items
        if self._position is None:
            raise UsageError(
                "FF442",
                f"stage of call {self.call!r} is batched: it has {len(items)} items, not one.",
                "Use ff.context().items, which has one entry for each.",
            )
        return items[0]

    def _told(self, identity: Sequence[ItemRun]) -> Iterator[ItemContext]:
        for key, above, first, mask in identity:
            for offset in bit_positions(mask):
                ordinals = (*above, first + offset)
                yield ItemContext(key, ordinals, seed_of(self._run_seed, self.call, key, ordinals))

    def _unknown(self) -> NoReturn:
        raise UsageError(
            "FF442",
            f"at call {self.call!r} it is not known which items these are."
            if self.call
            else "a constructor has no items.",
            "Give the stage the option identities=True; without it, only stages whose own code mentions "
            "ff.context() are told."
            if self.call
            else "Ask in the stage's function.",
        )

    # ---------------------------------------------------------------------------- for whoever runs stages

    def begin(self, attempt: int, identity: Sequence[ItemRun], position: int | None = None) -> None:
        """A batch begins. Who its items are; and which of them it is about, where they come one at a time."""
        self.attempt = attempt
        self._identity = identity or None
        self._items = None
        self._position = position

    def move(self, position: int) -> None:
        """It is about this item now."""
        self._position = position

    def at(self, position: int | None) -> Context:
        """The same for one item (or the whole batch), to be kept while others are under way."""
        one = Context(
            run=self.run,
            call=self.call,
            worker=self.worker,
            attempt=self.attempt,
            run_seed=self._run_seed,
            counts=self._counts,
        )
        one._identity, one._items, one._position = self._identity, self._items, position
        return one


class Counts:
    """Sums by call and name, handed on from time to time."""

    def __init__(self) -> None:
        self._sums: dict[tuple[str, str], int] = {}

    def add(self, call: str, name: str, n: int) -> None:
        """Count ``n`` more."""
        self._sums[call, name] = self._sums.get((call, name), 0) + n

    def take(self) -> tuple[Count, ...]:
        """What was counted since the last time."""
        if not self._sums:
            return ()
        sums, self._sums = self._sums, {}
        return tuple((call, name, n) for (call, name), n in sums.items())


def context() -> Context:
    """What is going on around the stage that asks: run, call, worker, attempt, items, a seed for each of them.

    In a stage that takes one item at a time, ``context().key``, ``.ordinals`` and ``.seed`` are the item's; in
    a batched one ``context().items`` has an entry for each element of its lists. A stage whose code mentions
    ``context`` is told who its items are; where only code deeper down asks, give the stage ``identities=True``.

    Raises:
        UsageError: No stage is running here (FF441); a thread that a stage has started is outside of it.

    Example:
        >>> import random
        >>> import fanfold as ff
        >>> @ff.stage
        ... def shuffled(text: str) -> str:
        ...     here = ff.context()
        ...     here.count("characters", len(text))
        ...     return "".join(random.Random(here.seed).sample(text, len(text)))
        >>> sorted(shuffled("abc"))
        ['a', 'b', 'c']
    """
    found = _CURRENT.get()
    if found is None:
        raise UsageError(
            "FF441",
            "ff.context() was called where no stage is running.",
            "Call it in a stage's function, in the thread in which the stage was called.",
        )
    return found


@contextmanager
def current(made: Context) -> Iterator[Context]:
    """Make this the context of the code that runs here."""
    token = _CURRENT.set(made)
    try:
        yield made
    finally:
        _CURRENT.reset(token)


def direct_context(call: str, batch: int | None = None) -> Context:
    """What a stage that is called directly finds: one item (or a batch of so many) that belongs to no run. The
    keys are positions, as those of items that have none."""
    made = Context(call=call)
    items = tuple(ItemRun(str(n), (), n, 1) for n in range(1 if batch is None else batch))
    made.begin(1, items, 0 if batch is None else None)
    return made


def seed_of(run_seed: int, call: str, key: str, ordinals: tuple[int, ...]) -> int:
    """An item's seed, by BLAKE2b.

    The root's own ordinal, its place in the source, does not enter: its key does, which stays when other roots
    come or go.

    >>> seed_of(0, "Ocr", "a.pdf", (7, 3)) == seed_of(0, "Ocr", "a.pdf", (0, 3))
    True
    """
    text = repr((run_seed, call, key, ordinals[1:])).encode()
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "big") >> 1
