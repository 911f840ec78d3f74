"""The same programs on Fanfold and its peers, in one run: how they take turns, and what is told of them.

Owns the options that all comparing benchmarks share, and the order of runs. Fanfold's are spread between those
of the peers, so that a machine that others use too does not favour anybody; medians are told.

    --quick          sizes that only show that it works
    --no-peers       Fanfold alone
    --peers=A,B      only these of rayorch, ray-data, daft
    --case=A,B       only these cases
    --repeat=N       how often each peer runs each case (default 2, of memory 1)
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from benchmarks.peers.session import PEERS, Failed, Run, Session
from benchmarks.peers.work import Shape
from benchmarks.report import Better, Report
from tools.environment import SetupFailed

LIMIT_S = 100


@dataclass(frozen=True, slots=True)
class Options:
    """What a comparing benchmark was asked for."""

    quick: bool = False
    peers: tuple[str, ...] = tuple(PEERS)
    cases: frozenset[str] | None = None
    repeat: int = 2

    @classmethod
    def of(cls, arguments: Sequence[str], repeat: int = 2) -> Options:
        """From the command line, with a benchmark's own default for ``--repeat``.

        >>> Options.of(["--quick", "--no-peers", "--case=5ms"])
        Options(quick=True, peers=(), cases=frozenset({'5ms'}), repeat=1)
        """
        options = cls(repeat=repeat)
        for argument in arguments:
            name, _, value = argument.lstrip("-").partition("=")
            words = tuple(value.split(","))
            match name:
                case "quick":
                    options = replace(options, quick=True, repeat=1)
                case "no-peers":
                    options = replace(options, peers=())
                case "peers" if set(words) <= PEERS.keys():
                    options = replace(options, peers=words)
                case "case":
                    options = replace(options, cases=frozenset(words))
                case "repeat" if value.isdecimal() and int(value):
                    options = replace(options, repeat=int(value))
                case _:
                    raise SystemExit(f"unknown option {argument!r}\n{__doc__}")
        return options

    def chosen(self, case: str) -> bool:
        """Whether a case was asked for."""
        return self.cases is None or case in self.cases


@dataclass(frozen=True, slots=True)
class Case:
    """One program to compare.

    Args:
        name: What reports call it.
        shape: The program.
        alone: Why there is nothing to compare with, or empty.
        limit_s: A system that takes longer is given up for this case.
    """

    name: str
    shape: Shape
    alone: str = ""
    limit_s: float = LIMIT_S


@dataclass(slots=True)
class Compared:
    """What all runs came to, by case and system."""

    runs: dict[tuple[str, str], list[Run]] = field(default_factory=dict)

    def of(self, case: str) -> dict[str, list[Run]]:
        """The runs of a case by system, Fanfold's first."""
        return {system: runs for (name, system), runs in self.runs.items() if name == case}


def compare(
    report: Report, cases: Iterable[Case], options: Options, *, sample: bool = False
) -> Compared:
    """Run each case on each system; what a system cannot do is reported in words.

    Args:
        report: Where that is told.
        cases: What to run. Memory bounds must be the same for all.
        options: What was asked for.
        sample: Watch the memory of all processes.
    """
    chosen = [case for case in cases if options.chosen(case.name)]
    compared = Compared()
    _run(report, "fanfold", chosen, 1, compared, sample)
    for peer in options.peers:
        _run(report, peer, chosen, options.repeat, compared, sample)
        _run(report, "fanfold", chosen, 1, compared, sample)
    for _ in range(options.repeat - 1 - len(options.peers)):
        _run(report, "fanfold", chosen, 1, compared, sample)
    return compared


def compare_peers(report: Report, cases: Iterable[Case], options: Options) -> Compared:
    """Run each case on each peer: where Fanfold's own figures are measured in another way."""
    chosen = [case for case in cases if options.chosen(case.name)]
    compared = Compared()
    for peer in options.peers:
        _run(report, peer, chosen, options.repeat, compared, sample=False)
    return compared


def _run(
    report: Report,
    system: str,
    cases: Sequence[Case],
    repeat: int,
    compared: Compared,
    sample: bool,
) -> None:
    """Run cases on one system, in as few sessions as it survives."""
    session: Session | None = None
    try:
        for case in cases:
            if case.alone and system != "fanfold":
                report.missing(case.name, system, case.alone)
                continue
            try:
                if session is not None and not session.usable:
                    session.close()
                    session = None
                if session is None:
                    session = Session(system, case.shape.memory_bytes)
                for _ in range(repeat):
                    report.note(f"{case.name}: {system}")
                    run = session.run(case.shape, case.limit_s, sample=sample)
                    compared.runs.setdefault((case.name, system), []).append(run)
            except Failed as error:
                report.missing(case.name, system, str(error))
    except SetupFailed as error:
        for case in cases:
            report.missing(case.name, system, f"its environment is not there: {error}")
    finally:
        if session is not None:
            session.close()


def tell(
    report: Report,
    compared: Compared,
    case: str,
    metric: str,
    unit: str,
    measure: Callable[[Run], float],
    *,
    target: float | None = None,
    better: Better = "higher",
) -> Mapping[str, float]:
    """Report the median of a metric for each system; the target is Fanfold's. Gives what was reported."""
    medians: dict[str, float] = {}
    for system, runs in compared.of(case).items():
        try:
            medians[system] = value = statistics.median(map(measure, runs))
        except Failed as error:
            report.missing(case, system, str(error))
            continue
        aim = target if system == "fanfold" else None
        report.add(case, metric, value, unit, target=aim, better=better, system=system)
    return medians


def best_peer(medians: Mapping[str, float]) -> float | None:
    """The highest of the peers' values; None if there is none."""
    return max((value for system, value in medians.items() if system != "fanfold"), default=None)
