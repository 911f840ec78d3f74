"""The overloads of ``ff.stage``: which face a stage has, given its function or class and its options.

Owns their order: overloads are tried from the top, so the narrow ones stand first. That a generator also
returns "something", that an asynchronous function returns an awaitable, and that a class is also a callable is
what the order is there for. A batched asynchronous stage has no types of its own. A batched stage may return
an ``ItemFailure`` or ``ParentFailure`` in an item's place; those are no values, so the port's type is without.
"""

# mypy: disable-error-code="overload-overlap"
# pyright: reportOverlappingOverload=false

from __future__ import annotations

from collections.abc import Awaitable, Callable, Hashable, Iterator
from typing import (
    Any,
    Concatenate,
    Literal,
    ParamSpec,
    Protocol,
    Required,
    TypedDict,
    TypeVar,
    Unpack,
    overload,
)

from fanfold.failures import ItemFailure, ParentFailure
from fanfold.model.stage import Stage
from fanfold.model.typed import (
    BatchCall1,
    BatchCall2,
    BatchCall3,
    BatchCall4,
    Batched1,
    Batched2,
    Batched3,
    Batched4,
    Call1,
    Call2,
    Call3,
    Call4,
    ClassOf,
    Generator1,
    Generator2,
    Generator3,
    Generator4,
    Rows,
    Stage1,
    Stage2,
    Stage3,
    Stage4,
)

A = TypeVar("A")
B = TypeVar("B")
C = TypeVar("C")
D = TypeVar("D")
R = TypeVar("R")
Q = ParamSpec("Q")


class Options(TypedDict, total=False):
    """Options of every stage."""

    name: str | None
    replicas: int
    cpus: int | None
    gpus: float | None
    memory: int | str | None
    recycle_after: int | None
    recycle_above: int | str | None
    workers: Literal["process", "thread"]
    retries: int
    on_error: Literal["fail", "stop"]
    probe: int
    schedule: Literal["fifo", "fair"]
    max_in_flight: int
    rate_limit: float | str | None
    identities: bool


class BatchOptions(Options, total=False):
    """Options of a batched stage."""

    batch_size: Required[int]
    batch_bytes: int | str | None
    batch_cost: Callable[..., float] | None
    max_batch_cost: float | None
    batch_by: Callable[..., Hashable] | None
    linger_s: float | None


class MethodOptions(Options, total=False):
    """Options with the name of an entry point; the target need not be callable itself."""

    batch_size: int | None
    batch_bytes: int | str | None
    batch_cost: Callable[..., float] | None
    max_batch_cost: float | None
    batch_by: Callable[..., Hashable] | None
    linger_s: float | None
    outputs: int | tuple[str, ...] | list[str]
    method: Required[str | None]


class OtherOptions(Options, total=False):
    """Options under which the types of a stage's ports are not known."""

    batch_size: int | None
    batch_bytes: int | str | None
    batch_cost: Callable[..., float] | None
    max_batch_cost: float | None
    batch_by: Callable[..., Hashable] | None
    linger_s: float | None
    outputs: int | tuple[str, ...] | list[str]


class _OnlyAny:
    """Nobody returns this, so only functions that return ``Any`` (or never return) match it."""


class CallAny(Protocol):
    """An object of which the type of the result is not known."""

    def __call__(self, *args: Any, **kwargs: Any) -> _OnlyAny: ...


