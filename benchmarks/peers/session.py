"""A system in a process of its own, asked over JSON lines, with a hard limit of time.

Owns the peers' environment (`.venv-peers`, made from requirements/peers.txt when it is first needed), the
processes that belong to a system, and what they leave behind. Whatever happens there becomes words here.
"""

from __future__ import annotations

import json
import os
import queue
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

from benchmarks.peers.logbook import Entry, entries
from benchmarks.peers.work import Shape
from benchmarks.processes import Process, Sample, descendants, end, identified, sampled
from tools.environment import ROOT, Environment

PEERS = {"rayorch": "rayorch", "ray-data": "ray_data", "daft": "daft"}
"""The peers by the names that reports have for them, with those of their modules."""
START_LIMIT_S = 180
END_LIMIT_S = 10
SETTINGS = {
    "RAY_worker_niceness": "0",
    "RAY_agent_register_timeout_ms": "90000",
    "RAY_memory_usage_threshold": "0.97",
    "RAY_enable_open_telemetry": "0",
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_DATA_DISABLE_PROGRESS_BARS": "1",
    "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0",
    "DAFT_PROGRESS_BAR": "0",
    "DO_NOT_TRACK": "1",
    "SCARF_NO_ANALYTICS": "true",
}


class Failed(Exception):
    """A system could not do what it was asked; the text says why."""


class Run(NamedTuple):
    """What one run of a program came to."""

    began_s: float
    """By the monotonic clock, when the program was handed to the system."""
    wall_s: float
    entries: Sequence[Entry]
    samples: Sequence[Sample]


def peers_python() -> Path:
    """The Python of the peers' environment, which is made if it is not there.

    Raises:
        SetupFailed: It cannot be made.
    """
    environment = Environment(ROOT / ".venv-peers")
    environment.ensure("peers", package=False)
    return environment.python


class Session:
    """A system that runs programs one after the other, as a context.

    Args:
        system: ``fanfold`` or one of the peers.
        memory_bytes: How much it may hold in values.

    Raises:
        Failed: It does not start.
        SetupFailed: The peers' environment cannot be made.
    """

    def __init__(self, system: str, memory_bytes: int | None = None) -> None:
        python = Path(sys.executable) if system == "fanfold" else peers_python()
        self.system = system
        self.folder = Path(tempfile.mkdtemp(prefix="ffb-"))  # short: sockets have short names
        self._known: set[Process] = set()
        self._answers: queue.Queue[str | None] = queue.Queue()
        self._log = (self.folder / "output.log").open("w+", encoding="utf-8", errors="replace")
        memory = [] if memory_bytes is None else [str(memory_bytes)]
        module = PEERS.get(system, system)
        self._process = subprocess.Popen(
            [python, "-m", "benchmarks.peers", module, str(self.folder), *memory],
            cwd=ROOT,
            env=os.environ
            | SETTINGS
            | {"PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)])},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
            start_new_session=True,
        )
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()
        try:
            self._answer(START_LIMIT_S, "start")
        except Failed:
            self.close()
            raise

    def run(self, shape: Shape, limit_s: float, *, sample: bool = False) -> Run:
        """Run a program.

        Args:
            shape: Its parameters.
            limit_s: After so long the system is ended for good.
            sample: Watch the memory of its processes.

        Raises:
            Failed: It cannot, it did not survive, or it took too long.
        """
        folder = Path(tempfile.mkdtemp(dir=self.folder))
        asked = {"shape": shape.as_plain(), "folder": str(folder)}
        assert self._process.stdin is not None
        samples: list[Sample] = []
        try:
            self._process.stdin.write(json.dumps(asked) + "\n")
            self._process.stdin.flush()
        except OSError:
            raise Failed(self._last_words("had ended before")) from None
        if sample:
            with sampled(self._process.pid) as samples:
                answer = self._answer(limit_s, "finish")
        else:
            answer = self._answer(limit_s, "finish")
        if answer["documents"] != len(shape.counts):
            raise Failed(f"gave {answer['documents']} of {len(shape.counts)} documents")
        run = Run(answer["began_s"], answer["wall_s"], entries(folder), samples)
        shutil.rmtree(folder)
        return run

    @property
    def usable(self) -> bool:
        """Whether it can be asked for more."""
        return self._process.poll() is None

    def close(self) -> None:
        """End it and everything that it started."""
        self._look()
        assert self._process.stdin is not None
        try:
            self._process.stdin.close()
            self._process.wait(END_LIMIT_S)
        except (OSError, subprocess.TimeoutExpired):
            self._process.kill()
        end(self._known)
        self._process.wait()
        self._listener.join(END_LIMIT_S)
        self._log.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self) -> Session:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _answer(self, limit_s: float, what: str) -> dict[str, Any]:
        try:
            line = self._answers.get(timeout=limit_s)
        except queue.Empty:
            self._look()
            self._process.kill()
            self._process.wait()
            raise Failed(f"did not {what} within {limit_s:.0f} s and was ended") from None
        self._look()
        if line is None:
            self._process.wait(END_LIMIT_S)
            raise Failed(self._last_words(f"ended before it could {what}"))
        answer: dict[str, Any] = json.loads(line)
        if "cannot" in answer:
            raise Failed(f"cannot express it: {answer['cannot']}")
        if "failed" in answer:
            raise Failed(f"failed: {answer['failed']}")
        return answer

    def _look(self) -> None:
        """Who belongs to it now: daemons would be nobody's once their parent has ended."""
        self._known |= identified(descendants(self._process.pid))

    def _listen(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as lines:
            for line in lines:
                self._answers.put(line)
        self._answers.put(None)

    def _last_words(self, happened: str) -> str:
        self._log.flush()
        text = Path(self._log.name).read_text(encoding="utf-8", errors="replace").strip()
        return f"{happened}: {text.splitlines()[-1][:200]}" if text else happened
