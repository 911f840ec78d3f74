"""An event loop of one's own for asynchronous stages, wherever the caller stands.

Owns the choice of the thread: a loop runs in the thread that asks, or in a helper if that one is inside of
another loop already, as every cell of a notebook is.
"""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    import asyncio

T = TypeVar("T")


class OwnLoop:
    """A loop that lives from its first use until it is closed; what was made in it finds it again."""

    def __init__(self) -> None:
        self._runner: asyncio.Runner | None = None

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine to its end.

        Raises:
            BaseException: What the coroutine raises.
        """
        import asyncio  # 20 ms that most pipelines do without

        runner = self._runner = self._runner or asyncio.Runner()
        context = contextvars.copy_context()  # else it would be that of the first coroutine
        if _is_inside():
            return _elsewhere(lambda: runner.run(coroutine, context=context))
        return runner.run(coroutine, context=context)

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
        if _is_inside():
            _elsewhere(runner.close)
        else:
            runner.close()


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
