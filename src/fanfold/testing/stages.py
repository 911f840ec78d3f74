"""Stages for made-up pipelines: total, deterministic, and in trouble exactly where they are told to be.

Owns the users' code that :mod:`fanfold.testing.sketches` builds pipelines of. Each function takes any
values, weighs them into one number, and acts on the number's residue: the ``trouble`` of a call maps
residues to mishaps. So a mishap depends on the item alone, never on its batch-mates, on the worker or on
the order of things, and what a stage makes of a list depends on the list's order.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from fanfold.failures import Failure, ItemFailure, ParentFailure
from fanfold.testing.usercode import WorkerKilled

RESIDUES: Final = 5
"""Troubles are told by the residue of an item's weight modulo this number."""

MODULUS: Final = 1_009
Trouble = Mapping[int, str]
"""From residue to mishap: ``raise``, ``fail``, ``shape`` (a result of the wrong shape), ``half`` (a
generator raises after its first child), ``missing`` (a page without the field ``extra``), ``none`` (None
as value), ``parent`` (a parent failure), ``halt`` (a parent failure in the place of the second child) or
``kill`` (its worker dies, every time; only where a backend in memory can act it)."""


def weigh(*values: Any) -> int:
    """A number for any values, different (mostly) for different ones or another order."""
    total = 0
    for value in values:
        total = (total * 31 + _weigh(value) + 1) % MODULUS
    return total


def _weigh(value: Any) -> int:
    match value:
        case bool() | int():
            return int(value)
        case None:
            return 11
        case Failure():
            return 13  # of several possible causes a run names one, so a mark weighs the same whichever
        case str():
            return weigh(*value.encode())
        case Mapping():
            return weigh(*value.values())
        case Sequence():
            return weigh(*value) + len(value)
    raise TypeError(f"no weight for {type(value).__name__}")


def parity(value: Any) -> bool:
    """One of two groups for any value."""
    return weigh(value) % 2 == 0


def cost(value: Any) -> float:
    """What a value costs in a batch: from 0 to 5; an exception for some."""
    rest = weigh(value) % 7
    if rest == 6:
        raise ValueError("no cost for this value")
    return float(rest)


def remainder(value: Any) -> str | tuple[int, ...]:
    """One of four groups for four of five values, not all of one type; an exception for the rest."""
    rest = weigh(value) % 5
    if rest == 4:
        raise ValueError("no group for this value")
    return str(rest) if rest % 2 else (rest,)


def number(*values: Any, salt: int, trouble: Trouble, also: Any = ...) -> Any:
    """One item to a number; ``also`` is one more value, by keyword."""
    return _meet(values if also is ... else (*values, also), salt, trouble)


def numbers(
    *columns: list[Any], salt: int, trouble: Trouble, also: list[Any] | None = None
) -> list[Any]:
    """The same for a batch: item failures are returned, exceptions take the batch down."""
    return _batch(number, columns if also is None else (*columns, also), salt, trouble)


class Weigher:
    """The same as a class with state."""

    def __init__(self, factor: int) -> None:
        self._factor = factor

    def __call__(self, *columns: list[Any], salt: int, trouble: Trouble) -> list[Any]:
        return numbers(*columns, salt=salt + self._factor, trouble=trouble)


def page(*values: Any, salt: int, trouble: Trouble) -> Any:
    """One item to a mapping with the fields ``n``, ``kind``, ``flag`` and, mostly, ``extra``."""
    return _page(_meet(values, salt, trouble), trouble)


def pages(*columns: list[Any], salt: int, trouble: Trouble) -> list[Any]:
    """The same for a batch."""
    return _batch(page, columns, salt, trouble)


def pair(*values: Any, salt: int, trouble: Trouble) -> Any:
    """One item to a number and a page; its failure lies in the second place, an outranked one in the first."""
    try:
        n = _meet(values, salt, trouble)
    except ItemFailure as failure:
        return 0, failure
    except ParentFailure as failure:
        return ItemFailure("outranked"), failure
    return n if _mishap(n, trouble) == "shape" else (n, _page(n, trouble))


def pairs(*columns: list[Any], salt: int, trouble: Trouble) -> list[Any]:
    """The same for a batch."""
    return _batch(pair, columns, salt, trouble)


def listing(*values: Any, salt: int, trouble: Trouble, most: int, child: str) -> Any:
    """One item to a list of up to ``most`` children."""
    n = _meet(values, salt, trouble)
    if _mishap(n, trouble) == "shape":
        return "not children"
    made = [_child(n + i, child, trouble) for i in range(n % (most + 1))]
    if _mishap(n, trouble) == "halt":
        made[1:2] = [ParentFailure(f"ruin {n}", code="made.up")]
    return made


