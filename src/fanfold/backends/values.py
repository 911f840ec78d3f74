"""Where a worker's values are: what the code that runs a stage asks of a backend's store.

Owns the interface and the error of values that cannot be stored.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Protocol

from fanfold.columns import Column
from fanfold.errors import SourceError
from fanfold.failures import Failure
from fanfold.protocol import Rows
from fanfold.sizes import row_sizes


class Unstorable(Exception):
    """Some rows cannot be stored.

    Args:
        rows: Pairs of a row's number and what to say of it.
    """

    def __init__(self, rows: Sequence[tuple[int, Failure]]) -> None:
        super().__init__(f"{len(rows)} values cannot be stored")
        self.rows = rows

    def of_source(self) -> SourceError:
        """What a run says if the rows are a source's items."""
        row, failure = self.rows[0]
        why = failure.message.removesuffix(".")
        return SourceError(
            "FF408",
            f"item {row} of those just read from the source cannot be sent to workers: {why}.",
            'Let the source give paths or plain data, or run with backend="inline".',
        )


class Values(Protocol):
    """A backend's store, as a worker sees it."""

    def read(self, columns: Sequence[Column]) -> list[list[Any]]:
        """The values of a batch's columns; a value that occurs twice is decoded once.

        Raises:
            Exception: Whatever a user's class raises when it is unpickled.
        """
        ...

    def put(self, port: int, rows: Sequence[Any]) -> Rows:
        """Store at least one row as one block; ``port`` is whose values they are, for learning sizes.

        Raises:
            Unstorable: Names the rows that cannot be stored.
        """
        ...

    def take_back(self, rows: Rows) -> None:
        """A block that was put just now is told to nobody; its place is free again."""
        ...

    def copies(self, port: int) -> bool:
        """Whether what is put there is as it was then, whatever becomes of the objects."""
        ...

    def row_bytes(self, port: int) -> int:
        """How large a row at ``port`` has been lately; 0 if nothing is known."""
        ...


_ROW_BYTES: Final = 64
"""What a row counts as at least."""
_SAMPLES: Final = 16


def rows_bytes(rows: Sequence[Any]) -> int:
    """How much rows that stay as they are seem to take, judged by some of them."""
    some = rows[:: max(1, len(rows) // _SAMPLES)]
    sizes = row_sizes(some)
    mean = sum(sizes) / len(sizes)  # a single one stands for all
    return int(len(rows) * max(_ROW_BYTES, mean))
