"""Values as they are now, of a program that may go on writing to them: a generator may fill one buffer again.

Owns what is copied of a value, and how deep.
"""

from __future__ import annotations

import copy
from typing import Any, Final

FROZEN: Final[frozenset[type]] = frozenset({str, bytes, int, float, bool, type(None)})
"""Types whose values nobody can change."""


def snapshot(value: Any, *, deep: bool) -> Any:
    """A value that does not change with the one given.

    Arrays and tensors, lists, tuples and dicts are copied, with all of these that are in them. What is none of
    these is copied only where that is to be ``deep``, as :func:`copy.deepcopy` does; what cannot be copied
    stays as it is.

    Args:
        value: Any value.
        deep: Copy objects of other classes as well. To be asked for where they are pickled anyway, which parts
            them from what they share with others: where they stay in the process, sharing may be meant.

    Raises:
        BaseException: What ends the process, raised by a class's own way of being copied.

    Example:
        >>> buffer = bytearray(b"one")
        >>> frame = snapshot({"image": buffer, "number": 1}, deep=False)
        >>> buffer[:] = b"two"
        >>> frame
        {'image': bytearray(b'one'), 'number': 1}
    """
    kind = type(value)
    if kind in FROZEN:
        return value
    # Small records of numbers and texts come by the million.
    if kind is dict and FROZEN.issuperset(map(type, value.values())):
        return value.copy()
    if kind in (list, tuple) and FROZEN.issuperset(map(type, value)):
        return value if kind is tuple else value.copy()
    try:
        return _copied(value, deep, {})
    except RecursionError:  # then it cannot be pickled either, and whoever stores it will say so
        return value


def _copied(value: Any, deep: bool, seen: dict[int, Any]) -> Any:
    """A copy; ``seen`` has what was copied by identity, as :func:`copy.deepcopy` keeps it, so that what occurs
    twice is copied once."""
    kind = type(value)
    if kind in FROZEN:
        return value
    if id(value) in seen:
        return seen[id(value)]
    if kind is tuple:
        made: Any = tuple(_copied(part, deep, seen) for part in value)
    elif kind is list:
        made = seen[id(value)] = []
        made.extend(_copied(part, deep, seen) for part in value)
    elif kind is dict:
        made = seen[id(value)] = {}
        made.update((key, _copied(part, deep, seen)) for key, part in value.items())
    elif kind is bytearray:
        made = bytearray(value)
    elif hasattr(kind, "__array__"):
        own = getattr(value, "clone", None) or getattr(value, "copy", None)
        made = value if own is None else own()
    elif deep:
        try:
            made = copy.deepcopy(value, seen)
        except Exception:  # as above
            made = value
    else:
        return value
    seen[id(value)] = made
    return made
