"""What a traced graph and its plan have in common: small parts that the compiler passes on unchanged.

They are apart from the plan so that declaring a pipeline need not import it. No logic but for messages.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


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
