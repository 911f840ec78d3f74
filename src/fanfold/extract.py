"""What a report says of values: which mask or label each has, which lack a field that the plan reads, and how
large they are and of which group, where batches depend on it.

Owns the judgement of masks (a bool or a numpy bool, nothing else) and of labels (equality, the first label
that is equal). Run where values are made: in workers, and in the driver for the items of a source.

Values of the same plain type are judged without a line of Python for each; the rest go one by one.
"""

from __future__ import annotations

import enum
import math
import reprlib
import sys
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import cache
from itertools import repeat
from operator import attrgetter, contains, itemgetter
from typing import Any, Final, Protocol, cast

from fanfold.columns import get_field
from fanfold.failures import Failure
from fanfold.plan import Control, FieldCheck, Path, Stream
from fanfold.protocol import NO_GROUP, ControlRows, Rows, StreamRows
from fanfold.secret import redacted
from fanfold.sizes import row_sizes

_MISSING: Final = object()
"""In the place of a field that is not there."""
_PLAIN: Final = frozenset({str, int, bool, float, bytes, type(None)})
"""Types whose equality is that of a dictionary's keys."""
_LABELS_LIMIT: Final = 250
"""More labels than a byte can tell apart are judged one by one."""
_ILLEGAL: Final = 254
_NOWHERE: Final = 255
_SHOWN: Final = reprlib.Repr()
_SHOWN.maxstring = _SHOWN.maxother = 60
_SHOWN_KEYS: Final = 8


class Judged(Protocol):
    """What must be known of a plan: its controls and checks, by index."""

    @property
    def controls(self) -> Sequence[Control] | Mapping[int, Control]: ...
    @property
    def checks(self) -> Sequence[FieldCheck] | Mapping[int, FieldCheck]: ...
    @property
    def groupers(self) -> Mapping[int, Callable[..., Any]]: ...
    @property
    def costers(self) -> Mapping[int, Callable[..., Any]]: ...


def facts(
    plan: Judged, stream: Stream, values: Sequence[Any]
) -> tuple[tuple[ControlRows, ...], tuple[tuple[int, int, str, Path], ...]]:
    """The controls and missing fields of a stream's rows, as :class:`fanfold.protocol.StreamRows` has them.

    A row whose path leads nowhere belongs to no label: the field that is missing on the way fails the item
    before its label is asked for.

    Args:
        plan: The plan, or the part of it that the stream refers to.
        stream: Which controls and checks there are, and where in a value.
        values: The rows.
    """
    controls = tuple(
        _control(plan.controls[control], _follow(values, path))._replace(path=path)
        for control, path in stream.controls
    )
    missing = tuple(
        (check, *found, path)
        for check, path in stream.checks
        if (found := _check(plan.checks[check].name, _follow(values, path))) is not None
    )
    return controls, missing


def told(plan: Judged, stream: Stream, values: Sequence[Any], stored: Rows | None) -> StreamRows:
    """All that is reported of a stream's rows.

    Args:
        plan: As for :func:`facts`.
        stream: What to report.
        values: The rows.
        stored: Where they are stored, if they are.
    """
    judged = stream.controls or stream.checks or stream.groups or stream.costs
    if not (judged or stream.sized):
        return StreamRows(stream.port, stored)
    controls, missing = facts(plan, stream, values)
    sizes = row_sizes(values) if stream.sized else ()
    broken: list[tuple[int, Untold]] = []

    def untold(call: int, option: str) -> Untold:
        broken.append((call, Untold(option)))
        return broken[-1][1]

    groups = tuple(
        (call, path, grouped(plan.groupers[call], _follow(values, path), untold(call, "batch_by")))
        for call, path in stream.groups
    )
    costs = tuple(
        (
            call,
            path,
            costs_of(plan.costers[call], _follow(values, path), untold(call, "batch_cost")),
        )
        for call, path in stream.costs
    )
    notes = tuple((call, it.option, it.count, it.example) for call, it in broken if it.count)
    return StreamRows(stream.port, stored, controls, missing, sizes, groups, costs, notes)


