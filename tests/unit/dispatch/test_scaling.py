"""How replicas follow the measured work: the split, when it changes, and what a replica does that goes."""

from __future__ import annotations

from typing import Any, Literal

import pytest

import fanfold as ff
from fanfold.dispatch.scaling import LOOK_S, split
from fanfold.plan import Plan
from tests.shop import Shop

FIRST, SECOND = 0, 1
Replicas = int | tuple[int, int] | Literal["auto"]


def first(x: int) -> int:
    return x


def second(x: int) -> int:
    return x


def two(a: Replicas = "auto", b: Replicas = "auto", **options: Any) -> Plan:
    """A pipeline of two stages, one after the other."""
    one, other = ff.stage(first, replicas=a, **options), ff.stage(second, replicas=b)

    @ff.pipeline(level="document")
    def pipeline(x: ff.Port[int]) -> Any:
        return other(one(x))

    return pipeline.plan()


# ------------------------------------------------------------------------------------ the split


@pytest.mark.parametrize(
    ("cores", "uses", "bounds", "costs", "expected"),
    [
        (16, [0.17, 0.21], [(1, 16), (1, 16)], [1, 1], [7, 9]),
        (16, [1.0, 1.0], [(1, 16), (1, 16)], [1, 1], [8, 8]),
        (16, [1.0, 1000.0], [(1, 16), (1, 16)], [1, 1], [1, 15]),
        (16, [1.0, 1000.0], [(4, 16), (1, 16)], [1, 1], [4, 12]),
        (16, [1.0, 1000.0], [(1, 16), (1, 3)], [1, 1], [13, 3]),
        (16, [1.0, 1.0], [(1, 16), (1, 16)], [1, 3], [4, 4]),
        (16, [0.0, 1.0], [(1, 16), (1, 16)], [1, 1], [1, 15]),
        (2, [1.0, 1.0, 1.0], [(1, 2), (1, 2), (1, 2)], [1, 1, 1], [1, 1, 1]),
    ],
)
def test_the_stage_with_the_least_to_spare_has_the_most(
    cores: int,
    uses: list[float],
    bounds: list[tuple[int, int]],
    costs: list[int],
    expected: list[int],
) -> None:
    assert split(cores, uses, bounds, costs) == expected


# -------------------------------------------------------------------------------- what is reached


def test_the_split_follows_the_work_and_not_who_was_ready_first() -> None:
    shop = Shop(two(), 16, item_s=(0.17, 0.21), start_s=(0.1, 10.0))
    shop.run(None, until_s=80.0)
    assert shop.replicas() in ([7, 9], [8, 8])
    assert len(shop.retired) <= 3


@pytest.mark.parametrize(("item_s", "expected"), [((0.05, 1.0), [1, 15]), ((1.5, 0.5), [12, 4])])
def test_stages_of_unequal_work_are_given_what_they_need(
    item_s: tuple[float, float], expected: list[int]
) -> None:
    shop = Shop(two(), 16, item_s=item_s, start_s=(0.5, 0.5))
    shop.run(None, until_s=100.0)
    found = shop.replicas()
    assert max(abs(a - b) for a, b in zip(found, expected, strict=True)) <= 1


def test_all_replicas_with_slow_constructors_start_at_once_and_the_first_gets_work() -> None:
    shop = Shop(two("auto", 1), 4, item_s=(1.0, 0.01), start_s=(40.0, 0.0))
    shop.run(None, until_s=39.0)
    assert shop.replicas()[FIRST] == 4 and [time_s for time_s, _ in shop.added] == [0.0] * 3
    shop.run(None, until_s=400.0)
    assert shop.retired == [] and len(shop.added) == 3


def test_slow_constructors_are_not_run_again_and_again() -> None:
    def item_s(stage: int, time_s: float) -> float:
        """Which of the two has the most work changes all the time."""
        return 4.0 if (int(time_s / 15) + stage) % 2 else 1.0

    shop = Shop(two(), 8, item_s=(), start_s=(40.0, 40.0), item_s_at=item_s)
    shop.run(None, until_s=1_000.0)
    assert len(shop.retired) <= 1_000 / 40 / 2


def test_a_change_of_the_work_is_followed() -> None:
    def item_s(stage: int, time_s: float) -> float:
        late = time_s > 200
        return 2.0 if (stage == FIRST) is late else 0.5

    shop = Shop(two(), 10, item_s=(), start_s=(1.0, 1.0), item_s_at=item_s)
    shop.run(None, until_s=200.0)
    before = shop.replicas()
    shop.run(None, until_s=600.0)
    after = shop.replicas()
    assert before[SECOND] >= 7 and after[FIRST] >= 7


# ------------------------------------------------------------------------------------- the bounds


def test_the_fewest_and_the_most_are_kept_to() -> None:
    shop = Shop(two((2, 3), (1, 4)), 16, item_s=(0.001, 1.0), start_s=(0.1, 0.1))
    shop.run(None, until_s=100.0)
    assert shop.replicas() == [2, 4] or shop.replicas() == [3, 4]


def test_cores_that_a_replica_takes_count() -> None:
    shop = Shop(two("auto", "auto", cpus=3), 8, item_s=(1.0, 0.001), start_s=(0.1, 0.1))
    shop.run(None, until_s=100.0)
    assert shop.replicas()[FIRST] == 2


