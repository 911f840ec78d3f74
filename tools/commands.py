"""The commands of `./dev`: what each one installs and runs.

Owns their names, their help and their exit codes. How the environment is made is environment.py's, what
`check` checks is checks.py's, how locks are made is locks.py's. Arguments after a command's name are
handed on unread to what it runs.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from tools.checks import run_checks
from tools.environment import LOCKS, ROOT, Environment, SetupFailed, say
from tools.locks import make_locks

TEST_HANG_GUARD_S = 300
"""A test that is still running then is stuck, whatever the machine; it fails and says where."""


TEST_PROCESSES: Final = 4
"""All tests run in so many processes at most: many of them start processes of their own."""


class Command(NamedTuple):
    """One command: what it does, in a line, and the function that does it."""

    help: str
    run: Callable[[Environment, Sequence[str]], int]


def setup(environment: Environment, arguments: Sequence[str]) -> int:
    """Install everything that any command needs."""
    refuse(arguments)
    environment.ensure(*LOCKS)
    say("ready: ./dev demo, ./dev test and ./dev check work offline from here on")
    return 0


def demo(environment: Environment, arguments: Sequence[str]) -> int:
    """Run the main job on the example documents."""
    environment.ensure("runtime")
    return run(environment, "examples/demo.py", *arguments)


def test(environment: Environment, arguments: Sequence[str]) -> int:
    """Run the test suite, all of it in several processes; it ends with pytest's own summary line."""
    environment.ensure("runtime", "dev")
    processes = min(os.cpu_count() or 1, TEST_PROCESSES)
    chosen = arguments or ("-n", str(processes), "--dist", "worksteal")
    return run(environment, "-m", "pytest", f"--timeout={TEST_HANG_GUARD_S}", *chosen)


def sim(environment: Environment, arguments: Sequence[str]) -> int:
    """Simulate made-up pipelines with faults, and judge every run."""
    environment.ensure("runtime")
    named = ("--commit", commit()) if "--replay" not in arguments else ()
    return run(environment, "-m", "fanfold.testing.simulation", *named, *arguments)


def mutants(environment: Environment, arguments: Sequence[str]) -> int:
    """Plant faults one by one, and demand that simulation, or its test, finds each."""
    environment.ensure("runtime", "dev")
    return run(environment, "-m", "tools.mutants", *arguments)


def check(environment: Environment, arguments: Sequence[str]) -> int:
    """Run every static check, or the named ones."""
    environment.ensure("runtime", "dev")
    return run_checks(environment, arguments)


def docs(environment: Environment, arguments: Sequence[str]) -> int:
    """Build the documentation, offline and with warnings as errors."""
    environment.ensure("runtime", "docs")
    output = ROOT / "docs" / "_build"
    status = run(
        environment,
        *("-m", "sphinx", "--builder", "html", "--fail-on-warning", "--keep-going", "--quiet"),
        *arguments,
        *("docs", str(output)),
    )
    if status == 0:
        say(f"open {(output / 'index.html').relative_to(ROOT)}")
    return status


def bench(environment: Environment, arguments: Sequence[str]) -> int:
    """Run benchmarks by name; without a name, list them."""
    environment.ensure("runtime")
    return run(environment, "-m", "benchmarks", *arguments)


def lock(environment: Environment, arguments: Sequence[str]) -> int:
    """Make the lock files anew from requirements/*.in and pyproject.toml."""
    return make_locks(arguments)


COMMANDS = {
    "setup": Command("install everything that any command needs, into .venv", setup),
    "demo": Command("turn the example documents into records (extra: documents)", demo),
    "test": Command("run the test suite; takes pytest's arguments", test),
    "sim": Command("simulate: ./dev sim [--runs N] [--seed S] [--json] [--replay FILE]", sim),
    "mutants": Command("plant faults, and have each found; takes words of their names", mutants),
    "check": Command("format, lint, types, layers, sizes; takes names of checks, or --fix", check),
    "docs": Command("build the documentation into docs/_build; takes sphinx's options", docs),
    "bench": Command("run benchmarks: ./dev bench NAME... [--json]", bench),
    "lock": Command("make the lock files anew: ./dev lock [--upgrade]", lock),
}


def main(arguments: Sequence[str]) -> int:
    """Run the command that ``arguments`` name; give the exit code."""
    if not arguments or arguments[0] in {"-h", "--help", "help"}:
        print("usage: ./dev COMMAND [ARGUMENTS]\n")
        for name, command in COMMANDS.items():
            print(f"  {name:<8}{command.help}")
        return 0
    name, *rest = arguments
    if name not in COMMANDS:
        say(f"there is no command {name!r}; there are: {', '.join(COMMANDS)}")
        return 2
    try:
        return COMMANDS[name].run(Environment(), rest)
    except SetupFailed as error:
        say(str(error))
        return 3
    except KeyboardInterrupt:
        return 130


def run(environment: Environment, *arguments: str | Path) -> int:
    """Run the environment's Python in the checkout's root, in this terminal; give its exit code."""
    command = [environment.python, *arguments]
    code = subprocess.run(command, cwd=ROOT, env=environment.variables(), check=False).returncode
    return code if code >= 0 else 128 - code  # ended by a signal: what a shell would say


def commit() -> str:
    """The checkout's commit, marked if there are changes beside it; empty outside a repository."""
    command = ["git", "describe", "--always", "--abbrev=40", "--dirty", "--exclude=*"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip()


def refuse(arguments: Sequence[str]) -> None:
    """End with a usage error if there are arguments to a command that takes none."""
    if arguments:
        say(f"this command takes no arguments, got: {' '.join(arguments)}")
        sys.exit(2)
