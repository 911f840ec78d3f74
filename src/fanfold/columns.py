"""Columns: lazy reference trees that say which values a reader needs, without holding any.

Owns the grammar by which the engine tells a worker, a sink or a stream what to read. The engine builds
columns, :func:`assemble` turns one into values in the process that reads. A column of ``n`` values is a
plain tuple with its tag first, so that it costs little to build and to send:

===================================== ===============================================================
``("rows", ref, first, n)``            ``n`` rows of a block from row ``first``
``("pick", ref, first, mask)``         the rows ``first + i`` for each bit ``i`` set in ``mask``
``("cat", columns)``                   one column after the other
``("weave", mask, a, b)``              item ``i`` comes from ``a`` where bit ``i`` is set, else from ``b``,
                                       each read in its own order; ``n`` is ``mask``'s share plus ``b``'s
``("spread", column, counts)``         value ``i`` of a column ``counts[i]`` times (a broadcast)
``("const", blob, n)``                 a pickled constant, ``n`` times
``("failures", failures)``             the :class:`~fanfold.failures.Failure` records themselves
``("field", column, name)``            a mapping key or attribute of each value
``("record", names, columns, n)``      dicts
``("lists", column, lengths)``         consecutive stretches of a column, as lists (a gather)
===================================== ===============================================================

A block reference (``ref``) is opaque here: whatever the backend's store gave for a block.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from itertools import chain, compress, count, islice, repeat
from operator import itemgetter
from typing import Any, Final, TypeAlias

Ref: TypeAlias = Hashable
Column: TypeAlias = tuple[Any, ...]
ReadBlock: TypeAlias = Callable[[Ref], Sequence[Any]]
"""Gives a block's rows; it may decode them lazily, and should keep them for the batch at hand. Rows that
have a method ``pick(first, mask)`` are asked for single rows by it."""


def bit_positions(mask: int) -> Sequence[int]:
    """The positions of the set bits of ``mask``, ascending; a range where they are consecutive.

    >>> list(bit_positions(0b10110)), bit_positions(0b1110)
    ([1, 2, 4], range(1, 4))
    """
    low = mask & -mask
    if mask & (mask + low) == 0:
        return range(low.bit_length() - 1, mask.bit_length()) if mask else range(0)
    return list(compress(count(), _flags(mask)))


def assemble(column: Column, read: ReadBlock) -> list[Any]:
    """The values of ``column``, read through ``read``.

    Values that occur several times (broadcasts) are the same object each time; inputs are read-only by
    contract.

    Raises:
        ValueError: The column's tag is unknown (an internal error).
    """
    match column:
        case ("rows", ref, first, n):
            return list(read(ref)[first : first + n])
        case ("pick", ref, first, mask):
            rows = read(ref)
            pick = getattr(rows, "pick", None)  # a block knows which of its parts to leave alone
            return (
                picked(rows[first : first + mask.bit_length()], mask)
                if pick is None
                else pick(first, mask)
            )
        case ("cat", columns):
            return list(chain.from_iterable([assemble(part, read) for part in columns]))
        case ("weave", mask, a, b):
            return _weave(mask, assemble(a, read), assemble(b, read))
        case ("spread", inner, counts):
            return list(chain.from_iterable(map(repeat, assemble(inner, read), counts)))
        case ("const", blob, n):
            return [pickle.loads(blob)] * n
        case ("failures", failures):
            return list(failures)
        case ("field", inner, name):
            values = assemble(inner, read)
            if set(map(type, values)) == {dict}:
                return list(map(itemgetter(name), values))
            return [get_field(value, name) for value in values]
        case ("record", names, columns, n):
            if not names:
                return [{} for _ in range(n)]
            parts = [assemble(part, read) for part in columns]
            return [dict(zip(names, values, strict=True)) for values in zip(*parts, strict=True)]
        case ("lists", inner, lengths):
            members = iter(assemble(inner, read))
            return [list(islice(members, length)) for length in lengths]
    raise ValueError(f"unknown column {column[:1]!r}")


def is_stored(column: Column) -> bool:
    """Whether all values of a column are as they were stored, or lists and records of such: no user's class is
    asked for an attribute.

    >>> is_stored(("rows", 1, 0, 2)), is_stored(("field", ("rows", 1, 0, 2), "text"))
    (True, False)
    """
    match column:
        case ("rows" | "pick" | "failures", *_):
            return True
        case ("cat", columns) | ("record", _, columns, _):
            return all(map(is_stored, columns))
        case ("weave", _, a, b):
            return is_stored(a) and is_stored(b)
        case ("spread" | "lists", inner, _):
            return is_stored(inner)
    return False


def relocated(column: Column, places: Mapping[Any, Ref]) -> Column:
    """The column with other references in the place of some.

    >>> relocated(("cat", (("rows", 1, 0, 2), ("rows", 2, 0, 2))), {2: 9})
    ('cat', (('rows', 1, 0, 2), ('rows', 9, 0, 2)))
    """
    match column:
        case ("rows" | "pick", ref, *_) if ref in places:
            return (column[0], places[ref], *column[2:])
        case ("cat", columns):
            return ("cat", tuple(relocated(part, places) for part in columns))
        case ("weave", mask, a, b):
            return ("weave", mask, relocated(a, places), relocated(b, places))
        case ("spread" | "field" | "lists", inner, more):
            return (column[0], relocated(inner, places), more)
        case ("record", names, columns, n):
            return ("record", names, tuple(relocated(part, places) for part in columns), n)
    return column


def references(column: Column) -> Iterator[Ref]:
    """The blocks that a column reads, some perhaps more than once.

    >>> list(references(("lists", ("cat", (("rows", 1, 0, 2), ("rows", 2, 0, 2))), (4,))))
    [1, 2]
    """
    match column:
        case ("rows" | "pick", ref, *_):
            yield ref
        case ("cat", columns) | ("record", _, columns, _):
            for part in columns:
                yield from references(part)
        case ("weave", _, a, b):
            yield from references(a)
            yield from references(b)
        case ("spread" | "field" | "lists", inner, _):
            yield from references(inner)


def picked(rows: Sequence[Any], mask: int) -> list[Any]:
    """The rows whose bits are set in ``mask``; there are at least as many rows as bits.

    >>> picked("abcde", 0b10110)
    ['b', 'c', 'e']
    """
    return list(compress(rows, _flags(mask)))


_BITS: Final = bytes(byte == ord("1") for byte in range(256))
"""Turns binary digits into numbers."""


def _flags(mask: int, length: int = 0) -> bytes:
    """A byte, 0 or 1, for each bit of ``mask`` from the lowest on; at least ``length`` of them."""
    return bin(mask)[:1:-1].encode().translate(_BITS).ljust(length, b"\0")


def _weave(mask: int, a: list[Any], b: list[Any]) -> list[Any]:
    """Where a bit is set the next of ``a``, else the next of ``b``; a step in C for each value."""
    sources = (iter(b), iter(a))
    return list(map(next, map(sources.__getitem__, _flags(mask, len(a) + len(b)))))


def get_field(value: Any, name: str) -> Any:
    """``value[name]`` for mappings, else ``getattr(value, name)``.

    Raises:
        LookupError: The value has no such key or attribute.
    """
    if isinstance(value, Mapping):
        try:
            return value[name]
        except KeyError:
            raise LookupError(name) from None
    try:
        return getattr(value, name)
    except AttributeError:
        raise LookupError(name) from None


def constant_blob(value: Any) -> bytes:
    """A constant of the pipeline, pickled once (by value where plain pickle cannot)."""
    try:
        blob = pickle.dumps(value, protocol=5)
    except (pickle.PicklingError, AttributeError, TypeError):
        blob = b"__main__"
    if (
        b"__main__" in blob
    ):  # a class of the program's own script, which other processes cannot import
        from fanfold import byvalue

        blob = byvalue.dumps(value)
    return blob
