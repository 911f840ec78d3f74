"""Stages travel by name where they can be found by it, by value otherwise, and a refusal says which."""

from __future__ import annotations

import pickle
import threading

import pytest

from fanfold.backends.local.shipping import ship
from fanfold.errors import DefinitionError
from tests.unit.backends.local import decorated


def test_a_function_without_a_name_travels_by_value():
    n = 3
    assert pickle.loads(ship(lambda x: x + n, "it"))(4) == 7


def test_a_module_function_travels_by_name():
    assert pickle.loads(ship(ship, "it")) is ship


def test_what_a_decorator_stands_in_front_of_travels_by_name():
    for wrapper in (decorated.locked, decorated.Thing):
        original = wrapper.__wrapped__  # type: ignore[union-attr]  # a decorated class is no class
        data = ship({"deep": [original]}, "it")
        assert pickle.loads(data)["deep"][0] is original
        assert len(data) < 500


def test_what_cannot_travel_is_told_by_name():
    lock = threading.Lock()
    with pytest.raises(DefinitionError, match=r"FF406 stage 'Ocr' cannot be sent.*lock.*inline"):
        ship(lambda: lock, "stage 'Ocr'")
