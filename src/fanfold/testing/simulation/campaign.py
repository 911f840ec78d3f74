"""Many runs: which seeds, what is counted, and what is kept of one that failed.

Owns the summary, and the way from a failing seed to a small case file. Knows no command line.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Final

from fanfold.testing.simulation.case import FAULTS, Case, CaseFile
from fanfold.testing.simulation.drawing import draw_case
from fanfold.testing.simulation.run import simulate
from fanfold.testing.simulation.shrinking import shrink

FAILURES_LIMIT: Final = 10
"""Failing seeds after which a campaign ends: by then something is to be mended."""


@dataclass(slots=True)
class Summary:
    """What many runs came to."""

    runs: int = 0
    compared: int = 0
    """Those whose end was held against the interpreter's meaning."""
    events: int = 0
    recycled: int = 0
    moved: int = 0
    faults: Counter[str] = field(default_factory=Counter)
    failing: list[int] = field(default_factory=list)
    """The seeds whose runs broke a rule."""

    def add(self, other: Summary) -> None:
        """Count another's runs in."""
        self.runs += other.runs
        self.compared += other.compared
        self.events += other.events
        self.recycled += other.recycled
        self.moved += other.moved
        self.faults.update(other.faults)
        self.failing += other.failing

    def as_dict(self) -> dict[str, Any]:
        """Plain values, with a number for each kind of fault in the order of the kinds."""
        items = sorted(kind for kind in self.faults if kind not in FAULTS)
        return {
            "runs": self.runs,
            "compared": self.compared,
            "faults": {kind: self.faults[kind] for kind in (*FAULTS, *items)},
            "recycled": self.recycled,
            "moved": self.moved,
            "events": self.events,
            "violations": len(self.failing),
            "failing_seeds": self.failing,
        }


def campaign(
    seeds: Iterable[int],
    *,
    thorough: bool = False,
    failures: int = FAILURES_LIMIT,
) -> Summary:
    """Simulate the cases of many seeds; stop after so many failures.

    Args:
        seeds: One for each run.
        thorough: Check all invariants after each event, also in long runs.
        failures: Failing seeds after which to stop.

    Example:
        >>> campaign(range(3)).failing
        []
    """
    summary = Summary()
    for seed in seeds:
        simulated = simulate(draw_case(seed), thorough=thorough)
        summary.runs += 1
        summary.compared += simulated.compared
        summary.events += simulated.events
        summary.recycled += simulated.recycled
        summary.moved += simulated.moved
        summary.faults.update(simulated.faults)
        if simulated.violations:
            summary.failing.append(seed)
        if len(summary.failing) >= failures:
            break
    return summary


def failing_case(case: Case, *, smaller: bool = True, about: str = "") -> CaseFile:
    """A failing case as a file's contents: smaller if possible, with what it breaks and its log's digest.

    Args:
        case: A case that fails.
        smaller: Look for a smaller one that fails in the same way.
        about: What to say of it.

    Raises:
        ValueError: It does not fail.
    """
    kind = _kind(case)
    if kind is None:
        raise ValueError("this case breaks no rule")
    if smaller:
        case = shrink(case, lambda other: _kind(other) == kind)
    return recorded(case, about)


def recorded(case: Case, about: str = "", log: Callable[[str], object] = len) -> CaseFile:
    """A case as a file's contents, with what its run says and does.

    Args:
        case: Any case.
        about: What to say of it.
        log: Told each line of the run's log.
    """
    simulated = simulate(case, thorough=True, log=log)
    violations = tuple(str(violation) for violation in simulated.violations)
    return CaseFile(case, about, violations, simulated.log_sha256)


def _kind(case: Case) -> str | None:
    """The kind of the first violation of a case, if it has one; where it cannot be run, the exception too."""
    violations = simulate(case, thorough=True).violations
    if not violations:
        return None
    first = violations[0]
    return first.kind if first.kind != "case" else f"case: {first.text.partition(':')[0]}"
