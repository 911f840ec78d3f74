"""How much memory a run may use for values: what was asked for, or a share of what there is.

Owns that number. It bounds what lies in blocks; the memory of users' own code comes on top.
"""

from __future__ import annotations

from typing import Any, Final

from fanfold.blocks.arena import available_bytes
from fanfold.errors import UsageError
from fanfold.sizes import as_bytes

SHARE: Final = 0.5
"""Of the memory that is available when a run starts, the machine's or its control group's."""
LEAST_BYTES: Final = 64 * 1024 * 1024
"""The default is never less: with hardly anything available, something else is wrong."""


def budget_bytes(memory: Any, declared_bytes: int = 0) -> int:
    """A run's memory budget, checked.

    Args:
        memory: Bytes, or a text such as ``"1GB"`` or ``"512MiB"``; None: half of what is available now.
        declared_bytes: What replicas need for themselves, which is not available for values; what is asked for
            is given all the same.

    Raises:
        UsageError: It is no size (FF434).

    >>> budget_bytes("1.5GB"), budget_bytes("1MiB"), budget_bytes(4096)
    (1500000000, 1048576, 4096)
    """
    if memory is None:
        return max(LEAST_BYTES, int(SHARE * (available_bytes() - declared_bytes)))
    try:
        return as_bytes(memory)
    except ValueError:
        raise UsageError(
            "FF434",
            f"memory={memory!r} is no size.",
            'Give a number of bytes, or a text such as "8GB"; leave it out for half of what is available.',
        ) from None
