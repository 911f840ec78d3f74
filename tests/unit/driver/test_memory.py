"""A run's memory budget: what may be said of it, and what it is if nothing is."""

from __future__ import annotations

from typing import Any

import pytest

from fanfold.driver import memory
from fanfold.driver.memory import LEAST_BYTES, budget_bytes
from fanfold.errors import UsageError


@pytest.mark.parametrize(
    ("given", "size"),
    [
        (1, 1),
        (5_000_000, 5_000_000),
        ("64", 64),
        ("64B", 64),
        ("2k", 2_000),
        ("2 KB", 2_000),
        ("1.5GB", 1_500_000_000),
        (" 512MiB ", 512 * 1024**2),
        ("1Ti", 1024**4),
        ("0.5K", 500),
    ],
)
def test_bytes_and_texts_that_are_sizes(given: Any, size: int) -> None:
    assert budget_bytes(given) == size


@pytest.mark.parametrize(
    "given", [0, -1, True, 1.5, "", "much", "-1GB", "1 PB", "0", "0.1", b"1GB"]
)
def test_anything_else_is_refused_with_what_would_do(given: Any) -> None:
    with pytest.raises(UsageError, match="FF434") as told:
        budget_bytes(given)
    assert repr(given) in str(told.value) and '"8GB"' in str(told.value)


def test_without_a_word_it_is_half_of_what_is_available(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "available_bytes", lambda: 8_000_000_000)
    assert budget_bytes(None) == 4_000_000_000
    assert (
        budget_bytes(None, 6_000_000_000) == 1_000_000_000
    )  # what replicas need is not for values
    assert budget_bytes("5GB", 6_000_000_000) == 5_000_000_000
    assert budget_bytes(None, 9_000_000_000) == LEAST_BYTES


def test_it_is_never_next_to_nothing_unless_somebody_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(memory, "available_bytes", lambda: 1000)
    assert budget_bytes(None) == LEAST_BYTES
