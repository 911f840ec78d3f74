"""What counts as children, and as a batch's results: lists, tuples, arrays with a first axis.

Strings, bytes, mappings and sets do not: they would be opened by mistake, or have no order. An iterator is
children only as the sole value that a stage returns; whoever runs the stage sees to that.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any


def listed(value: Any) -> list[Any] | None:
    """The children as a list, or None where there are none to be had.

    >>> listed((1, 2)), listed("no"), listed({3})
    ([1, 2], None, None)

    Raises:
        Exception: Whatever a user's sequence raises when it is read.
    """
    if type(value) is list:
        return value
    if isinstance(value, (list, tuple)):
        return list(value)
    if isinstance(value, (str, bytes, bytearray, memoryview, Mapping)):
        return None
    if isinstance(value, Sequence):
        return list(value)
    shape = getattr(value, "shape", None)
    if shape and hasattr(value, "__getitem__"):
        # By index: to iterate over a data frame gives the names of its columns.
        return [value[i] for i in range(shape[0])]
    return None


def holds_exception(values: Iterable[Any]) -> bool:
    """Whether one of them is an exception: told by their types, without a line of Python for each.

    >>> holds_exception([1, "a"]), holds_exception([1, KeyError("a")])
    (False, True)
    """
    return any(issubclass(kind, BaseException) for kind in set(map(type, values)))


def kind_of(value: Any) -> str:
    """A value's kind in words, for messages.

    >>> kind_of(3), kind_of("a")
    ('an int', 'a str')
    """
    shape = getattr(value, "shape", None)
    name = type(value).__name__
    article = "an" if name[:1].lower() in "aeiou" else "a"
    return f"{article} {name}" + (f" of shape {tuple(shape)}" if isinstance(shape, tuple) else "")
