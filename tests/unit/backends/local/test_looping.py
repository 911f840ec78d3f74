"""An asynchronous worker's batches go on, whatever a stage does to the tasks of their loop."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from fanfold.backends.local.looping import Host
from fanfold.backends.local.wire import Work
from fanfold.protocol import RunBatch


class Runner:
    """Notes which batches it has run."""

    lasting = False

    def __init__(self) -> None:
        self.ran: list[int] = []
        self.trimmed: Any = None

    async def work(self, batch: RunBatch, *, wait_s: float = 0.0) -> None:
        self.ran.append(batch.batch)

    async def aclose(self) -> None:
        self.ran.append(-1)


def sweep() -> None:
    """Cancel all tasks of the loop but the one that does."""
    for task in asyncio.all_tasks() - {asyncio.current_task()}:
        task.cancel()


async def until(host: Host, runner: Runner, ran: list[int]) -> None:
    """Let the loop turn until these batches have run."""
    async with asyncio.timeout(60):
        while runner.ran != ran:
            await asyncio.sleep(0)


def test_a_batch_that_is_cancelled_before_it_began_begins_again():
    async def main() -> None:
        runner = Runner()
        host = Host(runner)  # type: ignore[arg-type]  # all that a host asks of one
        host.take(Work(RunBatch(7, 0, 1, ())))
        sweep()
        await until(host, runner, [7])

    asyncio.run(main())


def test_what_is_under_way_when_a_worker_stops_is_cancelled_for_good():
    async def main() -> None:
        runner = Runner()
        host = Host(runner)  # type: ignore[arg-type]  # as above
        host.take(Work(RunBatch(7, 0, 1, ())))
        await host.close()
        await asyncio.sleep(0)
        assert runner.ran == [-1]

    asyncio.run(main())


def test_a_worker_waits_on_although_it_was_cancelled():
    async def main() -> None:
        host = Host(Runner())  # type: ignore[arg-type]  # as above
        waiting = asyncio.create_task(host.wait())
        for _ in range(3):
            await asyncio.sleep(0)
            waiting.cancel()
        await asyncio.sleep(0)
        assert not waiting.done()
        host.stop()
        await waiting

    asyncio.run(main())


def test_what_breaks_a_batch_ends_the_wait():
    class Broken(Runner):
        async def work(self, batch: RunBatch, *, wait_s: float = 0.0) -> None:
            raise BrokenPipeError("nobody listens")

    async def main() -> None:
        host = Host(Broken())  # type: ignore[arg-type]  # as above
        host.take(Work(RunBatch(7, 0, 1, ())))
        with pytest.raises(BrokenPipeError):
            await host.wait()

    asyncio.run(main())
