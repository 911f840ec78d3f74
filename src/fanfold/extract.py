"""What a report says of values: which mask or label each has, and which lack a field that the plan reads.

Owns the judgement of masks (a bool or a numpy bool, nothing else) and labels (equality). Run where values
are made: in workers, and in the driver for the items of a source.
"""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Sequence
from typing import Any, Final

from fanfold.columns import bit_positions, get_field
from fanfold.plan import Control, Path, Plan, Stream
from fanfold.protocol import ControlRows

_MISSING: Final = object()
_ILLEGAL: Final = -1
_SKIPPED: Final = -2
_DISTINCT: Final = 64
"""More distinct values than this are judged row by row."""
_PLAIN: Final = frozenset({bool, int, str})
_SHOWN: Final = reprlib.Repr()
_SHOWN.maxstring = _SHOWN.maxother = 60


def facts(
    plan: Plan, stream: Stream, values: Sequence[Any]
) -> tuple[tuple[ControlRows, ...], tuple[tuple[int, int, str], ...]]:
    """The controls and missing fields of a stream's rows, as :class:`fanfold.protocol.StreamRows` has them.

    A row whose path leads nowhere belongs to no label: the field that is missing on the way fails the item
    before its label is asked for.
    """
    controls = tuple(
        _control(plan.controls[control], _follow(values, path)) for control, path in stream.controls
    )
    missing = tuple(
        found
        for check, path in stream.checks
        if (found := _check(check, plan.checks[check].name, _follow(values, path))) is not None
    )
    return controls, missing


def _follow(values: Sequence[Any], path: Path) -> Sequence[Any]:
    for name in path:
        values = [_field(value, name) for value in values]
    return values


def _field(value: Any, name: str) -> Any:
    if value is _MISSING:
        return value
    try:
        return get_field(value, name)
    except LookupError:
        return _MISSING


def _check(check: int, name: str, values: Sequence[Any]) -> tuple[int, int, str] | None:
    rows, text = 0, ""
    for row, value in enumerate(values):
        if value is not _MISSING and _field(value, name) is _MISSING:
            rows |= 1 << row
            text = text or describe(value)
    return (check, rows, text) if rows else None


def _control(control: Control, values: Sequence[Any]) -> ControlRows:
    """Judge each *distinct* value once; which rows have it is then found by C code."""
    judge = _mask if control.kind == "mask" else _labels(control.labels)
    kinds = set(map(type, values))
    if len(kinds) == 1 and kinds <= _PLAIN:
        distinct = list(dict.fromkeys(values))
        if len(distinct) <= _DISTINCT:
            verdicts = [judge(value) for value in distinct]
            rows = _rows_of(values, distinct)
            return _grouped(control, verdicts, rows, distinct)
    verdicts = [_SKIPPED if value is _MISSING else judge(value) for value in values]
    return _grouped(control, verdicts, [1 << row for row in range(len(values))], values)


def _rows_of(values: Sequence[Any], distinct: list[Any]) -> list[int]:
    """For each distinct value the set of rows that have it."""
    if len(distinct) == 1:
        return [(1 << len(values)) - 1]
    numbers = {value: number for number, value in enumerate(distinct)}
    text = bytes(map(numbers.__getitem__, values))[::-1]
    tables = (bytes(48 + (byte == number) for byte in range(256)) for number in range(len(distinct)))
    return [int(text.translate(table), 2) for table in tables]


def _grouped(
    control: Control, verdicts: Sequence[int], rows: Sequence[int], values: Sequence[Any]
) -> ControlRows:
    sets = [0] * len(control.labels)
    illegal: list[tuple[int, str]] = []
    strict = control.kind == "mask" or not control.rest
    for verdict, bits, value in zip(verdicts, rows, values, strict=True):
        if verdict >= 0:
            sets[verdict] |= bits
        elif verdict == _ILLEGAL and strict:
            text = describe(value)
            illegal += [(row, text) for row in bit_positions(bits)]
    return ControlRows(control.index, tuple(sets), tuple(sorted(illegal)))


def _mask(value: Any) -> int:
    """0 for true; a mask has no other label."""
    if value is True:
        return 0
    if value is False:
        return _SKIPPED
    kind = type(value)
    if kind.__module__ == "numpy" and kind.__name__ in ("bool", "bool_"):
        return 0 if value else _SKIPPED
    return _ILLEGAL


def _labels(labels: tuple[Any, ...]) -> Callable[[Any], int]:
    def judge(value: Any) -> int:
        for index, label in enumerate(labels):
            if label == value:
                return index
        return _ILLEGAL

    return judge


def describe(value: Any) -> str:
    """A value in a few words, for messages."""
    if isinstance(value, dict):
        return f"a dict with the keys {', '.join(map(str, list(value)[:8])) or '(none)'}"
    try:
        return f"{_SHOWN.repr(value)} ({type(value).__name__})"
    except Exception as error:  # a user's __repr__ may do anything
        return f"a {type(value).__name__} whose repr raises {type(error).__name__}"
