"""Words that do not belong in the repository: unfinished work, and places that are nobody else's.

Owns the list. Patterns are written so that none of them matches this file.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from tools.environment import ROOT
from tools.repository import repository_files

EVERYWHERE = {
    r"(?i)(?:^|[^\w.])/(?:work|farm|root|home/\w+|tmp/w)/": "a path of one machine",
    r"(?i)\b(?:devp[i]|artifactor[y]|pythonhoste[d]|pypi\.or[g])\b": "the address of a package host",
    r"(?i)\bissue #\d+|\bsub-?age[n]t\b|\bthis sessio[n]\b": "how the work is organised, not what it is",
}
SOURCES = {
    r"\b(?:NotImplementedErro[r]|TOD[O]|FIXM[E]|XX[X])\b": "something left open",
    r"except(?: (?:Base)?Exception)?: *pas[s]\b": "an exception passed over in silence",
}


def findings(files: list[Path]) -> list[str]:
    """``file:line`` and what was found there, for every match in ``files``; binary files have none."""
    found: list[str] = []
    for file in files:
        patterns = EVERYWHERE | (SOURCES if file.is_relative_to(ROOT / "src") else {})
        try:
            lines = file.read_text(encoding="utf-8").splitlines()
        except UnicodeDecodeError:
            continue
        for pattern, meaning in patterns.items():
            for number, line in enumerate(lines, start=1):
                if match := re.search(pattern, line):
                    where = f"{file.relative_to(ROOT)}:{number}"
                    found.append(f"{where} has {match.group().strip()!r}: {meaning}")
    return found


if __name__ == "__main__":
    problems = findings(repository_files())
    print("\n".join(problems))
    sys.exit(1 if problems else 0)
