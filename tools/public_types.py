"""Complete public types: what users' type checkers see of Fanfold is known, not guessed.

Owns which packages are public to a type checker. pyright's own report covers every module; here the
insides of a run are left out, since no user's code names what is in them and mypy checks them strictly.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

INTERNAL = (
    "fanfold.blocks",
    "fanfold.cli",
    "fanfold.compiler",
    "fanfold.dispatch",
    "fanfold.driver",
    "fanfold.engine",
)
PUBLIC_AFTER_ALL = ("fanfold.engine.statistics",)  # the report shows it to users
COMMAND = ("basedpyright", "--verifytypes", "fanfold", "--ignoreexternal", "--outputjson")


def incomplete(report: dict[str, Any]) -> Iterator[str]:
    """A line for each public symbol of pyright's ``report`` whose type is not fully known."""
    completeness = report["typeCompleteness"]
    if not completeness["symbols"]:
        yield "pyright found no symbol of fanfold: is it installed in this environment?"
    for symbol in completeness["symbols"]:
        known = symbol["isTypeKnown"] and not symbol["isTypeAmbiguous"]
        if symbol["isExported"] and not known and is_public(symbol["name"]):
            for diagnostic in symbol["diagnostics"]:
                message = diagnostic["message"].partition("\n")[0]
                yield f"{_place(diagnostic)}{symbol['name']}: {message}"


def _place(diagnostic: dict[str, Any]) -> str:
    """Where it is; what is inherited has no place of its own."""
    if "range" not in diagnostic:
        return ""
    return f"{diagnostic['file']}:{diagnostic['range']['start']['line'] + 1} "


def is_public(name: str) -> bool:
    """Whether users may see the symbol ``name``, written with its module."""
    return not _within(name, INTERNAL) or _within(name, PUBLIC_AFTER_ALL)


def _within(name: str, packages: tuple[str, ...]) -> bool:
    return any(name == package or name.startswith(f"{package}.") for package in packages)


if __name__ == "__main__":
    done = subprocess.run(COMMAND, capture_output=True, text=True, check=False)
    problems = list(incomplete(json.loads(done.stdout)))
    print("\n".join(problems))
    sys.exit(1 if problems else 0)
