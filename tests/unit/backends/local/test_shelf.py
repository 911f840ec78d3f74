"""Values that stay in the driver's process, and those that do not."""

import os
from typing import Any

import pytest

from fanfold.backends.local.shelf import SHELF, Shelf, ThreadValues
from fanfold.backends.local.store import ArenaValues
from fanfold.blocks.arena import create

STAYS, LEAVES = 1, 2


@pytest.fixture
def arenas():
    made = {0: create("a"), 1: create("b")}
    yield made
    for descriptor in made.values():
        os.close(descriptor)


def values_of(arenas, own, shelf):
    return ThreadValues(arenas, own, shelf, {LEAVES}, limit_bytes=1 << 20, keep_bytes=1 << 20)


def ref_of(stored) -> Any:
    return stored.ref


def rows(stored):
    return ("rows", stored.ref, 0, stored.count)


def test_a_value_that_stays_is_the_same_object_for_every_thread(arenas):
    shelf = Shelf()
    one, other = values_of(arenas, 0, shelf), values_of(arenas, 1, shelf)
    thing = object()
    stored = one.put(STAYS, [thing, thing])
    assert ref_of(stored)[0] == SHELF
    assert other.read([rows(stored)])[0] == [thing, thing]
    shelf.free([ref_of(stored)])
    assert shelf.blocks == {}


def test_a_value_that_leaves_can_be_read_by_a_process(arenas):
    one = values_of(arenas, 0, Shelf())
    stored = one.put(LEAVES, ["x", [1]])
    assert ArenaValues(arenas, None).read([rows(stored)]) == [["x", [1]]]
    assert one.read([rows(stored)]) == [["x", [1]]]


def test_what_is_taken_back_is_gone(arenas):
    shelf = Shelf()
    one = values_of(arenas, 0, shelf)
    one.take_back(one.put(STAYS, [1]))
    assert shelf.blocks == {}
    first = one.put(LEAVES, [bytes(1000)])
    one.take_back(first)
    again = one.put(LEAVES, [bytes(1000)])
    assert ref_of(again)[:2] == ref_of(first)[:2], "its place was free"


def test_sizes_are_estimated_so_that_large_children_are_released_in_time(arenas):
    one = values_of(arenas, 0, Shelf())
    assert one.row_bytes(STAYS) == 0
    stored = one.put(STAYS, [bytes(50_000)] * 100)
    assert stored.size_bytes == 5_000_000
    assert one.row_bytes(STAYS) == 50_000
    assert one.put(STAYS, list(range(10))).size_bytes == 640
    assert one.put(STAYS, [Odd()]).size_bytes == 64
    one.put(LEAVES, [1])
    assert one.row_bytes(LEAVES) > 0


class Odd:
    @property
    def nbytes(self):
        raise ValueError("not told")
