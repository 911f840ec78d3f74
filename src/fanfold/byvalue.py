"""Pickles by value: classes and functions that the process which loads them may be unable to import.

cloudpickle makes them. Owns what has to differ when a class of a script, a notebook or a function travels
back and forth between processes, as values do:

- A class that the loading process has is left as it is there. cloudpickle finds it too, but then sets its
  attributes to what they were where the pickle was made, and so rolls back a counter or a registry.
- A class with ``__slots__`` has them where it is loaded as well. cloudpickle makes it without, so that its
  instances carry a ``__dict__`` that cannot go back into instances of the original.

The pickles are for :func:`pickle.loads` in any process that has Fanfold. Knows nothing of blocks or messages.
It costs the import of cloudpickle, so whoever can do without imports it where it is needed.
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias

import cloudpickle
from cloudpickle.cloudpickle import (
    _DYNAMIC_CLASS_TRACKER_BY_ID,
    _class_setstate,
    _lookup_class_or_track,
    _make_skeleton_class,
    _make_skeleton_enum,
)

from fanfold.submodules import with_submodules

_MAKERS: Final = (_make_skeleton_class, _make_skeleton_enum)
_BASES: Final = 2
_TYPE_KWARGS: Final = 3
"""Among the arguments of ``_make_skeleton_class``: what the new class's body begins with."""

_incomplete: Final[set[str]] = set()
"""The ids of classes that were made here and lack their attributes still: a pickle is being loaded, or could
not be to its end. Two threads that load the same class at once both give it the same attributes, as does
whoever loads it after a failure."""

Reduce: TypeAlias = Callable[[Any], Any]
"""Says how an object is pickled, as ``__reduce__`` does; NotImplemented: as usual."""


class _Pickler(cloudpickle.Pickler):  # type: ignore[misc]  # the library has no types
    def __init__(
        self,
        file: io.BytesIO,
        buffer_callback: Callable[[pickle.PickleBuffer], Any] | None,
        reduce: Reduce | None,
    ) -> None:
        super().__init__(file, protocol=5, buffer_callback=buffer_callback)
        self._reduce = reduce

    def reducer_override(self, obj: Any) -> Any:
        # Asked for all but instances of built-in types.
        if self._reduce is not None:
            reduced: Any = self._reduce(obj)
            if reduced is not NotImplemented:
                return reduced
        reduced = with_submodules(obj, super().reducer_override(obj))
        if type(reduced) is tuple and reduced[0] in _MAKERS:
            return _reduced_class(obj, reduced)
        return reduced


def _reduced_class(made: type, reduced: Sequence[Any]) -> tuple[Any, ...]:
    """What cloudpickle would have a class made of, for the two functions below."""
    make, arguments, state = reduced[:3]
    slots = vars(made).get("__slots__")
    if (
        make is _make_skeleton_class
        and isinstance(slots, (str, tuple, list, dict))  # an iterator, for one, is used up
        and not any(getattr(b, "__name__", "") == "NamedTuple" for b in arguments[_BASES])
    ):  # a NamedTuple gets its slots by itself, and refuses to be given them
        arguments[_TYPE_KWARGS]["__slots__"] = slots
    class_id = arguments[-2]
    return make_class, (make, *arguments), (class_id, state), None, None, complete_class


def dumps(
    value: Any,
    *,
    buffer_callback: Callable[[pickle.PickleBuffer], Any] | None = None,
    reduce: Reduce | None = None,
) -> bytes:
    """``value`` as bytes for :func:`pickle.loads`.

    Args:
        value: What is to be pickled.
        buffer_callback: As pickle has it.
        reduce: Asked before anybody else how an object is pickled.

    Raises:
        Exception: It cannot be pickled, or a user's method raised.
    """
    file = io.BytesIO()
    _Pickler(file, buffer_callback, reduce).dump(value)
    return file.getvalue()


def make_class(make: Callable[..., type], *arguments: Any) -> type:
    """In a pickle: the class that this process has, or a new one without attributes."""
    *others, class_id, extra = arguments
    known = _DYNAMIC_CLASS_TRACKER_BY_ID.get(class_id)
    if known is not None:
        return known  # type: ignore[no-any-return]  # the library has no types
    made = make(*others, None, extra)
    _incomplete.add(class_id)  # before anybody else can find it
    return _lookup_class_or_track(class_id, made)  # type: ignore[no-any-return]  # as above


def complete_class(made: type, told: tuple[str, Any]) -> None:
    """In a pickle: the class gets its attributes, if :func:`make_class` made it here."""
    class_id, state = told
    if class_id in _incomplete:
        _class_setstate(made, state)
        _incomplete.discard(class_id)
