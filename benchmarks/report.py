"""The one form in which benchmarks tell what they measured, for programs and for people.

Owns the columns: ``bench, case, system, metric, value, unit, target, met``. As JSON they are one object a
line, printed as soon as it is known; for people a table at the end of each benchmark. ``target`` and
``met`` are null where there is nothing to reach. What a system cannot do is a line too: its metric is
``not_measured``, its value null, and the words stand where others have their unit. Knows no benchmark.
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict, dataclass, fields
from typing import Final, Literal, TextIO

Better = Literal["higher", "lower"]
NOT_MEASURED: Final = "not_measured"


@dataclass(frozen=True, slots=True)
class Measurement:
    """One measured value. ``system`` is whose it is: ``fanfold``, or that of a peer."""

    bench: str
    case: str
    system: str
    metric: str
    value: float | None
    unit: str
    target: float | None = None
    met: bool | None = None

    def as_json(self) -> str:
        """The measurement as one line."""
        return json.dumps(asdict(self))


class Report:
    """Collects what one benchmark measures and prints it.

    Args:
        bench: The benchmark's name.
        as_json: Print one object a line instead of a table.
        output: Where to print.

    Example:
        >>> report = Report("control", as_json=True)
        >>> report.add("5-per-parent", "children_per_s", 250_000, "1/s", target=200_000)
        {"bench": "control", "case": "5-per-parent", "system": "fanfold", "metric": "children_per_s", \
"value": 250000, "unit": "1/s", "target": 200000, "met": true}
    """

    def __init__(self, bench: str, *, as_json: bool = False, output: TextIO | None = None) -> None:
        self.bench = bench
        self.as_json = as_json
        self.measurements: list[Measurement] = []
        self._output = output

    def add(
        self,
        case: str,
        metric: str,
        value: float,
        unit: str,
        *,
        target: float | None = None,
        better: Better = "higher",
        system: str = "fanfold",
    ) -> None:
        """Record a value; with a ``target``, ``better`` tells from which side it is met."""
        met = None
        if target is not None:
            met = value >= target if better == "higher" else value <= target
        measurement = Measurement(self.bench, case, system, metric, value, unit, target, met)
        self.measurements.append(measurement)
        if self.as_json:
            self._print(measurement.as_json())

    def missing(self, case: str, system: str, why: str) -> None:
        """Say why there is nothing to report of a system; a person is told at once."""
        self.note(f"{case}: no {system}, {why}")
        measurement = Measurement(self.bench, case, system, NOT_MEASURED, None, why)
        self.measurements.append(measurement)
        if self.as_json:
            self._print(measurement.as_json())

    def note(self, text: str) -> None:
        """Tell a person how it goes, apart from the results."""
        print(f"{self.bench}: {text}", file=sys.stderr, flush=True)

    def finish(self) -> None:
        """Print the table, unless each measurement was printed as it came."""
        if self.as_json:
            return
        measured = [one for one in self.measurements if one.metric != NOT_MEASURED]
        if measured:
            self._print(table(measured))
        for one in self.measurements:
            if one.metric == NOT_MEASURED:
                self._print(f"{one.bench} {one.case}: no {one.system}, {one.unit}")

    def _print(self, text: str) -> None:
        print(text, file=self._output or sys.stdout, flush=True)


def table(measurements: list[Measurement]) -> str:
    """``measurements`` in aligned columns, numbers to the right."""
    columns = [field.name for field in fields(Measurement)]
    rows = [[_cell(getattr(one, column)) for column in columns] for one in measurements]
    widths = [max(map(len, cells)) for cells in zip(columns, *rows, strict=True)]
    numeric = {"value", "target"}
    return "\n".join(
        "  ".join(
            cell.rjust(width) if column in numeric else cell.ljust(width)
            for column, cell, width in zip(columns, row, widths, strict=True)
        ).rstrip()
        for row in [columns, *rows]
    )


def _cell(value: str | float | bool | None) -> str:
    match value:
        case None:
            return ""
        case bool():
            return "yes" if value else "NO"
        case str():
            return value
        case int():
            return f"{value:,}"
    return f"{value:,.0f}" if abs(value) >= 1_000 else f"{value:,.4g}"
