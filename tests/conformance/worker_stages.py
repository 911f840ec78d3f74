"""Stages that show the life of a worker; a module of its own, as users have."""

from __future__ import annotations

import asyncio
import os
import threading
from pathlib import Path
from typing import Any

import fanfold as ff

FOLDER = "FANFOLD_TEST_FOLDER"
"""Names the folder in which stages leave notes."""


def note(what: str) -> None:
    with (Path(os.environ[FOLDER]) / what).open("a") as file:
        file.write("x")


class Model:
    """Leaves notes of what happens to it."""

    @staticmethod
    def setup_on_node() -> None:
        note("set up")

    def __init__(self, token: str) -> None:
        note("constructed")
        assert len(os.listdir(os.environ[FOLDER])) >= 2, "set up comes first"
        self.token = token

    def __call__(self, item: int) -> str:
        if item < 0:
            raise ValueError(f"no access with {self.token}")
        ff.context().count("items")
        return f"{self.token[:2]} {ff.context().call} {ff.context().attempt}"

    def close(self) -> None:
        note("closed")


model = ff.stage(Model, replicas=2)


@ff.pipeline
def told(item: ff.Port[int]) -> ff.Port[str]:
    return model(ff.Secret("FANFOLD_TEST_TOKEN"))(item)


class Remote:
    """Built in its loop; at its gate items wait for each other."""

    def __init__(self, together: int) -> None:
        self.loop = asyncio.get_running_loop()
        self.together = together
        self.waiting = 0
        self.gate = asyncio.Event()

    async def __call__(self, item: int) -> int:
        assert asyncio.get_running_loop() is self.loop
        self.waiting += 1
        if self.waiting == self.together:
            self.gate.set()
        await self.gate.wait()
        if item == 3:
            raise ff.ItemFailure("not found", code="remote.404")
        if item == 4:
            raise ValueError("odd")
        return 10 * item

    async def close(self) -> None:
        assert asyncio.get_running_loop() is self.loop
        note("closed")


remote = ff.stage(Remote)


@ff.pipeline
def fetched(item: ff.Port[int], *, together: int = 1) -> ff.Port[int]:
    return remote(together)(item)


@ff.stage(batch_size=4)
async def doubles(items: list[int]) -> list[Any]:
    await asyncio.sleep(0)
    return [ff.ItemFailure("three") if item == 3 else 2 * item for item in items]


@ff.stage(max_in_flight=2)
async def meddles(item: int) -> int:
    """Does to its worker's event loop what it should not."""
    loop = asyncio.get_running_loop()
    if item == 1:
        loop.stop()
    if item == 2:
        loop.close()
    await asyncio.sleep(0)
    return item


@ff.pipeline
def meddling(item: ff.Port[int]) -> ff.Port[int]:
    return meddles(item)


@ff.stage
async def upto(n: int) -> list[int]:
    return list(range(n))


@ff.pipeline(level="document")
def fanned(n: ff.Port[int]) -> ff.Port[list[int]]:
    page = ff.expand(upto(n), "page")
    return ff.gather(doubles(page), failed="drop")


class Hoard:
    """Keeps what it is given where the program can see it, if that is the same process."""

    seen: list[tuple[str, Any]] = []  # noqa: RUF012  # shared on purpose

    def __call__(self, item: Any) -> Any:
        self.seen.append((threading.current_thread().name, item))
        return item


hoard = ff.stage(Hoard, workers="thread")


@ff.pipeline
def hoarded(item: ff.Port[Any]) -> ff.Port[Any]:
    kept: ff.Port[Any] = hoard()(hoard()(item))
    return kept
