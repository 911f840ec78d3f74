"""Modules inside packages that a function needs where it is loaded, if it travels by value.

``import PIL.Image`` in a script binds the name ``PIL``. A worker that gets a function of the script imports
``PIL``, and nothing tells it to import ``PIL.Image``. cloudpickle sees to that for what a function's outermost
code names. Owns the same for the code of comprehensions, nested functions and classes in it. Knows no workers.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from types import FunctionType, ModuleType
from typing import Any

from fanfold.code_names import names_in, reached_by


def with_submodules(thing: Any, reduced: Any) -> Any:
    """How ``thing`` is pickled, with the modules that it needs if it is a function.

    Args:
        thing: Anything.
        reduced: How it would be pickled, as ``__reduce__`` has it; anything but a tuple stays as it is.
    """
    if not isinstance(thing, FunctionType) or not isinstance(reduced, tuple):
        return reduced
    make, arguments, *state = reduced
    modules = tuple(modules_inside(thing))
    return (after_import, (modules, make, arguments), *state) if modules else reduced


def modules_inside(function: FunctionType) -> Iterator[str]:
    """Modules inside packages that a function may reach by attributes of these: ``PIL.Image``.

    They are those that are imported here and of which all names occur anywhere in its code. The import
    statement itself stands in the function's module, which workers do not run.

    >>> import xml.etree.ElementTree
    >>> list(modules_inside(lambda texts: [xml.etree.ElementTree.fromstring(text) for text in texts]))
    ['xml.etree', 'xml.etree.ElementTree']
    """
    names = set(names_in(function.__code__))
    reached = reached_by(function, names)
    packages = {thing.__name__ for thing in reached if isinstance(thing, ModuleType)}
    for name in sorted(sys.modules):
        for package in packages:
            if name.startswith(f"{package}.") and names.issuperset(
                name[len(package) + 1 :].split(".")
            ):
                yield name


def after_import(
    modules: tuple[str, ...], make: Callable[..., Any], arguments: tuple[Any, ...]
) -> Any:
    """In the worker: a function by value, once the modules are loaded that its own module had imported."""
    for name in modules:
        importlib.import_module(name)
    return make(*arguments)
