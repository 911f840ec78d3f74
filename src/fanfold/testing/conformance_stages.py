"""The stages of the conformance suite: module-level, small, each with one purpose.

Owns the users' code that the suite runs, the deadly kinds included.
"""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time
from collections.abc import Iterator
from typing import Any

from fanfold.failures import ItemFailure


def identity(x: Any) -> Any:
    return x


def identity_batched(xs: list[Any]) -> list[Any]:
    return xs


def upto(ns: list[int]) -> list[list[int]]:
    return [list(range(n)) for n in ns]


def blobs(ns: list[int]) -> list[list[bytes]]:
    """Children of a kilobyte, every fourth of 400 kilobytes."""
    return [[bytes(400_000 if i % 4 == 0 else 1_000) for i in range(n)] for n in ns]


def with_total(values: list[bytes]) -> list[tuple[int, int]]:
    """By value, its length and that of all values of the batch."""
    total = sum(map(len, values))
    return [(len(value), total) for value in values]


def inc(xs: list[int]) -> list[int]:
    return [x + 1 for x in xs]


def tenfold(x: int) -> int:
    return x * 10


def add(xs: list[int], ys: list[int]) -> list[int]:
    return [x + y for x, y in zip(xs, ys, strict=True)]


def scale(xs: list[int], *, k: int) -> list[int]:
    return [x * k for x in xs]


def total(lists: list[list[int]]) -> list[int]:
    return [sum(values) for values in lists]


def is_even(xs: list[int]) -> list[bool]:
    return [x % 2 == 0 for x in xs]


def nulls(n: int | None) -> list[None]:
    return [None] * (n or 0)


def label_of(x: Any) -> str:
    return "drop" if x == "drop" else "keep"


def regions(n: int) -> list[dict[str, Any]]:
    kinds = ("text", "table", "figure", "text", "table", "formula", "text")
    return [{"kind": kinds[i % len(kinds)], "i": i} for i in range(n)]


def read(regions: list[dict[str, Any]], *, tag: str) -> list[str]:
    return [f"{tag}{region['i']}" for region in regions]


def read_tables(regions: list[dict[str, Any]]) -> list[Any]:
    return [
        ItemFailure("no lines") if region["i"] == 1 else f"table{region['i']}" for region in regions
    ]


def odd_page(n: int) -> dict[str, Any]:
    page = {"mask": "yes" if n == 1 else True, "label": "abc"[n], "sometimes": n}
    if n == 1:
        del page["sometimes"]
    return page


def raise_if(x: Any, *, eq: Any) -> Any:
    if x == eq:
        raise ValueError(f"boom {x}")
    return x


def raise_if_batched(xs: list[Any], *, eq: Any) -> list[Any]:
    return [raise_if(x, eq=eq) for x in xs]


def fail_if_batched(xs: list[Any], *, eq: Any) -> list[Any]:
    return [ItemFailure(f"bad {x}") if x == eq else x for x in xs]


def two_fail_second(xs: list[int], *, eq: int) -> list[Any]:
    return [(x, ItemFailure(f"bad {x}") if x == eq else x * 10) for x in xs]


def leaves_out(xs: list[Any], *, eq: Any) -> list[Any]:
    return [x for x in xs if x != eq]


def text_for(x: Any, *, eq: Any) -> Any:
    return "text" if x == eq else [x]


def groups(n: int) -> tuple[list[int], list[int]]:
    return list(range(n)), [10 * i for i in range(min(n, 2))]


def counting(n: int, *, break_at: int) -> Iterator[int]:
    for i in range(n):
        if i == break_at:
            raise ValueError(f"broke at {i}")
        yield i


def counting_pairs(n: int, *, break_at: int) -> Iterator[Any]:
    for i in range(n):
        yield i if i == break_at else (i, -i)


def pieces(n: int, *, size_bytes: int) -> Iterator[bytes]:
    for i in range(n):
        yield bytes([i % 256]) * size_bytes


def pieces_kill_once(n: int, *, size_bytes: int, at: int, flag: str) -> Iterator[bytes]:
    """The worker dies for the parent that has so many children, the first time."""
    if n == at:
        _die_once(flag)
    yield from pieces(n, size_bytes=size_bytes)


