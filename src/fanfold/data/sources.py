"""What a source is, and the source made of plain Python values.

Owns the base class :class:`Source`, :func:`from_items` and how keys are made. A source is lazy: a run
iterates over it once, and pulls only as many items as it has room for. It knows nothing of pipelines; which
value goes to which parameter is decided in :mod:`fanfold.data.binding`.
"""

from __future__ import annotations

import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any, Generic, SupportsIndex, TypeAlias, TypeVar

from fanfold.columns import get_field
from fanfold.errors import SourceError, UsageError

T_co = TypeVar("T_co", covariant=True)
T = TypeVar("T")
Key: TypeAlias = str | Callable[[Any], Any] | None
"""A field's name, a function from the value to its key, or None: whatever the source has."""


@dataclass(frozen=True, slots=True)
class Unreadable:
    """In the place of an item's value: the source has found it and cannot read it.

    A run leaves the item out, and tells of it with the failures (kind ``contract``) and in the report's
    ``unreadable``; a source that raises instead ends the run.

    Example:
        >>> class Numbers(Source[int]):
        ...     def __iter__(self):
        ...         for position, text in enumerate(["1", "x"]):
        ...             value = int(text) if text.isdigit() else Unreadable(f"{text!r} is no number")
        ...             yield f"line-{position}", value
        >>> list(Numbers())
        [('line-0', 1), ('line-1', Unreadable(reason="'x' is no number"))]
    """

    reason: str
    """Why, in words."""


class Source(ABC, Generic[T_co]):
    """Where root items come from: pairs of a key and a value, in a stable order.

    To make one of your own, subclass it and write ``__iter__``; a ``__repr__`` that names the origin makes
    messages better.

    Example:
        >>> class Squares(Source[int]):
        ...     def __iter__(self):
        ...         return ((f"square-{n}", n * n) for n in range(3))
        >>> list(Squares().take(2))
        [('square-0', 0), ('square-1', 1)]
    """

    unique_keys: bool = False
    """True if no key can occur twice; the run then need not remember the keys it has seen."""

    @abstractmethod
    def __iter__(self) -> Iterator[tuple[str, T_co]]:
        """The pairs (key, value). Called once per run."""

    def take(self, n: int) -> Source[T_co]:
        """The first ``n`` items, still lazily.

        Raises:
            UsageError: ``n`` is negative.
        """
        if n < 0:
            raise UsageError("FF302", f"take({n}): a number of items cannot be negative.")
        return _Taken(self, n)


class _Taken(Source[T_co]):
    def __init__(self, source: Source[T_co], n: int) -> None:
        self._source = source
        self._n = n
        self.unique_keys = source.unique_keys

    def __iter__(self) -> Iterator[tuple[str, T_co]]:
        return islice(self._source, self._n)

    def __repr__(self) -> str:
        return f"{self._source!r}.take({self._n})"


def from_items(items: Iterable[T], key: Key = None) -> Source[T]:
    """A source of Python values, read lazily.

    Args:
        items: Any iterable; a generator is pulled only as fast as the run has room, and once.
        key: How an item's key is found: the name of a field (mapping key or attribute) or a function of
            the item. Without it the keys are positions: ``"0"``, ``"1"``, …

    Raises:
        UsageError: ``items`` cannot be iterated over.

    Example:
        >>> list(from_items(["a", "b"]))
        [('0', 'a'), ('1', 'b')]
        >>> list(from_items([{"id": 7, "text": "x"}], key="id"))
        [('7', {'id': 7, 'text': 'x'})]
    """
    if not isinstance(items, Iterable):
        raise UsageError(
            "FF301",
            f"from_items() needs an iterable, not {type(items).__name__}.",
            "Put a single item in a list.",
        )
    return _Items(items, key)


class _Items(Source[T]):
    def __init__(self, items: Iterable[T], key: Key) -> None:
        self._items = items
        self._key = key
        self._read = False
        self.unique_keys = key is None

    def __iter__(self) -> Iterator[tuple[str, T]]:
        iterator = iter(self._items)
        if iterator is self._items:
            # A second run over a used-up generator would do nothing and look like a success.
            if self._read:
                raise SourceError(
                    "FF303",
                    f"{self!r} was read before, and an iterator can be read only once.",
                    "Make a new one for each run, or pass a list.",
                )
            self._read = True
        if self._key is None:
            return ((str(position), item) for position, item in enumerate(iterator))
        key = self._key
        return (
            (key_of(item, key, f"item {position}"), item) for position, item in enumerate(iterator)
        )

    def __repr__(self) -> str:
        return f"from_items({type(self._items).__name__})"


def key_of(value: Any, key: str | Callable[[Any], Any], where: str) -> str:
    """The key of ``value``; ``where`` names the item in messages.

    Raises:
        SourceError: The field is missing, or what it holds cannot be a key.
    """
    if isinstance(key, str):
        try:
            found = get_field(value, key)
        except LookupError:
            has = (
                f"its fields are {', '.join(map(str, value))}" if isinstance(value, Mapping) else ""
            )
            raise SourceError(
                "FF304",
                f"{where} has no field {key!r} to take its key from{'; ' + has if has else ''}.",
                "Name a field that every item has, or give key= a function.",
            ) from None
    else:
        found = key(value)
    return checked_key(found, where)


def checked_key(found: Any, where: str) -> str:
    """``found`` as a key: a string that is not empty, or an integer as one.

    Raises:
        SourceError: It is neither.
    """
    if isinstance(found, str) and found:
        return found
    # Integers of numpy and the like count too; floats and booleans name nothing reliably.
    if isinstance(found, SupportsIndex) and not isinstance(found, (bool, str)):
        return str(operator.index(found))
    raise SourceError(
        "FF305",
        f"{where} has the key {found!r} ({type(found).__name__}); a key is a string that is not empty, "
        "or an integer.",
        "Give key= a function that makes one.",
    )
