"""What editors and type checkers see of stages: how many ports, of what, give a port of what.

Owns the typed faces of :class:`fanfold.model.stage.Stage`, one for each number of inputs (1 to 4) and kind
(one item at a time, batched, generator). They exist for type checkers only: at run time every stage is a
plain ``Stage``, and with more inputs, several outputs or a method's name it is one for them as well.

The static keyword arguments of a call are not checked here but against the stage's signature when the
pipeline is traced; so is the number of ports where some are given by keyword.
"""

# A port is an item too where an item may be anything.
# mypy: disable-error-code="overload-overlap"
# pyright: reportOverlappingOverload=false

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Generic, Protocol, TypeVar, overload

from fanfold.failures import ItemFailure, ParentFailure
from fanfold.model.port import Children, Port
from fanfold.model.stage import ClassStage, Stage

A = TypeVar("A")
B = TypeVar("B")
C = TypeVar("C")
D = TypeVar("D")
R = TypeVar("R")
A_in = TypeVar("A_in", contravariant=True)
B_in = TypeVar("B_in", contravariant=True)
C_in = TypeVar("C_in", contravariant=True)
D_in = TypeVar("D_in", contravariant=True)
R_out = TypeVar("R_out", covariant=True)
S_out = TypeVar("S_out", covariant=True, bound=Stage)


class Rows(Protocol[R_out]):
    """What a batched stage returns: anything with a length and elements by position."""

    def __len__(self) -> int: ...

    def __getitem__(self, position: int, /) -> R_out: ...


class ClassOf(ClassStage, Generic[S_out]):
    """A class stage: called with the constructor's arguments it gives the stage ``S_out``."""

    def __call__(self, /, *args: Any, **kwargs: Any) -> S_out:
        return super().__call__(*args, **kwargs)  # type: ignore[no-any-return]  # by construction


class Stage1(Stage, Generic[A, R]):
    """One item at a time, 1 input."""

    @overload
    def __call__(self, a: Port[A], /, **static: Any) -> Port[R]: ...
    @overload
    def __call__(self, a: A, /, **static: Any) -> R: ...
    @overload
    def __call__(self, /, **ports: Any) -> Port[R]: ...
    def __call__(self, /, *args: Any, **kwargs: Any) -> Any: ...


class Stage2(Stage, Generic[A, B, R]):
    """One item at a time, 2 inputs."""

    @overload
    def __call__(self, a: Port[A], b: Port[B], /, **static: Any) -> Port[R]: ...
    @overload
    def __call__(self, a: A, b: B, /, **static: Any) -> R: ...
    @overload
    def __call__(self, a: Port[A], /, **ports: Any) -> Port[R]: ...
    @overload
    def __call__(self, a: A, /, **static: Any) -> R: ...
    @overload
    def __call__(self, /, **ports: Any) -> Port[R]: ...
    def __call__(self, /, *args: Any, **kwargs: Any) -> Any: ...


class Stage3(Stage, Generic[A, B, C, R]):
    """One item at a time, 3 inputs."""

    @overload
    def __call__(self, a: Port[A], b: Port[B], c: Port[C], /, **static: Any) -> Port[R]: ...
    @overload
    def __call__(self, a: A, b: B, c: C, /, **static: Any) -> R: ...
    @overload
    def __call__(self, a: Port[A], b: Port[B], /, **ports: Any) -> Port[R]: ...
    @overload
    def __call__(self, a: A, b: B, /, **static: Any) -> R: ...
    @overload
    def __call__(self, a: Port[A], /, **ports: Any) -> Port[R]: ...
    @overload
    def __call__(self, a: A, /, **static: Any) -> R: ...
    @overload
    def __call__(self, /, **ports: Any) -> Port[R]: ...
    def __call__(self, /, *args: Any, **kwargs: Any) -> Any: ...


class Stage4(Stage, Generic[A, B, C, D, R]):
    """One item at a time, 4 inputs."""

    @overload
    def __call__(
        self, a: Port[A], b: Port[B], c: Port[C], d: Port[D], /, **static: Any
    ) -> Port[R]: ...
    @overload
    def __call__(self, a: A, b: B, c: C, d: D, /, **static: Any) -> R: ...
    @overload
    def __call__(self, a: Port[A], b: Port[B], c: Port[C], /, **ports: Any) -> Port[R]: ...
    @overload
    def __call__(self, a: A, b: B, c: C, /, **static: Any) -> R: ...
    @overload
    def __call__(self, a: Port[A], b: Port[B], /, **ports: Any) -> Port[R]: ...
    @overload
    def __call__(self, a: A, b: B, /, **static: Any) -> R: ...
    @overload
    def __call__(self, a: Port[A], /, **ports: Any) -> Port[R]: ...
    @overload
    def __call__(self, a: A, /, **static: Any) -> R: ...
    @overload
    def __call__(self, /, **ports: Any) -> Port[R]: ...
    def __call__(self, /, *args: Any, **kwargs: Any) -> Any: ...


