"""The trace: writes down, in order and with source lines, what a pipeline's function does with ports.

Owns the graph under construction, the names of calls and ports, and the problems that only tracing can
see (ports of another trace, ports in containers, ports used as values). Knows nothing of levels: what the
operations mean together is the compiler's concern.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final

from fanfold.errors import DefinitionError, Problem
from fanfold.model.definition import StageDefinition
from fanfold.model.graph import BrokenOp, CallOp, FieldOp, GraphPort, Op
from fanfold.model.overrides import Overrides
from fanfold.model.port import Port
from fanfold.parts import Input, Where

_CURRENT: ContextVar[Trace | None] = ContextVar("fanfold_trace", default=None)
_OWN_MODULES: Final = ("fanfold.model.", "fanfold.compiler.", "fanfold.pipeline.")
_NAME_LIMIT_CHARS: Final = 60

MakeOp = Callable[[tuple[int, ...], Where], Op]


def current() -> Trace | None:
    """The trace that is being written in this thread, if any."""
    return _CURRENT.get()


def required(operation: str) -> Trace:
    """The current trace.

    Raises:
        DefinitionError: There is none (FF205).
    """
    trace = _CURRENT.get()
    if trace is None:
        raise DefinitionError(
            "FF205",
            f"{operation} at {here().short()} stands outside of a pipeline.",
            "Use it in a function decorated with @ff.pipeline.",
        )
    return trace


def here() -> Where:
    """The source line of the user's that is running: the innermost frame outside of this package's core."""
    frame = sys._getframe(1)
    while frame.f_back is not None:
        module = f"{frame.f_globals.get('__name__', '')}."
        if not module.startswith(_OWN_MODULES):
            break
        frame = frame.f_back
    return Where(frame.f_code.co_filename, frame.f_lineno)


def shortened(text: str) -> str:
    """A port's name for people, at most so long that it fits a line."""
    return text if len(text) <= _NAME_LIMIT_CHARS else text[: _NAME_LIMIT_CHARS - 1] + "…"


