"""An exception is never a value: wherever a stage puts one, interpreter and backends say the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import fanfold as ff
from fanfold.testing.comparison import compare
from fanfold.testing.interpreter import interpret
from fanfold.testing.observing import run_observed
from fanfold.testing.sketches import plan_of
from tests.conformance.backends import BACKENDS


def bad(n: int) -> Any:
    """An even number gives an item failure, an odd one an exception, both from 2 on."""
    if n < 2:
        return n
    return ff.ItemFailure(f"no {n}") if n % 2 == 0 else ValueError(f"no {n}")


def alone(n: int) -> Any:
    return bad(n)


def batch(ns: list[int]) -> list[Any]:
    return [bad(n) for n in ns]


def pairs(ns: list[int]) -> list[Any]:
    return [(n, bad(n)) for n in ns]


def listed(n: int) -> Any:
    return [bad(i) for i in range(n)]


def listed_batch(ns: list[int]) -> Any:
    return [listed(n) for n in ns]


def both(n: int) -> Any:
    return [n, bad(n), bad(n + 1)]


def yielded(n: int) -> Any:
    for i in range(n):
        yield bad(i)


def one(stage: Any) -> Callable[[Any], Any]:
    return lambda n: stage(n)


def two(stage: Any) -> Callable[[Any], Any]:
    return lambda n: tuple(stage(n))


def opened(stage: Any) -> Callable[[Any], Any]:
    return lambda n: ff.gather(ff.expand(stage(n), "part"))


PROGRAMS = {
    "alone": one(ff.stage(alone)),
    "batch": one(ff.stage(batch, batch_size=3)),
    "pairs": two(ff.stage(pairs, batch_size=3, outputs=2)),
    "children": opened(ff.stage(listed)),
    "children of a batch": opened(ff.stage(listed_batch, batch_size=3)),
    "the first decides": opened(ff.stage(both)),
    "a generator": opened(ff.stage(yielded)),
}


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("program", PROGRAMS)
def test_an_exception_is_never_a_value(program: str, backend: str) -> None:
    trace = PROGRAMS[program]

    @ff.pipeline
    def numbers(n: ff.Port[int]) -> Any:
        return trace(n)

    plan = plan_of(numbers)
    roots = [(n,) for n in range(5)]
    observed = run_observed(plan, BACKENDS[backend](), roots)
    interpreted = interpret(plan, roots)
    assert compare(plan, interpreted, observed.items) == []
    causes = {
        (cause.kind, cause.message if cause.kind == "declared" else "")
        for items in interpreted.ports.values()
        for item in items.values()
        for cause in item.causes
    }
    assert {kind for kind, _ in causes} >= {"declared"}
    values = [seen.value for items in observed.items.values() for seen in items.values()]
    assert not any(isinstance(value, BaseException) for value in values)
