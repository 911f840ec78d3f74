"""Secrets: values that are named in a pipeline, known where the stage runs, and told nowhere.

Owns :class:`Secret`, its resolving, and the hiding of values that were resolved in this process. Knows
nothing of where values come from: whoever resolves brings the environment.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from fanfold.errors import SetupError

SHORTEST_CHARS: Final = 4
_hidden: Final[dict[str, str]] = {}
"""By text that must not be shown: what is shown in its place."""


@dataclass(frozen=True, slots=True)
class Secret:
    """A value that only the worker knows: an access token, a password.

    Given to a stage as an argument of its constructor or as a static keyword argument (also inside of lists,
    tuples and dicts). The worker puts in its place the value of the environment variable ``name``, a ``str``,
    before the user's code sees it. The pipeline, its plan, explanations and reports hold the name alone, and
    where the value occurs in the text of a failure, ``<secret NAME>`` stands in its place. What a stage itself
    prints or returns is its own.

    Args:
        name: The environment variable.

    Raises:
        SetupError: When the stage is started and there is no such variable (FF440).

    Example:
        >>> import fanfold as ff
        >>> class Translate:
        ...     def __init__(self, token: str) -> None:
        ...         self.token = token
        ...     def __call__(self, text: str) -> str:
        ...         return text[::-1]
        >>> translate = ff.stage(Translate)(token=ff.Secret("TRANSLATE_TOKEN"))
        >>> translate.definition.args
        (Secret(name='TRANSLATE_TOKEN'),)
    """

    name: str


def resolved(value: Any, environment: Mapping[str, str]) -> Any:
    """``value`` with all secrets in it replaced by what they stand for, and these hidden from now on.

    A container without secrets is given back as it is, the same object.

    Raises:
        SetupError: The environment has no such variable (FF440).
    """
    kind = type(value)
    if kind is Secret:
        return _look_up(value.name, environment)
    if kind is list or kind is tuple:
        parts = [resolved(part, environment) for part in value]
        changed = any(new is not old for new, old in zip(parts, value, strict=True))
        return kind(parts) if changed else value
    if kind is dict:
        entries = {key: resolved(part, environment) for key, part in value.items()}
        return entries if any(entries[key] is not value[key] for key in value) else value
    return value


def holds_secret(value: Any) -> bool:
    """Whether there is a secret in ``value``, as :func:`resolved` would find it."""
    return bool(names_in(value))


def names_in(value: Any) -> set[str]:
    """The names of all secrets in ``value``."""
    kind = type(value)
    if kind is Secret:
        return {value.name}
    if kind is dict:
        value = list(value.values())
    elif kind is not list and kind is not tuple:
        return set()
    return set().union(*map(names_in, value))


def hide(name: str, value: str) -> None:
    """From now on, show ``<secret name>`` in the place of ``value`` and of the forms it takes in messages.

    A value of less than :data:`SHORTEST_CHARS` characters is not hidden: it could be told from any other text
    no more than it could be kept secret.
    """
    if len(value) < SHORTEST_CHARS:
        return
    import json
    from urllib.parse import quote, quote_plus

    forms = {value, repr(value)[1:-1], json.dumps(value)[1:-1], quote(value, ""), quote_plus(value)}
    for form in forms:
        _hidden[form] = f"<secret {name}>"


def redacted(text: str) -> str:
    """``text`` without the values of secrets that were resolved in this process.

    >>> hide("PASSWORD", "tr0ub4dor")
    >>> redacted("https://me:tr0ub4dor@example.org")
    'https://me:<secret PASSWORD>@example.org'
    """
    if not _hidden:
        return text
    for form in sorted(_hidden, key=len, reverse=True):  # one may be part of another
        text = text.replace(form, _hidden[form])
    return text


def _look_up(name: str, environment: Mapping[str, str]) -> str:
    value = environment.get(name)
    if value is None:
        raise SetupError(
            "FF440",
            f"the secret {name!r} is not known: there is no environment variable of that name.",
            f"Set {name} in the environment of the program that starts the run.",
        )
    hide(name, value)
    return value