class ItemDecorator(Protocol):
    """``ff.stage`` with options, but without ``batch_size``: waits for the function or class."""

    @overload
    def __call__(self, target: type[CallAny], /) -> ClassOf[Stage]: ...
    @overload
    def __call__(self, target: Callable[..., _OnlyAny], /) -> Stage: ...
    @overload
    def __call__(self, target: type[Call1[A, Awaitable[R]]], /) -> ClassOf[Stage1[A, R]]: ...
    @overload
    def __call__(self, target: type[Call2[A, B, Awaitable[R]]], /) -> ClassOf[Stage2[A, B, R]]: ...
    @overload
    def __call__(
        self, target: type[Call3[A, B, C, Awaitable[R]]], /
    ) -> ClassOf[Stage3[A, B, C, R]]: ...
    @overload
    def __call__(
        self, target: type[Call4[A, B, C, D, Awaitable[R]]], /
    ) -> ClassOf[Stage4[A, B, C, D, R]]: ...
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
        self, target: Callable[Concatenate[A, B, C, D, Q], Awaitable[R]], /
    ) -> Stage4[A, B, C, D, R]: ...
    @overload
    def __call__(
        self, target: Callable[Concatenate[A, B, C, Q], Awaitable[R]], /
    ) -> Stage3[A, B, C, R]: ...
    @overload
    def __call__(
        self, target: Callable[Concatenate[A, B, Q], Awaitable[R]], /
    ) -> Stage2[A, B, R]: ...
    @overload
    def __call__(self, target: Callable[Concatenate[A, Q], Awaitable[R]], /) -> Stage1[A, R]: ...
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
    def __call__(self, target: Callable[..., Awaitable[Any]], /) -> Stage: ...
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
        self,
        target: Callable[
            Concatenate[list[A], list[B], list[C], list[D], Q],
            Rows[R | ItemFailure | ParentFailure],
        ],
        /,
    ) -> Batched4[A, B, C, D, R]: ...
    @overload
    def __call__(
        self,
        target: Callable[
            Concatenate[list[A], list[B], list[C], Q], Rows[R | ItemFailure | ParentFailure]
        ],
        /,
    ) -> Batched3[A, B, C, R]: ...
    @overload
    def __call__(
        self,
        target: Callable[Concatenate[list[A], list[B], Q], Rows[R | ItemFailure | ParentFailure]],
        /,
    ) -> Batched2[A, B, R]: ...
    @overload
    def __call__(
        self, target: Callable[Concatenate[list[A], Q], Rows[R | ItemFailure | ParentFailure]], /
    ) -> Batched1[A, R]: ...


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
        self, target: type[Call1[A, Awaitable[R]]], /, **options: Unpack[Options]
    ) -> ClassOf[Stage1[A, R]]: ...
    @overload
    def __call__(
        self, target: type[Call2[A, B, Awaitable[R]]], /, **options: Unpack[Options]
    ) -> ClassOf[Stage2[A, B, R]]: ...
    @overload
    def __call__(
        self, target: type[Call3[A, B, C, Awaitable[R]]], /, **options: Unpack[Options]
    ) -> ClassOf[Stage3[A, B, C, R]]: ...
    @overload
    def __call__(
        self, target: type[Call4[A, B, C, D, Awaitable[R]]], /, **options: Unpack[Options]
    ) -> ClassOf[Stage4[A, B, C, D, R]]: ...
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
        target: Callable[Concatenate[A, B, C, D, Q], Awaitable[R]],
        /,
        **options: Unpack[Options],
    ) -> Stage4[A, B, C, D, R]: ...
    @overload
    def __call__(
        self, target: Callable[Concatenate[A, B, C, Q], Awaitable[R]], /, **options: Unpack[Options]
    ) -> Stage3[A, B, C, R]: ...
    @overload
    def __call__(
        self, target: Callable[Concatenate[A, B, Q], Awaitable[R]], /, **options: Unpack[Options]
    ) -> Stage2[A, B, R]: ...
    @overload
    def __call__(
        self, target: Callable[Concatenate[A, Q], Awaitable[R]], /, **options: Unpack[Options]
    ) -> Stage1[A, R]: ...
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
        target: Callable[
            Concatenate[list[A], list[B], list[C], list[D], Q],
            Rows[R | ItemFailure | ParentFailure],
        ],
        /,
        **options: Unpack[BatchOptions],
    ) -> Batched4[A, B, C, D, R]: ...
    @overload
    def __call__(
        self,
        target: Callable[
            Concatenate[list[A], list[B], list[C], Q], Rows[R | ItemFailure | ParentFailure]
        ],
        /,
        **options: Unpack[BatchOptions],
    ) -> Batched3[A, B, C, R]: ...
    @overload
    def __call__(
        self,
        target: Callable[Concatenate[list[A], list[B], Q], Rows[R | ItemFailure | ParentFailure]],
        /,
        **options: Unpack[BatchOptions],
    ) -> Batched2[A, B, R]: ...
    @overload
    def __call__(
        self,
        target: Callable[Concatenate[list[A], Q], Rows[R | ItemFailure | ParentFailure]],
        /,
        **options: Unpack[BatchOptions],
    ) -> Batched1[A, R]: ...
    @overload
    def __call__(self, target: type[Any], /, **options: Unpack[OtherOptions]) -> ClassOf[Stage]: ...
    @overload
    def __call__(self, target: Callable[..., Any], /, **options: Unpack[OtherOptions]) -> Stage: ...
    @overload
    def __call__(self, target: object, /, **options: Unpack[MethodOptions]) -> Stage: ...
    @overload
    def __call__(self, /, **options: Unpack[Options]) -> ItemDecorator: ...
    @overload
    def __call__(self, /, **options: Unpack[BatchOptions]) -> BatchDecorator: ...
    @overload
    def __call__(self, /, **options: Unpack[OtherOptions]) -> OtherDecorator: ...
