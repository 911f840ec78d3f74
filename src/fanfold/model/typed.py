"""What editors and type checkers see of stages: how many ports, of what, give a port of what.

Owns the typed faces of :class:`fanfold.model.stage.Stage`, one for each number of inputs (1 to 4) and kind
(one item at a time, batched, generator). They exist for type checkers only: at run time every stage is a
plain ``Stage``, and with more inputs, several outputs or a method's name it is one for them as well.

The static keyword arguments of a call are not checked here but against the stage's signature when the
pipeline is traced; so is the number of ports where some are given by keyword.
"""

# Overloads are tried in order, the narrow ones first; that a generator also returns "something" and a
# class is also a callable is what the order is there for.
# mypy: disable-error-code="overload-overlap"
# pyright: reportOverlappingOverload=false

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import (
    Any,
    Concatenate,
    Generic,
    ParamSpec,
    Protocol,
    Required,
    TypedDict,
    TypeVar,
    Unpack,
    overload,
)

from fanfold.model.port import Children, Port
from fanfold.model.stage import ClassStage, Stage

A = TypeVar("A")
B = TypeVar("B")
C = TypeVar("C")
D = TypeVar("D")
R = TypeVar("R")
Q = ParamSpec("Q")
A_in = TypeVar("A_in", contravariant=True)
B_in = TypeVar("B_in", contravariant=True)
C_in = TypeVar("C_in", contravariant=True)
D_in = TypeVar("D_in", contravariant=True)
R_out = TypeVar("R_out", covariant=True)
S_out = TypeVar("S_out", covariant=True, bound=Stage)


class Options(TypedDict, total=False):
    """Options of every stage."""

    name: str | None
    replicas: int
    cpus: int


class BatchOptions(Options):
    """Options of a batched stage."""

    batch_size: Required[int]


class OtherOptions(Options, total=False):
    """Options under which the types of a stage's ports are not known."""

    batch_size: int | None
    outputs: int | tuple[str, ...] | list[str]
    method: str | None


class _OnlyAny:
    """Nobody returns this, so only functions that return ``Any`` (or never return) match it."""


class CallAny(Protocol):
    """An object of which the type of the result is not known."""

    def __call__(self, *args: Any, **kwargs: Any) -> _OnlyAny: ...


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

    def __call__(self, a: list[A], /) -> Rows[R_out]: ...


class BatchCall2(Protocol[A, B, R_out]):
    """An object that is called with 2 lists of items."""

    def __call__(self, a: list[A], b: list[B], /) -> Rows[R_out]: ...


class BatchCall3(Protocol[A, B, C, R_out]):
    """An object that is called with 3 lists of items."""

    def __call__(self, a: list[A], b: list[B], c: list[C], /) -> Rows[R_out]: ...


class BatchCall4(Protocol[A, B, C, D, R_out]):
    """An object that is called with 4 lists of items."""

    def __call__(self, a: list[A], b: list[B], c: list[C], d: list[D], /) -> Rows[R_out]: ...


class ItemDecorator(Protocol):
    """``ff.stage`` with options, but without ``batch_size``: waits for the function or class."""

    @overload
    def __call__(self, target: type[CallAny], /) -> ClassOf[Stage]: ...
    @overload
    def __call__(self, target: Callable[..., _OnlyAny], /) -> Stage: ...
    @overload
    def __call__(self, target: type[Call1[A, Iterator[R]]], /) -> ClassOf[Generator1[A, R]]: ...
    @overload
    def __call__(
        self, target: type[Call2[A, B, Iterator[R]]], /
    ) -> ClassOf[Generator2[A, B, R]]: ...
    @overload
    def __call__(
        self, target: type[Call3[A, B, C, Iterator[R]]], /
    ) -> ClassOf[Generator3[A, B, C, R]]: ...
    @overload
    def __call__(
        self, target: type[Call4[A, B, C, D, Iterator[R]]], /
    ) -> ClassOf[Generator4[A, B, C, D, R]]: ...
    @overload
    def __call__(self, target: type[Call1[A, R]], /) -> ClassOf[Stage1[A, R]]: ...
    @overload
    def __call__(self, target: type[Call2[A, B, R]], /) -> ClassOf[Stage2[A, B, R]]: ...
    @overload
    def __call__(self, target: type[Call3[A, B, C, R]], /) -> ClassOf[Stage3[A, B, C, R]]: ...
    @overload
    def __call__(self, target: type[Call4[A, B, C, D, R]], /) -> ClassOf[Stage4[A, B, C, D, R]]: ...
    @overload
    def __call__(
        self, target: Callable[Concatenate[Any, Any, Any, Any, Any, Q], Any], /
    ) -> Stage: ...
    @overload
    def __call__(
        self, target: Callable[Concatenate[A, B, C, D, Q], Iterator[R]], /
    ) -> Generator4[A, B, C, D, R]: ...
    @overload
    def __call__(
        self, target: Callable[Concatenate[A, B, C, Q], Iterator[R]], /
    ) -> Generator3[A, B, C, R]: ...
    @overload
    def __call__(
        self, target: Callable[Concatenate[A, B, Q], Iterator[R]], /
    ) -> Generator2[A, B, R]: ...
    @overload
    def __call__(self, target: Callable[Concatenate[A, Q], Iterator[R]], /) -> Generator1[A, R]: ...
    @overload
    def __call__(
        self, target: Callable[Concatenate[A, B, C, D, Q], R], /
    ) -> Stage4[A, B, C, D, R]: ...
    @overload
    def __call__(self, target: Callable[Concatenate[A, B, C, Q], R], /) -> Stage3[A, B, C, R]: ...
    @overload
    def __call__(self, target: Callable[Concatenate[A, B, Q], R], /) -> Stage2[A, B, R]: ...
    @overload
    def __call__(self, target: Callable[Concatenate[A, Q], R], /) -> Stage1[A, R]: ...


