"""The functions that the semantic cases name: each takes one item, and its static arguments by keyword."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fanfold.failures import ItemFailure, ParentFailure


def identity(x: Any) -> Any:
    return x


def inc(x: int) -> int:
    return x + 1


def mul(x: int, *, k: int) -> int:
    return x * k


def add(x: int, y: int) -> int:
    return x + y


def sub(left: int, right: int) -> int:
    return left - right


def range_of(x: int) -> list[int]:
    return list(range(x))


def len_of(x: list[Any]) -> int:
    return len(x)


def sum_of(x: list[int]) -> int:
    return sum(x)


def is_even(x: int) -> bool:
    return x % 2 == 0


def true(x: Any) -> bool:
    return True


def false(x: Any) -> bool:
    return False


def list_of_lists(x: int) -> list[list[int]]:
    return [list(range(n)) for n in range(1, x + 1)]


def two(x: int) -> tuple[int, int]:
    return x, 10 * x


def pair_groups(x: int) -> tuple[list[int], list[int]]:
    return list(range(x)), [10 * i for i in range(x)]


def two_groups(x: int) -> tuple[list[int], list[int]]:
    return list(range(x)), list(range(x + 1))


def fail_if(x: Any, *, eq: Any) -> Any:
    return ItemFailure(f"bad {x}") if x == eq else x


def two_fail_second(x: int, *, eq: int) -> Any:
    return x, ItemFailure(f"bad {x}") if x == eq else 10 * x


def even_fail_if(x: int, *, eq: int) -> Any:
    return ItemFailure(f"bad {x}") if x == eq else x % 2 == 0


def range_fail_if(x: int, *, eq: int) -> Any:
    return ItemFailure(f"bad {x}") if x == eq else list(range(x))


def fail_all(x: Any) -> Any:
    return ItemFailure(f"bad {x}")


def fail_both(x: Any) -> Any:
    return ItemFailure(f"item {x}"), ParentFailure(f"parent {x}")


def parent_fail_if(x: Any, *, eq: Any) -> Any:
    return ParentFailure(f"bad {x}") if x == eq else x


def raise_if(x: Any, *, eq: Any) -> Any:
    if x == eq:
        raise ValueError(f"boom {x}")
    return x


class Batched:
    """One of the functions above over lists; the number tells two stages of one function apart."""

    def __init__(self, name: str, number: int) -> None:
        self._one: Callable[..., Any] = identity if name == "flaky_once" else globals()[name]
        self._fresh = name == "flaky_once"
        """It raises on the first batch that it sees."""

    def __call__(self, *columns: list[Any], **static: Any) -> list[Any]:
        """Keyword arguments that are lists are ports: no case has a list as a static argument."""
        if self._fresh:
            self._fresh = False
            raise ConnectionError("not warm yet")
        ports = {key: value for key, value in static.items() if isinstance(value, list)}
        rest = {key: value for key, value in static.items() if key not in ports}
        rows = zip(*columns, *ports.values(), strict=True)
        count = len(columns)
        return [
            self._one(*row[:count], **dict(zip(ports, row[count:], strict=True)), **rest)
            for row in rows
        ]
