"""The part of the conformance suite in which workers are replaced after so many items."""

from __future__ import annotations

import os
from typing import Any

import fanfold as ff
from fanfold.outcomes import Outcome
from fanfold.testing import conformance_stages as s
from fanfold.testing.conformance_kit import ConformanceKit
from fanfold.testing.observing import Observed

PAGES = ff.stage(s.upto, batch_size=4)


class ReplacesWorkers(ConformanceKit):
    """None has more than it may, nothing is lost or doubled, and that is no death."""

    def test_workers_are_replaced_and_nothing_changes(self) -> None:
        @ff.pipeline(level="document")
        def pipeline(n: ff.Port[Any]) -> Any:
            page = ff.expand(PAGES(n), "page")
            inc = ff.stage(s.inc, batch_size=3, replicas=2, recycle_after=5)
            tenfold = ff.stage(s.tenfold, recycle_after=4)
            return ff.gather(tenfold(inc(page)))

        roots = [7, 0, 5, 13, 2]
        found, observed = self.checked(pipeline, roots)
        assert found == [[[10 * (i + 1) for i in range(n)] for n in roots]]
        assert _replaced(observed) >= 4
        assert not sum(worker.restarts for worker in observed.statistics.workers)
        assert sum(call.executed for call in observed.statistics.calls) == 5 + 27 + 27

    def test_a_worker_has_exactly_so_many_items(self, tmp_path: Any) -> None:
        aged = ff.stage(s.Aged, recycle_after=4)(str(tmp_path))
        lives, observed = self._lives(aged, 10)
        assert not self.own_objects or sorted(lives.values()) == [2, 4, 4]
        assert _replaced(observed) == 2
        closed = [name for name in os.listdir(tmp_path) if name.startswith("closed")]
        assert not self.own_objects or len(closed) == 3

    def test_a_batch_is_not_cut(self, tmp_path: Any) -> None:
        aged = ff.stage(s.Aged, method="batch", batch_size=4, recycle_after=5)(str(tmp_path))
        lives, observed = self._lives(aged, 20)
        assert not self.own_objects or sorted(lives.values()) == [4, 8, 8]
        assert _replaced(observed) == 2

    def test_what_an_asynchronous_worker_has_going_ends_first(self, tmp_path: Any) -> None:
        aged = ff.stage(s.Aged, method="awaited", max_in_flight=3, recycle_after=4)(str(tmp_path))
        lives, observed = self._lives(aged, 10)
        assert not self.own_objects or sorted(lives.values()) == [2, 4, 4]
        assert _replaced(observed) == 2

    def test_nobody_is_replaced_for_whom_there_is_no_work(self, tmp_path: Any) -> None:
        aged = ff.stage(s.Aged, recycle_after=5)(str(tmp_path))
        lives, observed = self._lives(aged, 5)
        assert list(lives.values()) == [5]
        assert _replaced(observed) == 0

    def _lives(self, aged: Any, items: int) -> tuple[dict[int, int], Observed]:
        """By object, how many items it had; all items are there once."""

        @ff.pipeline(level="document")
        def pipeline(n: ff.Port[Any]) -> Any:
            return ff.gather(aged(ff.expand(PAGES(n), "page")))

        _, observed = self.run(pipeline, [items])
        (items_of_port,) = observed.items.values()
        (gathered,) = items_of_port.values()
        assert gathered.outcome is Outcome.DONE
        assert [x for _, _, x in gathered.value] == list(range(items))
        lives: dict[int, int] = {}
        for number, age, _ in gathered.value:
            lives[number] = max(lives.get(number, 0), age)
        return lives, observed


def _replaced(observed: Observed) -> int:
    return sum(worker.recycled for worker in observed.statistics.workers)
