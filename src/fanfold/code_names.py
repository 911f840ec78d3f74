"""What the code of functions names, and what it reaches by that. Owns the walk over code; runs nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from types import CodeType, FunctionType
from typing import Any


def names_in(code: CodeType) -> Iterator[str]:
    """Names of variables and attributes in code, and in the code of all that is defined inside of it.

    >>> sorted(set(names_in((lambda texts: [text.title() for text in sorted(texts)]).__code__)))
    ['sorted', 'title']
    """
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from names_in(constant)


def reached_by(function: FunctionType, names: Iterable[str]) -> list[Any]:
    """What a function reaches by these names among the globals of its module, and what it closes over; None
    for what is not there, or not yet."""
    cells = function.__closure__ or ()
    return [*map(function.__globals__.get, names), *map(_content, cells)]


def _content(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # it is defined later in the same scope
        return None
