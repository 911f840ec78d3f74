"""How stages and writers travel to their processes: by name where it can be, by value where it must.

Owns what cloudpickle does not know: a module's function that ``ff.stage`` has taken the place of is still
found through it, so it need not travel by value, with all the globals that it uses.
"""

from __future__ import annotations

import importlib
import io
import sys
from typing import Any

import cloudpickle

from fanfold.errors import DefinitionError


class _Pickler(cloudpickle.Pickler):  # type: ignore[misc]  # the library has no types
    def reducer_override(self, obj: Any) -> Any:
        if isinstance(obj, type) or callable(obj):
            place = _place_of_wrapped(obj)
            if place is not None:
                return _wrapped_at, place
        return super().reducer_override(obj)


def ship(thing: object, what: str) -> bytes:
    """``thing`` as bytes for :func:`pickle.loads` in another process.

    Args:
        thing: What is to be sent.
        what: What to call it in a message: ``stage 'Ocr'``.

    Raises:
        DefinitionError: It cannot be pickled.
    """
    file = io.BytesIO()
    try:
        _Pickler(file, protocol=5).dump(thing)
    except Exception as error:
        raise DefinitionError(
            "FF406",
            f"{what} cannot be sent to a worker process: {type(error).__name__}: {error}.",
            "Open files, connections and locks belong into the stage's constructor, which runs in the "
            'worker; or run with backend="inline".',
        ) from error
    return file.getvalue()


def _place_of_wrapped(thing: Any) -> tuple[str, str] | None:
    """Module and name under which something stands that wraps ``thing``."""
    module, name = getattr(thing, "__module__", None), getattr(thing, "__qualname__", None)
    if not isinstance(module, str) or not isinstance(name, str) or module == "__main__":
        return None
    found = getattr(sys.modules.get(module), name, None)
    return (module, name) if getattr(found, "__wrapped__", None) is thing else None


def _wrapped_at(module: str, name: str) -> Any:
    return getattr(importlib.import_module(module), name).__wrapped__