def test_no_more_are_started_than_have_something_to_do() -> None:
    shop = Shop(two(), 16, item_s=(5.0, 5.0), start_s=(1.0, 1.0))
    shop.run(3)
    assert len(shop.added) <= 2 + 2


@pytest.mark.parametrize(("roots", "pays"), [(20, False), (200, True)])
def test_near_the_end_nothing_is_started_that_does_not_pay(roots: int, pays: bool) -> None:
    shop = Shop(two(1, (1, 8)), 9, item_s=(0.0, 0.5), start_s=(0.0, 3.0))
    shop.core._pools[SECOND].item_s = 0.5  # as if it was measured, or it would get more at once
    shop.run(roots)
    assert bool(shop.added) is pays


# -------------------------------------------------------------------------------- a replica that goes


def leaving() -> tuple[Shop, int]:
    """The first stage has two replicas with work in hand, and the second of them is to go."""
    shop = Shop(two((1, 2), (1, 2)), 3, item_s=(1.0, 0.001), start_s=(0.0, 0.0))
    shop.run(None, until_s=3.5)
    scaling, worker = shop.core._scaling, shop.core._workers[1]
    assert scaling is not None and shop.replicas() == [2, 1] and worker.batches
    scaling._retire(worker)
    return shop, worker.number


def test_a_replica_that_is_to_go_gets_nothing_more_and_goes_when_it_has_ended_what_it_has() -> None:
    shop, worker = leaving()
    held = len(shop.held(worker))
    done = sum(by == worker for _, by in shop.done_at)
    while worker in shop.there:
        shop.run(None, until_s=shop.now_s + 0.01)
        assert shop.now_s < 20, "it stays"
    assert sum(by == worker for _, by in shop.done_at) - done == held
    assert [stage for _, stage in shop.retired] == [FIRST]


def test_a_replica_is_started_when_another_has_gone() -> None:
    shop, worker = leaving()
    scaling = shop.core._scaling
    assert scaling is not None
    scaling._stages[SECOND].owed = 1
    while worker in shop.there:
        assert shop.replicas() == [2, 1]
        shop.run(None, until_s=shop.now_s + 0.01)
    assert shop.replicas() == [1, 2]


def test_one_that_dies_before_it_has_gone_is_not_started_again_but_its_work_is_done() -> None:
    shop, worker = leaving()
    shop.die(worker)
    assert worker not in shop.there
    shop.run(None, until_s=5.0)
    assert shop.retired == [] and shop.replicas()[FIRST] == 1


def test_a_replica_that_goes_ends_what_it_holds_and_nothing_is_lost_or_run_twice() -> None:
    shop = Shop(two(), 8, item_s=(0.01, 0.3), start_s=(0.2, 0.2))
    shop.run(300)
    assert shop.retired and len(shop.done_at) == 2 * 300
    assert shop.core.statistics(shop.now_s).roots["done"] == 300
    times = shop.core.statistics(shop.now_s).workers
    assert all(worker.restarts == 0 for worker in times)
    assert any(worker.idle_s.get("parked") for worker in times)


def test_a_worker_that_never_lived_is_not_told_of() -> None:
    shop = Shop(two(), 8, item_s=(0.1, 0.1), start_s=(0.0, 0.0))
    shop.run(1)
    names = [worker.name for worker in shop.core.statistics(shop.now_s).workers]
    assert names == ["first[0]", "second[0]"]


def test_looks_are_apart() -> None:
    shop = Shop(two(), 16, item_s=(0.001, 0.02), start_s=(0.0, 0.0))
    shop.run(None, until_s=2.9 * LOOK_S)
    assert shop.retired == []


# ------------------------------------------------------------------------- a replica that cannot start


def growing() -> Shop:
    """The first stage has one worker, and three more are starting."""
    shop = Shop(two((1, 4), 1), 4, item_s=(1.0, 0.001), start_s=(2.0, 0.0))
    shop.run(None, until_s=1.0)
    assert shop.replicas()[FIRST] == 4 and shop.stopped is None
    return shop


def test_a_replica_that_cannot_be_made_is_done_without() -> None:
    shop = growing()
    shop.fail(3)
    assert shop.stopped is None and shop.replicas()[FIRST] == 3
    shop.run(100)
    statistics = shop.core.statistics(shop.now_s)
    assert statistics.roots["done"] == statistics.admitted
    assert len(shop.added) == 3, "no other is tried"
    assert statistics.notes == (
        "stage 'first' has no more than 3 replicas, since first[3] could not be started: no memory",
    )


def test_a_replica_that_dies_at_its_start_is_done_without() -> None:
    shop = growing()
    shop.die(2)
    assert shop.stopped is None and shop.replicas()[FIRST] == 3
    shop.run(100)
    (note,) = shop.core.statistics(shop.now_s).notes
    assert note.endswith("first[2] could not be started: killed")


def test_of_the_fewest_replicas_each_has_to_start() -> None:
    shop = growing()
    shop.fail(0)
    assert shop.stopped is not None


def test_one_that_was_ready_and_dies_is_started_again() -> None:
    shop = growing()
    shop.run(None, until_s=3.0)
    shop.die(3)
    assert 3 in shop.there and shop.core.statistics(shop.now_s).notes == ()
