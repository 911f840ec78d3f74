"""Runs the main job on the example documents and checks every result: ``./dev demo``.

Owns what must come out of ``examples/documents`` (``make_documents.py`` owns what is in them). It says what
differs and exits with 1 unless exactly the planted failures happened and everything else is right.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fanfold.cli.main import main as fanfold

ROOT = Path(__file__).resolve().parent.parent
EXAMPLES = Path("examples", "documents")
"""As seen from the repository's root."""


@dataclass(frozen=True, slots=True)
class Expected:
    """What a document must give."""

    methods: tuple[str, ...] = ()
    """For each page how its text was come by."""
    words: tuple[tuple[int, str], ...] = ()
    """Page and words that must be read there."""
    code: str = ""
    """The failure that is planted, of the document (then nothing else) or of one page."""


DOCUMENTS = {
    "annual-report.pdf": Expected(
        ("native", "native", "empty", "native"), ((0, "map archive"), (3, "Outlook"))
    ),
    "handbook.pdf": Expected(
        ("native",) * 60, tuple((number, f"Rule {number}") for number in range(60))
    ),
    "letter-scan.pdf": Expected(
        ("ocr",), ((0, "The parcel with the harbour maps has arrived."), (0, "lower store"))
    ),
    "minutes-scan.pdf": Expected(
        ("ocr",) * 3,
        (
            (0, "Minutes of the spring meeting"),
            (1, "Decisions"),
            # Two columns: the right one begins after the left one has ended.
            (2, "its last line at\nthe lower lamp.\n\nThe right column"),
        ),
    ),
    "mixed.pdf": Expected(
        ("native", "ocr", "native", "native"),
        ((0, "Covering note"), (1, "Total 128.50"), (2, "Remarks"), (3, "recognized long ago")),
    ),
    "languages.pdf": Expected(
        ("native", "native", "native", "ocr"),
        ((0, "ΧΑΡΤΗΣ"), (1, "Карта старой гавани"), (2, "港口地图"), (3, "地图不得带出阅览室")),
    ),
    "rotated.pdf": Expected(
        ("native",) * 3, tuple((n, f"Turned by {90 * (n + 1)} degrees") for n in range(3))
    ),
    "Entwurf #2; Übersicht für das Café.pdf": Expected(("native",), ((0, "awkward name"),)),
    "owner-locked.pdf": Expected(("native",), ((0, "Readable by everybody"),)),
    "poster.pdf": Expected(
        ("native", "failed", "native"),
        ((0, "Poster: cover"), (2, "Poster: credits")),
        code="page.too_large",
    ),
    "encrypted.pdf": Expected(code="pdf.encrypted"),
    "truncated.pdf": Expected(code="pdf.truncated"),
}


def main() -> int:
    """Run, check, say where to look; give the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--out", type=Path, default=ROOT / "out" / "demo", help="where it writes")
    out = parser.parse_args().out.resolve()
    if out.exists():
        if not (out / ".fanfold").is_dir():
            parser.error(f"{out} is there already, and not from an earlier run")
        # What an earlier demo wrote would hide what this one does not.
        shutil.rmtree(out)

    command = ["run", "documents", str(EXAMPLES), "--out", str(out)]
    with contextlib.chdir(ROOT):  # so that keys are as in the command that is shown
        print("$ fanfold", *command[:-1], _short(out), flush=True)
        exit_code = fanfold(command)
    if exit_code != 1:  # some documents failed, as planted
        print(f"NOT AS EXPECTED: exit code {exit_code}", file=sys.stderr)
        return 1
    (run_dir,) = (out / ".fanfold").iterdir()
    records = {Path(record["key"]).name: record for record in _lines(out / "records.jsonl")}
    failures = _lines(run_dir / "failures.jsonl")
    problems = list(differences(out, records, failures))

    codes = {Path(failure["key"]).name: failure["code"] for failure in failures}
    print()
    for name in DOCUMENTS:
        print(f"  {name:40} {_outcome(records.get(name), codes.get(name, 'nothing'))}")
    print("\nNot as planted, see below." if problems else "\nAll as planted. Look at:")
    for what in (out / "markdown", out / "records.jsonl", run_dir / "failures.jsonl"):
        print(f"  {_short(what)}")
    for problem in problems:
        print(f"NOT AS EXPECTED: {problem}", file=sys.stderr)
    return 1 if problems else 0


def differences(
    out: Path, records: dict[str, Any], failures: list[dict[str, Any]]
) -> Iterator[str]:
    """Everything in which the results are not as they must be."""
    planted = {name: expected.code for name, expected in DOCUMENTS.items() if expected.code}
    happened = {Path(failure["key"]).name: failure["code"] for failure in failures}
    if happened != planted or len(failures) != len(planted):
        told = sorted((f["key"], f["code"] or f["kind"], f["message"]) for f in failures)
        yield f"the failures are {told}, planted were {planted}"
    whole = {name for name, expected in DOCUMENTS.items() if expected.methods}
    if records.keys() != whole:
        yield f"the records are of {sorted(records)}, expected were {sorted(whole)}"
    written = {path.name.removesuffix(".md") for path in (out / "markdown").rglob("*.md")}
    if written != whole:
        yield f"the Markdown files are of {sorted(written)}, expected were {sorted(whole)}"
    for name in sorted(whole & records.keys()):
        yield from _differences_of(name, DOCUMENTS[name], records[name])


def _differences_of(name: str, expected: Expected, record: dict[str, Any]) -> Iterator[str]:
    pages = record["pages"]
    if (numbers := [page["number"] for page in pages]) != list(range(len(expected.methods))):
        yield f"{name} has pages {numbers}, not {len(expected.methods)} in order"
        return
    if (methods := tuple(page["method"] for page in pages)) != expected.methods:
        yield f"{name} was read by {methods}, not {expected.methods}"
    for number, words in expected.words:
        if words not in pages[number]["text"]:
            yield f"{name}, page {number}, lacks {words!r}: {pages[number]['text']!r}"
    marks = [page["error"]["code"] for page in pages if "error" in page]
    if marks != [expected.code] * bool(expected.code):
        yield f"{name} marks {marks}, not {expected.code!r}"


def _outcome(record: dict[str, Any] | None, code: str) -> str:
    """One document in a few words."""
    if record is None:
        return f"failed: {code}"
    methods = [page["method"] for page in record["pages"]]
    counts = ", ".join(f"{methods.count(method)} {method}" for method in sorted(set(methods)))
    return f"{len(methods):3} page{'s' * (len(methods) != 1)}: {counts}"


def _lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def _short(path: Path) -> str:
    """The path as seen from here, if it is below."""
    here = Path.cwd()
    return str(path.relative_to(here) if path.is_relative_to(here) else path)


if __name__ == "__main__":
    sys.exit(main())
