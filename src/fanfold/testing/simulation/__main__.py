"""The command line of simulations: many runs, or a kept one again.

Owns arguments, progress (on stderr) and exit codes: 0 all is well, 1 a rule was broken, 2 usage. The result
goes to stdout.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Final

from fanfold.testing.simulation.campaign import (
    FAILURES_LIMIT,
    Summary,
    campaign,
    failing_case,
    recorded,
)
from fanfold.testing.simulation.case import CaseFile
from fanfold.testing.simulation.drawing import draw_case

BLOCK_RUNS: Final = 200
"""Runs after which progress may be told, and which one process does at a time."""
PROGRESS_S: Final = 5.0


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; give its exit code."""
    options = _parser().parse_args(arguments)
    if options.replay is not None:
        return _replay(options.replay, show=options.log)
    return _runs(options)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m fanfold.testing.simulation",
        description="Simulate made-up pipelines with faults in virtual time, and judge every run.",
    )
    add = parser.add_argument
    add("--runs", type=_count, default=1_000, metavar="N", help="how many (1000)")
    add("--seed", type=int, metavar="S", help="of the first run, the others follow (drawn)")
    add("--json", action="store_true", help="print the result as one line of JSON")
    add("--thorough", action="store_true", help="check all invariants after every event")
    add("--jobs", type=_count, default=1, metavar="N", help="processes to use (1)")
    add(
        "--keep",
        type=Path,
        default=Path("failing-simulations"),
        metavar="DIR",
        help="where to write failing cases (failing-simulations)",
    )
    add(
        "--stop",
        type=_count,
        default=FAILURES_LIMIT,
        metavar="N",
        help="failing runs after which to stop (10)",
    )
    add(
        "--minutes",
        type=float,
        default=math.inf,
        metavar="M",
        help="begin no more runs after so many minutes (no limit)",
    )
    add("--as-found", action="store_true", help="look for no smaller case that fails as well")
    add("--commit", metavar="TEXT", help="what to call the code that was run, in the result")
    add("--replay", type=Path, metavar="FILE", help="run a kept case again instead")
    add("--log", action="store_true", help="with --replay: print the log of the run")
    return parser


def _count(text: str) -> int:
    count = int(text)
    if count < 1:
        raise argparse.ArgumentTypeError("a number from 1 on is needed")
    return count


# ------------------------------------------------------------------------------------------- many runs


def _runs(options: argparse.Namespace) -> int:
    seed = random.SystemRandom().randrange(10**9) if options.seed is None else options.seed
    _say(f"{options.runs} runs from seed {seed} on")
    begin_s = time.perf_counter()
    total = _simulate_all(seed, options, begin_s)
    seconds = time.perf_counter() - begin_s
    files = [str(_keep(failing, options)) for failing in total.failing]
    result = {
        "seed": seed,
        **total.as_dict(),
        "files": files,
        "seconds": round(seconds, 1),
        "runs_per_minute": round(total.runs / seconds * 60),
        "jobs": options.jobs,
        "commit": options.commit,
    }
    if options.json:
        print(json.dumps(result))
    else:
        print("\n".join(_told(result)))
    return 1 if total.failing else 0


def _simulate_all(seed: int, options: argparse.Namespace, begin_s: float) -> Summary:
    total, due_s = Summary(), begin_s + PROGRESS_S
    end_s = begin_s + 60 * options.minutes
    for summary in _summaries(_blocks(seed, options.runs), options):
        total.add(summary)
        for failing in summary.failing:
            _say(f"seed {failing} failed")
        now_s = time.perf_counter()
        if now_s >= due_s:
            due_s = now_s + PROGRESS_S
            _say(f"{total.runs} runs, {total.events} events, {len(total.failing)} failed")
        if len(total.failing) >= options.stop or now_s >= end_s:
            break
    total.failing.sort()
    return total


def _summaries(blocks: Iterable[range], options: argparse.Namespace) -> Iterator[Summary]:
    """The summary of each block of seeds, in any order."""
    simulate_block = partial(campaign, thorough=options.thorough, failures=options.stop)
    if options.jobs == 1:
        yield from map(simulate_block, blocks)
        return
    pool = ProcessPoolExecutor(options.jobs, mp_context=get_context("spawn"))
    try:
        # As they come: a block that takes long is not to hide what the others found.
        for done in as_completed([pool.submit(simulate_block, block) for block in blocks]):
            yield done.result()
    finally:
        pool.shutdown(cancel_futures=True)


def _blocks(seed: int, runs: int) -> Iterator[range]:
    for first in range(seed, seed + runs, BLOCK_RUNS):
        yield range(first, min(first + BLOCK_RUNS, seed + runs))


def _keep(seed: int, options: argparse.Namespace) -> Path:
    """Write the case of a failing seed to a file."""
    if not options.as_found:
        _say(f"seed {seed}: looking for a smaller case")
    file = failing_case(draw_case(seed), smaller=not options.as_found, about=f"seed {seed}")
    options.keep.mkdir(parents=True, exist_ok=True)
    path: Path = options.keep / f"seed-{seed}.json"
    path.write_text(file.to_json() + "\n", encoding="utf-8")
    _say(f"wrote {path}: {file.violations[0]}")
    return path


def _told(result: dict[str, Any]) -> Iterator[str]:
    for name, value in result.items():
        if isinstance(value, dict):
            yield f"{name}:"
            yield from (f"  {kind:<18}{count}" for kind, count in value.items())
        elif value not in (None, []):
            yield f"{name + ':':<20}{value}"


# ---------------------------------------------------------------------------------------------- one run


def _replay(path: Path, *, show: bool) -> int:
    try:
        kept = CaseFile.from_json(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        _say(f"{path} cannot be replayed: {error}")
        return 2
    lines: list[str] = []
    again = recorded(kept.case, log=lines.append)
    if show:
        print("\n".join(lines))
    else:
        print("\n".join(again.violations) or "no rule is broken")
    if kept.log_sha256:
        same = again.log_sha256 == kept.log_sha256
        _say(
            "the same to the byte" if same else "not the same as when it was kept: the code changed"
        )
    return 1 if again.violations else 0


def _say(text: str) -> None:
    print(f"simulation: {text}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
