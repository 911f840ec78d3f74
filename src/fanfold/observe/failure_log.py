"""``failures.jsonl``: every failure of a run, one a line, as it originates.

Owns the file. Each failure is written once and at once, so that a run that is killed leaves what it knew.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import IO

from fanfold.failures import Failure


class FailureLog:
    """The file ``failures.jsonl`` in a run directory; made when the run starts, empty if nothing fails.

    Args:
        path: Where it goes.
    """

    def __init__(self, path: Path) -> None:
        self._file: IO[str] = path.open("w", encoding="utf-8", errors="backslashreplace")

    def add(self, failures: Sequence[Failure]) -> None:
        """Write these; they are with the operating system when this returns."""
        self._file.writelines(
            json.dumps(failure.as_dict(), ensure_ascii=False) + "\n" for failure in failures
        )
        self._file.flush()

    def close(self) -> None:
        """Idempotent."""
        self._file.close()
