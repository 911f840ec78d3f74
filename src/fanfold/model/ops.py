"""The structural operations: expand, gather, filter, split, merge, broadcast, field and record.

Owns their signatures and what can be said of their arguments alone. None runs any code of a user's or
occupies a worker; whether they fit together is checked by the compiler, with all other problems.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from types import EllipsisType
from typing import Any, Final, Literal, Protocol, TypeVar, overload

from fanfold.failures import Failure
from fanfold.model.graph import (
    BroadcastOp,
    ExpandOp,
    FilterOp,
    GatherOp,
    MergeOp,
    RecordOp,
    SplitOp,
)
from fanfold.model.port import Port
from fanfold.model.trace import Trace, required
from fanfold.parts import Constant

A = TypeVar("A")
B = TypeVar("B")
C = TypeVar("C")
D = TypeVar("D")
T = TypeVar("T")


class _Missing:
    """The type of a default that was not given (``None`` is a value)."""

    def __repr__(self) -> str:
        return "<not given>"


_MISSING: Final = _Missing()


class _Array(Protocol):
    """An array or tensor: children along its first axis."""

    @property
    def shape(self) -> Any: ...


# Children[T] is a list[T] to type checkers, so a generator's port fits the first overload.
@overload
def expand(port: Port[list[T]], name: str, /) -> Port[T]: ...
@overload
def expand(port: Port[tuple[T, ...]], name: str, /) -> Port[T]: ...
@overload
def expand(port: Port[_Array], name: str, /) -> Port[Any]: ...
@overload
def expand(a: Port[list[A]], b: Port[list[B]], name: str, /) -> tuple[Port[A], Port[B]]: ...
@overload
def expand(
    a: Port[Any], b: Port[Any], /, *more_and_name: Port[Any] | str
) -> tuple[Port[Any], ...]: ...
def expand(*ports_and_name: Any) -> Any:
    """Open values into ordered children: a new level below the port's own.

    Args:
        *ports_and_name: One output of a call (or a field of one) and the new level's name. Several outputs
            of one call are *aligned*: they share the level and have equal counts for each parent.

    Returns:
        A port at the child level; one per given port if there are several. The same expand again gives
        the same port.

    Raises:
        DefinitionError: It stands outside of a pipeline (FF205). Other problems are told with all the rest
            of the pipeline's when it is compiled.

    Example:
        >>> import fanfold as ff
        >>> @ff.stage
        ... def words(line: str) -> list[str]:
        ...     return line.split()
        >>> @ff.stage
        ... def shout(word: str) -> str:
        ...     return word.upper()
        >>> @ff.pipeline(level="line")
        ... def loud(line: ff.Port[str]) -> ff.Port[list[str]]:
        ...     word = ff.expand(words(line), "word")
        ...     return ff.gather(shout(word))
    """
    trace = required("expand")
    *ports, name = ports_and_name or ((), None)
    count = max(len(ports), 1)
    if not isinstance(name, str) or not name or not ports:
        trace.problem(
            "FF219",
            "expand needs one or more ports and then a name for the level of the children.",
            'Write for example ff.expand(port, "page").',
        )
        return _one_or_all(trace.broken(ports_and_name, count))
    inputs = trace.inputs(f"expand to {name!r}", ports)
    if inputs is None:
        return _one_or_all(trace.broken(ports, count))
    names = [name] if count == 1 else [f"{name}({trace.name_of(port)})" for port in inputs]
    return _one_or_all(
        trace.once(
            ("expand", inputs, name),
            lambda outputs, where: ExpandOp(name, inputs, outputs, where),
            names,
        )
    )


@overload
def gather(port: Port[T], /, *, failed: Literal["fail", "drop"] = "fail") -> Port[list[T]]: ...
@overload
def gather(port: Port[T], /, *, failed: Literal["mark"]) -> Port[list[T | Failure]]: ...
@overload
def gather(
    a: Port[A], b: Port[B], /, *, failed: Literal["fail", "drop"] = "fail"
) -> tuple[Port[list[A]], Port[list[B]]]: ...
@overload
def gather(
    a: Port[A], b: Port[B], c: Port[C], /, *, failed: Literal["fail", "drop"] = "fail"
) -> tuple[Port[list[A]], Port[list[B]], Port[list[C]]]: ...
@overload
def gather(
    a: Port[Any],
    b: Port[Any],
    /,
    *more: Port[Any],
    failed: Literal["fail", "drop", "mark"] = "fail",
) -> tuple[Port[list[Any]], ...]: ...
def gather(*ports: Port[Any], failed: str = "fail", **later: Any) -> Any:
    """Collect children per parent, in ordinal order, into a list at the parent's level.

    Args:
        *ports: One port, or several *aligned* ones of one level, whose lists line up.
        failed: What a failed child does: ``"fail"`` suppresses its parent's list, ``"drop"`` leaves the
            child out, ``"mark"`` puts an :class:`~fanfold.Failure` in its place. Dropped children are
            always left out.

    Returns:
        A port at the parent level; one per given port if there are several.

    Raises:
        DefinitionError: It stands outside of a pipeline (FF205), or an option is not available (FF103,
            FF104).
    """
    trace = required("gather")
    _refuse_later(trace, "gather", later, ("at_least", "members"))
    good = _one_of(trace, "gather", "failed", failed, ("fail", "drop", "mark"))
    inputs = _some(trace, "gather", ports)
    if inputs is None or not good:
        return _one_or_all(trace.broken(ports, max(len(ports), 1)))
    return _one_or_all(
        trace.add(
            lambda outputs, where: GatherOp(inputs, failed, outputs, where),  # type: ignore[arg-type]
            [f"gather({trace.name_of(port)})" for port in inputs],
        )
    )


def filter(port: Port[T], mask: Port[Any]) -> Port[T]:
    """Keep the items for which ``mask`` is true; the others are dropped.

    Args:
        port: What to keep some items of.
        mask: A port of bools at the same level: made by a call or a source, or a field of such a value.

    Returns:
        A port at the same level.
    """
    trace = required("filter")
    inputs = trace.inputs("filter", [port, mask])
    if inputs is None:
        return trace.broken([port, mask], 1)[0]
    return trace.add(
        lambda outputs, where: FilterOp(inputs[0], inputs[1], outputs, where),
        [f"filter({trace.name_of(inputs[0])})"],
    )[0]


@overload
def split(
    port: Port[T], by: Port[Any], into: tuple[Hashable, Hashable]
) -> tuple[Port[T], Port[T]]: ...
@overload
def split(
    port: Port[T], by: Port[Any], into: tuple[Hashable, Hashable, Hashable]
) -> tuple[Port[T], Port[T], Port[T]]: ...
@overload
def split(port: Port[T], by: Port[Any], into: Sequence[Hashable]) -> tuple[Port[T], ...]: ...
def split(port: Port[T], by: Port[Any], into: Sequence[Hashable]) -> tuple[Port[T], ...]:
    """Route items by a label: each goes on at the port of its label and is dropped at the others.

    Args:
        port: What to route.
        by: A port of short labels (bool, int, short str, enum) at the same level.
        into: The labels. A final ``...`` stands for all other labels; without it, an item with a label
            that is not listed fails (``contract``).

    Returns:
        As many ports as ``into`` has entries, in its order (with ``...`` the last takes the rest).

    Example:
        ``scanned, native, other = ff.split(page, page["kind"], into=("scan", "text", ...))``
    """
    trace = required("split")
    labels = tuple(into) if isinstance(into, (tuple, list)) else ()
    inputs = trace.inputs("split", [port, by])
    good = _labels_are_good(trace, into, labels)
    if inputs is None or not good:
        return trace.broken([port, by], max(len(labels), 1))
    rest = labels[-1:] == (...,)
    listed = labels[:-1] if rest else labels
    name = trace.name_of(inputs[0])
    names = [f"split({name}, {label!r})" for label in listed]
    return trace.add(
        lambda outputs, where: SplitOp(inputs[0], inputs[1], listed, rest, outputs, where),
        [*names, f"split({name}, ...)"] if rest else names,
    )


@overload
def merge(*ports: Port[T], failed: Literal["stop", "next"] = "stop") -> Port[T]: ...
@overload
def merge(*ports: Port[T], default: D, failed: Literal["stop", "next"] = "stop") -> Port[T | D]: ...
def merge(*ports: Port[Any], default: Any = _MISSING, failed: str = "stop") -> Port[Any]:
    """Join routes again: of each item the first port, in the order given, that is done.

    Args:
        *ports: Ports of one level. A dropped one passes on to the next.
        default: The value where all were dropped; without it such an item is dropped.
        failed: What a failed or suppressed port does: ``"stop"`` decides with its outcome, ``"next"``
            passes on as well.

    Returns:
        A port at the same level.
    """
    trace = required("merge")
    good = _one_of(trace, "merge", "failed", failed, ("stop", "next"))
    inputs = _some(trace, "merge", ports)
    if isinstance(default, Port):
        good = False
        trace.problem(
            "FF206",
            f"merge has port {default._name!r} as its default.",
            "A default is a plain value; give a port as the last of merge's ports.",
        )
    if inputs is None or not good:
        return trace.broken([*ports, default], 1)[0]
    constant = None if isinstance(default, _Missing) else Constant(default)
    return trace.add(
        lambda outputs, where: MergeOp(inputs, constant, failed, outputs, where),  # type: ignore[arg-type]
        [f"merge({', '.join(trace.name_of(port) for port in inputs)})"],
    )[0]


def broadcast(port: Port[T], *, like: Port[Any]) -> Port[T]:
    """Copy each item to all its descendants at another port's level, with outcome and cause.

    A call or a record with ports of several levels does so by itself; this says it in words, for a filter,
    a gather or a merge, which never do.

    Args:
        port: A port of an ancestor of ``like``'s level.
        like: Any port of the level wanted.

    Returns:
        A port at ``like``'s level.
    """
    trace = required("broadcast")
    inputs = trace.inputs("broadcast", [port, like])
    if inputs is None:
        return trace.broken([port, like], 1)[0]
    return trace.add(
        lambda outputs, where: BroadcastOp(inputs[0], inputs[1], outputs, where),
        [f"broadcast({trace.name_of(inputs[0])})"],
    )[0]


def field(port: Port[Any], name: str, type: type[T], /) -> Port[T]:
    """Read a mapping key or an attribute of each value, with a type for editors and type checkers.

    Args:
        port: Values with the field.
        name: The key or attribute. A value without it fails (``contract``).
        type: What the field holds; it is not checked when the pipeline runs.

    Returns:
        A port at the same level; ``port["name"]`` is the same one, typed ``Port[Any]``.
    """
    return required(f"reading the field {name!r}").field(port, name)


def record(**fields: Any) -> Port[dict[str, Any]]:
    """Make a dict of ports and constants for each item.

    Args:
        **fields: The dict's entries in order: ports (of levels on one ancestor chain; the record stands at
            the deepest) or plain values.

    Returns:
        A port of dicts.
    """
    trace = required("record")
    parts: list[tuple[str, int | Constant]] = []
    good = True
    for name, value in fields.items():
        if isinstance(value, Port):
            inputs = trace.inputs(f"record: field {name!r}", [value])
            good &= inputs is not None
            parts += [(name, port) for port in inputs or ()]
        else:
            good &= trace.holds_no_port("record", f"field {name!r}", value)
            parts.append((name, Constant(value)))
    if good and not any(isinstance(part, int) for _, part in parts):
        good = False
        trace.problem("FF210", "record has no port among its fields, so it belongs to no item.")
    if not good:
        return trace.broken(list(fields.values()), 1)[0]
    return trace.add(
        lambda outputs, where: RecordOp(tuple(parts), outputs, where),
        [f"record({', '.join(fields)})"],
    )[0]


def _one_or_all(ports: tuple[Port[Any], ...]) -> Any:
    return ports[0] if len(ports) == 1 else ports


def _some(trace: Trace, operation: str, ports: Sequence[object]) -> tuple[int, ...] | None:
    if ports:
        return trace.inputs(operation, ports)
    trace.problem("FF210", f"{operation} has no port.", "Give it at least one.")
    return None


def _one_of(
    trace: Trace, operation: str, option: str, value: object, allowed: tuple[str, ...]
) -> bool:
    if value in allowed:
        return True
    choices = ", ".join(repr(choice) for choice in allowed)
    trace.problem("FF219", f"{operation}: {option}={value!r} is none of {choices}.")
    return False


def _refuse_later(
    trace: Trace, operation: str, options: dict[str, Any], announced: tuple[str, ...]
) -> None:
    for name in options:
        if name in announced:
            trace.problem(
                "FF103", f"{operation}: the option {name!r} is not available yet.", "Leave it out."
            )
        else:
            trace.problem("FF104", f"{operation} has an unknown option {name!r}.")


def _labels_are_good(trace: Trace, into: object, labels: tuple[object, ...]) -> bool:
    listed = labels[:-1] if labels and isinstance(labels[-1], EllipsisType) else labels
    why = ""
    if not isinstance(into, (tuple, list)):
        why = f"is {into!r}, not a tuple of labels"
    elif not listed:
        why = "lists no label"
    elif any(isinstance(label, EllipsisType) for label in listed):
        why = "has ... elsewhere than at its end"
    elif any(isinstance(label, Port) for label in listed):
        why = "holds a port; labels are plain values"
    elif not all(isinstance(label, Hashable) for label in listed):
        why = "has a label that is not hashable"
    elif len(set(listed)) < len(listed):
        why = "lists a label twice"
    if why:
        trace.problem(
            "FF219",
            f"split: into {why}.",
            'Write for example into=("scan", "text"), or into=("scan", "text", ...) to keep the rest.',
        )
    return not why