def first_byte(blob: bytes) -> int:
    time.sleep(0.002)  # a stage that takes its time, not a wait for something
    return blob[0]


class Adder:
    def __init__(self, k: int) -> None:
        self._k = k

    def __call__(self, xs: list[int]) -> list[int]:
        return [x + self._k for x in xs]


class Unbuildable:
    def __init__(self, reason: str) -> None:
        raise RuntimeError(reason)

    def __call__(self, x: Any) -> Any:
        return x


# ------------------------------------------------------------------------------- values across processes


def lock_if(xs: list[Any], *, eq: Any) -> list[Any]:
    return [threading.Lock() if x == eq else x for x in xs]


def locks(x: Any, *, eq: Any) -> list[Any]:
    return [threading.Lock() if x == eq else x]


def this_process() -> int:
    return os.getpid()


class Guarded(dict[str, Any]):
    """A value that refuses to be unpickled in the driver's process."""

    def __init__(self, driver: int, n: int) -> None:
        super().__init__(driver=driver, n=n, keep=n != 1)

    def __reduce__(self) -> Any:
        return guarded_again, (self["driver"], self["n"])


def guarded_again(driver: int, n: int) -> Guarded:
    if os.getpid() == driver:
        raise AssertionError("a user's value was unpickled in the driver's process")
    return Guarded(driver, n)


def guarded_children(n: int, *, driver: int) -> list[Guarded]:
    return [Guarded(driver, i) for i in range(n)]


def guarded_total(values: list[Guarded]) -> int:
    return sum(value["n"] for value in values)


# ------------------------------------------------------------------------------------------ worker death


def abort_if(x: Any, *, eq: Any) -> Any:
    if x == eq:
        os.kill(os.getpid(), signal.SIGKILL)
    return x


def abort_if_batched(xs: list[Any], *, eq: Any) -> list[Any]:
    return [abort_if(x, eq=eq) for x in xs]


def kill_once(xs: list[Any], *, eq: Any, flag: str) -> list[Any]:
    for x in xs:
        if x == eq:
            _die_once(flag)
    return xs


def counting_kills_once(n: int, *, at: int, flag: str) -> Iterator[int]:
    for i in range(n):
        if i == at:
            _die_once(flag)
        yield i


def _die_once(flag: str) -> None:
    """End this process the first time that ``flag`` is named."""
    try:
        os.close(os.open(flag, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return
    os.kill(os.getpid(), signal.SIGKILL)


class Aged:
    """Tells how many items its object has had, and which of all objects in this run it is.

    Objects are told apart by a file that each makes in a folder, so that no two have one.
    """

    def __init__(self, folder: str) -> None:
        self._folder, self._items, self._number = folder, 0, 0
        while not _is_made(os.path.join(folder, f"made{self._number}")):
            self._number += 1

    def __call__(self, x: Any) -> tuple[int, int, Any]:
        self._items += 1
        return self._number, self._items, x

    def close(self) -> None:
        _is_made(os.path.join(self._folder, f"closed{self._number}"))

    def batch(self, xs: list[Any]) -> list[tuple[int, int, Any]]:
        return [self(x) for x in xs]

    async def awaited(self, x: Any) -> tuple[int, int, Any]:
        self._items += 1
        items = self._items
        await asyncio.sleep(0)
        return self._number, items, x


def _is_made(path: str) -> bool:
    """Make a file, unless it is there."""
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return False
    return True


class Awaited:
    """Knows the event loop that it was constructed in, and is called there."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()

    async def __call__(self, x: Any, *, bad: Any) -> Any:
        await asyncio.sleep(0)
        assert asyncio.get_running_loop() is self._loop, "constructed in another loop"
        if x == bad:
            raise ItemFailure(f"bad {x}")
        return 10 * x


async def awaited_upto(n: int) -> list[int]:
    await asyncio.sleep(0)
    return list(range(n))


async def awaited_inc(xs: list[int]) -> list[Any]:
    await asyncio.sleep(0)
    return [ItemFailure("bad 2") if x == 2 else x + 1 for x in xs]
