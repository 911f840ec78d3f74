"""A dry run's durations: sweeps over batch sizes, and what is recorded of each kind of stage."""

import asyncio
import json
import threading
from collections.abc import Iterator
from typing import Any

import pytest

import fanfold as ff
from fanfold.observe.profile import DURATIONS


class Ocr:
    sizes: list[int] = []  # noqa: RUF012  # shared on purpose
    log: list[str] = []  # noqa: RUF012

    @staticmethod
    def setup_on_node() -> None:
        Ocr.log.append("set up")

    def __init__(self) -> None:
        self.log.append("constructed")

    def __call__(self, pages: list[int]) -> list[int]:
        self.sizes.append(len(pages))
        return pages

    def close(self) -> None:
        self.log.append("closed")


ocr = ff.stage(Ocr, batch_size=3)


@ff.stage
def pages(n: int) -> Iterator[int]:
    yield from range(n)


@ff.stage
async def fetched(n: int) -> int:
    await asyncio.sleep(0)
    return n


@ff.stage(batch_size=8)
def totals(lists: list[Any]) -> list[int]:
    return [sum(values) for values in lists]


@ff.pipeline(level="document")
def pipeline(n: ff.Port[int]) -> ff.Port[int]:
    page = ff.expand(pages(fetched(n)), "page")
    return totals(ff.gather(ocr()(page)))


@pytest.fixture(autouse=True)
def _fresh(monkeypatch):
    monkeypatch.setattr(Ocr, "sizes", [])
    monkeypatch.setattr(Ocr, "log", [])


def durations(found, stage):
    return {items: len(seconds) for items, seconds in found.profile.stages[stage].seconds.items()}


def test_durations_are_told_by_the_number_of_items_in_a_call():
    found = pipeline.check([7], n=1)
    assert found.ok, str(found)
    assert durations(found, "fetched") == {1: 1}
    assert durations(found, "pages") == {1: 1}
    assert durations(found, "Ocr") == {3: 2, 1: 1}
    assert durations(found, "totals") == {1: 1}
    assert found.profile.pipeline == "pipeline"
    assert Ocr.log == ["set up", "constructed", "closed"]
    stages = {stage.name: stage for stage in found.stages}
    assert stages["fetched"].gives == "int"
    assert sum(sum(s) for s in found.profile.stages["Ocr"].seconds.values()) == pytest.approx(
        stages["Ocr"].busy_s
    )


def test_a_sweep_runs_the_same_items_with_other_sizes():
    given = iter([6, 99])
    found = pipeline.check(given, n=1, sweep={"Ocr": (1, 6)})
    assert next(given) == 99, "the sample is read once"
    assert Ocr.sizes == [3, 3, 1, 1, 1, 1, 1, 1, 6]
    assert durations(found, "Ocr") == {3: 2, 1: 6, 6: 1}
    assert durations(found, "totals") == {1: 3}
    assert found.report.levels == {"document": 1, "page": 6}, "the table is of the first run"


def test_sizes_without_a_name_are_for_all_batched_stages():
    found = pipeline.check([3], n=1, sweep=(1, 2))
    assert durations(found, "Ocr") == {3: 1, 1: 4, 2: 1}
    assert durations(found, "totals") == {1: 3}


@pytest.mark.parametrize(
    "sweep", [{"pages": (1,)}, {"Nowhere": (1,)}, (0,), ("2",), {"Ocr": (True,)}]
)
def test_a_sweep_that_cannot_be_made_is_refused(sweep):
    with pytest.raises(ff.UsageError, match=r"FF444 .*Ocr, totals"):
        pipeline.check([1], sweep=sweep)


def test_a_profile_is_written(tmp_path):
    pipeline.check([1], profile=tmp_path / "profile.json")
    data = json.loads((tmp_path / "profile.json").read_text())
    assert set(data["stages"]) == {"fetched", "pages", "Ocr", "totals"}
    assert data["stages"]["Ocr"]["calls"][0]["items"] == 1


def test_not_all_durations_are_kept():
    found = pipeline.check(range(DURATIONS + 50), n=DURATIONS + 50, sweep=(1,))
    assert durations(found, "fetched") == {1: DURATIONS}


def test_a_call_that_raises_took_its_time_as_well():
    @ff.stage
    def fails(n: int) -> int:
        raise ValueError(n)

    @ff.stage
    async def fails_later(n: int) -> int:
        raise ValueError(n)

    @ff.pipeline
    def failing(n: ff.Port[int]) -> tuple[ff.Port[int], ff.Port[int]]:
        return fails(n), fails_later(n)

    found = failing.check([1])
    assert durations(found, "fails") == durations(found, "fails_later") == {1: 1}


def test_threads_need_not_travel():
    lock = threading.Lock()

    @ff.stage(workers="thread")
    def locked(n: int) -> int:
        with lock:
            return n

    @ff.pipeline
    def threads(n: ff.Port[int]) -> ff.Port[int]:
        return locked(n)

    assert threads.check([1]).ok


def test_an_open_file_is_refused_as_in_a_run():
    opened = ff.stage(lambda file: file, name="opened")
    with open(__file__) as file:
        found = ff.pipeline(lambda n: opened(n)).check([file])
    assert not found.ok
    assert "a TextIOWrapper, an open file" in str(found)