class Untold:
    """Of how many rows the function of an option told nothing, and one of them in words."""

    def __init__(self, option: str) -> None:
        self.option: str = option
        self.count: int = 0
        self.example: str = ""

    def note(self, function: Callable[..., Any], value: Any, error: BaseException) -> None:
        """One more. The first is told of on standard error, where whoever looks for it prints as well."""
        self.count += 1
        if self.count == 1:
            self.example = f"{describe(value)}: {Failure.from_exception(error).message}"
            name = getattr(function, "__qualname__", self.option)
            sys.stderr.write(
                f"{self.option}: {name} tells nothing of {self.example}; it runs alone\n"
            )


# ------------------------------------------------------------------------------------------- groups


def grouped(
    by: Callable[..., Any], values: Sequence[Any], untold: Untold
) -> tuple[tuple[Hashable, int], ...]:
    """The rows of each group as a set.

    Rows of which the function tells no group, since it raises or gives something that is none, are put under
    :data:`fanfold.protocol.NO_GROUP`: each of them runs alone, which nobody's result depends on. They are noted
    in ``untold``.
    """
    found: dict[Hashable, int] = {}
    for row, value in enumerate(values):
        if value is _MISSING:
            continue  # the field's own item fails
        try:
            group = plain_group(by(value))
        except KeyboardInterrupt:  # where a source is read, it is the user's own
            raise
        except BaseException as error:
            group = NO_GROUP
            untold.note(by, value, error)
        found[group] = found.get(group, 0) | 1 << row
    return tuple(found.items())


def costs_of(cost: Callable[..., Any], values: Sequence[Any], untold: Untold) -> tuple[float, ...]:
    """What each row costs in a batch (``batch_cost``).

    Rows of which the function tells no cost, since it raises or gives something other than a number from 0 on,
    cost infinitely much: each of them runs alone. They are noted in ``untold``.
    """
    found: list[float] = []
    for value in values:
        if value is _MISSING:
            found.append(0.0)  # the field's own item fails
            continue
        try:
            one = float(cost(value))
            if not one >= 0:
                raise ValueError(f"{one} is no number from 0 on")
        except KeyboardInterrupt:  # as above
            raise
        except BaseException as error:
            one = math.inf
            untold.note(cost, value, error)
        found.append(one)
    return tuple(found)


def plain_group(value: Any) -> Hashable:
    """A group as the driver may have it: of built-in types alone, and equal to what equals the value.

    A list is the tuple of its elements, since images tell their size in either.

    Raises:
        TypeError: It is made of anything but numbers, texts, bytes, enum members, None, and tuples and lists
            of such; or it is a NaN, which equals nothing.
    """
    kind = type(value)
    if kind in _PLAIN:
        if value != value:
            raise TypeError("NaN is no group: it equals nothing")
        return cast(Hashable, value)
    if isinstance(value, enum.Enum):
        return f"{kind.__module__}.{kind.__qualname__}.{value.name}"
    if isinstance(value, (tuple, list)):
        return tuple(map(plain_group, value))
    if isinstance(value, str):
        return str(value)
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return plain_group(float(value))
    if kind.__module__.partition(".")[0] == "numpy" and getattr(value, "shape", None) == ():
        return plain_group(value.item())
    raise TypeError(
        f"{describe(value)} is no group: give a number, a text, bytes or a tuple of such"
    )


# ------------------------------------------------------------------------------------------- fields


def _follow(values: Sequence[Any], path: Path) -> Sequence[Any]:
    for name in path:
        values = _fields(values, name)
    return values


def _fields(values: Sequence[Any], name: str) -> list[Any]:
    kinds = set(map(type, values))
    if len(kinds) == 1:
        kind = kinds.pop()
        try:
            if kind is dict:
                return list(map(itemgetter(name), values))
            if "." not in name and not issubclass(kind, Mapping):
                return list(map(attrgetter(name), values))
        except Exception:  # some lack it: find out which, below
            return [_field(value, name) for value in values]
    return [_field(value, name) for value in values]


