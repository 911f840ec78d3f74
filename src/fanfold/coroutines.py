"""An event loop of one's own for asynchronous stages, wherever the caller stands.

Owns the choice of the thread: a loop runs in the thread that asks, or in a helper if that one is inside of
another loop already, as every cell of a notebook is.
"""

from __future__ import annotations

import contextvars
import sys
import threading
import weakref
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    import asyncio

T = TypeVar("T")


class OwnLoop:
    """A loop that lives from its first use until it is closed or forgotten; what it made finds it again."""

    def __init__(self) -> None:
        self._runner: asyncio.Runner | None = None

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine to its end.

        Raises:
            BaseException: What the coroutine raises.
        """
        import asyncio  # 20 ms that most pipelines do without

        result: T

        if self._runner is None:
            self._runner = asyncio.Runner()
            # Nobody closes what direct calls use, and a loop that is merely forgotten warns.
            self._forgotten = weakref.finalize(self, _close_loop, self._runner)
        runner = self._runner
        context = contextvars.copy_context()  # else it would be that of the first coroutine
        if _is_inside():
            result, error = _elsewhere(lambda: run_through(runner, _contained(coroutine), context))
        else:
            result, error = run_through(runner, _contained(coroutine), context)
        if error is not None:
            raise error
        return result

    def call(self, function: Callable[..., T], *args: Any, **kwargs: Any) -> T:
        """Call an ordinary function inside of the loop, where it may make what belongs to one."""

        async def called() -> T:
            return function(*args, **kwargs)

        return self.run(called())

    def close(self) -> None:
        """Cancel what is left and close the loop."""
        runner, self._runner = self._runner, None
        if runner is None:
            return
        self._forgotten.detach()
        if _is_inside():
            _elsewhere(runner.close)
        else:
            runner.close()


def run_through(
    runner: asyncio.Runner,
    coroutine: Coroutine[Any, Any, T],
    context: contextvars.Context | None = None,
) -> T:
    """Run a coroutine to its end, also if users' code stops the loop on the way: the loop is not theirs.

    Raises:
        BaseException: What the coroutine raises.
    """
    task = runner.get_loop().create_task(coroutine, context=context)
    while True:
        try:
            return runner.run(_awaited(task))
        except RuntimeError:
            if task.done():
                raise
            sys.stderr.write(
                "A stage stopped the event loop that it runs in, which is its worker's. It goes on.\n"
            )


async def _awaited(task: asyncio.Task[T]) -> T:
    return await task


async def _contained(coroutine: Coroutine[Any, Any, T]) -> tuple[Any, BaseException | None]:
    """A coroutine's result, or which of the exceptions it raised that would break out of the loop itself."""
    try:
        return await coroutine, None
    except (KeyboardInterrupt, SystemExit) as error:
        return None, error


def _close_loop(runner: asyncio.Runner) -> None:
    runner.get_loop().close()


def _is_inside() -> bool:
    """Whether a loop is running in this thread."""
    import asyncio

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _elsewhere(function: Callable[[], T]) -> T:
    """Call ``function`` in a thread of its own, in this one's context, and wait for it."""
    results: list[T] = []
    errors: list[BaseException] = []

    def target() -> None:
        try:
            results.append(function())
        except BaseException as error:  # raised again below, in the thread that asked
            errors.append(error)

    thread = threading.Thread(target=contextvars.copy_context().run, args=(target,), daemon=True)
    thread.start()
    thread.join()
    if errors:
        raise errors[0]
    return results[0]
