"""What a stage is told of its items is the same on every backend, whoever shares its batch."""

from __future__ import annotations

from typing import Any

import pytest

import fanfold as ff
from tests.conformance.backends import BACKENDS


def pages(count: int) -> list[int]:
    return list(range(count))


def who(numbers: list[int]) -> list[Any]:
    return [(item.key, item.ordinals, item.seed) for item in ff.context().items]


def told(backend: Any, batch_size: int) -> dict[str, Any]:
    @ff.pipeline(level="document")
    def tell(count: ff.Port[int]) -> ff.Port[Any]:
        page = ff.expand(ff.stage(pages)(count), "page")
        return ff.gather(ff.stage(who, batch_size=batch_size)(page))

    source = ff.from_items([2, 0, 3], key=lambda n: f"d{n}")
    return {r.key: r.value for r in tell.stream(source, backend=backend, seed=7)}


@pytest.mark.parametrize("backend", ["inline", "local", "threads"])
def test_keys_ordinals_and_seeds(backend: str) -> None:
    values = told(BACKENDS[backend](), batch_size=4)
    assert [(key, at) for key, at, _ in values["d3"]] == [("d3", (2, i)) for i in range(3)]
    assert [(key, at) for key, at, _ in values["d2"]] == [("d2", (0, i)) for i in range(2)]
    assert values["d0"] == []
    assert len({seed for items in values.values() for _, _, seed in items}) == 5
    assert values == told("inline", batch_size=1)
