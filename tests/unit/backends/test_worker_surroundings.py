"""What a stage's runner puts around users' code: set-up and close, secrets, the context, counters."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import pytest

from fanfold import secret
from fanfold.backends.base import RunFacts
from fanfold.errors import SetupError
from fanfold.protocol import BatchFinished, BatchRaised, ItemRun
from fanfold.secret import Secret
from fanfold.stage_context import context, seed_of
from tests.backends import Rig, call_plan

CHILDREN = [[(0, ())]]
"""The first output is expanded."""


class Surroundings:
    """Tells what it finds around it."""

    log: ClassVar[list[str]] = []

    @staticmethod
    def setup_on_node() -> None:
        Surroundings.log.append(f"set up for {context().worker}")

    def __init__(self, *given: Any, token: Any = None) -> None:
        self.log.append(f"constructed in {context().worker}")
        self.given, self.token = given, token

    def __call__(self, x: Any, *, static: Any = None) -> Any:
        return context(), self.given, self.token, static

    def close(self) -> None:
        self.log.append("closed")


@pytest.fixture
def log(monkeypatch):
    monkeypatch.setattr(Surroundings, "log", [])
    monkeypatch.setattr(secret, "_hidden", {})
    return Surroundings.log


def test_a_class_is_set_up_constructed_and_closed(log):
    asked: list[int] = []

    def once(number: int, setup: Callable[[], object]) -> None:
        asked.append(number)
        setup()

    rig = Rig(call_plan(Surroundings, args=()), worker="S[0]", once=once)
    assert log == ["set up for S[0]", "constructed in S[0]"]
    assert asked == [0]
    rig.run([1])
    rig.runner.close()
    assert log[2:] == ["closed"]


def test_what_close_raises_is_shown_and_nothing_else(capsys, log):
    class Stubborn:
        def __call__(self, x: Any) -> Any:
            return x

        def close(self) -> None:
            raise ValueError("stuck with hunter2")

    secret.hide("PASSWORD", "hunter2")
    Rig(call_plan(Stubborn, args=()), worker="S[0]").runner.close()
    shown = capsys.readouterr().err
    assert "close() of worker S[0] raised" in shown
    assert "stuck with <secret PASSWORD>" in shown and "hunter2" not in shown


def test_an_object_that_was_given_is_not_closed():
    class Shared:
        __name__ = "shared"
        closed = False

        def __call__(self, x: Any) -> Any:
            return x

        def close(self) -> None:
            self.closed = True

    shared = Shared()
    Rig(call_plan(shared)).runner.close()
    assert not shared.closed, "others may hold it too"


def test_secrets_are_resolved_in_arguments_and_hidden_in_failures(monkeypatch, log):
    monkeypatch.setenv("TOKEN", "hunter2")
    plan = call_plan(
        Surroundings, args=(Secret("TOKEN"), [Secret("TOKEN")]), static={"static": Secret("TOKEN")}
    )
    (found,) = Rig(plan).run([1]).values.values()
    assert found[1:] == (("hunter2", ["hunter2"]), None, "hunter2")

    def fails(x: int, *, token: str) -> int:
        raise ValueError(f"no access with {token}")

    told = Rig(call_plan(fails, static={"token": Secret("TOKEN")})).run([1])
    assert told.failures == {0: ("raised", "ValueError: no access with <secret TOKEN>")}


def test_a_secret_that_is_not_there_keeps_the_stage_from_starting(monkeypatch):
    monkeypatch.delenv("TOKEN", raising=False)
    with pytest.raises(SetupError, match="FF440 the secret 'TOKEN'"):
        Rig(call_plan(Surroundings, args=(Secret("TOKEN"),)))


def test_the_context_tells_of_run_call_worker_attempt_and_item():
    def who(x: Any) -> Any:
        here = context()
        return (here.run, here.call, here.worker, here.attempt), (
            here.key,
            here.ordinals,
            here.seed,
        )

    rig = Rig(call_plan(who), worker="who[1]", run=RunFacts("r1", 7))
    identity = (ItemRun("a", (3,), 0, 0b11), ItemRun("b", (4,), 5, 0b1))
    told = rig.run([0, 1, 2], attempt=2, identity=identity)
    assert {around for around, _ in told.values.values()} == {("r1", "who", "who[1]", 2)}
    assert [who for _, who in told.values.values()] == [
        (key, ordinals, seed_of(7, "who", key, ordinals))
        for key, ordinals in [("a", (3, 0)), ("a", (3, 1)), ("b", (4, 5))]
    ]
    alone = rig.run([2], identity=(ItemRun("b", (4,), 5, 0b1),))
    assert alone.values[0][1] == told.values[2][1], "the seed does not depend on the batch"
    assert rig.run([0]).failures[0][1].startswith("UsageError: FF442")


def test_a_batched_stage_has_an_entry_for_each_item_and_a_generator_its_own():
    def keys(xs: list[Any]) -> list[str]:
        return [item.key for item in context().items]

    def child_keys(x: Any) -> Iterator[str]:
        yield context().key
        yield context().key

    identity = (ItemRun("a", (), 0, 1), ItemRun("b", (), 1, 1))
    assert Rig(call_plan(keys, batch_size=4)).run([0, 0], identity=identity).values == {
        0: "a",
        1: "b",
    }
    told = Rig(call_plan(child_keys, expand=CHILDREN, items=False)).run([0, 0], identity=identity)
    assert [told.children_of(task) for task in (0, 1)] == [["a", "a"], ["b", "b"]]


def test_what_is_counted_travels_with_the_end_of_the_batch():
    def counting_words(xs: list[str]) -> list[int]:
        for x in xs:
            context().count("words", len(x.split()))
        if "bad" in xs:
            raise ValueError("bad")
        return [0 for _ in xs]

    rig = Rig(call_plan(counting_words, batch_size=4))
    (finished,) = rig.run(["a b", "c"]).of(BatchFinished)
    assert finished.counts == (("counting_words", "words", 3),)
    (raised,) = rig.run(["bad", "d"]).of(BatchRaised)
    assert raised.counts == (("counting_words", "words", 2),)
    assert rig.run([""]).of(BatchFinished)[0].counts == (("counting_words", "words", 0),)
