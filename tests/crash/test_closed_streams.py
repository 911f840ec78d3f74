"""Programs that are started without standard streams, as by cron or a daemon, run as others do."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
GUARD_S = 120
CLOSINGS = {0: "<&-", 1: ">&-", 2: "2>&-"}
COMBINATIONS = [
    chosen for n in range(1, 4) for chosen in itertools.combinations(sorted(CLOSINGS), n)
]
PROGRAM = """
    import os, sys
    import fanfold as ff

    def loud(n):
        print("to standard output", n)
        print("to standard error", n, file=sys.stderr)
        os.write(1, b"below Python" + bytes(100_000))
        assert sys.stdin.read() == "", "a worker has an empty standard input"
        return n + 1

    @ff.pipeline(level="item")
    def plus_one(n: ff.Port[int]) -> ff.Port[int]:
        return ff.stage(loud, replicas=2)(n)

    def main(out):
        report = plus_one.run(range(20), ff.write_jsonl(out))
        assert report.roots["done"] == 20, report
        assert [result.value for result in plus_one.stream(range(20))] == list(range(1, 21))
"""


@pytest.fixture
def run_without(tmp_path):
    """Runs a program with some of descriptors 0 to 2 closed; what is open is the null device."""

    def run(closed: tuple[int, ...], *words: str) -> subprocess.CompletedProcess[bytes]:
        closing = " ".join(CLOSINGS[number] for number in closed)
        return subprocess.run(
            ["/bin/sh", "-c", f'exec "$@" {closing}', "sh", sys.executable, *words],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"},
            timeout=GUARD_S,
            check=False,
        )

    return run


def values_in(file: Path) -> list[int]:
    return [json.loads(line)["value"] for line in file.read_text().splitlines()]


def script(tmp_path: Path, *lines: str) -> str:
    """The program with these last lines; what goes wrong is written to ``wrong``, for want of a stream."""
    text = "\n".join(line[4:] for line in PROGRAM.splitlines())
    body = "".join(f"    {line}\n" for line in lines)
    (tmp_path / "program.py").write_text(
        f"{text}\nimport traceback\ntry:\n{body}"
        "except BaseException:\n    open('wrong', 'w').write(traceback.format_exc())\n    os._exit(9)\n"
    )
    return "program.py"


def assert_went_well(done: subprocess.CompletedProcess[bytes], tmp_path: Path) -> None:
    wrong = tmp_path / "wrong"
    assert done.returncode == 0, wrong.read_text() if wrong.exists() else done.stderr


@pytest.mark.parametrize("closed", COMBINATIONS, ids=str)
def test_a_program_without_some_streams_runs(run_without, tmp_path, closed):
    assert_went_well(run_without(closed, script(tmp_path, "main('out')")), tmp_path)
    assert sorted(values_in(tmp_path / "out" / "records.jsonl")) == list(range(1, 21))
    (logs,) = (tmp_path / "out" / ".fanfold").glob("*/logs")
    said = b"".join(log.read_bytes() for log in logs.glob("loud*.log"))
    assert said.count(b"to standard output") == said.count(b"to standard error") == 20


def test_a_program_that_closes_its_streams_itself_runs(run_without, tmp_path):
    text = script(tmp_path, "sys.stderr.close()", "os.close(0), os.close(1)", "main('out')")
    assert_went_well(run_without((), text), tmp_path)
    assert sorted(values_in(tmp_path / "out" / "records.jsonl")) == list(range(1, 21))


def test_files_that_the_program_opened_in_the_streams_places_hold_what_it_wrote(
    run_without, tmp_path
):
    lines = (
        "files = [open(name, 'w') for name in ('a', 'b', 'c')]",
        "assert [file.fileno() for file in files] == [0, 1, 2]",
        "main('out')",
        "for file in files: print('mine', file=file)",
    )
    assert_went_well(run_without((0, 1, 2), script(tmp_path, *lines)), tmp_path)
    assert [(tmp_path / name).read_text() for name in "abc"] == ["mine\n"] * 3


@pytest.mark.parametrize("backend", ["local", "inline"])
@pytest.mark.parametrize("closed", [(1,), (2,), (0, 1, 2)], ids=str)
def test_the_command_runs_without_streams(run_without, tmp_path, closed, backend):
    script(tmp_path, "pass")
    (tmp_path / "rows.jsonl").write_text("".join(f"{n}\n" for n in range(3)))
    (tmp_path / "flow.py").write_text(
        "import os, sys\n"
        "import fanfold as ff\n"
        "sys.stdout.write('imported')\n"
        "sys.stderr.write('imported')\n"
        "def loud(n):\n"
        "    os.write(1, b'below Python')\n"
        "    os.write(2, b'below Python')\n"
        "    return n + 1\n"
        "@ff.pipeline\n"
        "def rows(n: ff.Port[int]) -> ff.Port[int]:\n"
        "    return ff.stage(loud)(n)\n"
    )
    words = ("-m", "fanfold", "run", "flow.py:rows", "rows.jsonl", "--out", "out")
    done = run_without(closed, *words, "--backend", backend)
    assert done.returncode == 0, done.stderr + done.stdout
    assert values_in(tmp_path / "out" / "records.jsonl") == [1, 2, 3]
    (failures,) = (tmp_path / "out" / ".fanfold").glob("*/failures.jsonl")
    assert failures.read_text() == ""


def test_an_error_is_not_printed_to_another_stream(run_without):
    done = run_without((2,), "-m", "fanfold", "explain", "no_such_pipeline")
    assert (done.returncode, done.stdout) == (2, b"")
