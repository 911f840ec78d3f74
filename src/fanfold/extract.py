"""What a report says of values: which mask or label each has, and which lack a field that the plan reads.

Owns the judgement of masks (a bool or a numpy bool, nothing else) and labels (equality). Run where values
are made: in workers, and in the driver for the items of a source.
"""

from __future__ import annotations

import reprlib
from collections.abc import Sequence
from typing import Any, Final

from fanfold.columns import get_field
from fanfold.plan import Control, Path, Plan, Stream
from fanfold.protocol import ControlRows

_MISSING: Final = object()
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
    sets = [0] * len(control.labels)
    illegal: list[tuple[int, str]] = []
    known: dict[Any, int] = {}
    for row, value in enumerate(values):
        if value is _MISSING:
            continue
        label = _mask(value) if control.kind == "mask" else _label(control.labels, value, known)
        if label is None:
            if control.kind == "mask" or not control.rest:
                illegal.append((row, describe(value)))
        elif label >= 0:
            sets[label] |= 1 << row
    return ControlRows(control.index, tuple(sets), tuple(illegal))


def _mask(value: Any) -> int | None:
    """0 for true, -1 for false, None for what is no bool."""
    if value is True:
        return 0
    if value is False:
        return -1
    kind = type(value)
    if kind.__module__ == "numpy" and kind.__name__ in ("bool", "bool_"):
        return 0 if value else -1
    return None


def _label(labels: tuple[Any, ...], value: Any, known: dict[Any, int]) -> int | None:
    try:
        if value in known:
            return known[value] if known[value] >= 0 else None
        hashable = True
    except TypeError:
        hashable = False
    found = -1
    for index, label in enumerate(labels):
        if type(label) is bool or type(value) is bool:
            same = type(label) is type(value) and label == value
        else:
            same = bool(label == value)
        if same:
            found = index
            break
    if hashable and len(known) < 1_000:
        known[value] = found
    return found if found >= 0 else None


def describe(value: Any) -> str:
    """A value in a few words, for messages."""
    if isinstance(value, dict):
        return f"a dict with the keys {', '.join(map(str, list(value)[:8])) or '(none)'}"
    try:
        return f"{_SHOWN.repr(value)} ({type(value).__name__})"
    except Exception as error:  # a user's __repr__ may do anything
        return f"a {type(value).__name__} whose repr raises {type(error).__name__}"
