"""Direct calls: a stage's code here and now, with all that it finds in a run."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

import fanfold as ff


def test_a_direct_call_raises_the_first_exception_whatever_retries_say():
    tried = []

    @ff.stage(retries=2)
    def flaky(text):
        tried.append(text)
        raise OSError("gone")

    for call in (flaky, ff.pipeline(lambda text: flaky(text))):
        with pytest.raises(OSError, match="gone"):
            call("a")
    assert tried == ["a", "a"]


class Remote:
    set_up = 0
    made = 0

    @staticmethod
    def setup_on_node():
        Remote.set_up += 1

    def __init__(self, token: str) -> None:
        Remote.made += 1
        self.loop = asyncio.get_running_loop()
        self.token = token

    async def __call__(self, text: str) -> str:
        await asyncio.sleep(0)
        assert asyncio.get_running_loop() is self.loop
        return f"{self.token}:{text}"


def test_an_asynchronous_class_is_set_up_and_constructed_once_in_its_loop(monkeypatch):
    monkeypatch.setenv("TOKEN", "t")
    remote = ff.stage(Remote)
    assert remote(ff.Secret("TOKEN"))("a") == "t:a"
    assert remote(ff.Secret("TOKEN"))("b") == "t:b"
    assert remote("u")("c") == "u:c"
    assert (Remote.set_up, Remote.made) == (1, 2)


def test_an_asynchronous_function_gives_its_result_also_where_a_loop_runs():
    @ff.stage
    async def double(n: int) -> int:
        await asyncio.sleep(0)
        return 2 * n

    async def cell() -> int:
        return double(4)

    assert double(3) == 6
    assert asyncio.run(cell()) == 8


def test_static_arguments_may_be_secrets(monkeypatch):
    @ff.stage
    def fetch(url: str, *, token: str) -> str:
        return url + token

    monkeypatch.setenv("TOKEN", "t")
    assert fetch("u", token=ff.Secret("TOKEN")) == "ut"
    with pytest.raises(ff.SetupError, match="FF440"):
        fetch("u", token=ff.Secret("NOWHERE"))


def test_the_context_tells_of_one_item_or_of_as_many_as_there_are():
    @ff.stage
    def one(n: int) -> Any:
        here = ff.context()
        here.count("n", n)
        return here.run, here.call, here.key, here.ordinals, here.attempt, here.seed

    @ff.stage(batch_size=2)
    def many(ns: list[int]) -> list[int]:
        return [item.seed for item in ff.context().items]

    assert one(1)[:5] == ("", "one", "0", (0,), 1)
    assert one(1) == one(2), "calls of no run are all alike"
    assert len(set(many([1, 2, 3]))) == 3


def test_a_generator_finds_the_context_whenever_it_runs_and_is_closed_when_it_is_left():
    closed = []

    @ff.stage
    def count(n: int) -> Iterator[Any]:
        try:
            for i in range(n):
                yield ff.context().call, i
        finally:
            closed.append(ff.context().call)

    assert list(count(2)) == [("count", 0), ("count", 1)]
    children: Any = count(5)
    assert next(iter(children)) == ("count", 0)
    with pytest.raises(ff.UsageError):
        ff.context()
    children.close()
    assert closed == ["count", "count"]


def test_a_pipeline_called_with_values_runs_asynchronous_stages_and_closes_them(monkeypatch):
    closed = []

    class Model:
        def __init__(self, token: str) -> None:
            self.loop = asyncio.get_running_loop()

        async def __call__(self, n: int) -> int:
            assert asyncio.get_running_loop() is self.loop
            if n < 0:
                raise ValueError("negative")
            return n + 1

        async def close(self) -> None:
            closed.append(asyncio.get_running_loop() is self.loop)

    model = ff.stage(Model)

    @ff.pipeline
    def grown(n: ff.Port[int], *, token: str = "x") -> ff.Port[int]:
        return model(token)(n)

    assert grown(1) == 2
    assert closed == [True]
    with pytest.raises(ValueError, match="negative"):
        grown(-1)
    assert closed == [True, True]
    monkeypatch.setenv("TOKEN", "t")
    assert grown(1, token=ff.Secret("TOKEN")) == 2
    monkeypatch.delenv("TOKEN")
    with pytest.raises(ff.SetupError, match="FF440"):
        grown(1, token=ff.Secret("TOKEN"))
