"""The programs in ``examples`` print what they say they do, leave nothing behind, and stay short.

A program's whole output is its results; a new program needs its output here and a line in the index.
"""

from __future__ import annotations

import ast
import io
import os
import re
import subprocess
import sys
import tokenize
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"
HANG_GUARD_S = 120
LINES = range(15, 41)
"""How many lines of code a program may have; docstrings, comments and blank lines are not counted."""

OTHERS = {"demo.py", "make_documents.py"}
"""What runs the `documents` pipeline; they have tests of their own."""
PRINTED = {
    "chain_runs.py": """\
{"key": "b/harbour", "pages": ["SHIPS AND BOATS", "FISH"]}
{"key": "a/hills", "pages": ["SHEEP GRAZE"]}
{"key": "b/harbour", "summary": "SHIPS … FISH"}
{"key": "a/hills", "summary": "SHEEP"}
""",
    "detect_and_crop.py": """\
0 (0, 0, 4) SHIP
0 (0, 6, 8) TO
0 (0, 9, 14) SHORE
0 (1, 6, 10) OVER
0 unread: [(0, 3)]
1 unread: []
2 (0, 0, 3) END
2 unread: []
""",
    "keep_rejected.py": """\
kept:
{"key": "s0", "row": 0, "text": "a long walk", "quality": 8}
{"key": "s1", "row": 0, "text": "harbour", "quality": 6}
rejected:
{"key": "s0", "row": 1, "text": "no", "reason": "too short"}
{"key": "s0", "row": 2, "text": "Zürich at night", "reason": "not English"}
{"key": "s1", "row": 1, "text": "x", "reason": "too short"}
the model saw 2
""",
    "model_server.py": """\
0 ['ONE', 'TWO', 'THREE'] 0
1 ['FOUR', 'FIVE', 'SIX'] 0
asked 7 times for 6 pages
""",
    "ocr_over_http.py": """\
0 ['ONE', 'TWO', 'THREE'] []
1 ['FOUR', 'FIVE', 'SIX'] ['ocr.refused']
2 ['SEVEN'] []
""",
    "route_regions.py": """\
0 [['INTRO', '(a picture of a map)', 'LEGEND'], ['| 1 | 2 | 3 |', 'END']]
1 [['(a picture of a ship)'], [], ['BLANK BEFORE']]
""",
    "shared_model.py": """\
{"key": "a", "value": [1.0, 0.25, 0.75]}
{"key": "b", "value": [1.0]}
{'FakeEmbedder': 2, 'FakeEmbedder#2': 4}
['FakeEmbedder[0]', 'FakeEmbedder[1]']
""",
    "stream_results.py": """\
first: [1, 2, 3]
next: 1 [2, 4, 6]
another run: 0 [1, 2, 3]
""",
    "video_outputs.py": """\
{"key": "v1", "title": "Harbour", "scenes": ["from dawn to nets", "from market to fish"]}
{"key": "v2", "title": "Hills", "scenes": ["from sheep to sheep"]}
{"key": "v1", "scene": 0, "frame": 0, "image": "dawn", "embedding": 4}
{"key": "v1", "scene": 0, "frame": 1, "image": "boats", "embedding": 5}
{"key": "v1", "scene": 0, "frame": 2, "image": "nets", "embedding": 4}
{"key": "v1", "scene": 1, "frame": 0, "image": "market", "embedding": 6}
{"key": "v1", "scene": 1, "frame": 1, "image": "fish", "embedding": 4}
{"key": "v2", "scene": 0, "frame": 0, "image": "sheep", "embedding": 5}
""",
}
"""The whole output of each program."""
PRINTED_AMONG_OTHERS = {
    "debug_one_document.py": (
        "failed: document b, page 1 at fake_number_model",
        "    return [int(image.split()[-1]) for image in images]",
        "ValueError: invalid literal for int() with base 10: 'blank'",
        "raised: invalid literal for int() with base 10: 'blank'",
    ),
    "test_with_fake_model.py": ("== 3 passed in ",),
}
"""What must be in the output, in this order, of those that print paths or times as well."""
PROGRAMS = sorted(PRINTED.keys() | PRINTED_AMONG_OTHERS.keys())

