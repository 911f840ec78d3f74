"""Runs the code of an ``async def`` stage: several calls under way at a time, each reported as it ends.

Owns what is special about coroutines: how many are under way, in which order they begin, what becomes of them
at the end. What users' functions take and give is as in :mod:`fanfold.backends.worker`. Everything here is
used inside of one running event loop; :class:`OwnLoopRunner` brings one along.

Rules
-----
1. Batches begin in the order of submission. Of a stage that takes one item at a time ``max_in_flight`` items
   are under way, of a batched one as many batches.
2. The tasks of a batch are reported in their order, each as soon as those before it have ended too. So a stage
   that is to have each result at once gets batches of one item.
3. A stage may cancel all tasks of its loop. Its own calls that have begun fail by that; whatever else was
    met is the worker's, and goes on.
4. A worker's busy time is the time in which at least one call was under way; it is told in parts that add up.
5. Each call that is under way may have a thread by ``asyncio.to_thread``.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, Final, TypeAlias

from fanfold.backends.batch_run import BatchRun, left_out
from fanfold.backends.worker import StageRunner, show_failed_close
from fanfold.coroutines import OwnLoop
from fanfold.protocol import RunBatch
from fanfold.stage_context import current

LEAST_THREADS: Final = 32
"""The most that asyncio itself would start for ``asyncio.to_thread``."""
_Ended: TypeAlias = tuple[Any, BaseException | None]
"""What a call returned, or what it raised."""


class AsyncRunner(StageRunner):
    """One replica of an asynchronous stage; arguments as for :class:`StageRunner`."""

    note: Callable[[Sequence[int]], None] | None = None
    """Told of the batches that are under way, whenever these change; the oldest comes first."""
    lasting = False
    """Whether a cancellation is taken for the stage's doing, and what is under way goes on (rule 3)."""

    def construct(self) -> None:
        """As :meth:`StageRunner.construct`, inside of the running loop."""
        most = self._plan.stage.max_in_flight
        # Before users' code, which may have its own. asyncio's is sized to the machine's cores: calls that are
        # under way would wait for each other in asyncio.to_thread. Threads are started as they are needed.
        threads = ThreadPoolExecutor(max(most, LEAST_THREADS), thread_name_prefix="asyncio")
        asyncio.get_running_loop().set_default_executor(threads)
        super().construct()
        self._room = asyncio.Semaphore(most)
        self._told_s = self._clock()
        self._under_way: dict[int, None] = {}

    async def work(self, batch: RunBatch, *, wait_s: float = 0.0) -> None:
        """Run a batch, beside others; every event that the protocol asks for is emitted before this returns.

        Raises:
            BaseException: What users' code raised, if it is not among those to contain.
        """
        run = self._open(batch)
        run.context = run.context.at(None)  # the stage's own goes on to the next batch
        started_s = self._clock()
        raised: BaseException | None = None
        try:
            columns = self._values.read(batch.columns)
        except BaseException as error:
            raised = error
        else:
            if self._plan.stage.batch_size is None:
                await self._items(run, list(zip(*columns, strict=True)))
            else:
                raised = await self._batch(run, columns)
        run.busy_s = self._busy_s(started_s)
        self._under_way.pop(batch.batch, None)
        if raised is None or not self._blame(run, raised):
            self._finish(run, wait_s)
        if self.note is not None:
            self.note(tuple(self._under_way))

    async def _batch(self, run: BatchRun, columns: Sequence[list[Any]]) -> BaseException | None:
        """Run a batched stage; what it raised."""
        begin = partial(self._call, run, None, columns)
        returned, error = await self._ended(asyncio.ensure_future(begin()), begin)
        if error is None:
            try:
                results = run.results_of(returned, run.batch.count)
            except BaseException as broken:
                return broken
            run.deliver(results)
        return error

    async def _items(self, run: BatchRun, rows: Sequence[tuple[Any, ...]]) -> None:
        """Run all items of a batch, as there is room for them."""
        calls = [partial(self._call, run, task, values) for task, values in enumerate(rows)]
        begun = [asyncio.ensure_future(call()) for call in calls]
        try:
            for task, one in enumerate(begun):
                returned, error = await self._ended(one, calls[task])
                if error is None:
                    with current(run.context.at(task)):
                        try:
                            run.take(task, returned)
                        except BaseException as broken:
                            error = broken
                if error is not None:
                    run.fail(task, error)
                if task + 1 < len(begun):
                    run.delivery.flush(task + 1)
        finally:
            for one in begun:
                one.cancel()

    async def _call(self, run: BatchRun, task: int | None, values: Sequence[Any]) -> _Ended:
        """One call of the user's function. What it raises is a result: asyncio lets some exceptions out of
        their tasks, and they would end the worker."""
        async with self._room:
            if run.batch.batch not in self._under_way:
                self._under_way[run.batch.batch] = None
                if self.note is not None:
                    self.note(tuple(self._under_way))
            with current(run.context.at(task)):
                if task is not None and self.trimmed(run.batch.batch) >> task & 1:
                    return None, left_out()
                try:
                    return await run.call(values), None
                except asyncio.CancelledError as error:
                    return None, RuntimeError(f"it was cancelled ({error!r})")
                except BaseException as error:
                    self._heed(error)  # at once: a call that waits for room begins next
                    return None, error

    async def _ended(
        self, call: asyncio.Future[_Ended], begin: Callable[[], Coroutine[Any, Any, _Ended]]
    ) -> _Ended:
        """Wait for a call; if nobody waits any more, it is over for the call as well. If it was cancelled
        before users' code was reached, it begins again."""
        while True:
            try:
                await asyncio.wait([call])
            except asyncio.CancelledError:
                if not self.lasting:
                    call.cancel()
                    raise
                stay()
            if call.done():
                if not (self.lasting and call.cancelled()):
                    return call.result()
                call = asyncio.ensure_future(begin())

    def _busy_s(self, started_s: float) -> float:
        """The time from ``started_s`` until now, without what was told of it before."""
        now_s = self._clock()
        busy_s = now_s - max(started_s, self._told_s)
        self._told_s = now_s
        return busy_s

    async def aclose(self) -> None:
        """As :meth:`StageRunner.close`; a ``close`` that is ``async def`` is awaited."""
        close = getattr(self._instance, "close", None)
        if callable(close):
            try:
                closing = close()
                if inspect.isawaitable(closing):
                    await closing
            except Exception:
                show_failed_close(self._worker)


def stay() -> None:
    """The current task goes on although it was cancelled."""
    task = asyncio.current_task()
    assert task is not None, "nobody else can be cancelled"
    task.uncancel()


class OwnLoopRunner(AsyncRunner):
    """An asynchronous stage whose batches are run one after the other, from ordinary code, in its own loop."""

    def construct(self) -> None:
        """As :meth:`StageRunner.construct`."""
        self._loop = OwnLoop()
        self._loop.call(super().construct)

    def run(self, batch: RunBatch, *, wait_s: float = 0.0) -> bool:
        """As :meth:`StageRunner.run`; it never pauses."""
        self._loop.run(self.work(batch, wait_s=wait_s))
        return True

    def close(self) -> None:
        """As :meth:`StageRunner.close`, then the loop's end."""
        self._loop.run(self.aclose())
        self._loop.close()
