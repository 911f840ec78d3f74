"""The conformance suite: what every backend has to do, whoever wrote it. Subclass it in a test module.

Owns the list of behaviours and their expectations. Each test runs a small pipeline on the real engine over
the backend, compares every output item with the reference interpreter, and states the essential result
once more by hand. Knows a backend only through its contract in :mod:`fanfold.backends.base`.

Example, in a module that pytest collects::

    class TestMine(BackendConformance):
        crosses_processes = True

        def backend(self) -> Backend:
            return MyBackend()
"""

from __future__ import annotations

from typing import Any

import pytest

import fanfold as ff
from fanfold.failures import Failure
from fanfold.outcomes import Outcome
from fanfold.testing import conformance_stages as s
from fanfold.testing.conformance_kit import told
from fanfold.testing.conformance_memory import WithinABudget
from fanfold.testing.conformance_recycling import ReplacesWorkers
from fanfold.testing.observing import HANG_S

PAGES = ff.stage(s.upto, batch_size=4)
INC = ff.stage(s.inc, batch_size=3)
TENFOLD = ff.stage(s.tenfold)
RAISE_IF = ff.stage(s.raise_if)
RAISE_IF_BATCHED = ff.stage(s.raise_if_batched, batch_size=100)
FAIL_IF = ff.stage(s.fail_if_batched, batch_size=5)
RAISE_IF_STRICT = ff.stage(s.raise_if, on_error="stop")
FAIL_IF_STRICT = ff.stage(s.fail_if_batched, batch_size=5, on_error="stop")