class Batched1(Stage, Generic[A, R]):
    """Lists of items, 1 input."""

    @overload
    def __call__(self, a: Port[A], /, **static: Any) -> Port[R]: ...
    @overload
    def __call__(self, a: list[A], /, **static: Any) -> Sequence[R]: ...
    @overload
    def __call__(self, /, **ports: Any) -> Port[R]: ...
    def __call__(self, /, *args: Any, **kwargs: Any) -> Any: ...


class Batched2(Stage, Generic[A, B, R]):
    """Lists of items, 2 inputs."""

    @overload
    def __call__(self, a: Port[A], b: Port[B], /, **static: Any) -> Port[R]: ...
    @overload
    def __call__(self, a: list[A], b: list[B], /, **static: Any) -> Sequence[R]: ...
    @overload
    def __call__(self, a: Port[A], /, **ports: Any) -> Port[R]: ...
    @overload
    def __call__(self, a: list[A], /, **static: Any) -> Sequence[R]: ...
    @overload
    def __call__(self, /, **ports: Any) -> Port[R]: ...
    def __call__(self, /, *args: Any, **kwargs: Any) -> Any: ...


class Batched3(Stage, Generic[A, B, C, R]):
    """Lists of items, 3 inputs."""

    @overload
    def __call__(self, a: Port[A], b: Port[B], c: Port[C], /, **static: Any) -> Port[R]: ...
    @overload
    def __call__(self, a: list[A], b: list[B], c: list[C], /, **static: Any) -> Sequence[R]: ...
    @overload
    def __call__(self, a: Port[A], b: Port[B], /, **ports: Any) -> Port[R]: ...
    @overload
    def __call__(self, a: list[A], b: list[B], /, **static: Any) -> Sequence[R]: ...
    @overload
    def __call__(self, a: Port[A], /, **ports: Any) -> Port[R]: ...
    @overload
    def __call__(self, a: list[A], /, **static: Any) -> Sequence[R]: ...
    @overload
    def __call__(self, /, **ports: Any) -> Port[R]: ...
    def __call__(self, /, *args: Any, **kwargs: Any) -> Any: ...


class Batched4(Stage, Generic[A, B, C, D, R]):
    """Lists of items, 4 inputs."""

    @overload
    def __call__(
        self, a: Port[A], b: Port[B], c: Port[C], d: Port[D], /, **static: Any
    ) -> Port[R]: ...
    @overload
    def __call__(
        self, a: list[A], b: list[B], c: list[C], d: list[D], /, **static: Any
    ) -> Sequence[R]: ...
    @overload
    def __call__(self, a: Port[A], b: Port[B], c: Port[C], /, **ports: Any) -> Port[R]: ...
    @overload
    def __call__(self, a: list[A], b: list[B], c: list[C], /, **static: Any) -> Sequence[R]: ...
    @overload
    def __call__(self, a: Port[A], b: Port[B], /, **ports: Any) -> Port[R]: ...
    @overload
    def __call__(self, a: list[A], b: list[B], /, **static: Any) -> Sequence[R]: ...
    @overload
    def __call__(self, a: Port[A], /, **ports: Any) -> Port[R]: ...
    @overload
    def __call__(self, a: list[A], /, **static: Any) -> Sequence[R]: ...
    @overload
    def __call__(self, /, **ports: Any) -> Port[R]: ...
    def __call__(self, /, *args: Any, **kwargs: Any) -> Any: ...


class Generator1(Stage, Generic[A, R]):
    """A generator of children, 1 input."""

    @overload
    def __call__(self, a: Port[A], /, **static: Any) -> Port[Children[R]]: ...
    @overload
    def __call__(self, a: A, /, **static: Any) -> Iterator[R]: ...
    @overload
    def __call__(self, /, **ports: Any) -> Port[Children[R]]: ...
    def __call__(self, /, *args: Any, **kwargs: Any) -> Any: ...


