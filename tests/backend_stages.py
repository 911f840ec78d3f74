"""Users' code for tests of worker processes, the deadly kinds included. Imports next to nothing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from fanfold.failures import ItemFailure


def identity(x: Any) -> Any:
    return x


def increment(xs: list[int]) -> list[int]:
    return [x + 1 for x in xs]


def upto(n: int) -> list[int]:
    return list(range(n))


def die(how: str) -> str:
    """Does what its argument says; most of it is the end."""
    match how:
        case "abort":
            os.abort()
        case "exit":
            os._exit(7)
        case "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        case "quit":
            sys.exit(3)
        case "fail":
            raise ItemFailure("as told")
    return how


def die_batched(hows: list[str]) -> list[str]:
    return [die(how) for how in hows]


def die_after(children: Sequence[Any]) -> Iterator[Any]:
    """Yields what it is given, and dies where that says so."""
    for child in children:
        yield die(child)


def slow_then_die(children: int) -> Iterator[int]:
    """So slow that each child is released by itself."""
    for n in range(children):
        time.sleep(0.01)  # a slow generator, not a wait for something
        yield n
    os.abort()


def whereabouts(_: Any) -> dict[str, Any]:
    """What a worker finds around it."""
    return {
        "pid": os.getpid(),
        "session": os.getsid(0),
        "cwd": os.getcwd(),
        "environ": dict(os.environ),
        "path": list(sys.path),
        "stdin": sys.stdin.read(),
        "threads": threading.active_count(),
        "interrupt": signal.getsignal(signal.SIGINT) is signal.default_int_handler,
        "modules": sorted(sys.modules),
    }


def speak(text: str) -> int:
    """Write to both standard streams, by every way there is."""
    print(f"print {text}")
    print(f"error {text}", file=sys.stderr)
    os.write(1, f"raw {text}\n".encode())
    return len(text)


def shout(size: int) -> int:
    """A lot, and not a single line's end."""
    os.write(2, b"e" * size)
    sys.stdout.write("o" * size)
    return size


def with_child(mode: str) -> int:
    """Start a process that would live for an hour; its pid."""
    code = "import os, sys, time; os.setsid(); time.sleep(3600)"
    if mode == "own session":
        return subprocess.Popen([sys.executable, "-c", code]).pid
    if mode == "orphan":  # its parent ends at once
        shell = "sleep 3600 >/dev/null 2>&1 & echo $!"
        done = subprocess.run(["setsid", "sh", "-c", shell], stdout=subprocess.PIPE, check=True)
        return int(done.stdout)
    return subprocess.Popen(["sleep", "3600"]).pid


def with_child_and_die(mode: str) -> int:
    """Start such a process, put its pid down in the file that the mode names, and die."""
    kind, path = mode.split(":", 1)
    Path(path).write_text(str(with_child(kind)))
    os.abort()


def sleep_for(seconds: float) -> float:
    """Busy for a while: what a stage may do, not a wait for something."""
    time.sleep(seconds)
    return seconds


def touch_and_sleep(path: str) -> None:
    """Tell that it is running, then never end."""
    Path(path).write_text(str(os.getpid()))
    time.sleep(3600)


def unpicklable(kind: str) -> Any:
    return threading.Lock() if kind == "lock" else (lambda: kind) if kind == "lambda" else kind


def large(size: int) -> Any:
    return bytes(size)


class Counter:
    """How often it was called, and which process it is in."""

    def __init__(self, start: int = 0) -> None:
        self.count = start

    def __call__(self, _: Any) -> tuple[int, int]:
        self.count += 1
        return self.count, os.getpid()


class Unmakeable:
    """Its constructor fails, or worse."""

    def __init__(self, how: str) -> None:
        print("about to fail", flush=True)
        if how == "raise":
            raise RuntimeError("no weights")
        die(how)

    def __call__(self, x: Any) -> Any:
        return x


class NotHere:
    """A value that may not be unpickled in the process whose pid it was told."""

    def __init__(self, forbidden_pid: int, value: Any = None) -> None:
        self.forbidden_pid = forbidden_pid
        self.value = value

    def __setstate__(self, state: dict[str, Any]) -> None:
        if os.getpid() == state["forbidden_pid"]:
            raise AssertionError("unpickled in the driver's process")
        self.__dict__.update(state)


def make_not_here(pid: int) -> list[NotHere]:
    return [NotHere(pid, n) for n in range(3)]


def values_of(things: list[NotHere]) -> list[Any]:
    return [thing.value for thing in things]


class Unreadable:
    """A value that cannot be unpickled anywhere."""

    def __setstate__(self, state: Any) -> None:
        raise ValueError("cannot be read")

    def __getstate__(self) -> dict[str, int]:
        return {"a": 1}


def make_unreadable(n: int) -> Any:
    return Unreadable() if n == 1 else n


class FileWriter:
    """A record writer of one file, which may refuse a key."""

    def __init__(self, path: str, refused: str = "") -> None:
        self.path = path
        self.refused = refused

    def open(self) -> None:
        if self.refused == "open":
            raise OSError("cannot open")
        self._file = open(self.path, "a", encoding="utf-8")  # noqa: SIM115  # closed by close()

    def write(self, result: Any, values: Sequence[Any]) -> None:
        if result.key == self.refused:
            raise ValueError(f"refused {result.key}")
        if result.key == "die":
            os.abort()
        self._file.write(f"{result.key} {values} {os.getpid()}\n")
        self._file.flush()

    def refuse(self, result: Any, output: int) -> str:
        self._file.write(f"{result.key} refused\n")
        return f"output {output} of {self.path}"

    def close(self) -> None:
        if self.refused == "close":
            raise OSError("cannot close")
        self._file.write("closed\n")
        self._file.close()


def forks(how: str) -> str:
    """Forks, and the child comes back out of the stage by some way."""
    pid = os.fork()
    if pid:
        os.waitpid(pid, 0)
        return "parent"
    if how == "raise":
        raise ValueError("child")
    if how == "exit":
        sys.exit(0)
    return "child"


def inheritable(_: Any) -> list[str]:
    """The descriptors that a program gets which a worker executes, beside the standard ones."""
    code = "import os; print(*os.listdir('/proc/self/fd'))"
    done = subprocess.run(
        [sys.executable, "-c", code], close_fds=False, stdout=subprocess.PIPE, text=True, check=True
    )
    return sorted(set(done.stdout.split()) - {"0", "1", "2", "3"})  # 3 is the listing's own


def spoils_output(x: int) -> int:
    """Leaves standard output in a state in which it cannot be flushed."""
    sys.stdout = sys.stderr = None
    return x
