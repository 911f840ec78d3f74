"""One item through one stage, alone: what a user's function or class makes of it.

Owns the interpreter's reading of stages (M2, M3, M14, M15, M21): arguments, batches of one, tuples of outputs,
children, and what counts as a failure. Knows nothing of other items, of levels or of outcomes, and shares
no code with the workers: it is the second opinion on them.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from fanfold.columns import get_field
from fanfold.coroutines import OwnLoop
from fanfold.failures import Failure, ItemFailure, ParentFailure, declared
from fanfold.plan import CallNode, ExpandNode, FieldNode, Plan
from fanfold.protocol import ItemRun
from fanfold.secret import resolved
from fanfold.stage_context import Context, current

NOBODY: Final = ItemRun("", (), 0, 1)
"""An item of which nothing is known."""


@dataclass(frozen=True, slots=True)
class Made:
    """What one item became: a value per output, or why not, and what a generator released before."""

    outputs: tuple[Any, ...] = ()
    failure: Failure | None = None
    """Not yet placed: it has no call, key or ordinals."""
    released: list[tuple[Any, ...]] | None = None
    """A generator's children, one row of outputs each; None if the stage made none."""


class ContractBroken(Exception):
    """The stage returned something of the wrong shape."""


class WorkerKilled(Exception):
    """Raised by made-up stages in the place of what takes a whole process down, whatever worker runs it."""


class Stages:
    """A plan's stages, ready to be called. Class stages are constructed once, when first needed.

    Args:
        plan: The compiled pipeline.
        tracebacks: Whether failures get theirs, which takes longer than most made-up stages run.
    """

    def __init__(self, plan: Plan, *, tracebacks: bool = False) -> None:
        self._plan, self._tracebacks = plan, tracebacks
        self._entries: dict[int, Callable[..., Any]] = {}
        self._loop = OwnLoop()

    def run(self, call: CallNode, values: Sequence[Any], who: ItemRun = NOBODY) -> Made:
        """Run ``call`` on one item, ``who``, whose inputs are ``values``."""
        context = Context(call=call.name)
        context.begin(1, (who,), None if self._batched(call) else 0)
        with current(context):
            return self._run(call, values)

    def _run(self, call: CallNode, values: Sequence[Any]) -> Made:
        count = len(call.outputs)
        released: list[tuple[Any, ...]] | None = None
        try:
            result = self._invoke(call, values)
            if isinstance(result, Iterator) and not self._batched(call):
                released = []
                for child in result:
                    released.append(_tuple(child, count))
                outputs = tuple([row[position] for row in released] for position in range(count))
            else:
                outputs = _tuple(result, count)
                self._check_children(call, outputs)
        except ContractBroken as error:
            failure = Failure(kind="contract", message=str(error))
            return Made(failure=failure, released=released)
        except WorkerKilled as error:
            failure = Failure(kind="worker_died", message=str(error))
            return Made(failure=failure, released=released)
        except Exception as error:
            shown = error if self._tracebacks else error.with_traceback(None)
            failure = Failure.from_exception(shown)
            return Made(failure=failure, released=released)
        return Made(outputs, released=released)

    def _batched(self, call: CallNode) -> bool:
        return self._plan.stages[call.stage].batch_size is not None

    def _invoke(self, call: CallNode, values: Sequence[Any]) -> Any:
        """Call the entry point on the item as it is, or on a batch of one."""
        batched = self._batched(call)
        positional: list[Any] = []
        named: dict[str, Any] = {}
        for port, value in zip(call.inputs, values, strict=True):
            given = [value] if batched else value
            if port.keyword is None:
                positional.append(given)
            else:
                named[port.keyword] = given
        static = resolved(dict(call.static), os.environ)
        result = self.construct(call.stage)(*positional, **named, **static)
        if self._plan.stages[call.stage].asynchronous:
            result = self._loop.run(result)
        if not batched:
            return result
        if not is_sequence(result) or len(result) != 1:
            raise ContractBroken("a batched stage returns one element per item")
        return result[0]

    def construct(self, index: int) -> Callable[..., Any]:
        """A stage's entry point; a class is constructed once.

        Raises:
            Exception: Whatever the constructor raises.
        """
        if index not in self._entries:
            stage = self._plan.stages[index]
            made: Any = stage.target
            if stage.is_class:
                args, kwargs = resolved((stage.args, dict(stage.kwargs)), os.environ)
                if hasattr(made, "setup_on_node"):
                    made.setup_on_node()
                if stage.asynchronous:
                    made = self._loop.call(made, *args, **kwargs)
                else:
                    made = made(*args, **kwargs)
            self._entries[index] = getattr(made, stage.method) if stage.method else made
        return self._entries[index]

    def _check_children(self, call: CallNode, outputs: Sequence[Any]) -> None:
        """What is expanded has to be children; aligned ones have to be equally many."""
        for node in self._plan.nodes:
            if not isinstance(node, ExpandNode) or node.call != call.index:
                continue
            try:
                opened = [self._look_up(call, port, outputs) for port in node.inputs]
            except LookupError:
                continue  # The field's own item fails, and the expansion with it, but not the task.
            if not all(map(is_sequence, opened)):
                raise ContractBroken("children are a list, a tuple, an array or an iterator")
            _refuse_exceptions([child for children in opened for child in children])
            if len({len(children) for children in opened}) > 1:
                raise ContractBroken("aligned children are equally many")

    def _look_up(self, call: CallNode, port: int, outputs: Sequence[Any]) -> Any:
        """The value at ``port``: an output of ``call``, or a field of one."""
        if port in call.outputs:
            return outputs[call.outputs.index(port)]
        index = self._plan.ports[port].node
        node = None if index is None else self._plan.nodes[index]
        assert isinstance(node, FieldNode), "only outputs and their fields are expanded"
        return get_field(self._look_up(call, node.input, outputs), node.name)


def is_sequence(value: Any) -> bool:
    """Lists, tuples and arrays with a first axis; no text, mapping or set."""
    if isinstance(value, (str, bytes, bytearray, Mapping)):
        return False
    return isinstance(value, Sequence) or bool(getattr(value, "shape", ()))


def is_bool(value: Any) -> bool:
    """A mask's value: true or false, also of an array library's own kind."""
    return isinstance(value, bool) or type(value).__name__ in ("bool", "bool_")


def _tuple(result: Any, count: int) -> tuple[Any, ...]:
    """One value per declared output. An exception in place of any of them fails the task."""
    values = (result,) if count == 1 else result
    _refuse_exceptions([values])
    if not isinstance(values, tuple) or len(values) != count:
        raise ContractBroken(f"a stage with {count} outputs returns tuples of {count}")
    _refuse_exceptions(values)
    return values


def _refuse_exceptions(values: Sequence[Any]) -> None:
    """Fail the task if some of ``values``, which stand for items, outputs or children, are exceptions.

    A parent failure outranks the others.
    """
    found = declared(values)
    if isinstance(found, (ItemFailure, ParentFailure)):
        raise found
    if found is not None:
        raise ContractBroken("an exception is no value")
