"""How stages and writers travel to their processes: by name where it can be, by value where it must.

Owns what cloudpickle does not know. A module's function that ``ff.stage`` has taken the place of is still
found through it, so it need not travel by value, with all the globals that it uses. And code that travels by
value keeps the name of its file, which cloudpickle drops so that equal code gives equal bytes: tracebacks in a
worker show where in the user's file something happened. Source that is in no file (a notebook's cell)
travels along. So do the names of modules inside packages that its nested functions, comprehensions and
classes use: cloudpickle looks at a function's outermost code alone, and ``import PIL.Image`` would be lost.
"""

from __future__ import annotations

import importlib
import io
import linecache
import os
import sys
from collections.abc import Callable, Iterator
from types import CodeType, FunctionType, ModuleType
from typing import Any

import cloudpickle

from fanfold.errors import DefinitionError
from fanfold.plan import Plan
from fanfold.secret import hide, names_in


class _Pickler(cloudpickle.Pickler):  # type: ignore[misc]  # the library has no types
    def __init__(self, file: io.BytesIO) -> None:
        super().__init__(file, protocol=5)
        self._places: dict[str, tuple[str, tuple[str, ...]]] = {}
        """By file name as code has it: how a worker calls the file, and its lines if it is none."""

    def reducer_override(self, obj: Any) -> Any:
        if isinstance(obj, CodeType):
            make, arguments, *_ = self.dispatch_table[CodeType](obj)
            if obj.co_filename not in self._places:
                self._places[obj.co_filename] = _place_of_source(obj.co_filename)
            return _code_at, (*self._places[obj.co_filename], make, arguments)
        if isinstance(obj, type) or callable(obj):
            place = _place_of_wrapped(obj)
            if place is not None:
                return _wrapped_at, place
        reduced = super().reducer_override(obj)
        if isinstance(obj, FunctionType) and isinstance(reduced, tuple):  # it travels by value
            make, arguments, *state = reduced
            if modules := tuple(_modules_inside(obj)):
                return (_after_import, (modules, make, arguments), *state)
        return reduced


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
    file = io.BytesIO()
    _Pickler(file).dump(thing)
    return file.getvalue()


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


def _modules_inside(function: FunctionType) -> Iterator[str]:
    """Modules inside packages that a function may reach by attributes of these: ``PIL.Image``.

    They are those that are imported here and of which all names occur anywhere in its code. The import
    statement itself stands in the function's module, which workers do not run.
    """
    names = set(_names(function.__code__))
    cells = function.__closure__ or ()
    reached = [function.__globals__.get(name) for name in names] + list(map(_content, cells))
    packages = {thing.__name__ for thing in reached if isinstance(thing, ModuleType)}
    for name in sorted(sys.modules):
        for package in packages:
            if name.startswith(f"{package}.") and names.issuperset(
                name[len(package) + 1 :].split(".")
            ):
                yield name


def _names(code: CodeType) -> Iterator[str]:
    """Names of variables and attributes in code, and in the code of all that is defined inside of it."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)


def _content(cell: Any) -> Any:
    """What a function closes over; None while that is not there yet."""
    try:
        return cell.cell_contents
    except ValueError:
        return None


def _after_import(
    modules: tuple[str, ...], make: Callable[..., Any], arguments: tuple[Any, ...]
) -> Any:
    """In the worker: a function by value, once the modules are loaded that its own module had imported."""
    for name in modules:
        importlib.import_module(name)
    return make(*arguments)


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