class Generator2(Stage, Generic[A, B, R]):
    """A generator of children, 2 inputs."""

    @overload
    def __call__(self, a: Port[A], b: Port[B], /, **static: Any) -> Port[Children[R]]: ...
    @overload
    def __call__(self, a: A, b: B, /, **static: Any) -> Iterator[R]: ...
    @overload
    def __call__(self, a: Port[A], /, **ports: Any) -> Port[Children[R]]: ...
    @overload
    def __call__(self, a: A, /, **static: Any) -> Iterator[R]: ...
    @overload
    def __call__(self, /, **ports: Any) -> Port[Children[R]]: ...
    def __call__(self, /, *args: Any, **kwargs: Any) -> Any: ...


class Generator3(Stage, Generic[A, B, C, R]):
    """A generator of children, 3 inputs."""

    @overload
    def __call__(
        self, a: Port[A], b: Port[B], c: Port[C], /, **static: Any
    ) -> Port[Children[R]]: ...
    @overload
    def __call__(self, a: A, b: B, c: C, /, **static: Any) -> Iterator[R]: ...
    @overload
    def __call__(self, a: Port[A], b: Port[B], /, **ports: Any) -> Port[Children[R]]: ...
    @overload
    def __call__(self, a: A, b: B, /, **static: Any) -> Iterator[R]: ...
    @overload
    def __call__(self, a: Port[A], /, **ports: Any) -> Port[Children[R]]: ...
    @overload
    def __call__(self, a: A, /, **static: Any) -> Iterator[R]: ...
    @overload
    def __call__(self, /, **ports: Any) -> Port[Children[R]]: ...
    def __call__(self, /, *args: Any, **kwargs: Any) -> Any: ...


class Generator4(Stage, Generic[A, B, C, D, R]):
    """A generator of children, 4 inputs."""

    @overload
    def __call__(
        self, a: Port[A], b: Port[B], c: Port[C], d: Port[D], /, **static: Any
    ) -> Port[Children[R]]: ...
    @overload
    def __call__(self, a: A, b: B, c: C, d: D, /, **static: Any) -> Iterator[R]: ...
    @overload
    def __call__(
        self, a: Port[A], b: Port[B], c: Port[C], /, **ports: Any
    ) -> Port[Children[R]]: ...
    @overload
    def __call__(self, a: A, b: B, c: C, /, **static: Any) -> Iterator[R]: ...
    @overload
    def __call__(self, a: Port[A], b: Port[B], /, **ports: Any) -> Port[Children[R]]: ...
    @overload
    def __call__(self, a: A, b: B, /, **static: Any) -> Iterator[R]: ...
    @overload
    def __call__(self, a: Port[A], /, **ports: Any) -> Port[Children[R]]: ...
    @overload
    def __call__(self, a: A, /, **static: Any) -> Iterator[R]: ...
    @overload
    def __call__(self, /, **ports: Any) -> Port[Children[R]]: ...
    def __call__(self, /, *args: Any, **kwargs: Any) -> Any: ...


class Call1(Protocol[A_in, R_out]):
    """An object that is called with 1 item."""

    def __call__(self, a: A_in, /) -> R_out: ...


class Call2(Protocol[A_in, B_in, R_out]):
    """An object that is called with 2 items."""

    def __call__(self, a: A_in, b: B_in, /) -> R_out: ...


class Call3(Protocol[A_in, B_in, C_in, R_out]):
    """An object that is called with 3 items."""

    def __call__(self, a: A_in, b: B_in, c: C_in, /) -> R_out: ...


class Call4(Protocol[A_in, B_in, C_in, D_in, R_out]):
    """An object that is called with 4 items."""

    def __call__(self, a: A_in, b: B_in, c: C_in, d: D_in, /) -> R_out: ...


class BatchCall1(Protocol[A, R_out]):
    """An object that is called with 1 list of items."""

    def __call__(self, a: list[A], /) -> Rows[R_out | ItemFailure | ParentFailure]: ...


class BatchCall2(Protocol[A, B, R_out]):
    """An object that is called with 2 lists of items."""

    def __call__(self, a: list[A], b: list[B], /) -> Rows[R_out | ItemFailure | ParentFailure]: ...


class BatchCall3(Protocol[A, B, C, R_out]):
    """An object that is called with 3 lists of items."""

    def __call__(
        self, a: list[A], b: list[B], c: list[C], /
    ) -> Rows[R_out | ItemFailure | ParentFailure]: ...


class BatchCall4(Protocol[A, B, C, D, R_out]):
    """An object that is called with 4 lists of items."""

    def __call__(
        self, a: list[A], b: list[B], c: list[C], d: list[D], /
    ) -> Rows[R_out | ItemFailure | ParentFailure]: ...
