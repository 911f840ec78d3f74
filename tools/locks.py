"""The lock files: every package that `./dev` installs, pinned with the hashes of all its files.

Owns how `requirements/*.txt` come from `requirements/*.in` and pyproject.toml. They are resolved for
every platform and supported Python at once, from the public index alone: whatever package sources and
constraints the machine's own configuration names are left out, so that a lock is the same wherever it
is made, and it names no address.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence

from tools.environment import REQUIREMENTS, ROOT, Environment, say

OLDEST_PYTHON = "3.11"
HEADER = "# Made by `./dev lock`; do not edit.\n"
# `dev` and `docs` are resolved under the ones before them, so that all fit into one environment; `lock` and
# `peers` have environments of their own.
INPUTS = {
    "runtime": ("requirements/runtime.in", "pyproject.toml", "--extra", "documents"),
    "dev": ("requirements/dev.in", "--constraint", "requirements/runtime.txt"),
    "docs": (
        *("requirements/docs.in", "--constraint", "requirements/runtime.txt"),
        *("--constraint", "requirements/dev.txt"),
    ),
    "lock": ("requirements/lock.in",),
    "peers": ("requirements/peers.in",),
}


def make_locks(arguments: Sequence[str]) -> int:
    """Make all lock files; ``--upgrade`` takes the newest versions instead of keeping the pinned ones."""
    unknown = set(arguments) - {"--upgrade"}
    if unknown:
        say(f"unknown arguments: {' '.join(sorted(unknown))}; there is --upgrade")
        return 2
    environment = Environment(ROOT / ".cache" / "lock-venv")
    environment.ensure("lock", package=False)
    for name, inputs in INPUTS.items():
        output = REQUIREMENTS / f"{name}.txt"
        command = [
            str(environment.path / "bin" / "uv"),
            *("pip", "compile", "--quiet", "--no-config", "--no-header"),
            *("--universal", "--python-version", OLDEST_PYTHON, "--generate-hashes"),
            *inputs,
            *arguments,
            *("--output-file", str(output.relative_to(ROOT))),
        ]
        status = subprocess.run(command, cwd=ROOT, env=public_index_only(), check=False).returncode
        if status != 0:
            return status
        output.write_text(HEADER + output.read_text(encoding="utf-8"), encoding="utf-8")
        print(f"{output.relative_to(ROOT)}: {pinned(output.read_text(encoding='utf-8'))} packages")
    return 0


def public_index_only() -> dict[str, str]:
    """This process's environment without what would add to or replace the public index."""
    return {
        name: value for name, value in os.environ.items() if not name.startswith(("PIP_", "UV_"))
    }


def pinned(text: str) -> int:
    """How many pins a lock file has."""
    return sum("==" in line and not line.startswith((" ", "#")) for line in text.splitlines())
