"""The board tells what a worker was at, also after it has died."""

from __future__ import annotations

import os

import pytest

from fanfold.backends.local.board import Board
from fanfold.blocks.arena import create


@pytest.fixture
def descriptor():
    fd = create("board")
    yield fd
    os.close(fd)


def test_each_worker_has_its_entry(descriptor):
    ours = Board(descriptor, 3)
    for worker in range(3):
        ours.clear(worker)
    theirs = Board(descriptor)
    theirs.begin(1, 0)
    theirs.begin(2, 77)
    assert [ours.running(worker) for worker in range(3)] == [None, 0, 77]
    theirs.clear(2)
    assert ours.running(2) is None


def test_of_several_that_are_under_way_none_is_alone(descriptor):
    board = Board(descriptor, 2)
    board.clear(0)
    board.begin(0, 7)
    board.begin(1, 8, 3)
    assert (board.running(0), board.alone(0)) == (7, True)
    assert (board.running(1), board.alone(1)) == (8, False)


def test_an_entry_outlives_its_worker(descriptor):
    ours = Board(descriptor, 1)
    ours.clear(0)
    pid = os.fork()
    if pid == 0:
        Board(descriptor).begin(0, 5)
        os._exit(9)
    os.waitpid(pid, 0)
    assert ours.running(0) == 5