class BatchDecorator(Protocol):
    """``ff.stage(batch_size=…)``: waits for the function or class."""

    @overload
    def __call__(self, target: type[CallAny], /) -> ClassOf[Stage]: ...
    @overload
    def __call__(self, target: Callable[..., _OnlyAny], /) -> Stage: ...
    @overload
    def __call__(self, target: type[BatchCall1[A, R]], /) -> ClassOf[Batched1[A, R]]: ...
    @overload
    def __call__(self, target: type[BatchCall2[A, B, R]], /) -> ClassOf[Batched2[A, B, R]]: ...
    @overload
    def __call__(
        self, target: type[BatchCall3[A, B, C, R]], /
    ) -> ClassOf[Batched3[A, B, C, R]]: ...
    @overload
    def __call__(
        self, target: type[BatchCall4[A, B, C, D, R]], /
    ) -> ClassOf[Batched4[A, B, C, D, R]]: ...
    @overload
    def __call__(
        self, target: Callable[Concatenate[Any, Any, Any, Any, Any, Q], Any], /
    ) -> Stage: ...
    @overload
    def __call__(
        self, target: Callable[Concatenate[list[A], list[B], list[C], list[D], Q], Rows[R]], /
    ) -> Batched4[A, B, C, D, R]: ...
    @overload
    def __call__(
        self, target: Callable[Concatenate[list[A], list[B], list[C], Q], Rows[R]], /
    ) -> Batched3[A, B, C, R]: ...
    @overload
    def __call__(
        self, target: Callable[Concatenate[list[A], list[B], Q], Rows[R]], /
    ) -> Batched2[A, B, R]: ...
    @overload
    def __call__(self, target: Callable[Concatenate[list[A], Q], Rows[R]], /) -> Batched1[A, R]: ...


class OtherDecorator(Protocol):
    """``ff.stage(outputs=…)`` and the like: waits for the function or class."""

    @overload
    def __call__(self, target: type[Any], /) -> ClassOf[Stage]: ...
    @overload
    def __call__(self, target: Callable[..., Any], /) -> Stage: ...


