"""Ctrl-C and SIGTERM: the run stops in an orderly way, tells what it did and leaves nothing behind."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = """
import sys
import fanfold as ff
from tests.conformance.running_stages import never_ends
never_ends.run(range(10), ff.write_jsonl(sys.argv[1]), backend=sys.argv[2], progress=False)
"""
GUARD_S = 60


@pytest.fixture
def program(tmp_path):
    """Starts a program in a session of its own; nothing of it is alive afterwards."""
    started: list[subprocess.Popen[str]] = []

    def start(*words: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"},
            start_new_session=True,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def wait_for_records(process: subprocess.Popen[str], file: Path, count: int) -> None:
    """Until the file has so many records; the program's end, or the guard, is a failure."""
    until_s = time.monotonic() + GUARD_S
    while not (file.exists() and file.read_text().count("\n") >= count):
        with contextlib.suppress(subprocess.TimeoutExpired):
            pytest.fail(f"the program ended early: {process.wait(timeout=0.05)}")
        assert time.monotonic() < until_s, "no record was written"


def report_in(folder: Path):
    (path,) = folder.glob(".fanfold/*/report.json")
    return json.loads(path.read_text())


def processes_with(text: str) -> list[str]:
    """Command lines and environments of living processes that mention ``text``."""
    found: list[str] = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit() and int(folder.name) != os.getpid():
            try:
                words = (folder / "cmdline").read_bytes() + (folder / "environ").read_bytes()
            except OSError:
                continue
            if text.encode() in words:
                found.append(folder.name)
    return found


@pytest.mark.parametrize("backend", ["local", "inline"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_stops_a_run_and_keeps_what_it_finished(program, tmp_path, backend, number):
    out = tmp_path / "out"
    process = program("-c", PROGRAM, str(out), backend)
    wait_for_records(process, out / "records.jsonl", 2)
    process.send_signal(number)
    _, errors = process.communicate(timeout=GUARD_S)
    # Python ends by SIGINT after an interrupt that nobody caught: a shell shows 130.
    assert process.returncode == -signal.SIGINT, errors
    records = [json.loads(line) for line in (out / "records.jsonl").read_text().splitlines()]
    assert [record["value"] for record in records] == [0, 1]
    report = report_in(out)
    assert report["roots"]["done"] == 2
    assert report["roots"]["unfinished"] == 8
    assert report["stopped"]["code"] == "FF427"
    assert sorted(os.listdir(out)) == [".fanfold", "records.jsonl"]


def test_the_command_exits_with_130_and_no_process_is_left(program, tmp_path, monkeypatch):
    (tmp_path / "items.jsonl").write_text("".join(f"{n}\n" for n in range(10)))
    out = tmp_path / "out"
    monkeypatch.setenv("FANFOLD_TEST_MARK", str(tmp_path))
    process = program(
        *("-m", "fanfold", "run", "tests.conformance.running_stages:never_ends"),
        *(str(tmp_path / "items.jsonl"), "--out", str(out)),
    )
    wait_for_records(process, out / "records.jsonl", 2)
    assert len(processes_with(str(tmp_path))) > 1
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=GUARD_S)
    assert process.returncode == 130, errors
    assert "interrupted by Ctrl-C" in errors
    assert "8 unfinished" in errors
    assert "Traceback" not in errors
    assert processes_with(str(tmp_path)) == []


def test_after_sigkill_the_same_command_gives_every_record_once(program, tmp_path):
    (tmp_path / "items.jsonl").write_text("".join(f"{n}\n" for n in range(10)))
    out = tmp_path / "out"
    command = (
        *("-m", "fanfold", "run", "tests.conformance.running_stages:fragile_items"),
        *(str(tmp_path / "items.jsonl"), "--out", str(out)),
    )
    killed = program("-c", PROGRAM, str(out), "local")
    wait_for_records(killed, out / "records.jsonl", 2)
    killed.kill()
    killed.communicate()
    for _ in range(2):
        done = program(*command)
        _, errors = done.communicate(timeout=GUARD_S)
        assert done.returncode == 0, errors
    records = [json.loads(line) for line in (out / "records.jsonl").read_text().splitlines()]
    assert sorted(r["value"] for r in records if "items.jsonl" in r["key"]) == list(range(10))
    # The two of the killed run have keys of their own and stay.
    assert len({record["key"] for record in records}) == len(records) == 12
    assert sorted(os.listdir(out)) == [".fanfold", "records.jsonl"]
