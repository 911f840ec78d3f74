"""Order of results, and when a root counts."""

import pytest

from fanfold.driver.delivery import (
    CompletedOrder,
    Counted,
    HandedOut,
    SourceOrder,
    Written,
    in_order,
)
from fanfold.errors import UsageError
from fanfold.failures import Failure
from fanfold.protocol import RootResult


def result(root: int, status: str = "done") -> RootResult:
    return RootResult(root, f"k{root}", status, ())


class Backend:
    """As much of a backend as writing takes."""

    def __init__(self) -> None:
        self.sent: list[int] = []

    def write(self, results) -> None:
        self.sent += [r.root for r in results]


def test_source_order_waits_for_its_turn():
    order = SourceOrder()
    passed = [
        [r.root for r in order.pass_on([result(i) for i in roots])]
        for roots in ([2, 1], [0], [4], [3])
    ]
    assert passed == [[], [0, 1, 2], [], [3, 4]]


def test_what_still_waits_comes_in_order_at_the_end():
    order = SourceOrder()
    order.pass_on([result(5), result(3)])
    assert [r.root for r in order.rest()] == [3, 5]
    assert order.rest() == []


def test_completed_order_keeps_nobody_waiting():
    order = CompletedOrder()
    assert [r.root for r in order.pass_on([result(5), result(3)])] == [5, 3]
    assert order.rest() == []


def test_there_is_no_other_order():
    with pytest.raises(UsageError, match="FF420"):
        in_order("random")  # type: ignore[arg-type]


def test_without_a_sink_roots_are_committed_as_they_end():
    delivery = Counted()
    assert list(delivery.finish([result(1), result(0, "failed")])) == [1, 0]
    assert delivery.statuses == {"done": 1, "failed": 1}


def test_a_written_root_counts_when_it_is_written():
    backend = Backend()
    delivery = Written(backend, "source", "document")  # type: ignore[arg-type]
    assert list(delivery.finish([result(1), result(3)])) == []
    assert backend.sent == []
    delivery.finish([result(0, "failed")])
    assert backend.sent == [0, 1]
    assert delivery.statuses == {}
    assert list(delivery.written((0, 1))) == [0, 1]
    assert delivery.statuses == {"failed": 1, "done": 1}
    delivery.stop()
    assert backend.sent == [0, 1, 3]


def test_a_root_that_the_sink_refuses_counts_as_failed():
    delivery = Written(Backend(), "completed", "document")  # type: ignore[arg-type]
    delivery.finish([result(0), result(1)])
    refused = Failure(kind="contract", message="bytes", key="k1", ordinals=(1,))
    assert delivery.refused(1, refused).where() == "document k1"
    delivery.written((0,))
    assert delivery.statuses == {"done": 1, "failed": 1}


def test_a_stream_hands_out_in_order():
    delivery = HandedOut("source", "document")
    delivery.finish([result(1)])
    assert not delivery.ready
    delivery.finish([result(0)])
    assert [r.root for r in delivery.ready] == [0, 1]


def test_a_root_that_a_stream_cannot_hand_out_is_told_with_its_level():
    refused = Failure(kind="unpicklable", message="m", key="k1", ordinals=(1,))
    assert HandedOut("source", "document").refused(1, refused).where() == "document k1"


def test_a_stream_that_stops_hands_out_what_waited_for_its_turn():
    delivery = HandedOut("source", "document")
    delivery.finish([result(0), result(4), result(2)])
    delivery.stop()
    assert [r.root for r in delivery.ready] == [0, 2, 4]