RUN_AND_LOOK_ROUND = """\
import os, runpy, sys, threading
runpy.run_path(sys.argv[1], run_name="__main__")
with open(f"/proc/self/task/{os.getpid()}/children") as children:
    print("left:", children.read(), threading.enumerate()[1:])
"""


def run(folder: Path, *arguments: str | Path, **environment: str) -> str:
    """What Python prints when it is started with these arguments as a user would, in ``folder``."""
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(ROOT / "src"), "PYTHONUTF8": "1"} | environment,
        capture_output=True,
        encoding="utf-8",
        timeout=HANG_GUARD_S,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("name", sorted(PRINTED))
def test_the_program_gives_these_results(name, tmp_path):
    assert run(tmp_path, EXAMPLES / name) == PRINTED[name]


@pytest.mark.parametrize("name", sorted(PRINTED_AMONG_OTHERS))
def test_the_program_says_so(name, tmp_path):
    printed = run(tmp_path, EXAMPLES / name)
    places = [printed.find(text) for text in PRINTED_AMONG_OTHERS[name]]
    assert -1 not in places and places == sorted(places), printed


def test_a_stream_that_is_left_early_leaves_no_process_and_no_thread(tmp_path):
    printed = run(tmp_path, "-c", RUN_AND_LOOK_ROUND, EXAMPLES / "stream_results.py")
    assert printed == PRINTED["stream_results.py"] + "left:  []\n"


def test_a_breakpoint_stops_the_document_that_is_debugged(tmp_path):
    text = (EXAMPLES / "debug_one_document.py").read_text(encoding="utf-8")
    line = "    return [int("
    assert text.count(line) == 1
    copy = tmp_path / "with_breakpoint.py"
    copy.write_text(text.replace(line, f"    breakpoint(images)\n{line}"), encoding="utf-8")
    printed = run(tmp_path, copy, PYTHONBREAKPOINT="builtins.print").splitlines()
    # Once in the run in this thread and once in the direct call; workers have another standard output.
    assert printed.count("['plate 1', 'left blank', 'plate 3']") == 2


def test_every_program_has_its_results_here_and_a_line_in_the_index():
    programs = {path.name for path in EXAMPLES.glob("*.py")}
    assert programs == OTHERS | set(PROGRAMS)
    index = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    assert sorted(re.findall(r"\]\((\w+\.py)\)", index)) == sorted(programs)


def test_programs_that_the_documentation_names_are_there():
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    named = {
        name
        for page in pages
        for name in re.findall(r"\bexamples/(\w+\.py)\b", page.read_text(encoding="utf-8"))
    }
    assert named and named <= OTHERS | set(PROGRAMS)


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_program_is_short_and_says_how_to_run_it(name):
    text = (EXAMPLES / name).read_text(encoding="utf-8")
    docstring = ast.get_docstring(ast.parse(text)) or ""
    assert f"``python examples/{name}``" in docstring
    assert len(docstring.splitlines()) <= 4
    assert code_lines(text) in LINES


def code_lines(text: str) -> int:
    """How many lines hold code; docstrings, comments and blank lines do not."""
    tree = ast.parse(text)
    prose: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            prose.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    silent = {
        tokenize.COMMENT,
        tokenize.NL,
        tokenize.NEWLINE,
        tokenize.INDENT,
        tokenize.DEDENT,
        tokenize.ENDMARKER,
    }
    return len(
        {
            line
            for token in tokenize.generate_tokens(io.StringIO(text).readline)
            if token.type not in silent
            for line in range(token.start[0], token.end[0] + 1)
        }
        - prose
    )


def test_only_code_is_counted():
    assert (
        code_lines('"""A\n\nB."""\n\n# C\nx = (\n    1,  # D\n)\n\n\ndef f():\n    """E."""\n') == 4
    )
