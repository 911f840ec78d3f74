"""Many replicas where few files may be open: the limit is raised, or one sentence says what lacks."""

from __future__ import annotations

import subprocess
import sys

import pytest

SCRIPT = """
import resource, sys
import fanfold as ff

soft, hard = map(int, sys.argv[1:])
resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))

def same(n):
    return n

@ff.pipeline(level="document")
def trivial(n: ff.Port[int]) -> ff.Port[int]:
    return ff.stage(same, replicas=64)(n)

try:
    print(trivial.run(range(100), progress=False).roots["done"])
except ff.SetupError as error:
    print(error)
"""


@pytest.mark.parametrize(
    ("soft", "hard", "said"),
    [
        (64, 4096, "100"),
        (64, 128, "FF409 64 workers need about 262 open files, and this process may"),
    ],
)
def test_open_files_are_few(soft: int, hard: int, said: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(soft), str(hard)],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.stdout.startswith(said), done.stdout + done.stderr
