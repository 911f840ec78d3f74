"""A process's view of all arenas: blocks go round, refusals name their rows, places are used again."""

from __future__ import annotations

import datetime
import os
import pickle
import resource
import threading
from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image
import pytest

from fanfold.backends.local import store
from fanfold.backends.local.store import ArenaValues
from fanfold.backends.values import Unstorable
from fanfold.blocks.arena import create
from fanfold.protocol import Rows


def ref_of(rows: Rows) -> Any:
    """The reference as what it is."""
    return rows.ref


@pytest.fixture
def arenas():
    found = {number: create(f"{number}") for number in range(2)}
    yield found
    for fd in found.values():
        os.close(fd)


def test_what_one_process_puts_others_read(arenas):
    one, other, reader = ArenaValues(arenas, 0), ArenaValues(arenas, 1), ArenaValues(arenas, None)
    a, b = one.put(7, [1, "x", None]), other.put(7, [b"z" * 100_000])
    assert (a.count, b.count) == (3, 1)
    for values in (one, other, reader):
        assert values.read([("rows", ref_of(a), 1, 2), ("rows", ref_of(b), 0, 1)]) == [
            ["x", None],
            [b"z" * 100_000],
        ]


def test_a_place_is_used_again_and_never_mistaken_for_what_was_there(arenas):
    writer, reader = ArenaValues(arenas, 0), ArenaValues(arenas, None)
    first = writer.put(7, [1])
    assert reader.read([("rows", ref_of(first), 0, 1)]) == [[1]]
    writer.free([ref_of(first)])
    second = writer.put(7, [2])
    assert ref_of(second)[:3] == ref_of(first)[:3] and ref_of(second) != ref_of(first)
    assert reader.read([("rows", ref_of(second), 0, 1)]) == [[2]]


def test_a_value_read_twice_in_a_batch_is_one_object_and_in_the_next_another(arenas):
    values = ArenaValues(arenas, 0)
    column = ("rows", values.put(7, [[1]]).ref, 0, 1)
    ((a,), (b,)) = values.read([column, column])
    assert a is b
    a.append("changed, against the contract")
    assert values.read([column]) == [[[1]]]


class Loaded:
    """Notes that it was unpickled."""

    times = 0
    page = 0

    def __setstate__(self, state: object) -> None:
        type(self).times += 1


@pytest.mark.parametrize(
    "value",
    [
        3,
        "text",
        b"x" * 100_000,
        {"boxes": [(1, 2.5), None], "kinds": {1, 2}},
        datetime.date(2026, 1, 2),
        Path("page.png"),
        np.arange(5),
        {"image": np.zeros((300, 300), np.uint8)},
        PIL.Image.new("RGB", (4, 4), (1, 2, 3)),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_is_read_ahead_is_what_is_read_otherwise(arenas, value):
    writer, reader = ArenaValues(arenas, 0), ArenaValues(arenas, None)
    column = ("rows", writer.put(7, [value, value]).ref, 0, 2)
    ahead = reader.read_ahead([column])
    assert ahead is not None and len(ahead[0]) == 2
    assert pickle.dumps(ahead) == pickle.dumps(reader.read([column]))


def test_nothing_that_runs_code_of_users_is_read_ahead(arenas):
    writer, reader = ArenaValues(arenas, 0), ArenaValues(arenas, None)
    instance, objects = Loaded(), np.array([Loaded()], dtype=object)
    instance.page = objects[0].page = 1
    for value in (instance, [instance], {"a": objects}, Loaded, len):
        column = ("rows", writer.put(7, [value]).ref, 0, 1)
        assert reader.read_ahead([column]) is None
        assert Loaded.times == 0
    field = ("field", ("rows", writer.put(7, [{"a": 1}]).ref, 0, 1), "a")
    assert reader.read_ahead([field]) is None and reader.read([field]) == [[1]]
    column = ("rows", writer.put(7, [instance]).ref, 0, 1)
    assert isinstance(reader.read([column])[0][0], Loaded) and Loaded.times == 1


def test_no_more_is_read_ahead_than_a_worker_may_hold(arenas, monkeypatch):
    monkeypatch.setattr(store, "AHEAD_BYTES", 1_000_000)
    writer, reader = ArenaValues(arenas, 0, limit_bytes=1 << 23), ArenaValues(arenas, None)
    pages = [np.zeros(400_000, np.uint8), b"x" * 400_000, b"y" * 400_000]
    ref = writer.put(7, pages).ref
    assert reader.read_ahead([("rows", ref, 0, 3)]) is None
    assert reader.read_ahead([("rows", ref, 1, 2)]) == [pages[1:]]
    assert len(reader.read([("rows", ref, 0, 3)])[0]) == 3


def test_a_block_that_is_taken_back_leaves_its_place(arenas):
    values = ArenaValues(arenas, 0)
    rows = values.put(7, [b"x" * 50_000])
    values.take_back(rows)
    assert ref_of(values.put(7, [b"y" * 50_000]))[1] == ref_of(rows)[1]


def test_a_successor_keeps_what_is_in_use(arenas):
    values = ArenaValues(arenas, 0)
    kept, lost = values.put(7, ["kept"]), values.put(7, ["lost"])
    successor = ArenaValues(arenas, 0, used=[ref_of(kept)], serials_from=1_000)
    again = successor.put(7, ["new"])
    assert ref_of(again)[1] == ref_of(lost)[1] and ref_of(again)[3] >= 1_000
    assert successor.read([("rows", ref_of(kept), 0, 1)]) == [["kept"]]


def test_values_that_cannot_be_pickled_are_named(arenas):
    with pytest.raises(Unstorable) as caught:
        ArenaValues(arenas, 0).put(7, [1, threading.Lock()])
    ((row, failure),) = caught.value.rows
    assert row == 1 and failure.kind == "unpicklable" and "_thread.lock" in failure.message


def test_values_that_do_not_fit_are_named(arenas):
    values = ArenaValues(arenas, 0, limit_bytes=1_000_000)
    with pytest.raises(Unstorable) as caught:
        values.put(7, [b"small", b"x" * 2_000_000, b"small"])
    ((row, failure),) = caught.value.rows
    assert row == 1 and failure.kind == "too_large" and "2,000" in failure.message
    held = values.put(7, [b"x" * 900_000])
    with pytest.raises(Unstorable) as caught:
        values.put(7, [b"y" * 100_000] * 3)
    assert [row for row, _ in caught.value.rows] == [0, 1, 2], "together they do not fit"
    values.free([ref_of(held)])
    values.put(7, [b"y" * 100_000] * 3)


def test_sizes_are_learned_by_port(arenas):
    values = ArenaValues(arenas, 0)
    values.put(7, [b"x" * 10_000])
    assert values.row_bytes(7) >= 10_000 and values.row_bytes(8) == 0


def test_a_limit_on_the_size_of_files_is_told_as_what_it_is(arenas):
    values = ArenaValues(arenas, 0)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, hard))
    try:
        with pytest.raises(Unstorable) as refused:
            values.put(7, [1, b"x" * (4 << 20)])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    ((row, failure),) = refused.value.rows
    assert (row, failure.kind) == (1, "too_large")
    told = str(refused.value.of_source())
    assert "a value of type builtins.bytes (4," in told
    assert "none of more than 1,048,576 bytes" in told and "ulimit -f" in told
    assert ".." not in told
