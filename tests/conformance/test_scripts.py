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

OWN_CLASSES = """
import dataclasses, json, sys
import fanfold as ff

class Page:
    made = 0

    def __init__(self):
        Page.made += 1

@dataclasses.dataclass(slots=True)
class Box:
    page: Page
    left: int

@ff.stage
def box(number):
    return Box(Page(), number)

@ff.stage
def moved(box):
    return Box(box.page, box.left + Page.made)  # none was made in this worker

@ff.pipeline
def boxes(number):
    return ff.record(box=moved(box(number)), first=ff.field(box(number), "left", int))

Page.made = 1000
found = [result.value for result in boxes.stream([1, 2, 3])]
assert all(type(one["box"]) is Box and type(one["box"].page) is Page for one in found)
print([one["box"].left for one in found], [one["first"] for one in found], Page.made)
"""


def test_classes_of_a_script_are_whole_in_workers_and_left_alone_where_they_come_from(
    tmp_path: Path,
) -> None:
    script = tmp_path / "script.py"
    script.write_text(OWN_CLASSES)
    done = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.stdout.strip() == "[1001, 1002, 1003] [1, 2, 3] 1000", done.stderr


def test_sources_and_constants_of_a_scripts_own_classes(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    done = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.stdout.strip() == "[{'n': 3, 'kind': 'A'}, {'n': 0, 'kind': 'A'}]", done.stderr
