"""What a program's own script defines travels to workers, whoever makes the values."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SCRIPT = """
import dataclasses, enum
import fanfold as ff

@dataclasses.dataclass
class Doc:
    text: str

class Kind(enum.Enum):
    A = 1

@ff.stage
def length(doc):
    return len(doc.text)

@ff.stage
def never(number):
    return False

@ff.stage
def name(kind):
    return kind.name

@ff.pipeline
def lengths(doc):
    number = length(doc)
    return ff.record(n=number, kind=name(ff.merge(ff.filter(number, never(number)), default=Kind.A)))

print([result.value for result in lengths.stream([Doc("abc"), Doc("")])])
"""


def test_sources_and_constants_of_a_scripts_own_classes(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    done = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.stdout.strip() == "[{'n': 3, 'kind': 'A'}, {'n': 0, 'kind': 'A'}]", done.stderr
