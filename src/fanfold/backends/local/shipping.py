"""How stages and writers travel to their processes: by name where it can be, by value where it must.

Owns what a stage's pickle has beyond :mod:`fanfold.byvalue`. A module's function that ``ff.stage`` has taken
the place of is still found through it, so it need not travel by value, with all the globals that it uses. And
code that travels by value keeps the name of its file, which cloudpickle drops so that equal code gives equal
bytes: tracebacks in a worker show where in the user's file something happened. Source that is in no file (a
notebook's cell) travels along.
"""

from __future__ import annotations

import importlib
import linecache
import os
import sys
from collections.abc import Callable
from types import CodeType
from typing import Any

import cloudpickle

from fanfold import byvalue
from fanfold.errors import DefinitionError
from fanfold.plan import Plan
from fanfold.secret import hide, names_in


class _Reduce:
    """How what a stage is made of is pickled."""

    def __init__(self) -> None:
        self._places: dict[str, tuple[str, tuple[str, ...]]] = {}
        """By file name as code has it: how a worker calls the file, and its lines if it is none."""

    def __call__(self, obj: Any) -> Any:
        if isinstance(obj, CodeType):
            make, arguments, *_ = cloudpickle.Pickler.dispatch_table[CodeType](obj)
            if obj.co_filename not in self._places:
                self._places[obj.co_filename] = _place_of_source(obj.co_filename)
            return _code_at, (*self._places[obj.co_filename], make, arguments)
        if isinstance(obj, type) or callable(obj):
            place = _place_of_wrapped(obj)
            if place is not None:
                return _wrapped_at, place
        return NotImplemented


def ship(thing: object, what: str) -> bytes:
    """``thing`` as bytes for :func:`pickle.loads` in another process.

    Args:
        thing: What is to be sent.
        what: What to call it in a message: ``stage 'Ocr'``.

    Raises:
        DefinitionError: It cannot be pickled.
    """
    try:
        return pickled(thing)
    except Exception as error:
        raise DefinitionError(
            "FF406",
            f"{what} cannot be sent to a worker process: {type(error).__name__}: {error}.",
            "Something that it takes along cannot be pickled: a variable that its function uses from around "
            "it, or an argument of its constructor. Make files, connections and locks in the worker: write the "
            "stage as a class and open them in its constructor. Or keep it in this process, with "
            'workers="thread" or backend="inline".',
        ) from error


def pickled(thing: object) -> bytes:
    """As :func:`ship`, for whoever has words of their own for what cannot be pickled.

    Raises:
        Exception: It cannot be pickled.
    """
    return byvalue.dumps(thing, reduce=_Reduce())


def _place_of_source(name: str) -> tuple[str, tuple[str, ...]]:
    """An absolute name if it is a file; otherwise the name as it is, and the lines if they are known."""
    if os.path.isfile(name):
        return os.path.abspath(name), ()
    return name, tuple(linecache.getlines(name))


def _code_at(
    name: str, lines: tuple[str, ...], make: Callable[..., CodeType], arguments: tuple[Any, ...]
) -> CodeType:
    """In the worker: code that knows where it comes from."""
    if lines and name not in linecache.cache:
        linecache.cache[name] = (sum(map(len, lines)), None, list(lines), name)
    return make(*arguments).replace(co_filename=name)


def _place_of_wrapped(thing: Any) -> tuple[str, str] | None:
    """Module and name under which something stands that wraps ``thing``."""
    module, name = getattr(thing, "__module__", None), getattr(thing, "__qualname__", None)
    if not isinstance(module, str) or not isinstance(name, str) or module == "__main__":
        return None
    found = getattr(sys.modules.get(module), name, None)
    return (module, name) if getattr(found, "__wrapped__", None) is thing else None


def _wrapped_at(module: str, name: str) -> Any:
    return getattr(importlib.import_module(module), name).__wrapped__


def hide_secrets(plan: Plan) -> None:
    """Workers' last words are shown in errors; the secrets that workers know are not to be among them."""
    given = [(s.args, dict(s.kwargs)) for s in plan.stages] + [dict(c.static) for c in plan.calls()]
    for name in names_in(given):
        if name in os.environ:
            hide(name, os.environ[name])
