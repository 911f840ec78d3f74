"""Channels: whole messages, in order, whatever the socket takes at once; the driver's end never waits."""

from __future__ import annotations

import socket
import threading

import pytest

from fanfold.backends.local.channel import DriverChannel, WorkerChannel


@pytest.fixture
def ends():
    ours, theirs = socket.socketpair()
    driver, worker = DriverChannel(ours), WorkerChannel(theirs)
    yield driver, worker, theirs
    driver.close()
    theirs.close()


def test_messages_arrive_whole_and_in_order(ends):
    driver, worker, _ = ends
    for n in range(100):
        driver.post((n, "x" * n))
    driver.flush()
    assert [worker.receive() for _ in range(100)] == [(n, "x" * n) for n in range(100)]
    for n in range(100):
        worker.send([n])
    assert driver.receive() == [[n] for n in range(100)]


def test_a_large_message_is_queued_rather_than_waited_for(ends):
    driver, worker, _ = ends
    large = b"x" * 20_000_000
    driver.post(large)
    driver.flush()
    assert driver.waiting
    got: list[bytes] = []
    thread = threading.Thread(target=lambda: got.append(worker.receive()))
    thread.start()
    while driver.waiting:
        driver.flush()
    thread.join()
    assert got == [large]


def test_half_a_message_is_no_message(ends):
    driver, worker, theirs = ends
    thread = threading.Thread(target=worker.send, args=(b"y" * 5_000_000,))
    thread.start()
    got: list[bytes] = []
    while not got:
        got = driver.receive()
    thread.join()
    assert got == [b"y" * 5_000_000]
    theirs.sendall((1_000).to_bytes(8, "little") + b"half")
    assert driver.receive() == [] and not driver.closed
    theirs.close()
    assert driver.receive() == [] and driver.closed


def test_the_end_of_either_is_told(ends):
    driver, worker, theirs = ends
    worker.send("last words")
    theirs.close()
    assert driver.receive() == ["last words"]
    assert driver.receive() == [] and driver.closed
    driver.post("lost")
    driver.flush()
    assert not driver.waiting


def test_last_words_are_heard_though_nothing_more_can_be_sent(ends):
    driver, worker, theirs = ends
    worker.send("last words")
    theirs.close()
    driver.post("too late")
    driver.flush()
    assert not driver.waiting
    assert driver.receive() == ["last words"]
    assert driver.receive() == [] and driver.closed


def test_a_worker_hears_that_the_driver_is_gone():
    ours, theirs = socket.socketpair()
    driver, worker = DriverChannel(ours), WorkerChannel(theirs)
    driver.close()
    assert worker.receive() is None
    with pytest.raises(BrokenPipeError):
        worker.send("anyone?")
    theirs.close()
