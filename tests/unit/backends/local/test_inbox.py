"""Batches at a worker, and what is left out of them."""

from __future__ import annotations

from collections import deque

from fanfold.backends.local.inbox import Inbox
from fanfold.backends.local.wire import Work
from fanfold.protocol import RunBatch


class Sender:
    """Messages on their way to an inbox."""

    def __init__(self, *messages: Work | None) -> None:
        self.messages = deque(messages)
        self.freed: list[object] = []
        self.inbox = Inbox(self.wait, self.arrived, self.freed.extend)

    def wait(self) -> Work | None:
        return self.messages.popleft()

    def arrived(self) -> list[Work]:
        found = []
        while self.messages and self.messages[0] is not None:
            found.append(self.messages.popleft())
        return [message for message in found if message is not None]


def batch(number: int) -> RunBatch:
    return RunBatch(number, 0, 4, ())


def test_what_is_trimmed_before_a_batch_begins_is_known_then() -> None:
    sender = Sender(Work(batch(1)), Work(batch(2)), Work(trim=(2, 0b0110)), None)
    assert sender.inbox.next() == batch(1)
    assert sender.inbox.trimmed(1) == 0
    assert sender.inbox.next() == batch(2)
    assert sender.inbox.trimmed(2) == 0b0110
    assert sender.inbox.next() is None


def test_trimmed_tasks_add_up_and_are_forgotten_with_their_batch() -> None:
    sender = Sender(Work(batch(1)), Work(trim=(1, 0b0001)), Work(trim=(1, 0b1000)), None)
    sender.inbox.next()
    assert sender.inbox.trimmed(1) == 0b1001
    sender.inbox.ended(1)
    assert sender.inbox.trimmed(1) == 0


def test_freed_blocks_come_along_with_any_message() -> None:
    sender = Sender(Work(batch(1), ((0, 1, 2),)), Work(None, ((0, 3, 4),)), None)  # type: ignore[arg-type]
    sender.inbox.next()
    assert sender.freed == [(0, 1, 2), (0, 3, 4)]