class BackendConformance(WithinABudget, ReplacesWorkers):
    """Base of a backend's tests."""

    # ----------------------------------------------------------------------------- order and counts

    def test_gathers_are_in_ordinal_order(self) -> None:
        @ff.pipeline(level="document")
        def pipeline(n: ff.Port[Any]) -> Any:
            page = ff.expand(PAGES(n), "page")
            return ff.gather(TENFOLD(INC(page)))

        expected = [10 * (i + 1) for i in range(4)]
        assert self.check(pipeline, [4, 4, 4]) == [[expected] * 3]

    def test_more_children_than_fit_any_internal_run(self) -> None:
        @ff.pipeline(level="document")
        def pipeline(n: ff.Port[Any]) -> Any:
            page = ff.expand(PAGES(n), "page")
            return ff.gather(ff.stage(s.inc, batch_size=256)(page))

        many = 2_500
        assert self.check(pipeline, [1, many]) == [[[1], list(range(1, many + 1))]]

    def test_batches_that_linger_are_full_but_the_last(self) -> None:
        """They do not wait for what cannot come: then this would take its half minute."""

        @ff.pipeline(level="document")
        def pipeline(n: ff.Port[Any]) -> Any:
            page = ff.expand(PAGES(n), "page")
            return ff.gather(ff.stage(s.inc, batch_size=16, linger_s=HANG_S / 2)(page))

        counts = [1, 2, 3, 5, 7, 11, 13, 17]
        assert self.check(pipeline, counts) == [[list(range(1, n + 1)) for n in counts]]
        _, observed = self.run(pipeline, [(n,) for n in counts])
        (inc,) = [call for call in observed.statistics.calls if call.name == "inc"]
        assert (inc.executed, inc.batches) == (59, 4)

    def test_batches_of_limited_size_hold_no_more(self) -> None:
        @ff.pipeline(level="document")
        def pipeline(n: ff.Port[Any]) -> Any:
            blob = ff.expand(ff.stage(s.blobs, batch_size=4)(n), "blob")
            total = ff.stage(s.with_total, batch_size=12, batch_bytes="1MB", linger_s=HANG_S / 2)
            return ff.gather(total(blob))

        plan, observed = self.run(pipeline, [(n,) for n in (1, 20, 3, 16)])
        lists = [item.value for _, item in sorted(observed.items[plan.outputs[0].port].items())]
        assert [[size for size, _ in one] for one in lists] == [
            [400_000 if i % 4 == 0 else 1_000 for i in range(n)] for n in (1, 20, 3, 16)
        ]
        assert max(total for one in lists for _, total in one) <= 1_000_000
        (call,) = [call for call in observed.statistics.calls if call.name == "with_total"]
        assert call.executed == 40

    def test_an_item_above_the_size_of_a_batch_goes_alone(self) -> None:
        @ff.pipeline(level="document")
        def pipeline(n: ff.Port[Any]) -> Any:
            blob = ff.expand(ff.stage(s.blobs, batch_size=4)(n), "blob")
            return ff.gather(ff.stage(s.with_total, batch_size=12, batch_bytes=5_000)(blob))

        plan, observed = self.run(pipeline, [(8,)])
        blobs = observed.items[plan.outputs[0].port][(0,)].value
        assert [total for size, total in blobs if size > 5_000] == [400_000] * 2
        assert all(total <= 5_000 for size, total in blobs if size < 5_000)

    def test_no_roots(self) -> None:
        @ff.pipeline(level="document")
        def pipeline(n: ff.Port[Any]) -> Any:
            return INC(n)

        assert self.check(pipeline, []) == [[]]

    def test_a_source_returned_as_it_is(self) -> None:
        @ff.pipeline(level="document")
        def pipeline(n: ff.Port[Any]) -> Any:
            return n

        assert self.check(pipeline, [3, None, "x"]) == [[3, None, "x"]]

    def test_more_roots_than_are_open_at_once(self) -> None:
        @ff.pipeline(level="document")
        def pipeline(n: ff.Port[Any]) -> Any:
            return INC(n)

        assert self.check(pipeline, range(500)) == [list(range(1, 501))]

    def test_no_child_a_null_child_a_dropped_child_and_a_failed_child_differ(
        self,
    ) -> None:
        @ff.pipeline(level="document")
        def pipeline(values: ff.Port[Any]) -> Any:
            child = ff.expand(ff.stage(s.identity)(values), "page")
            kept = ff.split(child, ff.stage(s.label_of)(child), into=("keep", ...))[0]
            return ff.gather(FAIL_IF(kept, eq="fail"))

        roots = [[], [None], ["drop"], ["fail"], [1, "drop", None]]
        expected = [[], [None], [], ("suppressed", "bad fail"), [1, None]]
        assert self.check(pipeline, roots) == [expected]

    def test_two_levels_and_outputs_at_each(self) -> None:
        @ff.pipeline(level="document")
        def pipeline(n: ff.Port[Any]) -> Any:
            page = ff.expand(PAGES(n), "page")
            region = ff.expand(PAGES(page), "region")
            total = ff.stage(s.total, batch_size=2)(ff.gather(INC(region)))
            return {"region": region, "page": total, "document": ff.gather(total)}

        assert self.check(pipeline, [3, 0, 4]) == [
            [0, 0, 1, 0, 0, 1, 0, 1, 2],
            [0, 1, 3, 0, 1, 3, 6],
            [[0, 1, 3], [], [0, 1, 3, 6]],
        ]

    def test_several_sources_and_a_value_broadcast_to_children(self) -> None:
        @ff.pipeline(level="document")
        def pipeline(n: ff.Port[Any], k: ff.Port[Any]) -> Any:
            page = ff.expand(PAGES(n), "page")
            return ff.gather(ff.stage(s.add, batch_size=4)(page, k))

        assert self.check(pipeline, [(2, 10), (0, 20), (3, 30)]) == [[[10, 11], [], [30, 31, 32]]]

    def test_one_stage_in_two_calls(self) -> None:
        scale = ff.stage(s.scale, batch_size=4)

        @ff.pipeline(level="document")
        def pipeline(n: ff.Port[Any]) -> Any:
            return scale(scale(n, k=2), k=5)

        assert self.check(pipeline, [1, 2, 3]) == [[10, 20, 30]]

    def test_a_class_stage_keeps_its_state_and_arguments(self) -> None:
        @ff.pipeline(level="document")
        def pipeline(n: ff.Port[Any]) -> Any:
            return ff.stage(s.Adder, batch_size=2, replicas=2)(100)(n)

        assert self.check(pipeline, [1, 2, 3, 4]) == [[101, 102, 103, 104]]

    def test_asynchronous_stages_mean_what_others_do(self) -> None:
        @ff.pipeline(level="document")
        def pipeline(n: ff.Port[Any]) -> Any:
            page = ff.expand(ff.stage(s.awaited_upto)(n), "page")
            more = ff.stage(s.awaited_inc, batch_size=3, max_in_flight=2)(page)
            tenfold = ff.stage(s.Awaited, max_in_flight=4)()(more, bad=4)
            return ff.gather(more, failed="drop"), ff.gather(tenfold, failed="mark")

        grown, tenfold = self.check(pipeline, [2, 0, 5])
        assert grown == [[1, 2], [], [1, 2, 4, 5]]
        assert tenfold[:2] == [[10, 20], []]
        assert [None if isinstance(v, Failure) else v for v in tenfold[2]] == [
            10,
            20,
            None,
            None,
            50,
        ]

    def test_null_is_a_value_everywhere(self) -> None:
        @ff.pipeline(level="document")
        def pipeline(n: ff.Port[Any]) -> Any:
            page = ff.expand(ff.stage(s.nulls)(n), "page")
            same = ff.stage(s.identity_batched, batch_size=3)(page)
            return ff.record(pages=ff.gather(same), first=ff.stage(s.identity)(n))

        assert self.check(pipeline, [2, None]) == [
            [{"pages": [None, None], "first": 2}, {"pages": [], "first": None}]
        ]

    # ------------------------------------------------------------------------------- routes and records

    def test_routes_come_back_in_place_and_fall_back_where_told(self) -> None:
        @ff.pipeline(level="page")
        def pipeline(n: ff.Port[Any]) -> Any:
            region = ff.expand(ff.stage(s.regions)(n), "region")
            text, table, rest = ff.split(region, region["kind"], into=("text", "table", ...))
            read = ff.stage(s.read, batch_size=2)
            strict = ff.stage(s.read_tables, batch_size=2)
            merged = ff.merge(
                strict(table),
                read(text, tag="t"),
                read(rest, tag="?"),
                failed="next",
                default="lost",
            )
            return ff.gather(merged)

        expected = ["t0", "lost", "?2", "t3", "table4", "?5", "t6"]
        assert self.check(pipeline, [7, 0]) == [[expected, []]]

    def test_filter_leaves_out_and_a_dropped_parent_is_dropped(self) -> None:
        @ff.pipeline(level="document")
        def pipeline(n: ff.Port[Any], keep: ff.Port[Any]) -> Any:
            page = ff.expand(PAGES(ff.filter(n, keep)), "page")
            even = ff.filter(page, ff.stage(s.is_even, batch_size=8)(page))
            return ff.gather(even), even

        gathered, even = self.check(pipeline, [(5, True), (3, False), (0, True)])
        assert gathered == [[0, 2, 4], "dropped", []]
        assert even == [0, "dropped", 2, "dropped", 4]

    def test_masks_labels_and_fields_that_break_the_contract_fail_their_items(
        self,
    ) -> None:
        @ff.pipeline(level="document")
        def pipeline(n: ff.Port[Any]) -> Any:
            odd = ff.stage(s.odd_page)(n)
            by_mask = ff.filter(n, odd["mask"])
            by_label = ff.split(n, odd["label"], into=("a", "b"))
            return (by_mask, *by_label, odd["sometimes"])

        mask, a, b, sometimes = self.check(pipeline, [0, 1, 2])
        assert [item if isinstance(item, int) else item[:1] for item in mask] == [
            0,
            ("failed",),
            2,
        ]
        assert [a[0], b[0], a[1], b[1]] == [0, "dropped", "dropped", 1]
        assert [a[2][0], b[2][0]] == ["failed", "failed"]
        assert [sometimes[0], sometimes[1][0], sometimes[2]] == [0, "failed", 2]

    # -------------------------------------------------------------------------------------- failures

    @pytest.mark.parametrize("failed", ["fail", "drop", "mark"])
    def test_a_page_that_raises(self, failed: Any) -> None:
        @ff.pipeline(level="document")
        def pipeline(n: ff.Port[Any]) -> Any:
            return ff.gather(RAISE_IF(ff.expand(PAGES(n), "page"), eq=7), failed=failed)

        (outputs,) = self.check(pipeline, [10])
        message = "ValueError: boom 7"
        if failed == "fail":
            assert outputs == [("suppressed", message)]
        elif failed == "drop":
            assert outputs == [[0, 1, 2, 3, 4, 5, 6, 8, 9]]
        else:
            (pages,) = outputs
            assert len(pages) == 10
            assert pages[:7] + pages[8:] == [0, 1, 2, 3, 4, 5, 6, 8, 9]
            mark = pages[7]
            assert isinstance(mark, Failure)
            assert (mark.ordinals, mark.levels) == ((0, 7), ("document", "page"))
            assert (mark.key, mark.call, mark.kind) == ("key 0", "raise_if", "raised")
            assert mark.message == message
            assert "boom 7" in mark.traceback

    def test_one_guilty_item_among_a_thousand(self) -> None:
        @ff.pipeline(level="document")
        def pipeline(n: ff.Port[Any]) -> Any:
            return RAISE_IF_BATCHED(ff.expand(PAGES(n), "page"), eq=537)

        plan, observed = self.run(pipeline, [1_000])
        items = observed.items[plan.outputs[0].port]
        assert {at[1] for at, item in items.items() if item.outcome is not Outcome.DONE} == {537}
        (failure,) = observed.failures[0]
        assert (failure.ordinals, failure.call) == ((0, 537), "raise_if_batched")
        assert (failure.kind, failure.exception) == ("raised", "ValueError")
        assert failure.attempts == 2
        assert observed.results[0].status == "partial"

    def test_item_failures_of_batches_and_tuples_leave_batch_mates_alone(self) -> None:
        @ff.pipeline(level="document")
        def pipeline(n: ff.Port[Any]) -> Any:
            one = FAIL_IF(n, eq=2)
            left, right = ff.stage(s.two_fail_second, batch_size=8, outputs=2)(n, eq=3)
            return one, left, right

        failed = ("failed", "bad 3")
        assert self.check(pipeline, [1, 2, 3, 4]) == [
            [1, ("failed", "bad 2"), 3, 4],
            [1, 2, failed, 4],
            [10, 20, failed, 40],
        ]

    def test_failure_beats_drop(self) -> None:
        @ff.pipeline(level="document")
        def pipeline(n: ff.Port[Any], keep: ff.Port[Any]) -> Any:
            return ff.stage(s.add, batch_size=4)(ff.filter(n, keep), FAIL_IF(n, eq=1))

        roots = [(1, False), (1, True), (2, False), (2, True)]
        lost = ("suppressed", "bad 1")
        assert self.check(pipeline, roots) == [[lost, lost, "dropped", 4]]

    def test_a_generator_that_fails_half_way(self) -> None:
        @ff.pipeline(level="document")
        def pipeline(n: ff.Port[Any]) -> Any:
            page = ff.expand(ff.stage(s.counting)(n, break_at=40), "page")
            return INC(page), ff.gather(page, failed="drop")

        items, gathered = self.check(pipeline, [100, 3])
        assert items == [*range(1, 41), 1, 2, 3]
        assert gathered == [("suppressed", "ValueError: broke at 40"), [0, 1, 2]]

    def test_a_generator_that_yields_something_of_the_wrong_shape(self) -> None:
        @ff.pipeline(level="document")
        def pipeline(n: ff.Port[Any]) -> Any:
            left, right = ff.expand(*ff.stage(s.counting_pairs, outputs=2)(n, break_at=2), "page")
            return (left, *ff.gather(left, right))

        items, left, right = self.check(pipeline, [4, 2])
        assert items == [0, 1, 0, 1]
        assert (left[0][0], left[1]) == ("suppressed", [0, 1])
        assert (right[0][0], right[1]) == ("suppressed", [0, -1])

    def test_a_batch_of_the_wrong_length_and_children_that_are_none(self) -> None:
        @ff.pipeline(level="document")
        def pipeline(n: ff.Port[Any]) -> Any:
            short = ff.stage(s.leaves_out, batch_size=4)(n, eq=2)
            made = ff.stage(s.text_for)(n, eq=3)
            return short, ff.gather(ff.expand(made, "page"))

        short, gathered = self.check(pipeline, [1, 2, 3])
        assert [short[0], short[1][0], short[2]] == [1, "failed", 3]
        assert [gathered[0], gathered[1], gathered[2][0]] == [[1], [2], "suppressed"]

    def test_unequal_aligned_children_fail_their_task(self) -> None:
        @ff.pipeline(level="document")
        def pipeline(n: ff.Port[Any]) -> Any:
            left, right = ff.stage(s.groups, outputs=2)(n)
            a, b = ff.expand(left, right, "page")
            return (left, *ff.gather(INC(a), b))

        left, a, b = self.check(pipeline, [2, 3])
        assert [left[0], a[0], b[0]] == [[0, 1], [1, 2], [0, 10]]
        assert [item[1][0] for item in (left, a, b)] == [
            "failed",
            "suppressed",
            "suppressed",
        ]

    def test_a_constructor_that_raises_stops_the_run_with_its_reason(self) -> None:
        @ff.pipeline(level="document")
        def pipeline(n: ff.Port[Any]) -> Any:
            return ff.stage(s.Unbuildable)("no weights")(n)

        _, observed = self.run(pipeline, [1])
        assert observed.stopped is not None
        assert observed.stopped.message == "RuntimeError: no weights"

    # -------------------------------------------------------------------------------- runs that stop

    def test_a_strict_stage_stops_the_run_at_its_first_error(self) -> None:
        @ff.pipeline(level="document")
        def pipeline(n: ff.Port[Any]) -> Any:
            return RAISE_IF_STRICT(n, eq=3)

        _, observed = self.run(pipeline, list(range(500)))
        assert observed.stopped is not None
        assert observed.stopped.message == "ValueError: boom 3"
        assert "raise_if" in observed.stopped.traceback
        ended = {root: observed.results[root].status for root in range(4)}
        assert ended == {0: "done", 1: "done", 2: "done", 3: "failed"}

    def test_a_strict_stage_bears_declared_failures(self) -> None:
        @ff.pipeline(level="document")
        def pipeline(n: ff.Port[Any]) -> Any:
            return FAIL_IF_STRICT(n, eq=1)

        assert self.check(pipeline, [0, 1, 2]) == [[0, ("failed", "bad 1"), 2]]

    # ------------------------------------------------------------------------- values across processes

    def test_an_output_that_cannot_be_pickled_fails_alone(self) -> None:
        if not self.crosses_processes:
            pytest.skip("values stay in the process that made them")

        @ff.pipeline(level="document")
        def pipeline(n: ff.Port[Any]) -> Any:
            return (
                ff.stage(s.lock_if, batch_size=4)(n, eq=2),
                ff.gather(ff.expand(ff.stage(s.locks)(n, eq=3), "page")),
            )

        plan, observed = self.run(pipeline, [1, 2, 3])
        told_items = [
            [told(item)[0] if item.failure else told(item) for _, item in sorted(items.items())]
            for items in (observed.items[output.port] for output in plan.outputs)
        ]
        assert told_items == [[1, "failed", 3], [[1], [2], "suppressed"]]
        assert {f.kind for root in (1, 2) for f in observed.failures[root]} == {"unpicklable"}
        assert sum(worker.restarts for worker in observed.statistics.workers) == 0

    def test_values_never_pass_through_the_driver(self) -> None:
        if not self.crosses_processes:
            pytest.skip("values stay in the process that made them")

        @ff.pipeline(level="document")
        def pipeline(n: ff.Port[Any]) -> Any:
            page = ff.expand(ff.stage(s.guarded_children)(n, driver=s.this_process()), "page")
            kept = ff.filter(page, page["keep"])
            passed = ff.stage(s.identity_batched, batch_size=2)(kept)
            return ff.stage(s.guarded_total)(ff.gather(passed))

        _, observed = self.run(pipeline, [3, 0, 5])
        assert observed.stopped is None
        (items,) = observed.items.values()
        assert [told(item) for _, item in sorted(items.items())] == [2, 0, 9]

    # ------------------------------------------------------------------------------------ worker death

    @pytest.mark.parametrize("batch_size", [None, 4])
    def test_an_item_that_kills_its_worker_dies_alone(self, batch_size: int | None) -> None:
        if not self.survives_death:
            pytest.skip("stages run in this very process")
        deadly = s.abort_if if batch_size is None else s.abort_if_batched

        @ff.pipeline(level="document")
        def pipeline(n: ff.Port[Any]) -> Any:
            page = ff.expand(PAGES(n), "page")
            return ff.stage(deadly, batch_size=batch_size)(page, eq=5)

        plan, observed = self.run(pipeline, [16])
        items = observed.items[plan.outputs[0].port]
        assert [at[1] for at, item in items.items() if item.outcome is Outcome.DONE] == [
            *range(5),
            *range(6, 16),
        ]
        (failure,) = observed.failures[0]
        assert (failure.kind, failure.ordinals) == ("worker_died", (0, 5))
        assert 2 <= sum(worker.restarts for worker in observed.statistics.workers) <= 4

    def test_a_worker_killed_once_is_replaced_and_nothing_is_lost(self, tmp_path: Any) -> None:
        if not self.survives_death:
            pytest.skip("stages run in this very process")

        @ff.pipeline(level="document")
        def pipeline(n: ff.Port[Any]) -> Any:
            page = ff.expand(PAGES(n), "page")
            flag = str(tmp_path / "killed")
            return ff.gather(ff.stage(s.kill_once, batch_size=4)(page, eq=5, flag=flag))

        plan, observed = self.run(pipeline, [16])
        assert [told(item) for item in observed.items[plan.outputs[0].port].values()] == [
            list(range(16))
        ]
        assert sum(worker.restarts for worker in observed.statistics.workers) == 1

    def test_a_generator_whose_worker_dies_goes_on_where_it_was(self, tmp_path: Any) -> None:
        if not self.survives_death:
            pytest.skip("stages run in this very process")

        @ff.pipeline(level="document")
        def pipeline(n: ff.Port[Any]) -> Any:
            flag = str(tmp_path / "killed")
            page = ff.expand(ff.stage(s.counting_kills_once)(n, at=30, flag=flag), "page")
            return ff.gather(INC(page))

        _, observed = self.run(pipeline, [60])
        (items,) = observed.items.values()
        assert [told(item) for item in items.values()] == [list(range(1, 61))]
