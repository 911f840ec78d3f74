"""Whether a stage's code mentions a name: how it is found out that a stage asks for its items' identities.

Owns the walk over code. It looks at a function's own code, at that of a class's methods, and from there at the
functions and classes of the same module that are named. That is no proof: whoever is asked in a roundabout
way is told by an option. Runs nothing.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Iterator
from types import FunctionType
from typing import Any

from fanfold.code_names import names_in, reached_by


def mentions(target: Any, name: str) -> bool:
    """Whether the code of ``target``, or what it uses of its own module, has ``name`` in it.

    Args:
        target: A function, a class, or another callable.
        name: A name as code has it: of a variable, a function or an attribute.

    Example:
        >>> def helper():
        ...     return context().seed
        >>> mentions(lambda item: helper(), "context"), mentions(len, "context")
        (True, False)
    """
    seen: set[int] = set()
    waiting = [target]
    while waiting:
        thing = waiting.pop()
        if id(thing) in seen:
            continue
        seen.add(id(thing))
        for function in _functions(thing):
            used = set(names_in(function.__code__))
            if name in used:
                return True
            waiting += _neighbours(function, used)
    return False


def _functions(thing: Any) -> Iterator[FunctionType]:
    """The plain functions that make up a callable."""
    while isinstance(thing, functools.partial):
        thing = thing.func
    if isinstance(thing, FunctionType):  # other objects may do anything when they are asked
        thing = inspect.unwrap(thing)
    if inspect.ismethod(thing):
        yield from _functions(thing.__self__)
        thing = thing.__func__
    if isinstance(thing, FunctionType):
        yield thing
        return
    owner = thing if isinstance(thing, type) else type(thing)
    for base in owner.__mro__:
        for part in vars(base).values():
            function = getattr(part, "__func__", getattr(part, "fget", part))
            if isinstance(function, FunctionType):
                yield function


def _neighbours(function: FunctionType, used: set[str]) -> Iterator[Any]:
    """Functions and classes of the function's own module that it names, or closes over."""
    for thing in reached_by(function, used):
        if isinstance(thing, (FunctionType, type)) and thing.__module__ == function.__module__:
            yield thing
