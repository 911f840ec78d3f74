"""Values as JSON: what a stage may return for a record that is written as a line of JSON.

Owns the rules, which are documented in :func:`encode`. Strict JSON comes out: one line, UTF-8, no ``NaN``.
"""

from __future__ import annotations

import dataclasses
import datetime
import enum
import json
import math
import operator
import os
from collections.abc import Iterable, Mapping
from typing import Any, Final

from fanfold.data.files import File
from fanfold.failures import Failure

_TEXT: Final = frozenset({str})
_FLAT: Final = frozenset({str, int, float, bool, type(None)})


class NotJson(ValueError):
    """A value that JSON has no form for; the message says which one, where in the record."""


def encode(record: Mapping[str, Any]) -> bytes:
    """One line of JSON, with its line end.

    Beside what JSON knows, these values have a form: mappings and dataclasses (objects), models of pydantic
    (what ``model_dump(mode="json")`` gives), tuples and named tuples (lists), arrays and scalars of numpy and
    whatever else has ``tolist()``, enumerations (their value), dates and times (ISO 8601), paths and files
    (their path), a ``Failure`` in a member's place (``{"failure": {…}}`` without attempts, worker and
    traceback, so that records are the same in every run), and floats that are not finite (``null``, since JSON
    has none).

    Raises:
        NotJson: Something else, such as bytes or a set, or two names that are the same in JSON.

    Example:
        >>> encode({"key": "a", "score": float("nan"), "size": (1, 2)})
        b'{"key": "a", "score": null, "size": [1, 2]}\\n'
    """
    try:
        if _has_other_names(record):
            raise TypeError("names that are not text need the slow way")
        text = _fast(record)
    except (TypeError, ValueError, RecursionError):
        # Something unusual is in it. Walk through it: that repairs it, or tells what and where it is.
        try:
            text = _fast(_plain(record, "record"))
        except RecursionError:
            raise NotJson("record contains itself, or is nested too deeply") from None
    try:
        return text.encode() + b"\n"
    except UnicodeEncodeError:  # half a surrogate pair, as in file names that are not UTF-8
        return json.dumps(_plain(record, "record"), allow_nan=False).encode() + b"\n"


def _default(value: Any) -> Any:
    converted = _converted(value, "record")
    if _has_other_names(converted):
        raise TypeError("names that are not text need the slow way")
    return converted


def _has_other_names(value: Any) -> bool:
    """Whether a dict in it has a name that is not text: as text it may be the same as another one."""
    if isinstance(value, dict):
        if not _TEXT.issuperset(map(type, value)):
            return True
        values: Iterable[Any] = value.values()
    elif isinstance(value, (list, tuple)):
        values = value
    else:
        return False
    # Long lists of numbers are common; asking for their types alone costs a tenth of writing them.
    return not _FLAT.issuperset(map(type, values)) and any(map(_has_other_names, values))


_fast = json.JSONEncoder(ensure_ascii=False, allow_nan=False, default=_default).encode


def _plain(value: Any, where: str) -> Any:
    """``value`` rebuilt of what JSON knows."""
    if isinstance(value, enum.Enum) and isinstance(value, (str, int)):
        value = value.value
    if isinstance(value, int):
        _digits(value, where)
    if isinstance(value, str) or value is None or isinstance(value, int):
        return value
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, Mapping):
        plain: dict[str, Any] = {}
        for name, inner in value.items():
            text = _name(name, where)
            if text in plain:
                raise NotJson(f"{where} has two fields whose name in JSON is {text!r}")
            plain[text] = _plain(inner, f"{where}[{name!r}]")
        return plain
    if isinstance(value, (list, tuple)):
        return [_plain(inner, f"{where}[{i}]") for i, inner in enumerate(value)]
    return _plain(_converted(value, where), where)


def _name(name: Any, where: str) -> str:
    if isinstance(name, enum.Enum):
        name = name.value
    if isinstance(name, str):
        return name
    if isinstance(name, bool) or name is None:
        return {True: "true", False: "false", None: "null"}[name]
    if isinstance(name, float) and math.isfinite(name):
        return float.__repr__(name)
    if not isinstance(name, float) and hasattr(name, "__index__"):
        return _digits(operator.index(name), where)
    raise NotJson(
        f"{where} has the field name {name!r} ({type(name).__name__}); JSON's are strings"
    )


def _digits(number: int, where: str) -> str:
    try:
        return int.__repr__(number)
    except ValueError:  # Python itself writes none so long (sys.set_int_max_str_digits)
        raise NotJson(
            f"{where} has an integer of {number.bit_length()} bits, which is too long"
        ) from None


def _converted(value: Any, where: str) -> Any:
    """One step towards JSON; what comes out may need further ones."""
    if isinstance(value, Failure):
        return {"failure": failure_fields(value)}
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, (datetime.date, datetime.time)):
        return value.isoformat()
    if isinstance(value, File):
        return value.path
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if (named := as_fields(value)) is not value:
        return named
    if not isinstance(value, (bytes, bytearray, memoryview)) and callable(
        to_list := getattr(value, "tolist", None)
    ):
        return to_list()
    raise NotJson(f"{where} is {_described(value)}, which JSON has no form for")


def as_fields(value: Any) -> Any:
    """What has fields by name as a mapping of them, one level deep; any other value as it is."""
    if isinstance(value, type):
        return value
    if dataclasses.is_dataclass(value):
        return {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
    dump = getattr(value, "model_dump", None)  # pydantic is nothing that a pipeline needs
    return dump(mode="json") if callable(dump) else value


def failure_fields(failure: Failure) -> dict[str, Any]:
    """What a record tells of a failure: nothing that differs from run to run."""
    return {
        "kind": failure.kind,
        "code": failure.code,
        "message": failure.message,
        "exception": failure.exception,
        "call": failure.call,
        "ordinals": dict(zip(failure.levels[1:], failure.ordinals[1:], strict=True)),
    }


def _described(value: Any) -> str:
    kind = type(value)
    name = kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__name__}"
    article = "an" if name[0] in "aeiou" else "a"
    return f"{name}" if name == "bytes" else f"{article} {name}"
