"""Batches at a worker, and what is left out of them."""

from __future__ import annotations

import threading
from collections import deque
from queue import Queue

import pytest

from fanfold.backends.local.inbox import Inbox
from fanfold.backends.local.wire import Work
from fanfold.protocol import RunBatch

PATIENCE_S = 20
"""Nothing here takes long, unless it is broken."""


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


def batch(number: int, room: int | None = None) -> RunBatch:
    return RunBatch(number, 0, 4, (), room=room)


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


# ------------------------------------------------------------------------------------------ room


def paused(*messages: Work | None) -> Sender:
    """Batch 1 has used up its room of 100 and waits; these messages are on their way."""
    sender = Sender(Work(batch(1, room=100)))
    sender.inbox.next()
    assert sender.inbox.trimmed(1) == 0
    assert sender.inbox.room(1) == 100
    sender.inbox.paused(1)
    sender.messages.extend(messages)
    return sender


def test_a_batch_without_a_bound_has_none_whatever_is_granted() -> None:
    sender = Sender(Work(batch(1)), Work(grant=(1, 50)), None)
    sender.inbox.next()
    assert sender.inbox.room(1) is None


def test_room_that_was_granted_on_the_way_is_there_when_it_is_asked_for() -> None:
    sender = Sender(Work(batch(1, room=100)), None)
    sender.inbox.next()
    sender.messages.extendleft([Work(grant=(1, 50)), Work(grant=(1, 7))])
    assert sender.inbox.room(1) == 157


def test_a_batch_that_paused_goes_on_when_it_is_granted_room() -> None:
    inbox = paused(Work(batch(2)), Work(grant=(1, 50)), None).inbox
    assert inbox.next() == 1, "before what has not begun"
    assert inbox.room(1) == 150
    assert inbox.next() == batch(2)
    assert inbox.next() is None


def test_a_batch_that_paused_waits_behind_others_while_it_is_granted_nothing() -> None:
    sender = paused(Work(batch(2)), Work(batch(3, room=10)), None)
    assert sender.inbox.next() == batch(2)
    assert sender.inbox.next() == batch(3, room=10)
    assert sender.inbox.next() is None


def test_a_batch_that_paused_goes_on_when_it_is_trimmed() -> None:
    inbox = paused(Work(trim=(1, 0b1000)), None).inbox
    assert inbox.next() == 1
    assert inbox.trimmed(1) == 0b1000


def test_a_batch_goes_on_once_for_any_number_of_grants() -> None:
    inbox = paused(Work(grant=(1, 5)), Work(grant=(1, 5)), Work(trim=(1, 1)), None).inbox
    assert inbox.next() == 1
    assert inbox.room(1) == 110
    assert inbox.next() is None


def test_batches_that_paused_go_on_in_the_order_of_their_grants() -> None:
    sender = Sender(Work(batch(1, room=1)), Work(batch(2, room=1)))
    for number in (1, 2):
        sender.inbox.next()
        sender.inbox.paused(number)
    sender.messages.extend([Work(grant=(2, 5)), Work(grant=(1, 5)), None])
    assert [sender.inbox.next(), sender.inbox.next(), sender.inbox.next()] == [2, 1, None]


def test_what_is_trimmed_while_a_batch_asks_for_room_is_not_overheard() -> None:
    sender = Sender(Work(batch(1, room=100)))
    sender.inbox.next()
    assert sender.inbox.trimmed(1) == 0
    sender.messages.append(Work(trim=(1, 0b1)))
    assert sender.inbox.room(1) == 100
    sender.inbox.paused(1)
    sender.messages.append(None)
    assert sender.inbox.next() == 1


def test_what_a_batch_knows_to_be_trimmed_does_not_wake_it() -> None:
    sender = Sender(Work(batch(1, room=100)), Work(trim=(1, 0b1)))
    sender.inbox.next()
    assert sender.inbox.trimmed(1) == 0b1
    sender.inbox.paused(1)
    sender.messages.append(None)
    assert sender.inbox.next() is None


def test_what_comes_for_a_batch_that_has_ended_has_no_effect() -> None:
    sender = Sender(Work(batch(1, room=100)))
    sender.inbox.next()
    sender.inbox.ended(1)
    sender.messages.extend([Work(grant=(1, 50)), Work(trim=(1, 1)), None])
    assert sender.inbox.next() is None
    assert sender.inbox.room(1) is None


def test_room_that_comes_just_before_a_batch_pauses_is_not_missed() -> None:
    """Another thread may take it in after the batch has asked."""
    sender = Sender(Work(batch(1, room=100)))
    sender.inbox.next()
    assert sender.inbox.room(1) == 100
    sender.messages.extend([Work(grant=(1, 50)), Work(batch(2))])
    sender.inbox.fetch()
    sender.inbox.paused(1)
    assert [sender.inbox.next(), sender.inbox.next()] == [1, batch(2)]


