"""An asynchronous stage's runner: several calls under way, each reported as it ends."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from fanfold.backends.asynchronous import AsyncRunner, OwnLoopRunner
from fanfold.backends.inline import CONTAINED, MemoryValues
from fanfold.backends.stage_plan import stage_plan
from fanfold.failures import ItemFailure
from fanfold.plan import Plan
from fanfold.protocol import (
    BatchEvent,
    BatchFinished,
    BatchRaised,
    ItemRun,
    RunBatch,
    TasksFinished,
)
from fanfold.stage_context import context
from tests.backends import Rig, call_plan

CHILDREN = [[(0, ())]]


def plan_of(target: Any, **options: Any) -> Plan:
    return call_plan(target, asynchronous=True, **{"max_in_flight": 3, **options})


class Stage:
    """A replica, and gates at which its calls wait."""

    def __init__(self, plan: Plan) -> None:
        self.values = MemoryValues()
        self.events: list[BatchEvent] = []
        self.under_way: list[tuple[int, ...]] = []
        self.clock_s = 0.0
        self.runner = AsyncRunner(
            stage_plan(plan, 0), self.values, self.events.extend, clock=lambda: self.clock_s
        )
        self.runner.note = lambda batches: self.under_way.append(tuple(batches))
        self.runner.construct()

    def begin(self, number: int, items: list[Any]) -> asyncio.Task[None]:
        column = ("rows", self.values.put(0, items).ref, 0, len(items))
        batch = RunBatch(number, 0, len(items), (column,))
        return asyncio.get_running_loop().create_task(self.runner.work(batch))

    def of(self, kind: type[Any]) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind)]


def gated() -> tuple[Callable[[str], Awaitable[str]], list[str], dict[str, asyncio.Event]]:
    begun: list[str] = []
    gates: dict[str, asyncio.Event] = {}

    async def wait(name: str) -> str:
        begun.append(name)
        gates[name] = asyncio.Event()
        await gates[name].wait()
        return name.upper()

    return wait, begun, gates


async def settle() -> None:
    """Let everybody do what can be done."""
    for _ in range(20):
        await asyncio.sleep(0)


def test_batches_are_under_way_together_begin_in_order_and_end_as_they_may():
    async def main() -> None:
        wait, begun, gates = gated()
        stage = Stage(plan_of(wait))
        tasks = [stage.begin(number, [name]) for number, name in enumerate("abcde")]
        await settle()
        assert begun == ["a", "b", "c"], "no more than max_in_flight"
        assert stage.under_way[-1] == (0, 1, 2)
        gates["b"].set()
        await settle()
        assert [event.batch for event in stage.of(BatchFinished)] == [1]
        assert begun == ["a", "b", "c", "d"]
        assert stage.under_way[-1] == (0, 2, 3)
        for name in ("a", "c", "d"):
            gates[name].set()
        await settle()
        gates["e"].set()
        await asyncio.gather(*tasks)
        assert not stage.under_way[-1]

    asyncio.run(main())


def test_the_items_of_a_batch_are_under_way_together_and_told_in_their_order():
    async def main() -> None:
        wait, begun, gates = gated()
        stage = Stage(plan_of(wait))
        task = stage.begin(0, ["a", "b", "c", "d"])
        await settle()
        assert begun == ["a", "b", "c"]
        gates["b"].set()
        await settle()
        assert stage.of(TasksFinished) == [], "the first has not ended"
        gates["a"].set()
        await settle()
        assert [(e.first, e.count) for e in stage.of(TasksFinished)] == [(0, 1), (1, 1)]
        gates["c"].set()
        gates["d"].set()
        await task
        assert sum(e.count for e in stage.of(TasksFinished)) == 4

    asyncio.run(main())


def test_busy_time_is_told_once_however_many_calls_there_are():
    async def main() -> None:
        wait, _, gates = gated()
        stage = Stage(plan_of(wait))
        first = stage.begin(0, ["a"])
        await settle()
        stage.clock_s = 2.0
        second = stage.begin(1, ["b"])
        await settle()
        stage.clock_s = 5.0
        gates["a"].set()
        await first
        stage.clock_s = 6.0
        gates["b"].set()
        await second
        assert [event.busy_s for event in stage.of(BatchFinished)] == [5.0, 1.0]

    asyncio.run(main())


def test_what_is_under_way_can_be_cancelled_and_tells_nothing():
    async def main() -> None:
        wait, begun, _ = gated()
        stage = Stage(plan_of(wait))
        task = stage.begin(0, ["a", "b"])
        await settle()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert begun == ["a", "b"]
        assert stage.events == []

    asyncio.run(main())


class AsyncRig(Rig):
    """As :class:`Rig`, for asynchronous stages."""

    make = OwnLoopRunner


def test_every_call_that_is_under_way_may_have_a_thread():
    together = 70  # more than asyncio has by itself, on any machine
    meeting = threading.Barrier(together)

    async def meet(item: int) -> int:
        await asyncio.to_thread(meeting.wait, timeout=20)
        return item

    told = AsyncRig(plan_of(meet, max_in_flight=together)).run(list(range(together)))
    assert told.values == {item: item for item in range(together)}


def test_items_fail_by_themselves_whatever_they_raise():
    async def fragile(x: Any) -> Any:
        await asyncio.sleep(0)
        if x == "cancelled":
            raise asyncio.CancelledError
        if isinstance(x, BaseException):
            raise x
        return x

    rig = AsyncRig(plan_of(fragile))
    told = rig.run(
        [1, ValueError("bad"), SystemExit(3), ItemFailure("no", code="c"), "cancelled", 2]
    )
    assert told.values == {0: 1, 5: 2}
    assert told.failures[1] == ("raised", "ValueError: bad")
    assert told.failures[2] == ("raised", "SystemExit: 3")
    assert told.failures[3] == ("declared", "no")
    assert "it was cancelled" in told.failures[4][1]


def test_what_is_not_to_be_contained_comes_through():
    async def fragile(x: Any) -> Any:
        raise KeyError(x)

    rig = AsyncRig(plan_of(fragile), contain=())
    with pytest.raises(KeyError):
        rig.run([1])


def test_an_interrupt_is_the_users_own():
    async def interrupted(x: Any) -> Any:
        raise KeyboardInterrupt

    rig = AsyncRig(plan_of(interrupted), contain=CONTAINED)
    with pytest.raises(KeyboardInterrupt):
        rig.run([1])


def test_a_batched_function_gets_lists_and_raises_for_all():
    async def doubles(xs: list[int]) -> list[Any]:
        await asyncio.sleep(0)
        if 0 in xs:
            raise ValueError("zero")
        return [2 * x for x in xs if x != 9]

    rig = AsyncRig(plan_of(doubles, batch_size=8))
    assert rig.run([1, 2, 3]).values == {0: 2, 1: 4, 2: 6}
    assert rig.run([1, 0]).raised == ("raised", "ValueError: zero")
    assert rig.run([0]).failures == {0: ("raised", "ValueError: zero")}
    assert rig.run([1, 9]).raised is not None
    assert [e.counts for e in rig.flushes[-1] if isinstance(e, BatchRaised)] == [()]


def test_a_list_that_is_returned_can_be_expanded():
    async def upto(n: int) -> list[int]:
        return list(range(n))

    told = AsyncRig(plan_of(upto, expand=CHILDREN)).run([2, 0])
    assert told.children_of(0) == [0, 1]
    assert told.sealed == {1: [0, 1]}


def test_each_call_finds_its_own_context_also_after_it_has_waited():
    async def who(n: int) -> Any:
        await asyncio.sleep(0)
        context().count("items")
        return context().key, context().ordinals

    rig = AsyncRig(plan_of(who, identities=True))
    told = rig.run([0, 1, 2], identity=(ItemRun("a", (0,), 4, 0b11), ItemRun("b", (1,), 0, 1)))
    assert told.values == {0: ("a", (0, 4)), 1: ("a", (0, 5)), 2: ("b", (1, 0))}
    assert told.of(BatchFinished)[0].counts == (("who", "items", 3),)


def test_it_is_constructed_and_closed_in_its_loop(capsys):
    loops: list[asyncio.AbstractEventLoop] = []

    class Model:
        def __init__(self) -> None:
            loops.append(asyncio.get_running_loop())

        async def __call__(self, x: int) -> int:
            loops.append(asyncio.get_running_loop())
            return x

        async def close(self) -> None:
            loops.append(asyncio.get_running_loop())
            raise ValueError("cannot close")

    rig = AsyncRig(plan_of(Model, args=()))
    rig.run([1])
    rig.runner.close()
    assert len(loops) == 3 and len(set(loops)) == 1
    assert loops[0].is_closed()
    assert "cannot close" in capsys.readouterr().err
