"""The static checks of `./dev check`: which there are, and how each one is run.

Owns the list. A check is a command that exits 0 when all is well; its output is shown only when it is
not. All of them run even if one fails, so that one call tells everything. Their settings are in
pyproject.toml.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Sequence

from tools.environment import ROOT, Environment, say

# basedpyright has pyright's engine and rules, and its wheel brings all it needs; pyright's fetches itself.
CHECKS = {
    "format": ("ruff", "format", "--check"),
    "lint": ("ruff", "check", "--quiet", "--output-format", "concise"),
    "mypy": ("mypy", "--no-error-summary"),
    "pyright": ("basedpyright", "--level", "error"),
    "public-types": ("python", "-m", "tools.public_types"),
    "layers": ("lint-imports", "--no-logo"),
    "sizes": ("python", "-m", "tools.sizes"),
    "words": ("python", "-m", "tools.words"),
}
FIXES = (("ruff", "check", "--fix", "--quiet"), ("ruff", "format", "--quiet"))


def run_checks(environment: Environment, arguments: Sequence[str]) -> int:
    """Run the named checks, or all of them; ``--fix`` first mends what can be mended by machine."""
    names = [name for name in arguments if name != "--fix"] or list(CHECKS)
    unknown = [name for name in names if name not in CHECKS]
    if unknown:
        say(f"there is no check {unknown[0]!r}; there are: {', '.join(CHECKS)}")
        return 2
    if "--fix" in arguments:
        for command in FIXES:
            run_tool(environment, command)
    failed = [name for name in names if not passes(environment, name)]
    if failed:
        print(f"./dev check: failed: {', '.join(failed)}", flush=True)
        return 1
    print(f"./dev check: {len(names)} checks passed", flush=True)
    return 0


def passes(environment: Environment, name: str) -> bool:
    """Run one check and print how it went."""
    begin = time.perf_counter()
    done = run_tool(environment, CHECKS[name])
    good = done.returncode == 0
    seconds = time.perf_counter() - begin
    print(f"{'ok    ' if good else 'FAILED'}  {name:<13} {seconds:5.1f} s", flush=True)
    if not good:
        print(done.stdout.rstrip(), flush=True)
    return good


def run_tool(environment: Environment, command: Sequence[str]) -> subprocess.CompletedProcess[str]:
    """Run a tool of the environment in the checkout's root and keep what it prints."""
    program, *arguments = command
    return subprocess.run(
        [environment.path / "bin" / program, *arguments],
        cwd=ROOT,
        env=environment.variables(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