def listings(*columns: list[Any], salt: int, trouble: Trouble, most: int, child: str) -> list[Any]:
    """The same for a batch."""
    return _batch(listing, columns, salt, trouble, most=most, child=child)


def album(*values: Any, salt: int, trouble: Trouble, most: int, child: str) -> Any:
    """One item to a mapping whose field ``children`` is such a list (missing where told so)."""
    n = _meet(values, salt, trouble)
    if _mishap(n, trouble) == "missing":
        return {"n": n}
    return {
        "n": n,
        "children": listing(n, salt=salt, trouble={}, most=most, child=child),
    }


def twins(*values: Any, salt: int, trouble: Trouble, most: int, child: str) -> Any:
    """One item to two lists of children, aligned unless told otherwise."""
    n = _meet(values, salt, trouble)
    count = n % (most + 1)
    if count > 1 and _mishap(n, trouble) == "halt":
        return [ItemFailure("outranked")] * count, [ParentFailure(f"ruin {n}")] * count
    uneven = 1 if _mishap(n, trouble) == "shape" else 0
    return (
        [_child(n + i, child, trouble) for i in range(count)],
        tuple(n * i for i in range(count + uneven)),
    )


def each(*values: Any, salt: int, trouble: Trouble, most: int, child: str) -> Iterator[Any]:
    """One item to children, one by one."""
    n = _meet(values, salt, trouble)
    for i in range(n % (most + 1)):
        if i == 1 and _mishap(n, trouble) in ("half", "shape"):
            raise ValueError(f"half-way {n}")
        if i == 1 and _mishap(n, trouble) == "halt":
            raise ParentFailure(f"ruin {n}", code="made.up")
        yield _child(n + i, child, trouble)


def each_pair(*values: Any, salt: int, trouble: Trouble, most: int, child: str) -> Iterator[Any]:
    """One item to aligned pairs of children, one by one."""
    n = _meet(values, salt, trouble)
    for i in range(n % (most + 1)):
        if i == 1 and _mishap(n, trouble) == "half":
            raise ItemFailure(f"half-way {n}", code="made.up")
        made: tuple[Any, Any] = (_child(n + i, child, trouble), i)
        if i == 1 and _mishap(n, trouble) == "halt":
            made = (made[0], ParentFailure(f"ruin {n}", code="made.up"))
        yield made[0] if i == 1 and _mishap(n, trouble) == "shape" else made


def iterated(*values: Any, salt: int, trouble: Trouble, most: int, child: str) -> Any:
    """A plain function whose sole value is an iterator."""
    return each(*values, salt=salt, trouble=trouble, most=most, child=child)


def _meet(values: Sequence[Any], salt: int, trouble: Trouble) -> Any:
    n = (weigh(*values) + salt) % MODULUS
    match _mishap(n, trouble):
        case "raise":
            raise ValueError(f"boom {n}")
        case "fail":
            raise ItemFailure(f"bad {n}", code="made.up")
        case "parent":
            raise ParentFailure(f"ruin {n}", code="made.up")
        case "kill":
            raise WorkerKilled(f"deadly {n}")
    return n


def _mishap(n: int, trouble: Trouble) -> str | None:
    return trouble.get(n % RESIDUES)


def _page(n: int, trouble: Trouble) -> Any:
    if _mishap(n, trouble) == "none":
        return None
    made = {"n": n, "kind": "abc"[n % 3], "flag": n % 2 == 0, "extra": n // 2}
    if _mishap(n, trouble) == "missing":
        del made["extra"]
    return made


def _child(n: int, child: str, trouble: Trouble) -> Any:
    if child == "page":
        return _page(n, trouble)
    return None if _mishap(n, trouble) == "none" else n


def _batch(
    one: Any, columns: Sequence[list[Any]], salt: int, trouble: Trouble, **static: Any
) -> list[Any]:
    """``one`` over the rows of a batch; rows with the mishap ``shape`` are left out of the result."""
    results: list[Any] = []
    for values in zip(*columns, strict=True):
        if _mishap((weigh(*values) + salt) % MODULUS, trouble) == "shape":
            continue
        try:
            results.append(one(*values, salt=salt, trouble=trouble, **static))
        except (ItemFailure, ParentFailure) as failure:
            results.append(failure)
    return results
