"""Inputs that are read before their batch begins: which batch's, how often, and by one thread at a time."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import pytest

from fanfold.backends.ahead import Ahead
from fanfold.columns import Column
from fanfold.protocol import RunBatch

PATIENCE_S = 20


def batch(number: int, call: int = 0) -> RunBatch:
    return RunBatch(number, call, 1, (("rows", number, 0, 1),))


class Store:
    """Gives what was read, and notes how."""

    def __init__(self) -> None:
        self.told: list[str] = []
        self.following: RunBatch | None = None
        self.refuses = False
        self.ahead = Ahead(self.read, self.read_ahead, lambda: self.following)

    def read(self, columns: Sequence[Column]) -> list[list[Any]]:
        self.told.append(f"read {columns[0][1]}")
        return [[columns[0][1]]]

    def read_ahead(self, columns: Sequence[Column]) -> list[list[Any]] | None:
        self.told.append(f"ahead {columns[0][1]}")
        return None if self.refuses else [[columns[0][1]]]


def test_what_was_read_ahead_is_not_read_again() -> None:
    store = Store()
    store.following = batch(7)
    store.ahead.prepare()
    assert store.ahead.read(batch(7)) == [[7]]
    assert store.told == ["ahead 7"]


def test_a_batch_that_begins_in_place_of_the_one_expected_is_read() -> None:
    store = Store()
    store.following = batch(7)
    store.ahead.prepare()
    assert store.ahead.read(batch(8)) == [[8]]
    assert store.ahead.read(batch(7)) == [[7]]
    assert store.told == ["ahead 7", "read 8", "read 7"]


def test_what_else_can_be_done_ahead_is_done_for_batches_that_were_read() -> None:
    store, prepared = Store(), list[RunBatch]()
    ahead = Ahead(store.read, store.read_ahead, lambda: store.following, prepared.append)
    store.following = one = batch(7)
    ahead.prepare()
    assert prepared == [one]
    store.refuses, store.following = True, batch(8)
    ahead.prepare()
    assert prepared == [one]


def test_one_batch_is_read_ahead_once() -> None:
    store = Store()
    store.following = batch(7)
    store.ahead.prepare()
    store.ahead.prepare()
    assert store.told == ["ahead 7"]


def test_nothing_is_read_ahead_where_nothing_waits() -> None:
    store = Store()
    store.ahead.prepare()
    assert store.told == []


def test_a_call_whose_inputs_cannot_be_read_ahead_is_not_tried_again_and_others_are() -> None:
    store = Store()
    store.refuses, store.following = True, batch(7)
    store.ahead.prepare()
    assert store.ahead.read(batch(7)) == [[7]]
    store.refuses, store.following = False, batch(8)
    store.ahead.prepare()
    store.following = batch(9, call=1)
    store.ahead.prepare()
    assert store.told == ["ahead 7", "read 7", "ahead 9"]


@pytest.mark.parametrize("first", ["prepare", "read"])
def test_one_thread_reads_at_a_time(first: str) -> None:
    """Whoever comes second waits, and then finds what the other has done."""
    store, reading, going_on = Store(), threading.Event(), threading.Event()
    own = store.read_ahead if first == "prepare" else store.read

    def slow(columns: Sequence[Column]) -> Any:
        reading.set()
        assert going_on.wait(PATIENCE_S)
        return own(columns)

    if first == "prepare":
        ahead = Ahead(store.read, slow, lambda: batch(7))
        calls = [ahead.prepare, lambda: ahead.read(batch(7))]
    else:
        ahead = Ahead(slow, store.read_ahead, lambda: batch(8))
        calls = [lambda: ahead.read(batch(7)), ahead.prepare]
    threads = [threading.Thread(target=call) for call in calls]
    threads[0].start()
    assert reading.wait(PATIENCE_S)
    threads[1].start()
    threads[1].join(0.05)
    assert threads[1].is_alive() and store.told == []
    going_on.set()
    for thread in threads:
        thread.join(PATIENCE_S)
    assert store.told == (["ahead 7"] if first == "prepare" else ["read 7", "ahead 8"])
