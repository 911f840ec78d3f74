"""Sizes in bytes: what values seem to take, and how people write a size.

Owns both measures. A value's size is that of its contents: texts and bytes by their length, arrays, tensors and
images by what they hold, containers and plain objects by what is in them. It is the same on every backend and
costs no pickling, so it can be told with each report; what a pickle adds is left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any, Final

NUMBER_BYTES: Final = 8
"""What a number counts as, and whatever else has no size that is known."""
SAMPLE: Final = 1_000
"""Of longer lists of anything but numbers and texts, so many elements are measured."""
DEPTH: Final = 12
"""What lies deeper within a value counts as a number."""
_NUMBERS: Final = frozenset({int, float, bool, type(None)})
_TEXTS: Final = frozenset({str, bytes, bytearray})
_FLAT: Final = _NUMBERS | _TEXTS
_UNITS: Final = {
    **{f"{prefix}B": 1000**power for power, prefix in enumerate(("", "K", "M", "G", "T"))},
    **{f"{prefix}IB": 1024**power for power, prefix in enumerate(("K", "M", "G", "T"), 1)},
    **{prefix: 1000**power for power, prefix in enumerate(("K", "M", "G", "T"), 1)},
    **{f"{prefix}I": 1024**power for power, prefix in enumerate(("K", "M", "G", "T"), 1)},
}
_WRITTEN: Final = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([a-z]*)\s*", re.IGNORECASE)


def as_bytes(size: Any) -> int:
    """A size as a number of bytes: a whole number as it is, or text such as ``"128MB"`` or ``"1.5 GiB"``.

    Raises:
        ValueError: It is none of at least one byte.

    Example:
        >>> as_bytes(4096), as_bytes("128MB"), as_bytes("1.5 GiB")
        (4096, 128000000, 1610612736)
    """
    found = size
    if isinstance(size, str) and (written := _WRITTEN.fullmatch(size)):
        number, unit = written.groups()
        if (factor := _UNITS.get(unit.upper() or "B")) is not None:
            found = round(float(number) * factor)
    if isinstance(found, bool) or not isinstance(found, int) or found < 1:
        raise ValueError(f"{size!r} is not a size in bytes")
    return found


def size_in_words(size_bytes: int) -> str:
    """A size as people write it, so that :func:`as_bytes` would read it.

    Example:
        >>> size_in_words(4_000_000_000), size_in_words(1536), size_in_words(6 * 2**30), size_in_words(7)
        ('4GB', '1.54KB', '6.44GB', '7B')
    """
    size, units = float(size_bytes), ["B", "KB", "MB", "GB", "TB"]
    while size >= 999.5 and len(units) > 1:
        size /= 1000
        del units[0]
    return f"{size:.3g}{units[0]}"


def row_sizes(rows: Sequence[Any]) -> tuple[int, ...]:
    """What each row takes; a single number if all take the same, none if there are no rows.

    Example:
        >>> row_sizes(["abc", {"image": b"123456", "page": 7}]), row_sizes(["ab", "cd"])
        ((3, 23), (2,))
    """
    sizes = tuple(_sizes(rows, 0))
    return sizes[:1] if len(set(sizes)) == 1 else sizes


def value_size(value: Any) -> int:
    """What one value takes, at least: the keys of small records count nothing, since these come by the million.

    Example:
        >>> value_size({"image": b"123456", "page": 7}), value_size([{"image": b"123456"}])
        (14, 11)
    """
    kind = type(value)
    if kind is dict or kind is list or kind is tuple:
        parts = value.values() if kind is dict else value
        if _FLAT.issuperset(map(type, parts)):
            return sum([len(part) if type(part) in _TEXTS else NUMBER_BYTES for part in parts])
    return _size(value, 0)


def _sizes(values: Sequence[Any], depth: int) -> Iterable[int]:
    kinds = set(map(type, values))
    if kinds <= _TEXTS:
        return map(len, values)
    if kinds <= _NUMBERS:
        return (NUMBER_BYTES,) * len(values)
    return (_size(value, depth) for value in values)


def _size(value: Any, depth: int) -> int:
    kind = type(value)
    if kind in _TEXTS:
        return len(value)
    if kind in _NUMBERS or depth > DEPTH:
        return NUMBER_BYTES
    try:
        return _looked_at(value, depth)
    except Exception:  # what a user's property raises: then nothing is known of its size
        return NUMBER_BYTES


def _looked_at(value: Any, depth: int) -> int:
    if isinstance(value, Mapping):
        return _total([*chain(value, value.values())], depth)
    if isinstance(value, (list, tuple, set, frozenset)):
        return _total([*value], depth)
    if isinstance(value, (str, bytes, bytearray)):
        return len(value)
    if type(size := getattr(value, "nbytes", None)) is int:
        return size
    if hasattr(value, "getbands"):  # an image of Pillow's
        width, height = value.size
        return int(width * height * len(value.getbands()))
    parts = list(getattr(value, "__dict__", {}).values())
    for base in type(value).__mro__:
        slots = vars(base).get("__slots__", ())
        names = (slots,) if isinstance(slots, str) else slots
        parts += [getattr(value, name, None) for name in names]
    return _total(parts, depth)


def _total(parts: list[Any], depth: int) -> int:
    """Of some parts of a value together, judged by some of them if they are very many."""
    count = len(parts)
    if count > SAMPLE and not set(map(type, parts)) <= _TEXTS | _NUMBERS:
        parts = parts[:: -(-count // SAMPLE)]
    size = sum(_sizes(parts, depth + 1)) if parts else 0
    return max(NUMBER_BYTES, size * count // max(1, len(parts)))
