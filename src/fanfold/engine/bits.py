"""Sets of small ordinals as Python integers: the arithmetic under the engine's state.

Bit ``i`` stands for the item at offset ``i`` of a chunk. Nothing here knows what the items are.
"""

from __future__ import annotations

from itertools import compress
from typing import Final

from fanfold.columns import bit_positions

__all__ = ["below", "bit_positions", "deposit", "extract", "is_run", "low_offset", "lowest"]

_FLAGS: Final = bytes(byte == ord("1") for byte in range(256))
"""Digits of a binary number as flags: what to keep."""


def below(n: int) -> int:
    """The set {0, …, n-1}."""
    return (1 << n) - 1


def low_offset(bits: int) -> int:
    """The smallest member of a set that is not empty."""
    return (bits & -bits).bit_length() - 1


def is_run(bits: int) -> bool:
    """Whether the members are consecutive (an empty set is).

    >>> is_run(0b0110), is_run(0b0101)
    (True, False)
    """
    bits += bits & -bits
    return bits & (bits - 1) == 0


def lowest(bits: int, count: int) -> int:
    """The subset of the ``count`` smallest members; needs ``count`` ≤ the set's size.

    >>> bin(lowest(0b101101, 2))
    '0b101'
    """
    if is_run(bits):
        return bits & below(low_offset(bits) + count) if bits else 0
    low, high = 0, bits.bit_length()
    while low < high:
        middle = (low + high) // 2
        if (bits & below(middle)).bit_count() < count:
            low = middle + 1
        else:
            high = middle
    return bits & below(low)


def extract(bits: int, within: int) -> int:
    """Renumber ``bits``, a subset of ``within``, by rank in ``within`` (the pext instruction).

    >>> bin(extract(0b1000_1000, 0b1010_1010))
    '0b1010'
    """
    if is_run(within):
        return bits >> low_offset(within) if within else 0
    places = bin(within)[2:]
    kept = compress(bin(bits)[2:].zfill(len(places)), places.encode().translate(_FLAGS))
    return int("".join(kept), 2)


def deposit(ranks: int, within: int) -> int:
    """The members of ``within`` whose ranks are in ``ranks`` (the pdep instruction).

    >>> bin(deposit(0b1010, 0b1010_1010))
    '0b10001000'
    """
    if not ranks:
        return 0
    if is_run(within):
        return ranks << low_offset(within)
    places = bin(within)[2:]
    size = within.bit_count()
    return int(places.replace("1", "%s") % tuple(bin(ranks)[2:].zfill(size)), 2)
