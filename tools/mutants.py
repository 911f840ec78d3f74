"""Planted faults: each is put into a copy of the sources, and simulation has to find it.

Most show in made-up cases; some need a kept case, or a test, since what they need is met too seldom. Owns how a
fault is planted and looked for; the list of faults is tests/mutants/table.py's.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.mutants.table import MUTANTS, Mutant
from tools.environment import ROOT

RUNS = 1_500
"""Simulated runs in which a fault has to show; most show within some dozens."""
HANG_GUARD_S = 60
"""A search that takes longer has not found anything: a fault is to be found within a minute."""
FIRST_SEED = 0
"""All searches look at the same cases, so that they find the same today and tomorrow."""
CASES = ROOT / "tests" / "simulation" / "cases"
BROKEN = 1
"""The simulator's exit code when a rule was broken."""
TESTS_FAILED = 1
"""Pytest's exit code when tests ran, and some failed."""


class DoesNotFit(Exception):
    """A fault cannot be planted, since the text that it replaces is not there, or there twice."""


@dataclass(frozen=True)
class Search:
    """What came of looking for a planted fault."""

    mutant: Mutant
    violation: str
    """What the first failing run broke, or what the test said; empty if nothing was found."""
    runs: int
    seconds: float
    output: str
    """All that the search said, for when it found nothing."""

    @property
    def found(self) -> bool:
        """Whether it was found, and as its entry says."""
        if self.mutant.test:
            return bool(self.violation)
        return self.violation.startswith(tuple(f"{kind}: " for kind in self.mutant.found_by))


def place(mutant: Mutant, sources: Path) -> Path:
    """The file below ``sources`` that holds the text which a fault replaces.

    Raises:
        DoesNotFit: No file has it, or it is there more than once.
    """
    start = sources / "fanfold" / mutant.where
    files = sorted(start.rglob("*.py")) if start.is_dir() else [start]
    counts = {file: file.read_text(encoding="utf-8").count(mutant.old) for file in files}
    found = [file for file, count in counts.items() if count]
    if len(found) == 1 and counts[found[0]] == 1:
        return found[0]
    times = sum(counts.values())
    raise DoesNotFit(
        f"the fault {mutant.name!r} cannot be planted: its text is {times} times in {mutant.where}, "
        f"not once. Plant it anew in tests/mutants/table.py. The text is:\n{mutant.old}"
    )


def plant(mutant: Mutant, sources: Path) -> None:
    """Put a fault into the sources below ``sources``.

    Raises:
        DoesNotFit: The text that it replaces is not there exactly once.
    """
    file = place(mutant, sources)
    text = file.read_text(encoding="utf-8")
    file.write_text(text.replace(mutant.old, mutant.new), encoding="utf-8")
    for compiled in file.parent.glob(f"__pycache__/{file.stem}.*.pyc"):
        compiled.unlink()


def search(mutant: Mutant, runs: int = RUNS) -> Search:
    """Plant a fault in a copy of the sources, and simulate until it shows, or run its case or test.

    Raises:
        DoesNotFit: It cannot be planted.
    """
    with tempfile.TemporaryDirectory(prefix="fanfold-mutant-") as folder:
        sources, kept = Path(folder, "src"), Path(folder, "kept")
        # Compiled modules too, or each search compiles them all.
        shutil.copytree(ROOT / "src", sources)
        plant(mutant, sources)
        begin_s = time.perf_counter()
        if mutant.test:
            violation, count, output = _test(sources, mutant.test)
        elif mutant.case:
            violation, count, output = _replay(sources, mutant.case)
        else:
            violation, count, output = _simulate(sources, kept, runs)
        seconds = time.perf_counter() - begin_s
    return Search(mutant, violation, count, seconds, output)


def _simulate(sources: Path, kept: Path, runs: int) -> tuple[str, int, str]:
    """What a simulated run broke first, how many there were, and what the simulator says."""
    done = _run(
        sources,
        sources,
        *("fanfold.testing.simulation", "--json", "--as-found", "--runs", str(runs)),
        *("--seed", str(FIRST_SEED), "--stop", "1", "--keep", str(kept)),
    )
    violation = ""
    for file in sorted(kept.glob("*.json")):
        violation = json.loads(file.read_text(encoding="utf-8"))["violations"][0]
    report = json.loads(done.stdout) if done.stdout.startswith("{") else {}
    return violation, report.get("runs", 0), done.stdout + done.stderr


def _replay(sources: Path, case: str) -> tuple[str, int, str]:
    """What a kept case breaks first, in one run."""
    file = CASES / f"{case}.json"
    done = _run(sources, sources, "fanfold.testing.simulation", "--replay", str(file))
    return done.stdout if done.returncode == BROKEN else "", 1, done.stdout + done.stderr


def _test(sources: Path, test: str) -> tuple[str, int, str]:
    """What a test file says first when it fails, in one run."""
    done = _run(
        sources,
        ROOT,
        *("pytest", "-x", "-q", "-p", "no:cacheprovider", "--no-header"),
        *("-o", f"pythonpath={sources} {ROOT}", test),
    )
    said = [line[1:].strip() for line in done.stdout.splitlines() if line.startswith("E ")]
    failed = done.returncode == TESTS_FAILED
    return said[0] if failed and said else "", 1, done.stdout + done.stderr


def _run(sources: Path, folder: Path, *module: str) -> subprocess.CompletedProcess[str]:
    """Run a module in a folder with some sources."""
    command = [sys.executable, "-m", *module]
    try:
        return subprocess.run(
            command,
            env=os.environ | {"PYTHONPATH": str(sources), "PYTHONDONTWRITEBYTECODE": "1"},
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=HANG_GUARD_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(command, 1, "", f"no end after {HANG_GUARD_S} s")


# ------------------------------------------------------------------------------------- the command line


def main(arguments: Sequence[str] | None = None) -> int:
    """Look for the planted faults whose names have one of the words, or for all."""
    parser = argparse.ArgumentParser(
        prog="./dev mutants", description="Plant faults one by one, and demand that each is found."
    )
    parser.add_argument("words", nargs="*", help="only faults with one of these in their names")
    parser.add_argument("--list", action="store_true", help="tell their names")
    options = parser.parse_args(arguments)
    chosen = [
        mutant
        for mutant in MUTANTS
        if not options.words or any(word in mutant.name for word in options.words)
    ]
    if not chosen:
        print(f"no fault is named so: {' '.join(options.words)}", file=sys.stderr)
        return 2
    if options.list:
        print("\n".join(mutant.name for mutant in chosen))
        return 0
    missed = [mutant.name for mutant in chosen if not _told(mutant)]
    print(f"{len(chosen) - len(missed)} of {len(chosen)} planted faults were found")
    return 1 if missed else 0


def _told(mutant: Mutant) -> bool:
    """Look for one, and say how it went; whether it was found."""
    try:
        found = search(mutant)
    except DoesNotFit as error:
        print(f"FAILED  {error}", flush=True)
        return False
    mark = "found " if found.found else "FAILED"
    how = f"{found.runs} runs, {found.seconds:.1f} s"
    print(f"{mark}  {mutant.name}: {_head(found.violation)} ({how})", flush=True)
    if not found.found:
        print(found.output.rstrip(), flush=True)
    return found.found


def _head(violation: str) -> str:
    return violation.splitlines()[0][:90] if violation else "nothing was found"


if __name__ == "__main__":
    sys.exit(main())
