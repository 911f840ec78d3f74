"""Every Python block that a reader is shown runs, or says why not.

All blocks of one page are one program, in the order in which they stand, run as a script of its own in an
empty folder. A block that cannot run has a comment on the line before it::

    <!-- not run: it needs a GPU -->
"""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
HANG_GUARD_S = 240
FENCE = re.compile(r"^(?P<indent> *)(?P<marks>```+)(?P<language>.*)$")
REASON = re.compile(r"^\s*<!-- not run: (?P<reason>\S.*) -->\s*$")


class Block(NamedTuple):
    """A fenced block: where its first line stands (from 1), its lines, and why it is not run, if so."""

    line: int
    lines: list[str]
    reason: str | None


def python_blocks(text: str) -> list[Block]:
    """The Python blocks of a page."""
    blocks: list[Block] = []
    fence: re.Match[str] | None = None
    before, first, body = "", 0, list[str]()
    for number, line in enumerate(text.splitlines(), start=1):
        if fence is None:
            fence = FENCE.match(line)
            if fence is not None:
                first, body = number + 1, []
            elif line.strip():
                before = line
        elif line.strip() != fence["marks"]:
            body.append(line.removeprefix(fence["indent"]))
        else:
            if fence["language"].strip() == "python":
                reason = REASON.match(before)
                blocks.append(Block(first, body, reason["reason"] if reason else None))
            fence, before = None, ""
    assert fence is None, f"the block that begins on line {first - 1} does not end"
    return blocks


def program(blocks: list[Block]) -> str:
    """The blocks that are run as one script, each line at the number that it has on the page."""
    lines: list[str] = []
    for block in blocks:
        if block.reason is None:
            lines += [""] * (block.line - 1 - len(lines)) + block.lines
    return "\n".join(lines) + "\n"


def pages_with_programs() -> list[Path]:
    return [
        page
        for page in PAGES
        if any(block.reason is None for block in python_blocks(page.read_text(encoding="utf-8")))
    ]


@pytest.mark.parametrize(
    "page", pages_with_programs(), ids=lambda page: str(page.relative_to(ROOT))
)
def test_the_blocks_of_a_page_run(page, tmp_path):
    script = tmp_path / f"{page.stem}.py"
    script.write_text(program(python_blocks(page.read_text(encoding="utf-8"))), encoding="utf-8")
    folder = tmp_path / "here"
    folder.mkdir()
    done = run_script(script, folder)
    assert done.returncode == 0, f"lines are those of {page.name}:\n{done.stdout}{done.stderr}"


def run_script(script: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, script],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        timeout=HANG_GUARD_S,
        check=False,
    )


PAGE = """\
# A page

```python
x = 1
```

<!-- not run: it needs a GPU -->
```python
import no_such_module
```

```console
$ not python
```

- in a list

  ```python
  assert x == 2, "it is 1"
  ```
"""


def test_blocks_are_found_with_their_lines_and_reasons():
    first, second, third = python_blocks(PAGE)
    assert (first.line, first.lines, first.reason) == (4, ["x = 1"], None)
    assert second.reason == "it needs a GPU"
    assert third.lines == ['assert x == 2, "it is 1"']


def test_a_wrong_block_fails_and_names_its_line(tmp_path):
    script = tmp_path / "page.py"
    script.write_text(program(python_blocks(PAGE)), encoding="utf-8")
    done = run_script(script, tmp_path)
    assert done.returncode == 1
    assert "line 19" in done.stderr
    assert "assert x == 2" in PAGE.splitlines()[18]


def test_a_block_without_an_end_is_refused():
    with pytest.raises(AssertionError, match="line 2 does not end"):
        python_blocks("text\n```python\nx = 1\n")


def test_a_comment_without_a_reason_excuses_nothing():
    (block,) = python_blocks("<!-- not run: -->\n```python\nx = 1\n```\n")
    assert block.reason is None
