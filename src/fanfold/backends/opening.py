"""What a task's results open into: children out of lists, arrays and iterators, and what is none of these.

Owns the reading of one task's value as children. How they are stored and told of is
:mod:`fanfold.backends.delivery`'s, who runs the users' code :mod:`fanfold.backends.worker`'s.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, islice
from typing import Any, Final

from fanfold.backends.children import holds_exception, kind_of, listed
from fanfold.backends.delivery import BYTES_PER_CHILD, Delivery, Opening
from fanfold.columns import get_field
from fanfold.failures import ItemFailure, ParentFailure, RetryLater, declared

SIZED: Final[frozenset[type]] = frozenset({str, bytes})
"""Types whose values are about as large as they are long."""
NOTHING: Final = object()


class ContractBroken(Exception):
    """A user's stage gave something of the wrong shape; the message says what was expected."""


class Collected:
    """The children that one task's iterator has given since the last flush."""

    def __init__(self, task: int, delivery: Delivery) -> None:
        self._task = task
        # A list has no fields: an expansion of a field gets nothing from an iterator.
        self._openings = [
            o for o in delivery.openings if not any(s.path for s in o.expansion.streams)
        ]
        self._starts = [len(opening.rows[0]) for opening in self._openings]
        self.targets: list[tuple[Callable[[Any], object], int]] = [
            (rows.append, stream.position)
            for opening in self._openings
            for rows, stream in zip(opening.rows, opening.expansion.streams, strict=True)
        ]
        """Where each child goes, and which output of it."""
        self.only: list[Any] | None = None
        """Where all children go, as they are, if there is but one such place."""
        if len(self.targets) == 1:
            self.only = self._openings[0].rows[0]
        room, share = delivery.room()
        self.room: float = room
        """How much more should be released together with what is there."""
        self.usual: float = (share - 1) * BYTES_PER_CHILD
        """How many bytes one takes as a rule."""
        self.taken: float = 0.0
        """How many bytes all of them take, as far as one can tell."""

    def count(self, size: int, children: int = 1) -> None:
        """There are so many more, of ``size`` bytes each."""
        largest = max(size, self.usual)
        self.room -= children * (1 + largest / BYTES_PER_CHILD)
        self.taken += children * largest

    def fitting(self, size: int, left: float) -> float:
        """How many more of ``size`` bytes can come before they should be released, with so many bytes left."""
        largest = max(1.0, size, self.usual)
        return min(self.room / (1 + largest / BYTES_PER_CHILD), (left - self.taken) / largest)

    def settle(self) -> None:
        """Put down how many there are; before a flush, and at the end."""
        for opening, start in zip(self._openings, self._starts, strict=True):
            fresh = len(opening.rows[0]) - start
            if fresh:
                opening.counts[self._task] = fresh

    def seal(self) -> None:
        """There are no more."""
        for opening in self._openings:
            opening.sealed.append(self._task)


def take_alike(
    children: Iterator[Any], kind: type[Any], rows: list[Any], most: int, largest: int
) -> Any:
    """Take children in a loop that does nothing else: tiny ones come by the million.

    Args:
        children: Where they come from.
        kind: The type that all of them have; nobody can change its values.
        rows: Where they go.
        most: So many at most.
        largest: A text or ``bytes`` may be so long.

    Returns:
        The first that is of another type or longer, which is not in ``rows``; :data:`NOTHING` if none is.

    Raises:
        BaseException: What the iterator raises; ``rows`` has what it gave before.
    """
    append = rows.append
    if kind in SIZED:
        for child in islice(children, most):
            if type(child) is not kind or len(child) > largest:
                return child
            append(child)
    else:
        for child in islice(children, most):
            if type(child) is not kind:
                return child
            append(child)
    return NOTHING


def gives_children(returned: Any) -> bool:
    """Whether it is to be run through: what a stage returned is an iterator. A file in memory is a value.

    Raises:
        ContractBroken: It is an open file. Its lines are hardly meant, and what is open stays in its process.
    """
    kind = type(returned)  # isinstance asks the value itself
    if not issubclass(kind, Iterator):
        return False
    if not issubclass(kind, io.IOBase):
        return True
    if issubclass(kind, (io.BytesIO, io.StringIO)):
        return False
    raise ContractBroken(
        f"it returned {kind_of(returned)}, an open file, which cannot leave its process; "
        f"return what is in it (file.read(), or list(file) for its lines), or its path"
    )


def close(children: Iterator[Any]) -> None:
    """Close an iterator that is left, if it can be."""
    end = getattr(children, "close", None)
    if end is not None:
        end()


def children_of(opening: Opening, outputs: Sequence[Any]) -> list[list[Any]] | None:
    """By stream, the children of one task; None if a field on the way is missing, which fails elsewhere."""
    lists: list[list[Any]] = []
    for stream in opening.expansion.streams:
        value = outputs[stream.position]
        for name in stream.path:
            try:
                value = get_field(value, name)
            except LookupError:
                return None
        children = listed(value)
        if children is None:
            raise ContractBroken(
                f"what is expanded must be a list, a tuple, an array or an iterator of children, "
                f"got {kind_of(value)}"
            )
        lists.append(children)
    if any(map(holds_exception, lists)) and (error := declared(chain.from_iterable(lists))):
        raise as_raised(error)
    if len({len(children) for children in lists}) > 1:
        sizes = " and ".join(str(len(children)) for children in lists)
        raise ContractBroken(
            f"outputs that are expanded together must have equally many children, got {sizes}"
        )
    return lists


def as_raised(returned: BaseException) -> BaseException:
    """What an exception in the place of a value fails its task with."""
    if isinstance(returned, (ItemFailure, ParentFailure, RetryLater)):
        return returned.with_traceback(None)  # one object may be returned many times
    return ContractBroken(
        f"{kind_of(returned)} was returned as a value; raise it, or return ff.ItemFailure"
    )


def opens_whole(opening: Opening) -> bool:
    """Whether it opens the values themselves, into one stream."""
    return len(opening.rows) == 1 and not opening.expansion.streams[0].path
