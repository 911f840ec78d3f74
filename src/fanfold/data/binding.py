"""Which part of a source's value goes to which parameter of the pipeline.

Owns that rule alone: one parameter takes the value whole; several take a mapping apart by name, a tuple or
list by position.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from fanfold.errors import SourceError
from fanfold.plan import Source as Parameter

Bind: TypeAlias = Callable[[str, Any], Sequence[Any]]
"""From a root's key (for messages) and value to one value for each parameter."""


def binder(parameters: Sequence[Parameter]) -> Bind:
    """How the values of a source are spread over a pipeline's positional parameters.

    Example:
        >>> from fanfold.plan import Source, Stream
        >>> bind = binder([Source("image", Stream(0, 0)), Source("text", Stream(1, 0))])
        >>> bind("a", {"text": "t", "image": "i"}), bind("b", ("i", "t"))
        (('i', 't'), ('i', 't'))
    """
    if len(parameters) == 1:
        return lambda key, value: (value,)
    names = tuple(parameter.name for parameter in parameters)

    def bind(key: str, value: Any) -> Sequence[Any]:
        if isinstance(value, Mapping):
            missing = [name for name in names if name not in value]
            if not missing:
                return tuple(value[name] for name in names)
            found = f"a mapping without {', '.join(map(repr, missing))}"
        elif isinstance(value, (tuple, list)):
            if len(value) == len(names):
                return tuple(value)
            found = f"a {type(value).__name__} of {len(value)}"
        else:
            found = f"a {type(value).__name__}"
        raise SourceError(
            "FF312",
            f"the pipeline takes {len(names)} values ({', '.join(names)}), but the item with key {key!r} "
            f"is {found}.",
            "Let the source yield mappings with these names, or tuples of that length.",
        )

    return bind
