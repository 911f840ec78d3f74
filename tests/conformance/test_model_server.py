"""Asynchronous stages that ask a model server with continuous batching, over HTTP on the loopback interface.

What a run makes of the server's answers, its refusals and its end. Times are never measured: the server counts,
and answers when the test lets it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import fanfold as ff
from tests import chat_stages
from tests.openai_server import ModelServer, Refusal, serving

words = ff.stage(chat_stages.words, name="words")
SOON = Refusal(429, {"Retry-After": "0"}, "rate_limit_error")


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with serving(ModelServer(slots=4)) as started:
        yield started


def asking(ask: Any = chat_stages.ask, **options: Any) -> ff.Pipeline[Any, Any]:
    """Words of a document, asked one by one and gathered."""
    asked = ff.stage(ask, name="ask", **options)

    @ff.pipeline(level="document")
    def pipeline(document: ff.Port[str], *, port: int) -> Any:
        return ff.gather(asked(ff.expand(words(document), "word"), port=port))

    return pipeline


def answers(pipeline: Any, server: ModelServer, documents: list[str], **options: Any) -> list[Any]:
    results = list(pipeline.using({"port": server.port}).stream(documents, **options))
    assert [f for result in results for f in result.failures] == []
    return [result.value for result in results]


def upper(documents: list[str]) -> list[list[str]]:
    return [document.upper().split() for document in documents]


DOCUMENTS = [
    " ".join("x" * (1 + (d * 7 + w * 5) % 9) + f"-{d}-{w}" for w in range(12)) for d in range(8)
]


@pytest.mark.parametrize("workers", ["process", "thread"])
def test_answers_are_right_and_in_order_and_as_many_are_in_flight_as_may_be(server, workers):
    server.hold_until_in_flight(2 * 5)
    pipeline = asking(max_in_flight=5, replicas=2, workers=workers)
    assert answers(pipeline, server, DOCUMENTS) == upper(DOCUMENTS)
    assert server.most_in_flight == 2 * 5
    assert server.most_decoding == server.slots
    assert set(server.arrived.values()) == {1}
    asked = [word for document in DOCUMENTS for word in document.split()]
    assert server.answered != asked and sorted(server.answered) == sorted(asked)


@pytest.mark.parametrize("options", [{}, {"batch_size": 1}], ids=["items", "batches"])
def test_a_slow_request_delays_no_other_parent(server, options):
    server.hold("slow")
    ask = chat_stages.ask_all if options else chat_stages.ask
    pipeline = asking(ask, max_in_flight=2, **options).using({"port": server.port})
    documents = ["slow one", *DOCUMENTS]
    seen = []
    for result in pipeline.stream(documents, order="completed"):
        seen.append(result.key)
        if len(seen) == len(DOCUMENTS):
            server.let_go("slow")
    assert seen[-1] == "0" and sorted(seen) == sorted(map(str, range(len(documents))))


@pytest.mark.parametrize("backend", ["local", "inline"])
@pytest.mark.parametrize(
    "ask",
    [chat_stages.ask, chat_stages.ask_politely, chat_stages.ask_all],
    ids=lambda f: f.__name__,
)
def test_what_the_server_puts_off_is_asked_again_and_nothing_is_lost(server, ask, backend):
    refused = ["-0-3", "-2-7", "-5-0"]
    asked = [word for document in DOCUMENTS for word in document.split()]
    refused = [word for word in asked if word.endswith(tuple(refused))]
    for word in refused:
        server.script(word, SOON, SOON)
    options = {"batch_size": 4} if ask is chat_stages.ask_all else {}
    pipeline = asking(ask, max_in_flight=4, replicas=2, **options)
    assert answers(pipeline, server, DOCUMENTS, backend=backend) == upper(DOCUMENTS)
    assert {word: server.arrived[word] for word in refused} == dict.fromkeys(refused, 3)
    if not options:  # of a batch, others may have been asked in vain
        assert sum(server.arrived.values()) == len(asked) + 2 * len(refused)


def test_an_error_without_a_time_is_an_exception_and_a_declared_failure_is_none(server):
    server.script("bad", *[Refusal(400, kind="invalid_request_error", message="no")] * 2)
    server.script("broken", Refusal(500))
    pipeline = asking(max_in_flight=4, retries=1).using({"port": server.port})
    first, second = pipeline.stream(["a bad word", "a broken word"])
    assert [f.kind for f in first.failures] == ["raised"] and "400" in first.failures[0].message
    assert second.value == ["A", "BROKEN", "WORD"]
    assert (server.arrived["bad"], server.arrived["broken"]) == (2, 2)


def test_a_wait_that_nobody_waits_for_fails_the_item(server):
    server.script("quota", Refusal(429, {"Retry-After": "86400"}))
    pipeline = asking(max_in_flight=4, retries=3).using({"port": server.port})
    (result,) = pipeline.stream(["a quota word"])
    (failure,) = result.failures
    assert (failure.kind, failure.after_s) == ("put_off", 86400.0)
    assert server.arrived["quota"] == 1


@pytest.mark.parametrize("rate", [200, "200/s"])
def test_with_a_rate_all_is_answered_and_asked_once(server, rate):
    pipeline = asking(max_in_flight=8, replicas=2, rate_limit=rate)
    assert answers(pipeline, server, DOCUMENTS[:3]) == upper(DOCUMENTS[:3])
    assert set(server.arrived.values()) == {1}


def test_a_server_that_starts_anew_loses_nothing():
    first = ModelServer(slots=4)
    first.hold("hold-it")
    first.start()
    pipeline = asking(max_in_flight=4, replicas=2, retries=20).using({"port": first.port})
    documents = ["hold-it", *DOCUMENTS]
    stream = pipeline.stream(documents, order="completed")
    seen = {result.key: result.value for result in (next(stream), next(stream))}
    first.stop()  # with requests in flight
    with serving(ModelServer(slots=4, port=first.port)) as second:
        seen |= {result.key: result.value for result in stream}
        assert second.arrived["hold-it"] == 1
    assert [seen[str(i)] for i in range(len(documents))] == upper(documents)