class StageFunction(Protocol):
    """The type of ``ff.stage`` itself."""

    @overload
    def __call__(self, target: type[CallAny], /, **options: Unpack[Options]) -> ClassOf[Stage]: ...
    @overload
    def __call__(self, target: Callable[..., _OnlyAny], /, **options: Unpack[Options]) -> Stage: ...
    @overload
    def __call__(
        self, target: type[Call1[A, Iterator[R]]], /, **options: Unpack[Options]
    ) -> ClassOf[Generator1[A, R]]: ...
    @overload
    def __call__(
        self, target: type[Call2[A, B, Iterator[R]]], /, **options: Unpack[Options]
    ) -> ClassOf[Generator2[A, B, R]]: ...
    @overload
    def __call__(
        self, target: type[Call3[A, B, C, Iterator[R]]], /, **options: Unpack[Options]
    ) -> ClassOf[Generator3[A, B, C, R]]: ...
    @overload
    def __call__(
        self, target: type[Call4[A, B, C, D, Iterator[R]]], /, **options: Unpack[Options]
    ) -> ClassOf[Generator4[A, B, C, D, R]]: ...
    @overload
    def __call__(
        self, target: type[Call1[A, R]], /, **options: Unpack[Options]
    ) -> ClassOf[Stage1[A, R]]: ...
    @overload
    def __call__(
        self, target: type[Call2[A, B, R]], /, **options: Unpack[Options]
    ) -> ClassOf[Stage2[A, B, R]]: ...
    @overload
    def __call__(
        self, target: type[Call3[A, B, C, R]], /, **options: Unpack[Options]
    ) -> ClassOf[Stage3[A, B, C, R]]: ...
    @overload
    def __call__(
        self, target: type[Call4[A, B, C, D, R]], /, **options: Unpack[Options]
    ) -> ClassOf[Stage4[A, B, C, D, R]]: ...
    @overload
    def __call__(
        self,
        target: Callable[Concatenate[Any, Any, Any, Any, Any, Q], Any],
        /,
        **options: Unpack[Options],
    ) -> Stage: ...
    @overload
    def __call__(
        self,
        target: Callable[Concatenate[A, B, C, D, Q], Iterator[R]],
        /,
        **options: Unpack[Options],
    ) -> Generator4[A, B, C, D, R]: ...
    @overload
    def __call__(
        self, target: Callable[Concatenate[A, B, C, Q], Iterator[R]], /, **options: Unpack[Options]
    ) -> Generator3[A, B, C, R]: ...
    @overload
    def __call__(
        self, target: Callable[Concatenate[A, B, Q], Iterator[R]], /, **options: Unpack[Options]
    ) -> Generator2[A, B, R]: ...
    @overload
    def __call__(
        self, target: Callable[Concatenate[A, Q], Iterator[R]], /, **options: Unpack[Options]
    ) -> Generator1[A, R]: ...
    @overload
    def __call__(
        self, target: Callable[Concatenate[A, B, C, D, Q], R], /, **options: Unpack[Options]
    ) -> Stage4[A, B, C, D, R]: ...
    @overload
    def __call__(
        self, target: Callable[Concatenate[A, B, C, Q], R], /, **options: Unpack[Options]
    ) -> Stage3[A, B, C, R]: ...
    @overload
    def __call__(
        self, target: Callable[Concatenate[A, B, Q], R], /, **options: Unpack[Options]
    ) -> Stage2[A, B, R]: ...
    @overload
    def __call__(
        self, target: Callable[Concatenate[A, Q], R], /, **options: Unpack[Options]
    ) -> Stage1[A, R]: ...
    @overload
    def __call__(
        self, target: type[CallAny], /, **options: Unpack[BatchOptions]
    ) -> ClassOf[Stage]: ...
    @overload
    def __call__(
        self, target: Callable[..., _OnlyAny], /, **options: Unpack[BatchOptions]
    ) -> Stage: ...
    @overload
    def __call__(
        self, target: type[BatchCall1[A, R]], /, **options: Unpack[BatchOptions]
    ) -> ClassOf[Batched1[A, R]]: ...
    @overload
    def __call__(
        self, target: type[BatchCall2[A, B, R]], /, **options: Unpack[BatchOptions]
    ) -> ClassOf[Batched2[A, B, R]]: ...
    @overload
    def __call__(
        self, target: type[BatchCall3[A, B, C, R]], /, **options: Unpack[BatchOptions]
    ) -> ClassOf[Batched3[A, B, C, R]]: ...
    @overload
    def __call__(
        self, target: type[BatchCall4[A, B, C, D, R]], /, **options: Unpack[BatchOptions]
    ) -> ClassOf[Batched4[A, B, C, D, R]]: ...
    @overload
    def __call__(
        self,
        target: Callable[Concatenate[Any, Any, Any, Any, Any, Q], Any],
        /,
        **options: Unpack[BatchOptions],
    ) -> Stage: ...
    @overload
    def __call__(
        self,
        target: Callable[Concatenate[list[A], list[B], list[C], list[D], Q], Rows[R]],
        /,
        **options: Unpack[BatchOptions],
    ) -> Batched4[A, B, C, D, R]: ...
    @overload
    def __call__(
        self,
        target: Callable[Concatenate[list[A], list[B], list[C], Q], Rows[R]],
        /,
        **options: Unpack[BatchOptions],
    ) -> Batched3[A, B, C, R]: ...
    @overload
    def __call__(
        self,
        target: Callable[Concatenate[list[A], list[B], Q], Rows[R]],
        /,
        **options: Unpack[BatchOptions],
    ) -> Batched2[A, B, R]: ...
    @overload
    def __call__(
        self, target: Callable[Concatenate[list[A], Q], Rows[R]], /, **options: Unpack[BatchOptions]
    ) -> Batched1[A, R]: ...
    @overload
    def __call__(self, target: type[Any], /, **options: Unpack[OtherOptions]) -> ClassOf[Stage]: ...
    @overload
    def __call__(self, target: Callable[..., Any], /, **options: Unpack[OtherOptions]) -> Stage: ...
    @overload
    def __call__(self, /, **options: Unpack[Options]) -> ItemDecorator: ...
    @overload
    def __call__(self, /, **options: Unpack[BatchOptions]) -> BatchDecorator: ...
    @overload
    def __call__(self, /, **options: Unpack[OtherOptions]) -> OtherDecorator: ...