class Trace:
    """One tracing of one pipeline, with those that it calls inlined."""

    def __init__(self, name: str, overrides: Overrides) -> None:
        self.name = name
        self.ports: list[GraphPort] = []
        self.ops: list[Op] = []
        self.problems: list[Problem] = []
        self.stage_names: dict[str, None] = {}
        """Names of the stages that were called, as the user wrote them."""
        self._overrides = [overrides]
        self._calls: dict[str, int] = {}
        self._memo: dict[tuple[object, ...], tuple[Port[Any], ...]] = {}

    # ------------------------------------------------------------------------------- being current

    @property
    def active(self) -> bool:
        """Whether the pipeline's function is running now."""
        return _CURRENT.get() is self

    @contextmanager
    def recording(self) -> Iterator[None]:
        """Make this the current trace."""
        token = _CURRENT.set(self)
        try:
            yield
        finally:
            _CURRENT.reset(token)

    @contextmanager
    def inlining(self, overrides: Overrides) -> Iterator[None]:
        """Apply an inlined pipeline's own changes to its stages, before those of the pipelines around it."""
        self._overrides.append(overrides)
        try:
            yield
        finally:
            self._overrides.pop()

    # ------------------------------------------------------------------------------------ writing

    def problem(self, code: str, message: str, hint: str = "") -> None:
        """Note a problem at the user's current line; the same one at the same line once."""
        problem = Problem(code, here(), message, hint)
        if problem not in self.problems:
            self.problems.append(problem)

    def source(self, name: str) -> Port[Any]:
        """A new source port."""
        return self._new_port(name, None)

    def add(self, make: MakeOp, names: Sequence[str]) -> tuple[Port[Any], ...]:
        """Append an operation with one output per name."""
        node = len(self.ops)
        outputs = tuple(self._new_port(shortened(name), node) for name in names)
        self.ops.append(make(tuple(port._index for port in outputs), here()))
        return outputs

    def once(
        self, key: tuple[object, ...], make: MakeOp, names: Sequence[str]
    ) -> tuple[Port[Any], ...]:
        """As :meth:`add`, but the same operation again gives the same ports."""
        if key not in self._memo:
            self._memo[key] = self.add(make, names)
        return self._memo[key]

    def broken(self, used: Iterable[object], outputs: int) -> tuple[Port[Any], ...]:
        """Append the stand-in for a use whose problem was noted; ``used`` may hold anything."""
        ports = tuple(found._index for value in used for found in self._ports_in(value))
        return self.add(lambda made, where: BrokenOp(ports, made, where), ("?",) * outputs)

    def misused(self, port: Port[Any], what: str, hint: str) -> Port[Any]:
        """Note a use of a port as if it had a value."""
        trace = required(f"port {port._name!r}")
        if not trace._is_broken(port):
            trace.problem("FF207", f"port {port._name!r} {what}.", hint)
        return trace.broken([port], 1)[0]

    def inputs(self, operation: str, values: Sequence[object]) -> tuple[int, ...] | None:
        """The indices of ``values`` if all are ports of this trace; else notes why not, and None."""
        good = [self._is_own_port(f"{operation}: argument {n}", v) for n, v in enumerate(values, 1)]
        if not all(good):
            return None
        return tuple(value._index for value in values if isinstance(value, Port))

    def holds_no_port(self, operation: str, argument: str, value: object) -> bool:
        """Whether a value that should be constant is; notes a port found in it as a problem."""
        found = next(iter(self._ports_in(value, own=False)), None)
        if found is None:
            return True
        self.problem(
            "FF206",
            f"{operation}: {argument} is a {type(value).__name__} that holds port {found._name!r}.",
            "Pass each port as an argument of its own, or make one port of several with ff.record.",
        )
        return False

    def name_of(self, port: int) -> str:
        """A port's name for people."""
        return self.ports[port].name

    # ------------------------------------------------------------------------- fields and calls

    def field(self, port: Port[Any], name: object) -> Port[Any]:
        """``port[name]``."""
        trace = required(f"reading the field {name!r} of a port")
        inputs = trace.inputs(f"field {name!r}", [port])
        if inputs is not None and not isinstance(name, str):
            trace.problem(
                "FF219",
                f"port {port._name!r} is indexed with {name!r}; a field's name is a string.",
                "Pick elements of a value in a stage.",
            )
            inputs = None
        if inputs is None or not isinstance(name, str):
            return trace.broken([port], 1)[0]
        return trace.once(
            ("field", inputs[0], name),
            lambda outputs, where: FieldOp(inputs[0], name, outputs, where),
            [f"{port._name}[{name!r}]"],
        )[0]

    def call(
        self, stage: StageDefinition, args: Sequence[object], kwargs: Mapping[str, object]
    ) -> tuple[Port[Any], ...]:
        """One use of a stage: a port for each of its outputs."""
        self.stage_names[stage.name] = None
        for overrides in reversed(self._overrides):
            stage = overrides.apply(stage)
        self._calls[stage.name] = number = self._calls.get(stage.name, 0) + 1
        name = stage.name if number == 1 else f"{stage.name}#{number}"
        names = [
            name if len(stage.options.outputs) == 1 else f"{name}.{label or position}"
            for position, label in enumerate(stage.options.outputs)
        ]
        good = self._positional(name, args)
        inputs = [Input(value._index) for value in args if isinstance(value, Port)]
        static: dict[str, object] = {}
        for key, value in kwargs.items():
            if isinstance(value, Port):
                good &= self._is_own_port(f"call {name!r}: argument {key!r}", value)
                inputs.append(Input(value._index, key))
            else:
                good &= self.holds_no_port(f"call {name!r}", f"argument {key!r}", value)
                static[key] = value
        if good and not inputs:
            good = self._no_port(name)
        if not (good and self._fits(name, stage, args, kwargs)):
            return self.broken([*args, *kwargs.values()], len(names))
        return self.add(
            lambda outputs, where: CallOp(name, stage, tuple(inputs), static, outputs, where), names
        )

    # ------------------------------------------------------------------------------------ checks

    def _positional(self, call: str, args: Sequence[object]) -> bool:
        good = True
        for position, value in enumerate(args, 1):
            if isinstance(value, Port):
                good &= self._is_own_port(f"call {call!r}: argument {position}", value)
            elif self.holds_no_port(f"call {call!r}", f"argument {position}", value):
                good = False
                self.problem(
                    "FF210",
                    f"call {call!r}: argument {position} is {_shown(value)}, not a port.",
                    "Give values that are the same for all items by keyword.",
                )
            else:
                good = False
        return good

    def _no_port(self, call: str) -> bool:
        self.problem(
            "FF210",
            f"call {call!r} has no port among its arguments, so it belongs to no item.",
            "Pass it a port; to compute something once, call a plain function outside of the pipeline.",
        )
        return False

    def _fits(
        self,
        call: str,
        stage: StageDefinition,
        args: Sequence[object],
        kwargs: Mapping[str, object],
    ) -> bool:
        if stage.signature is None:
            return True
        try:
            stage.signature.bind(*args, **kwargs)
        except TypeError as error:
            self.problem(
                "FF217",
                f"call {call!r} does not fit {stage.name}{stage.signature}: {error}.",
                "Each port is one argument of the stage.",
            )
            return False
        return True

    def _is_own_port(self, what: str, value: object) -> bool:
        if not isinstance(value, Port):
            self.problem("FF210", f"{what} is {_shown(value)}, not a port.")
            return False
        if value._trace is not self:
            self.problem(
                "FF205",
                f"{what} is port {value._name!r} of another trace, pipeline {value._trace.name!r}.",
                "A port lives only while its own pipeline's function runs: call that pipeline with "
                "ports to build on its results.",
            )
            return False
        return True

    def _is_broken(self, port: Port[Any]) -> bool:
        node = port._trace.ports[port._index].node
        return node is not None and isinstance(port._trace.ops[node], BrokenOp)

    def _ports_in(self, value: object, own: bool = True, depth: int = 0) -> Iterator[Port[Any]]:
        """The ports in a value, also in the usual containers (``own``: of this trace only)."""
        if isinstance(value, Port):
            if not own or value._trace is self:
                yield value
        elif depth < 8:  # deep enough for anything written by hand; ends in cyclic containers too
            parts: Iterable[object] = ()
            if isinstance(value, Mapping):
                parts = [*value.keys(), *value.values()]
            elif isinstance(value, (list, tuple, set, frozenset)):
                parts = value
            for part in parts:
                yield from self._ports_in(part, own, depth + 1)

    def _new_port(self, name: str, node: int | None) -> Port[Any]:
        self.ports.append(GraphPort(len(self.ports), name, node))
        return Port(self, len(self.ports) - 1, name)


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _NAME_LIMIT_CHARS else f"a {type(value).__name__}"
