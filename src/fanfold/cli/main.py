"""The command ``fanfold``: ``run``, ``explain`` and ``check``.

Owns its arguments, what it prints and its exit codes: 0 all well, 1 some roots failed, 2 usage or definition,
3 environment, 70 internal, 130 interrupted. A user's mistake prints one block on standard error
and no traceback. Everything else is done by the library.

argparse is enough: three commands with flags, no dependency, and 10 ms to import where its
alternatives take 60 and more.
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import sys
import traceback
from collections.abc import Sequence
from typing import Final, TextIO

from fanfold.backends.standard_streams import occupy
from fanfold.errors import FanfoldError

INTERNAL: Final = 70
INTERRUPTED: Final = 130

_TARGET = "MODULE:PIPELINE, FILE.py:PIPELINE, or a ready-made pipeline (documents)"
_PATHS = "files, folders, globs (quoted) or URLs; .jsonl files are read line by line"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns the exit code.

    Args:
        arguments: Without the program's name; by default those of this process.
    """
    try:
        _complete_streams()
        options = _parser().parse_args(arguments)
        try:
            return _COMMANDS[options.command](options)
        except FanfoldError as error:
            _print_error(error, debug=options.debug)
            return error.exit_code
    except KeyboardInterrupt as error:
        report = getattr(error, "report", None)
        text = f"fanfold: {str(error) or 'interrupted (no run was going on)'}"
        _say(text if report is None else f"{text}\n{report.summary()}", sys.stderr)
        return INTERRUPTED
    except Exception:
        text = "fanfold: this is an error of Fanfold itself; please report it."
        _say(traceback.format_exc() + text, sys.stderr)
        return INTERNAL


def _complete_streams() -> None:
    """Give whoever prints, a user's module too, something to print to where the program has no such stream."""
    occupy()
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode))  # noqa: SIM115  open to the end


def _run(options: argparse.Namespace) -> int:
    from fanfold.cli.target import load

    target = load(options.target, options.set)
    report = target.pipeline.run(
        target.source(options.paths),
        target.sinks(options.out),
        backend=options.backend,
        run_dir=options.run_dir,
        order=options.order,
        limit=options.limit,
        max_failed=options.max_failed,
        duplicates=options.duplicates,
        progress=not options.quiet,
    )
    if not options.quiet:
        _say(report.summary())
    return report.exit_code


def _explain(options: argparse.Namespace) -> int:
    from fanfold.cli.target import load

    target = load(options.target, options.set)
    _say(target.pipeline.explain("mermaid" if options.mermaid else options.format))
    return 0


def _check(options: argparse.Namespace) -> int:
    from fanfold.cli.target import load

    target = load(options.target, options.set)
    found = target.pipeline.check(target.source(options.paths), options.n)
    _say(str(found))
    return 0 if found.ok else 1


_COMMANDS = {"run": _run, "explain": _explain, "check": _check}


def _parser() -> argparse.ArgumentParser:
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("target", metavar="PIPELINE", help=_TARGET)
    common.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="a setting or a stage's option, such as Ocr.batch_size=8; may be given several times",
    )
    common.add_argument("--debug", action="store_true", help="show tracebacks with errors")
    parser = argparse.ArgumentParser(
        prog="fanfold", description="Prepare training data: fan out, share model calls, fold back."
    )
    parser.add_argument("--version", action=_Version, help="show the version and leave")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    run = commands.add_parser("run", parents=[common], help="run a pipeline over files")
    run.add_argument("paths", nargs="+", metavar="PATH", help=_PATHS)
    run.add_argument("--out", required=True, metavar="DIR", help="where records go")
    run.add_argument("--backend", default="local", help="local (default) or inline")
    run.add_argument("--limit", type=_count, metavar="N", help="take only the first N items")
    run.add_argument(
        "--max-failed",
        type=_count_or_share,
        metavar="N",
        help="stop when more than N roots have failed, or a larger share (such as 0.05) of 100 and more",
    )
    run.add_argument(
        "--order",
        choices=("source", "completed"),
        default="source",
        help="order of records (default: source)",
    )
    run.add_argument(
        "--duplicates",
        choices=("error", "first"),
        default="error",
        help="what a key that comes again means (default: error)",
    )
    run.add_argument(
        "--run-dir",
        metavar="DIR",
        help="for report.json, failures.jsonl and logs; OUT/.fanfold/RUN",
    )
    shown = run.add_mutually_exclusive_group()
    shown.add_argument(
        "--progress", action="store_true", help="show progress on standard error (the default)"
    )
    shown.add_argument("--quiet", action="store_true", help="print nothing but errors")

    explain = commands.add_parser("explain", parents=[common], help="show a pipeline's plan")
    form = explain.add_mutually_exclusive_group()
    form.add_argument(
        "--format", choices=("text", "mermaid"), default="text", help="form (default: text)"
    )
    form.add_argument("--mermaid", action="store_true", help="the same as --format mermaid")

    check = commands.add_parser(
        "check", parents=[common], help="compile a pipeline and run a few samples"
    )
    check.add_argument("paths", nargs="+", metavar="PATH", help=_PATHS)
    check.add_argument("-n", type=_count, default=3, help="how many samples (default: 3)")
    return parser


class _Version(argparse.Action):
    """Looks the version up only when it is asked for."""

    def __init__(self, option_strings: Sequence[str], dest: str, help: str | None = None) -> None:
        super().__init__(option_strings, dest, nargs=0, default=argparse.SUPPRESS, help=help)

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from importlib.metadata import PackageNotFoundError, version

        try:
            found = version("fanfold")
        except PackageNotFoundError:  # run from its sources
            found = "(not installed)"
        _say(f"fanfold {found}")
        parser.exit()


def _count(text: str) -> int:
    """A number of items: ``100``."""
    try:
        number = int(text)
    except ValueError:
        number = 0
    if number < 1:
        raise argparse.ArgumentTypeError(
            f"{text!r} is no number of items; give a whole number from 1 on, such as 100"
        )
    return number


def _count_or_share(text: str) -> int | float:
    """``5`` is a number of roots, ``0.05`` a share of them; whether it makes sense is told by the run."""
    try:
        return float(text) if "." in text else int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text!r} is neither a number of roots nor a share of them; give a whole number such as 10, "
            "or a share from 0.0 to 1.0 such as 0.05"
        ) from None


def _print_error(error: FanfoldError, *, debug: bool) -> None:
    lines = [f"fanfold: {error.code} {error.message.rstrip()}"]
    if debug:
        lines.insert(0, "".join(traceback.format_exception(error)).rstrip())
    if error.hint:
        # Below a traceback or a worker's output it would look like a part of it.
        lines.append(f"{'What to do:' if len(lines[-1].splitlines()) > 1 else ' '} {error.hint}")
    if error.report is not None:
        # Why it stopped has just been said.
        lines.append(dataclasses.replace(error.report, stopped=None).summary())
    _say("\n".join(lines), sys.stderr)


def _say(text: str, stream: TextIO | None = None) -> None:
    """Print, even if whoever read it has gone (``fanfold explain … | head``): the exit code says the rest."""
    out: TextIO = stream or sys.stdout
    try:
        print(text, file=out, flush=True)
    except BrokenPipeError:  # Python would complain of the rest when it exits
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, out.fileno())
        os.close(null)