def test_room_that_a_batch_knows_of_does_not_wake_it() -> None:
    sender = Sender(Work(batch(1, room=100)), Work(grant=(1, 50)))
    sender.inbox.next()
    assert sender.inbox.room(1) == 150
    sender.inbox.paused(1)
    sender.messages.append(None)
    assert sender.inbox.next() is None


# ------------------------------------------------------------------------------------------ another thread


def test_another_thread_takes_in_what_comes_up_to_a_batch() -> None:
    sender = Sender(Work(None, ((0, 1, 2),)), Work(batch(1)), Work(batch(2)), None)  # type: ignore[arg-type]
    sender.inbox.fetch()
    assert sender.freed == [(0, 1, 2)]
    assert len(sender.messages) == 2
    sender.inbox.fetch()
    assert len(sender.messages) == 2, "a batch waits already"
    assert [sender.inbox.next(), sender.inbox.next(), sender.inbox.next()] == [
        batch(1),
        batch(2),
        None,
    ]


def test_while_another_thread_waits_for_messages_nobody_else_does() -> None:
    came: Queue[Work | None] = Queue()
    waiting = threading.Event()

    def wait() -> Work | None:
        assert threading.current_thread() is other, "only one reads at a time"
        waiting.set()
        message = came.get(timeout=PATIENCE_S)
        waiting.clear()
        return message

    def arrived() -> list[Work]:
        assert not waiting.is_set()
        return []

    inbox = Inbox(wait, arrived, lambda _: None)
    other = threading.Thread(target=inbox.fetch)
    other.start()
    assert waiting.wait(PATIENCE_S)
    assert inbox.room(0) is None
    assert inbox.next(lambda: came.put(Work(batch(1)))) == batch(1)
    other.join(PATIENCE_S)


def test_the_end_that_another_thread_meets_is_the_end() -> None:
    sender = Sender(None)
    sender.inbox.fetch()
    sender.inbox.fetch()
    assert sender.inbox.next() is None


def test_what_another_thread_meets_is_raised_where_batches_are_taken() -> None:
    def wait() -> Work | None:
        raise ConnectionResetError("the driver is gone")

    inbox = Inbox(wait, list, lambda _: None)
    inbox.fetch()
    with pytest.raises(ConnectionResetError, match="the driver is gone"):
        inbox.next()


def test_what_another_thread_meets_in_looking_ahead_is_raised_where_batches_are_taken() -> None:
    def gone() -> list[Work]:
        raise ConnectionResetError("the driver is gone")

    inbox = Inbox(lambda: None, gone, lambda _: None)
    assert inbox.following() is None
    inbox._arrived = list  # only the other thread has met it
    with pytest.raises(ConnectionResetError):
        inbox.next()


def test_the_batch_that_follows_is_told_and_stays() -> None:
    sender = Sender(Work(batch(1)), Work(batch(2)))
    assert sender.inbox.following() == batch(1)
    assert sender.inbox.next() == batch(1)
    assert sender.inbox.following() == batch(2)
    assert sender.inbox.next() == batch(2)


def test_it_says_so_before_it_waits() -> None:
    sender = Sender(Work(batch(1)), None)
    idle: list[str] = []
    sender.inbox.next(lambda: idle.append("too soon"))
    assert idle == []
    sender.inbox.next(lambda: idle.append("idle"))
    assert idle == ["idle"]


class Runner:
    """Pauses each batch that has a bound, once, and keeps a diary."""

    def __init__(self) -> None:
        self.diary: list[object] = []

    def run(self, work: RunBatch, *, wait_s: float = 0.0) -> bool:
        self.diary.append(("run", work.batch))
        return work.room is None

    def resume(self, number: int) -> bool:
        self.diary.append(("resume", number))
        return True

    def tell(self) -> None:
        self.diary.append("tell")


def test_a_replica_runs_other_batches_while_one_waits_and_goes_on_with_it() -> None:
    sender = Sender(Work(batch(1, room=1)), Work(batch(2)), Work(batch(3)))
    runner = Runner()

    def end() -> None:
        runner.diary.append("end")
        if ("run", 2) in runner.diary and ("resume", 1) not in runner.diary:
            sender.messages.extend([Work(grant=(1, 9)), None])

    sender.inbox.serve(runner, lambda number: runner.diary.append(number), end)  # type: ignore[arg-type]
    told = [entry for entry in runner.diary if isinstance(entry, tuple)]
    assert told == [("run", 1), ("run", 2), ("resume", 1), ("run", 3)]
    assert [entry for entry in runner.diary if isinstance(entry, int)] == [1, 2, 1, 3]
    assert runner.diary.count("end") == 4
    assert sender.inbox.room(1) is None, "it has ended"
