"""What counts as children (or as a batch's results): lists, tuples, arrays with a first axis, iterators.

Strings, bytes, mappings and sets do not: they would be opened by mistake, or have no order.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from typing import Any


def is_children(value: Any) -> bool:
    """Whether a value can be opened into ordered children."""
    if isinstance(value, (list, tuple, Iterator)):
        return True
    if isinstance(value, (str, bytes, bytearray, memoryview, Mapping, Set)):
        return False
    if isinstance(value, Sequence):
        return True
    shape = getattr(value, "shape", None)
    return shape is not None and len(shape) >= 1 and hasattr(value, "__getitem__")


def listed(value: Any) -> list[Any] | None:
    """The children as a list, or None where there are none to be had."""
    if type(value) is list:
        return value
    return list(value) if is_children(value) else None


def kind_of(value: Any) -> str:
    """A value's kind in words, for messages."""
    shape = getattr(value, "shape", None)
    name = type(value).__name__
    article = "an" if name[:1].lower() in "aeiou" else "a"
    return f"{article} {name}" + (f" of shape {tuple(shape)}" if isinstance(shape, tuple) else "")
