"""What a traced graph and its plan have in common: small parts that the compiler passes on unchanged.

They are apart from the plan so that declaring a pipeline need not import it. No logic but for messages and
for how many members are enough.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fractions import Fraction


@dataclass(frozen=True, slots=True)
class Where:
    """The user's source line that made something, for messages."""

    file: str = "<unknown>"
    line: int = 0

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"

    def short(self) -> str:
        """The line without the file's folder: ``flow.py:41``."""
        return f"{self.file.replace(chr(92), '/').rpartition('/')[2]}:{self.line}"


@dataclass(frozen=True, slots=True)
class Input:
    """An input of a call: a port at the call's own level, by position or by keyword."""

    port: int
    keyword: str | None = None


@dataclass(frozen=True, slots=True)
class Constant:
    """A value written in the pipeline itself."""

    value: Any


@dataclass(frozen=True, slots=True)
class AtLeast:
    """How many members of a gathered list must be done: a number of them, or a share of all members.

    Exactly one of the two is given. A share is exact, so that 0.9 of 10 is 9.
    """

    count: int | None = None
    share: Fraction | None = None

    def needed(self, members: int) -> int:
        """How many have to be done of so many members (those that are not dropped)."""
        return self.count if self.count is not None else math.ceil((self.share or 0) * members)

    def __str__(self) -> str:
        """As it is written: ``3``, or ``0.9``."""
        return str(self.count) if self.count is not None else str(float(self.share or 0))
