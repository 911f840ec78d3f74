"""Calling a stage's code here and now: no run, no worker, exceptions and all.

Owns what a direct call has in common with a worker: secrets are resolved, a class is set up and constructed
once, asynchronous code has a loop, and :func:`fanfold.context` has an answer.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from types import GeneratorType
from typing import Any, Final

from fanfold.coroutines import OwnLoop
from fanfold.secret import resolved
from fanfold.stage_context import Context, current, direct_context

_set_up: Final[set[type]] = set()
"""Classes whose ``setup_on_node`` has run in this process."""


class DirectCalls:
    """One stage's function or class, to be called with values.

    Args:
        name: The stage's name, which is the call's as well.
        target: The function, class or object.
        args: For a class: the constructor's arguments.
        kwargs: The same by keyword.
        is_class: Whether to construct it, at the first call.
        method: The entry point, if it is not called itself.
        asynchronous: Whether the entry point is ``async def``.
        batched: Whether it takes lists.
    """

    def __init__(
        self,
        name: str,
        target: Callable[..., Any],
        *,
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
        is_class: bool = False,
        method: str | None = None,
        asynchronous: bool = False,
        batched: bool = False,
    ) -> None:
        self._name = name
        self._target = target
        self._args = tuple(args)
        self._kwargs = dict(kwargs or {})
        self._is_class = is_class
        self._method = method
        self._batched = batched
        self._loop = OwnLoop() if asynchronous else None
        self._entry: Callable[..., Any] | None = None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """What the user's code returns; an asynchronous function's result, not its coroutine.

        Raises:
            SetupError: A secret is not known (FF440).
            Exception: Whatever the user's code raises.
        """
        if self._entry is None:
            self._entry = self._made()
        kwargs = resolved(kwargs, os.environ)
        given = next(iter((*args, *kwargs.values())), None)
        context = direct_context(self._name, _length(given) if self._batched else None)
        with current(context):
            if self._loop is not None:
                return self._loop.run(self._entry(*args, **kwargs))
            result = self._entry(*args, **kwargs)
        return _inside(context, result) if type(result) is GeneratorType else result

    def _made(self) -> Callable[..., Any]:
        target: Any = self._target
        if self._is_class:
            setup = getattr(target, "setup_on_node", None)
            if setup is not None and target not in _set_up:
                setup()
                _set_up.add(target)
            args = resolved(self._args, os.environ)
            kwargs = resolved(self._kwargs, os.environ)
            with current(Context()):
                if self._loop is not None:
                    target = self._loop.call(target, *args, **kwargs)
                else:
                    target = target(*args, **kwargs)
        entry: Callable[..., Any] = (
            target if self._method is None else getattr(target, self._method)
        )
        return entry


def _length(value: Any) -> int:
    try:
        return len(value)
    except TypeError:
        return 0


def _inside(context: Context, children: Generator[Any, None, None]) -> Iterator[Any]:
    """The same children; the generator's code finds the context whenever it runs."""
    try:
        while True:
            with current(context):
                try:
                    child = next(children)
                except StopIteration:
                    return
            yield child
    finally:
        with current(context):
            children.close()