def _field(value: Any, name: str) -> Any:
    if value is _MISSING:
        return value
    try:
        return get_field(value, name)
    except Exception:  # LookupError, or whatever a user's property raises
        return _MISSING


def _check(name: str, values: Sequence[Any]) -> tuple[int, str] | None:
    if set(map(type, values)) == {dict} and all(map(contains, values, repeat(name))):
        return None
    rows, text = 0, ""
    for row, value in enumerate(values):
        if value is not _MISSING and _field(value, name) is _MISSING:
            rows |= 1 << row
            text = text or describe(value)
    return (rows, text) if rows else None


# ------------------------------------------------------------------------------------------- masks, labels


def _control(control: Control, values: Sequence[Any]) -> ControlRows:
    if len(control.labels) > _LABELS_LIMIT:
        return _many_labels(control, values)
    kinds = set(map(type, values))
    if control.kind == "mask":
        if kinds <= {bool}:
            # As bytes a mask is its own set: 1 where it is true.
            return ControlRows(control.index, (_rows(bytes(values), 1),))
        codes: Iterable[int] = map(_mask, values)
    elif kinds <= _PLAIN and set(map(type, control.labels)) <= _PLAIN:
        table: dict[Any, int] = {}
        for code, label in enumerate(control.labels):
            table.setdefault(label, code)
        codes = map(table.get, values, repeat(_ILLEGAL))
    else:
        codes = (_label(control.labels, value) for value in values)
    told = bytes(codes)
    return ControlRows(
        control.index,
        tuple(_rows(told, code) for code in range(len(control.labels))),
        () if control.rest or _ILLEGAL not in told else _illegal(told, values),
    )


def _illegal(told: bytes, values: Sequence[Any]) -> tuple[tuple[int, str], ...]:
    return tuple(
        (row, describe(value)) for row, value in enumerate(values) if told[row] == _ILLEGAL
    )


def _many_labels(control: Control, values: Sequence[Any]) -> ControlRows:
    sets = [0] * len(control.labels)
    illegal: list[tuple[int, str]] = []
    for row, value in enumerate(values):
        code = _label(control.labels, value, nowhere=-1, illegal=-2)
        if code >= 0:
            sets[code] |= 1 << row
        elif code == -2 and not control.rest:
            illegal.append((row, describe(value)))
    return ControlRows(control.index, tuple(sets), tuple(illegal))


def _rows(told: bytes, code: int) -> int:
    """The positions of ``code`` as a set."""
    return int(told.translate(_digits(code))[::-1], 2) if code in told else 0


@cache
def _digits(code: int) -> bytes:
    """A table that turns ``code`` into the digit 1 and all other bytes into 0."""
    return bytes(ord("0") + (byte == code) for byte in range(256))


def _mask(value: Any) -> int:
    """0 for true, which is a mask's only label; false has none."""
    if value is _MISSING:
        return _NOWHERE
    kind = type(value)
    if kind is bool or (kind.__module__ == "numpy" and kind.__name__ in ("bool", "bool_")):
        return 0 if value else _NOWHERE
    return _ILLEGAL


def _label(
    labels: Sequence[Any], value: Any, nowhere: int = _NOWHERE, illegal: int = _ILLEGAL
) -> int:
    if value is _MISSING:
        return nowhere
    for code, label in enumerate(labels):
        try:
            if value == label:
                return code
        except Exception:  # what cannot be compared, an array for one, is not equal
            continue
    return illegal


def describe(value: Any) -> str:
    """A value in a few words, for messages."""
    try:
        if issubclass(type(value), dict):
            keys = ", ".join(str(key)[:30] for key in list(value)[:_SHOWN_KEYS])
            more = ", …" if len(value) > _SHOWN_KEYS else ""
            return redacted(f"a dict with the keys {keys or '(none)'}{more}")
        return redacted(f"{_SHOWN.repr(value)} ({type(value).__name__})")
    except BaseException as error:  # a user's __repr__ may do anything
        return f"a {type(value).__name__} whose repr raises {type(error).__name__}"
