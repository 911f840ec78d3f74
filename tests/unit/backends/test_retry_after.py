"""What exceptions say of when to ask again, and how a worker heeds it."""

from __future__ import annotations

import asyncio
import email.message
import io
import urllib.error
from types import SimpleNamespace
from typing import Any

import pytest

import fanfold as ff
from fanfold.backends.retry_after import LEAST_WAIT_S, asked_wait_s
from fanfold.failures import LONGEST_WAIT_S
from fanfold.protocol import TasksFinished
from tests.backends import Rig, call_plan

DATE = "Mon, 30 Nov 2026 16:00:00 GMT"
LATER = "Mon, 30 Nov 2026 16:00:07 GMT"


class AnswerError(Exception):
    """As those of httpx, requests and openai are."""

    def __init__(self, status: int, headers: Any) -> None:
        self.response = SimpleNamespace(status_code=status, headers=headers)


class ClientResponseError(Exception):
    """As that of aiohttp is."""

    def __init__(self, status: int, headers: Any) -> None:
        self.status, self.headers = status, headers


def message(**headers: str) -> email.message.Message:
    made = email.message.Message()
    for name, value in headers.items():
        made[name.replace("_", "-")] = value
    return made


@pytest.mark.parametrize(
    ("error", "after_s"),
    [
        (ff.RetryLater(3), 3.0),
        (ff.RetryLater(0), LEAST_WAIT_S),
        (AnswerError(429, {"retry-after": "2.5"}), 2.5),
        (AnswerError(503, {"Retry-After": " 12 "}), 12.0),
        (AnswerError(429, message(Retry_After="4")), 4.0),
        (AnswerError(429, {"retry-after-ms": "1500", "retry-after": "9"}), 1.5),
        (AnswerError(503, {"retry-after": LATER, "date": DATE}), 7.0),
        (AnswerError(503, {"retry-after": DATE, "date": LATER}), LEAST_WAIT_S),
        (ClientResponseError(429, {"Retry-After": "5"}), 5.0),
        (urllib.error.HTTPError("u", 429, "m", message(Retry_After="6"), io.BytesIO()), 6.0),
        (AnswerError(429, {}), None),
        (AnswerError(302, {"retry-after": "5"}), None),
        (AnswerError(429, {"retry-after": "soon"}), None),
        (AnswerError(429, {"retry-after": "-1"}), None),
        (AnswerError(429, {"retry-after": "nan"}), None),
        (AnswerError(429, None), None),
        (AnswerError(429, [("retry-after", "1")]), None),
        (ValueError("retry-after"), None),
        (ff.ItemFailure("no"), None),
    ],
    ids=lambda value: type(value).__name__,
)
def test_an_exception_says_when(error, after_s):
    assert asked_wait_s(error) == after_s


def test_a_date_without_the_servers_clock_is_read_by_this_one():
    assert (
        asked_wait_s(AnswerError(503, {"retry-after": "Tue, 01 Jan 2002 00:00:00 GMT"}))
        == LEAST_WAIT_S
    )
    assert (
        asked_wait_s(AnswerError(503, {"retry-after": "Fri, 01 Jan 2100 00:00:00 GMT"})) or 0
    ) > 1e8


def test_an_exception_that_raises_when_it_is_asked_says_nothing():
    class Odd(Exception):
        @property
        def response(self) -> None:
            raise RuntimeError("not here")

    assert asked_wait_s(Odd()) is None


@pytest.mark.parametrize("after_s", [-1, float("inf"), float("nan"), "3", None])
def test_a_time_that_is_none_is_refused(after_s):
    with pytest.raises(ValueError, match="after_s="):
        ff.RetryLater(after_s)


def test_it_says_so_and_survives_pickling():
    import pickle

    error = pickle.loads(pickle.dumps(ff.RetryLater(3, "the server is busy")))
    assert (error.after_s, str(error)) == (3.0, "the server is busy (to be asked again in 3 s)")
    assert str(ff.RetryLater(0.5)) == "to be asked again in 0.5 s"


# ------------------------------------------------------------------------------------- in a worker


def failures(told: Any) -> dict[int, tuple[str, float | None, int]]:
    return {
        task: (failure.kind, failure.after_s, failure.attempts)
        for event in told.of(TasksFinished)
        for task, failure in event.failures
    }


def test_calls_that_would_begin_in_the_pause_are_not_made_and_come_after_it():
    asked: list[str] = []

    def ask(name: str) -> str:
        asked.append(name)
        if name == "busy":
            raise ff.RetryLater(3.0, "busy")
        return name.upper()

    rig = Rig(call_plan(ask))
    told = rig.run(["a", "busy", "c"])
    assert told.values == {0: "A"}
    assert failures(told) == {1: ("put_off", 3.0, 1), 2: ("put_off", 3.0, 0)}
    rig.time_s = 2.0
    assert failures(rig.run(["d"])) == {0: ("put_off", 1.0, 0)}
    rig.time_s = 3.0
    assert rig.run(["e"]).values == {0: "E"}
    assert asked == ["a", "busy", "e"]


def test_a_batch_raises_as_a_whole_and_an_item_in_its_place_is_put_off_by_itself():
    def ask(names: list[str]) -> list[Any]:
        if "down" in names:
            raise ff.RetryLater(3.0)
        return [ff.RetryLater(2.0) if name == "busy" else name.upper() for name in names]

    rig = Rig(call_plan(ask, batch_size=4))
    told = rig.run(["a", "busy", "c"])
    assert told.values == {0: "A", 2: "C"}
    assert failures(told) == {1: ("put_off", 2.0, 1)}
    rig.time_s = 2.0
    raised = rig.run(["down", "b"]).raised
    assert raised is not None and raised[0] == "put_off"


def test_a_pause_that_is_too_long_stops_nobody():
    def ask(name: str) -> str:
        if name == "quota":
            raise ff.RetryLater(LONGEST_WAIT_S + 1)
        return name

    told = Rig(call_plan(ask)).run(["quota", "b"])
    assert told.values == {1: "b"}
    assert failures(told) == {0: ("put_off", LONGEST_WAIT_S + 1, 1)}


def test_in_an_event_loop_those_under_way_go_on():
    from fanfold.backends.asynchronous import OwnLoopRunner

    class AsyncRig(Rig):
        make = OwnLoopRunner

    async def ask(name: str) -> str:
        if name == "busy":
            raise ff.RetryLater(3.0)
        await asyncio.sleep(0)
        return name.upper()

    told = AsyncRig(call_plan(ask, asynchronous=True, max_in_flight=2)).run(["a", "busy", "c"])
    assert told.values == {0: "A"}
    assert failures(told) == {1: ("put_off", 3.0, 1), 2: ("put_off", 3.0, 0)}
