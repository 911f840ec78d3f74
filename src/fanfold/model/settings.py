"""Settings: the keyword-only parameters of a pipeline, and text turned into their values.

Owns how ``--set name=text`` is read: by the setting's annotation, else by the type of its default. Knows
nothing of where the text comes from.
"""

from __future__ import annotations

import enum
import inspect
import json
import types
import typing
from dataclasses import dataclass
from typing import Any, Final, Literal

from fanfold.errors import DefinitionError

_TRUE: Final[tuple[str, ...]] = ("true", "yes", "on", "1")
_FALSE: Final[tuple[str, ...]] = ("false", "no", "off", "0")
_NUMBERS: Final = {True: "a whole number such as 8", False: "a number such as 0.5"}


@dataclass(frozen=True)
class Setting:
    """A keyword-only parameter of a pipeline's function."""

    name: str
    default: Any = inspect.Parameter.empty
    annotation: Any = inspect.Parameter.empty

    @property
    def required(self) -> bool:
        """Whether it has no default."""
        return self.default is inspect.Parameter.empty

    def parse(self, text: str) -> Any:
        """The value that ``text`` means for this setting.

        Raises:
            DefinitionError: It means none (FF224).
        """
        kind = self.annotation
        if kind is inspect.Parameter.empty or isinstance(kind, str):
            kind = str if self.required or self.default is None else type(self.default)
        return parse_text(f"setting {self.name!r}", text, kind)


def parse_text(what: str, text: str, kind: Any) -> Any:
    """Read ``text`` as a value of the type ``kind``.

    Understood are str, int, float, bool, None, enums (by name or value), ``Literal``, paths, unions (the
    first alternative that fits), and lists, tuples and dicts as JSON or, for plain elements, separated by
    commas. Text for any other type stays text.

    Raises:
        DefinitionError: The text is no such value (FF224).

    Example:
        >>> parse_text("setting 'scales'", "1,2,4", list[int])
        [1, 2, 4]
    """
    try:
        return _parse(text, kind)
    except ValueError as error:
        raise DefinitionError(
            "FF224",
            f"{what}: {text!r} is {_not_a(kind)}.",
            str(error),
        ) from None


def _not_a(kind: Any) -> str:
    if typing.get_origin(kind) is Literal:
        return "none of its values"
    return f"no {_called(kind)}"


def _called(kind: Any) -> str:
    """A type as a user wrote it."""
    if kind is type(None):
        return "None"
    if typing.get_origin(kind) in (typing.Union, types.UnionType):
        return " or ".join(map(_called, typing.get_args(kind)))
    return kind.__name__ if isinstance(kind, type) else str(kind).replace("typing.", "")


def _parse(text: str, kind: Any) -> Any:
    origin, args = typing.get_origin(kind), typing.get_args(kind)
    if origin is typing.Annotated:
        return _parse(text, args[0])
    if origin is Literal:
        return _choice(text, {str(value): value for value in args})
    if origin is typing.Union or origin is types.UnionType:
        return _first(text, args)
    base = origin or kind
    if base is None or base is type(None):
        return _choice(text.lower(), {"none": None, "null": None, "": None})
    if not isinstance(base, type):
        return text
    if issubclass(base, bool):
        return _choice(text.lower(), {word: word in _TRUE for word in (*_TRUE, *_FALSE)})
    if issubclass(base, enum.Enum):
        return _choice(text, {str(m.value): m for m in base} | {m.name: m for m in base})
    if issubclass(base, (int, float)):
        try:
            return base(text)
        except ValueError:
            raise ValueError(f"Give {_NUMBERS[issubclass(base, int)]}.") from None
    if issubclass(base, (list, tuple, set, frozenset)):
        return base(_elements(text, args[0] if args else str))
    if issubclass(base, dict):
        value = json.loads(text)
        if not isinstance(value, dict):
            raise ValueError("Give a JSON object.")
        return value
    if hasattr(base, "__fspath__"):
        make: Any = base
        return make(text)
    return text


def _choice(text: str, choices: dict[str, Any]) -> Any:
    if text not in choices:
        raise ValueError(f"Give one of {', '.join(repr(choice) for choice in choices if choice)}.")
    return choices[text]


def _first(text: str, kinds: tuple[Any, ...]) -> Any:
    """The first alternative that fits; None first and plain text last, whatever their order."""
    ordered = sorted(kinds, key=lambda kind: (kind is not type(None), kind is str))
    for kind in ordered:
        try:
            return _parse(text, kind)
        except ValueError:
            continue  # the next alternative may fit
    raise ValueError(f"Give {', or '.join(_wanted(kind) for kind in kinds)}.")


def _wanted(kind: Any) -> str:
    """How a value of this type is written."""
    if kind is type(None):
        return "none"
    if isinstance(kind, type) and issubclass(kind, (int, float)) and not issubclass(kind, bool):
        return _NUMBERS[issubclass(kind, int)]
    if typing.get_origin(kind) is Literal:
        return f"one of {', '.join(map(repr, typing.get_args(kind)))}"
    return "true or false" if kind is bool else f"a value of {_called(kind)}"


def _elements(text: str, kind: Any) -> list[Any]:
    if text.lstrip().startswith("["):
        value = json.loads(text)
        return list(value)
    return [_parse(part.strip(), kind) for part in text.split(",")] if text.strip() else []
