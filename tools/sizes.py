"""Module sizes: no Python file of the repository is longer than a reader's patience.

Owns the limit. Most modules have 150 to 250 lines; one that nears the limit has more than one subject.
"""

from __future__ import annotations

import sys
from pathlib import Path

from tools.environment import ROOT
from tools.repository import repository_files

LIMIT_LINES = 600


def too_long(files: list[Path]) -> list[str]:
    """One sentence for each of ``files`` that has more lines than the limit."""
    lengths = [(file, len(file.read_text(encoding="utf-8").splitlines())) for file in files]
    return [
        f"{file.relative_to(ROOT)} has {lines} lines; the limit is {LIMIT_LINES}. "
        "Give each of its subjects a module of its own."
        for file, lines in lengths
        if lines > LIMIT_LINES
    ]


if __name__ == "__main__":
    problems = too_long(repository_files("*.py", "dev"))
    print("\n".join(problems))
    sys.exit(1 if problems else 0)
