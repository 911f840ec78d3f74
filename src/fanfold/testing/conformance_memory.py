"""The part of the conformance suite that runs within a memory budget."""

from __future__ import annotations

from typing import Any

import pytest

import fanfold as ff
from fanfold.testing import conformance_stages as s
from fanfold.testing.conformance_kit import ConformanceKit, told

PAGES = ff.stage(s.upto, batch_size=4)
INC = ff.stage(s.inc, batch_size=3)
BLOB_BYTES = 100_000
RESULT_BYTES = 300
"""More than a small result and a root take by themselves."""
PIECES = ff.stage(s.pieces)
FIRST_BYTE = ff.stage(s.first_byte)


class WithinABudget(ConformanceKit):
    """Generators wait, nothing stands still, and nothing is lost."""

    @pytest.mark.parametrize("children", [1, 6])
    def test_one_parent_of_many_children_keeps_to_the_budget(self, children: int) -> None:
        @ff.pipeline(level="document")
        def pipeline(n: ff.Port[Any]) -> Any:
            return ff.gather(FIRST_BYTE(ff.expand(PIECES(n, size_bytes=BLOB_BYTES), "page")))

        blob, many = self.value_bytes(BLOB_BYTES), 30
        budget = children * blob
        found, observed = self.checked(pipeline, [many], budget_bytes=budget)
        assert found == [[list(range(many))]]
        if self.waits_for_room:
            statistics = observed.statistics
            # The last child for which there is room may go beyond it; beside that, only whom nothing else
            # could help goes on without credit. What was read is gathered, and stays.
            assert statistics.peak_bytes <= budget + blob + many * RESULT_BYTES
            assert statistics.pauses > 0

    def test_giants_and_small_parents_share_a_budget(self) -> None:
        @ff.pipeline(level="document")
        def pipeline(n: ff.Port[Any]) -> Any:
            return ff.gather(FIRST_BYTE(ff.expand(PIECES(n, size_bytes=BLOB_BYTES), "page")))

        roots = [12, *range(3), 0, 12, *range(3), 1, 1]
        budget = 3 * self.value_bytes(BLOB_BYTES)
        found = self.check(pipeline, roots, budget_bytes=budget)
        assert found == [[list(range(n)) for n in roots]]

    def test_a_budget_that_holds_nothing_lets_one_item_at_a_time_pass(self) -> None:
        @ff.pipeline(level="document")
        def pipeline(n: ff.Port[Any]) -> Any:
            page = ff.expand(PAGES(n), "page")
            region = ff.expand(PIECES(page, size_bytes=2_000), "region")
            text = FIRST_BYTE(region)
            return ff.gather(ff.stage(s.total, batch_size=2)(ff.gather(text))), ff.gather(
                ff.gather(INC(text))
            )

        sums = [[sum(range(n)) for n in range(roots)] for roots in (3, 0, 4)]
        lists = [[list(range(1, n + 1)) for n in range(roots)] for roots in (3, 0, 4)]
        assert self.check(pipeline, [3, 0, 4], budget_bytes=1) == [sums, lists]

    def test_a_worker_that_dies_loses_nothing_of_a_generator_that_waits(
        self, tmp_path: Any
    ) -> None:
        if not self.survives_death:
            pytest.skip("stages run in this very process")

        @ff.pipeline(level="document")
        def pipeline(n: ff.Port[Any]) -> Any:
            flag = str(tmp_path / "killed")
            made = ff.stage(s.pieces_kill_once)(n, size_bytes=BLOB_BYTES, at=3, flag=flag)
            return ff.gather(FIRST_BYTE(ff.expand(made, "page")))

        budget = 8 * self.value_bytes(BLOB_BYTES)
        _, observed = self.run(pipeline, [20, 3, 2], budget_bytes=budget)
        (items,) = observed.items.values()
        assert [told(item) for _, item in sorted(items.items())] == [
            list(range(n)) for n in (20, 3, 2)
        ]
        assert sum(worker.restarts for worker in observed.statistics.workers) == 1
