"""What is done once on this machine, whoever wants it first."""

import functools
import os
import threading

import pytest

from fanfold.backends.local.node import Node
from fanfold.blocks.arena import create


@pytest.fixture
def descriptor():
    fd = create("node")
    yield fd
    os.close(fd)


def test_it_is_done_once_by_number(descriptor):
    node, done = Node(descriptor, 2), list[int]()
    for number in (0, 1, 1, 0):
        node.once(number, functools.partial(done.append, number))
    assert done == [0, 1]


def test_what_raised_is_not_done(descriptor):
    node, done = Node(descriptor, 1), []
    with pytest.raises(ZeroDivisionError):
        node.once(0, lambda: 1 / 0)
    node.once(0, lambda: done.append(1))
    assert done == [1]


def test_others_wait_until_it_is_done(descriptor):
    node, done = Node(descriptor, 1), []
    begun, go_on = threading.Event(), threading.Event()

    def setup():
        begun.set()
        go_on.wait(30)
        done.append("set up")

    def use():
        node.once(0, setup)
        done.append("used")

    threads = [threading.Thread(target=use) for _ in range(3)]
    for thread in threads:
        thread.start()
    begun.wait(30)
    assert done == []
    go_on.set()
    for thread in threads:
        thread.join(30)
    assert done == ["set up", "used", "used", "used"]


def test_processes_agree_and_the_dead_keep_no_lock(descriptor):
    node = Node(descriptor, 2)

    def in_a_process(number, setup):
        pid = os.fork()
        if pid == 0:
            Node(descriptor).once(number, setup)
            os._exit(3)
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])

    assert in_a_process(0, lambda: None) == 3
    node.once(0, lambda: pytest.fail("another process did it"))
    assert in_a_process(1, lambda: os._exit(9)) == 9
    done = []
    node.once(1, lambda: done.append(1))
    assert done == [1]
