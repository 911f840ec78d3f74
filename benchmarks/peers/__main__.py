"""``python -m benchmarks.peers SYSTEM FOLDER [MEMORY_BYTES]``: one system, told over JSON lines what to run.

Each line of standard input is a shape and a folder for logbooks; each line of standard output tells what became
of it. What libraries print goes to standard error, so that the lines stay ours.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import time
import traceback
from typing import Any, TextIO

from benchmarks.peers.work import Shape


def main(name: str, folder: str, memory_bytes: int | None) -> None:
    """Serve until the input ends."""
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    module = importlib.import_module(f"benchmarks.peers.on_{name}")
    system = module.System(memory_bytes, folder)
    _tell(answers, {"ready": True})
    for line in sys.stdin:
        asked = json.loads(line)
        _tell(answers, _answer(system, Shape.from_plain(asked["shape"]), asked["folder"]))
    system.close()


def _answer(system: Any, shape: Shape, folder: str) -> dict[str, Any]:
    if why := system.cannot(shape):
        return {"cannot": why}
    began_s = time.monotonic()
    try:
        documents = system.run(shape, folder)
    except Exception as error:
        traceback.print_exc()
        last = str(error).strip().rpartition("\n")[2]  # of a remote traceback, the cause
        return {"failed": f"{type(error).__name__}: {last[:300]}"}
    return {"began_s": began_s, "wall_s": time.monotonic() - began_s, "documents": documents}


def _tell(answers: TextIO, answer: dict[str, Any]) -> None:
    answers.write(json.dumps(answer) + "\n")
    answers.flush()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]) if len(sys.argv) > 3 else None)
