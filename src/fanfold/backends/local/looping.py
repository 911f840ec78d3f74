"""What an asynchronous worker does, process or thread: begins batches as they come, until it is told to stop.

Owns the event loop of such a worker and the tasks in it. Where batches come from and where events go is the
caller's (``attach``, ``emit``); what a batch means to users' code is the runner's.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import TypeAlias

from fanfold.backends.asynchronous import AsyncRunner, stay
from fanfold.backends.base import worker_failed
from fanfold.backends.local.wire import Work
from fanfold.backends.own_memory import refuse_grown
from fanfold.coroutines import run_through
from fanfold.protocol import Event, RunBatch, WorkerStarted


class Host:
    """The batches of one worker; everything is called in its event loop.

    Args:
        runner: The replica, constructed.
    """

    def __init__(self, runner: AsyncRunner) -> None:
        self._runner = runner
        self._tasks: set[asyncio.Task[None]] = set()
        self._trimmed: dict[int, int] = {}
        """By batch: tasks that need not run any more."""
        runner.trimmed = lambda batch: self._trimmed.get(batch, 0)
        runner.lasting = True
        self._idle_s = time.perf_counter()
        self.over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """Done when the worker is to stop; with the exception, if something broke."""

    def take(self, message: Work) -> None:
        """A message has come."""
        if message.batch is not None:
            self._begin(message.batch)
        if message.trim is not None:
            batch, tasks = message.trim
            self._trimmed[batch] = self._trimmed.get(batch, 0) | tasks

    def _begin(self, batch: RunBatch) -> None:
        """Begin a batch as soon as there is room for it."""
        wait_s = 0.0 if self._tasks else time.perf_counter() - self._idle_s
        task = asyncio.get_running_loop().create_task(self._runner.work(batch, wait_s=wait_s))
        self._tasks.add(task)
        task.add_done_callback(lambda _: self._ended(task, batch))

    def _ended(self, task: asyncio.Task[None], batch: RunBatch) -> None:
        self._tasks.discard(task)
        if task.cancelled() and self._runner.lasting:  # by the stage, before it had begun
            self._begin(batch)
            return
        self._trimmed.pop(batch.batch, None)
        self._idle_s = time.perf_counter()
        error = None if task.cancelled() else task.exception()
        if error is not None and not self.over.done():
            self.over.set_exception(error)

    def stop(self) -> None:
        """There is no more to come."""
        if not self.over.done():
            self.over.set_result(None)

    async def wait(self) -> None:
        """Until the worker is to stop; a stage that cancels all tasks of the loop has cancelled this one too.

        Raises:
            BaseException: What broke.
        """
        while not self.over.done():
            try:
                await asyncio.wait([self.over])
            except asyncio.CancelledError:
                stay()
        self.over.result()

    async def close(self) -> None:
        """Cancel what is under way, then close the stage."""
        self._runner.lasting = False
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._runner.aclose()


Attach: TypeAlias = Callable[[Host], None]
"""Called in the loop, when the worker is ready: from now on the host is given batches, and told to stop."""


def serve(
    runner: AsyncRunner,
    worker: int,
    name: str,
    pid: int,
    emit: Callable[[Sequence[Event]], None],
    attach: Attach,
) -> None:
    """Construct a replica in an event loop, and run its batches there until it is told to stop.

    Args:
        runner: The replica, not constructed.
        worker: Its number.
        name: Its name.
        pid: Its process.
        emit: Takes events.
        attach: See :data:`Attach`.

    Raises:
        BaseException: What broke it, such as a channel that the driver has left.
    """

    async def main() -> None:
        try:
            runner.construct()
            refuse_grown(runner.stage)
        except BaseException as error:
            emit([worker_failed(worker, error, name)])
            return
        host = Host(runner)
        try:
            emit([WorkerStarted(worker, pid=pid)])
            attach(host)
            await host.wait()
        finally:
            await host.close()

    with asyncio.Runner() as loop:
        run_through(loop, main())
