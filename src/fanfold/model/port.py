"""Ports: the symbolic values that a pipeline's function passes around while it is traced.

Owns what a user may write with a port, and the answers to what a user might write by mistake: a port has
no value yet, so a condition, a loop or a comparison over it cannot mean anything. Such misuse is noted
with its source line and tracing goes on, so that all problems are told at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, NoReturn, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fanfold.model.trace import Trace

T_co = TypeVar("T_co", covariant=True)
T = TypeVar("T")


class Children(list[T]):
    """The ordered children that a generator stage yields; only ever a type.

    A generator stage's port is a ``Port[Children[T]]``: ``ff.expand`` opens it to a ``Port[T]`` one level
    down, and a stage that reads it unexpanded gets the list of all children.
    """


class Port(Generic[T_co]):
    """What a source, a call or a structural operation of a pipeline yields: a value still to come.

    ``port["name"]`` reads a mapping key or an attribute of each value (use ``ff.field`` to give its type).
    Everything else about the value is a stage's business. Ports are made by tracing, never by hand.

    Example:
        >>> import fanfold as ff
        >>> @ff.stage
        ... def double(n: int) -> int:
        ...     return 2 * n
        >>> @ff.pipeline(level="number")
        ... def quadruple(n: ff.Port[int]) -> ff.Port[int]:
        ...     return double(double(n))
    """

    __slots__ = ("__weakref__", "_index", "_name", "_trace")

    def __init__(self, trace: Trace, index: int, name: str) -> None:
        self._trace = trace
        self._index = index
        self._name = name

    def __getitem__(self, name: str) -> Port[Any]:
        return self._trace.field(self, name)

    def __repr__(self) -> str:
        return f"<Port {self._name}>"

    if not TYPE_CHECKING:  # type checkers know that a port has none of these, and say so
        __hash__ = object.__hash__  # lost with __eq__ below

        def __bool__(self) -> bool:
            self._trace.misused(
                self,
                "is used as a truth value (if, while, and, or, not)",
                "Its value is not known yet: route items with ff.filter or ff.split.",
            )
            return True

        def __iter__(self) -> Iterator[Any]:
            self._trace.misused(
                self,
                "is iterated over or unpacked",
                "Open it to a level of its own with ff.expand; for a call with several results give its "
                "stage outputs=.",
            )
            return iter(())

        def __len__(self) -> int:
            self._trace.misused(
                self, "is asked for its length", "Count in a stage: its input is the list."
            )
            return 0

        def __eq__(self, other: object) -> Any:
            return self._compared(other, "==")

        def __ne__(self, other: object) -> Any:
            return self._compared(other, "!=")

        def __lt__(self, other: object) -> Any:
            return self._compared(other, "<")

        def __le__(self, other: object) -> Any:
            return self._compared(other, "<=")

        def __gt__(self, other: object) -> Any:
            return self._compared(other, ">")

        def __ge__(self, other: object) -> Any:
            return self._compared(other, ">=")

        def _computed(self, other: object) -> Any:
            if not self._trace.active:
                return NotImplemented
            return self._trace.misused(
                self, "is computed with (an operator such as +)", "Compute in a stage."
            )

        __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = _computed
        __truediv__ = __rtruediv__ = __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = _computed
        __pow__ = __rpow__ = __matmul__ = __rmatmul__ = _computed
        __and__ = __rand__ = __or__ = __ror__ = __xor__ = __rxor__ = _computed

        def _compared(self, other: object, sign: str) -> Any:
            if not self._trace.active:
                return NotImplemented
            return self._trace.misused(
                self,
                f"is compared with {sign}",
                "Compare in a stage; to route by a value use ff.split(port, by, into=(…)).",
            )

        def __getattr__(self, name: str) -> NoReturn:
            if name.startswith("__"):
                raise AttributeError(name)
            raise AttributeError(
                f"port {self._name!r} has no attribute {name!r}: "
                f'read a field of its values with port["{name}"] or ff.field(port, "{name}", type)'
            )
