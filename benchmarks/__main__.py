"""``python -m benchmarks NAME... [--json] [OPTIONS]``: run benchmarks by name.

Owns how they are found and called: a module of this folder with ``run(report, arguments)``. Options that
are not known here are the benchmark's own.
"""

from __future__ import annotations

import importlib
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.report import Report

FOLDER = Path(__file__).parent


def available() -> dict[str, str]:
    """Names of all benchmarks, each with the first line of its docstring (nothing is imported)."""
    found: dict[str, str] = {}
    for file in sorted(FOLDER.glob("*.py")):
        text = file.read_text(encoding="utf-8")
        if "\ndef run(" in text:
            found[file.stem] = text.removeprefix('"""').partition("\n")[0]
    return found


def main(arguments: Sequence[str]) -> int:
    """Run the benchmarks that ``arguments`` name; give the exit code."""
    benches = available()
    names = [argument for argument in arguments if not argument.startswith("-")]
    options = [argument for argument in arguments if argument.startswith("-")]
    as_json = "--json" in options
    own_options = [option for option in options if option != "--json"]
    unknown = [name for name in names if name not in benches]
    if unknown:
        known = ", ".join(benches) or "none yet"
        print(f"there is no benchmark {unknown[0]!r}; there are: {known}", file=sys.stderr)
        return 2
    if not names:
        print("usage: ./dev bench NAME... [--json]\n")
        for name, purpose in benches.items():
            print(f"  {name:<12}{purpose}")
        return 0
    # What a benchmark has started is ended by its own contexts, also if it is told to stop.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    for name in names:
        report = Report(name, as_json=as_json)
        importlib.import_module(f"benchmarks.{name}").run(report, own_options)
        report.finish()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
