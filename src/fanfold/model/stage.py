"""Stages: ``ff.stage`` and the objects that it makes.

Owns calling: with ports in a trace it becomes a call, with plain values it runs the user's code here.
What a stage *is* (target, options, checks) lives in :mod:`fanfold.model.definition`, the types that
editors see in :mod:`fanfold.model.typed`.
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections import namedtuple
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from fanfold.errors import DefinitionError
from fanfold.model.definition import StageDefinition, StageOptions, define, plain
from fanfold.model.port import Port
from fanfold.model.trace import current, here

if TYPE_CHECKING:
    from fanfold.direct import DirectCalls


class Stage:
    """A user's function or class with its options: one pool of workers, shared by all its calls.

    Made by :func:`fanfold.stage`. Called with ports inside a pipeline it adds a call to the pipeline; called
    with plain values anywhere else it runs the user's code here, in this thread, exceptions and all. An
    asynchronous function is run to its end and gives its result.
    """

    __name__: str

    def __init__(self, definition: StageDefinition) -> None:
        self._definition = definition
        self._direct: DirectCalls | None = None
        """What direct calls go to; it keeps the object that a class stage constructs at the first."""
        _dress(self, definition.target)

    @property
    def definition(self) -> StageDefinition:
        """What the compiler reads."""
        return self._definition

    @property
    def name(self) -> str:
        """``name=``, or the name of the function or class."""
        return self._definition.name

    @property
    def options(self) -> StageOptions:
        """The options, defaults filled in."""
        return self._definition.options

    @property
    def target(self) -> Callable[..., Any]:
        """The user's own function or class, as it was."""
        return self._definition.target

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        trace = current()
        if trace is None:
            self._refuse_ports(args, kwargs)
            return self._here()(*args, **kwargs)
        ports = trace.call(self._definition, args, kwargs)
        names = self._definition.options.outputs
        if len(ports) == 1:
            return ports[0]
        return _named(names)(*ports) if any(names) else ports

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}>"

    def __reduce__(self) -> str | tuple[Any, ...]:
        """A stage that other code mentions travels by name, or else without the object it constructed."""
        module, name = getattr(self, "__module__", ""), getattr(self, "__qualname__", "")
        if module != "__main__" and getattr(sys.modules.get(module), name, None) is self:
            return name
        return (type(self), (self._definition,))

    def _here(self) -> DirectCalls:
        if self._direct is None:
            from fanfold.direct import DirectCalls  # declaring a pipeline does without

            definition = self._definition
            self._direct = DirectCalls(
                definition.name,
                definition.target,
                args=definition.args,
                kwargs=definition.kwargs,
                is_class=definition.is_class,
                method=definition.options.method,
                asynchronous=definition.asynchronous,
                batched=definition.options.batch_size is not None,
            )
        return self._direct

    def _refuse_ports(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        if any(isinstance(value, Port) for value in (*args, *kwargs.values())):
            raise DefinitionError(
                "FF205",
                f"stage {self.name!r} was called with a port at {here().short()}, outside of a pipeline.",
                "Call stages with ports in a function decorated with @ff.pipeline.",
            )


class ClassStage(Stage):
    """A class with its options; a first call gives the constructor's arguments and yields the stage."""

    def __init__(self, definition: StageDefinition) -> None:
        super().__init__(definition)
        self._bound: list[Stage] = []

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        """The stage with these constructor arguments: the same object for equal ones.

        Raises:
            DefinitionError: The arguments do not fit the constructor (FF217), or are ports (FF222).
        """
        trace = current()
        if any(isinstance(value, Port) for value in (*args, *kwargs.values())):
            message = (
                f"stage {self.name!r} is a class: its first call takes the constructor's arguments, "
                "the second takes ports."
            )
            hint = f"Write {self.name}(…)(port), or {self.name}()(port) if there are none."
            if trace is None:
                raise DefinitionError("FF222", message, hint)
            trace.problem("FF222", message, hint)
            ports = trace.broken([*args, *kwargs.values()], len(self.options.outputs))
            return ports[0] if len(ports) == 1 else ports
        bound = self._normalized(args, kwargs)
        for stage in self._bound:
            definition = stage.definition
            if _equal((definition.args, definition.kwargs), bound):
                return stage
        stage = Stage(replace(self._definition, args=bound[0], kwargs=bound[1]))
        self._bound.append(stage)
        return stage

    def _normalized(
        self, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments in one form, so that ``Ocr("a")`` and ``Ocr(weights="a")`` are equal."""
        try:
            signature = inspect.signature(self.target)
        except (TypeError, ValueError):  # an extension class need not tell its signature
            return args, dict(kwargs)
        try:
            bound = signature.bind(*args, **kwargs)
        except TypeError as error:
            raise DefinitionError(
                "FF217",
                f"stage {self.name!r}: the constructor {self.name}{plain(signature)} was given other "
                f"arguments at {here().short()}: {error}.",
                "The first call of a class stage takes the constructor's arguments.",
            ) from None
        return bound.args, bound.kwargs


def make_stage(target: Any, *, name: str | None = None, **options: Any) -> Stage:
    """The stage of ``target``: a :class:`ClassStage` for classes.

    Raises:
        DefinitionError: See :func:`fanfold.model.definition.define`.
    """
    if isinstance(target, Stage):
        raise DefinitionError(
            "FF101",
            f"stage {target.name!r} is a stage already.",
            "Use stage.target to make another stage of the same function or class.",
        )
    definition = define(target, name=name, options=options)
    return ClassStage(definition) if definition.is_class else Stage(definition)


def _dress(stage: Stage, target: Any) -> None:
    """Name, module and docstring of the user's own; an object may answer with whatever it likes."""
    for name in functools.WRAPPER_ASSIGNMENTS:
        try:
            setattr(stage, name, getattr(target, name))
        except Exception:
            continue  # the stage keeps its class's
    stage.__wrapped__ = target  # type: ignore[attr-defined]  # as functools.update_wrapper does


@functools.cache
def _named(names: tuple[str, ...]) -> Any:
    """A tuple of ports with the outputs' names as attributes."""
    return namedtuple("Outputs", names)


def _equal(a: Any, b: Any) -> bool:
    """Equality that also tells ``1`` from ``True`` and ``1.0``, and never asks arrays for a truth value."""
    if a is b:
        return True
    if type(a) is not type(b):
        return False
    if isinstance(a, (tuple, list)):
        return len(a) == len(b) and all(_equal(x, y) for x, y in zip(a, b, strict=True))
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(_equal(value, b[key]) for key, value in a.items())
    try:
        return bool(a == b)
    except Exception:  # objects whose comparison has no truth value are equal to themselves only
        return False
