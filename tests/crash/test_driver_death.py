"""The driver dies, is interrupted or forgets to close: nothing of its run is left."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.backends import HANG_S

ROOT = Path(__file__).resolve().parents[2]
DRIVER = """
    import json, os, signal, sys, threading, time
    from fanfold.backends.local.backend import LocalBackend
    from fanfold.protocol import BatchFinished
    from tests import backend_stages as s
    from tests.backends import Session, call_plan

    def main():
        folder, note = sys.argv[1:]
        plan = call_plan(s.with_child, s.touch_and_sleep, s.whereabouts)
        run = Session(LocalBackend(arena_dir=folder), plan)
        pids = [e.pid for e in run.heard]
        pids += run.run(["plain"]).values.values()
        pids += run.run(["own session"]).values.values()
        run.run([b"x" * 5_000_000], worker=2, call=2)
        run.submit([note], worker=1, call=1)
        while not os.path.exists(note) or not os.path.getsize(note):
            run.backend.poll(0.01)
        zygote = int(open(f"/proc/{pids[0]}/stat").read().rpartition(")")[2].split()[1])
        print(json.dumps([*pids, zygote]), flush=True)
        return run

"""


@pytest.fixture
def started(tmp_path, request) -> Iterator[tuple[subprocess.Popen[str], list[int]]]:
    """A driver that is in the middle of its work, and the pids of all that it has started."""
    script = tmp_path / "driver.py"
    script.write_text(textwrap.dedent(DRIVER) + textwrap.dedent(request.param))
    arenas = tmp_path / "arenas"
    arenas.mkdir()
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)])}
    process = subprocess.Popen(
        [sys.executable, str(script), str(arenas), str(tmp_path / "note")],
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
        start_new_session=True,
    )
    assert process.stdout is not None
    try:
        pids = json.loads(process.stdout.readline())
        assert len(pids) == 6
        yield process, pids
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
    assert os.listdir(arenas) == [], "values lie in files that have no name"


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def all_gone(pids: list[int]) -> bool:
    """Wait until all these processes have ended."""
    for pid in pids:
        try:
            descriptor = os.pidfd_open(pid)
        except ProcessLookupError:
            continue
        try:
            if not select.select([descriptor], [], [], HANG_S)[0]:
                return False
        finally:
            os.close(descriptor)
    return True


WAITS = """
    run = main()
    while True:
        run.backend.poll(None)
"""


@pytest.mark.parametrize("started", [WAITS], indirect=True, ids=["waiting"])
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGHUP])
def test_a_driver_that_is_killed_leaves_nothing(started, number):
    process, pids = started
    assert all(map(alive, pids))
    before = set(os.listdir("/dev/shm"))
    process.send_signal(number)
    assert process.wait(HANG_S) == -number
    assert all_gone(pids)
    assert set(os.listdir("/dev/shm")) <= before


@pytest.mark.parametrize("started", [WAITS], indirect=True, ids=["waiting"])
def test_a_driver_whose_whole_session_is_killed_leaves_nothing(started):
    process, pids = started
    os.killpg(process.pid, signal.SIGKILL)
    process.wait(HANG_S)
    assert all_gone(pids)


@pytest.mark.parametrize("started", [WAITS], indirect=True, ids=["waiting"])
def test_ctrl_c_is_for_the_driver_alone_and_ends_everything(started):
    process, pids = started
    os.killpg(process.pid, signal.SIGINT)
    assert process.wait(HANG_S) == -signal.SIGINT
    assert all_gone(pids)


@pytest.mark.parametrize(
    "started",
    [
        """
        run = main()
        sys.stdin.readline()
        raise RuntimeError("nobody closes")
        """,
        """
        run = main()
        threading.Thread(target=run.backend.poll, args=(1000.0,), daemon=True).start()
        sys.exit(0)
        """,
        """
        run = main()
        pid = os.fork()
        if pid == 0:
            time.sleep(3600)  # a copy of the driver, with copies of all its sockets
        print(pid, flush=True)
        os._exit(0)
        """,
        """
        with main():
            pass
        """,
    ],
    indirect=True,
    ids=["exception", "exit", "fork", "close"],
)
def test_however_a_driver_ends_its_processes_do(started):
    process, pids = started
    assert process.stdout is not None
    try:
        assert all_gone(pids)
        process.wait(HANG_S)
    finally:
        copy = process.stdout.readline() if process.poll() is not None else ""
        if copy.strip().isdigit():
            os.kill(int(copy), signal.SIGKILL)


@pytest.mark.parametrize("started", [WAITS], indirect=True, ids=["waiting"])
def test_a_driver_and_its_zygote_killed_together_leave_no_worker(started):
    process, pids = started
    os.kill(pids[-1], signal.SIGSTOP)  # so that it cannot help
    process.kill()
    os.kill(pids[-1], signal.SIGKILL)
    process.wait(HANG_S)
    workers = pids[:3]
    assert all_gone(workers)
    for pid in pids[3:5]:  # what nobody is left to end; the test cleans up
        if alive(pid):
            os.kill(pid, signal.SIGKILL)
