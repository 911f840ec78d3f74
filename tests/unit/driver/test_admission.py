"""Items become roots: in blocks, with keys that are checked, and never more than asked for."""

import dataclasses

import pytest

from fanfold.backends.inline import InlineBackend
from fanfold.backends.values import Unstorable
from fanfold.data.files import File
from fanfold.data.sources import Source, from_items
from fanfold.driver.admission import CHUNK_ROOTS, Admission, opened
from fanfold.errors import SourceError, UsageError
from fanfold.failures import Failure
from fanfold.plan import Control, Stream
from fanfold.plan import Source as Parameter
from tests.plans import fan_out_plan

PLAN = fan_out_plan()


class Clock:
    """Moves on when told."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def admission(source, plan=PLAN, *, backend=None, clock=None, **options) -> Admission:
    return Admission(plan, opened(source), backend or InlineBackend(), clock or Clock(), **options)


def test_no_more_is_pulled_than_there_is_room_for():
    pulled: list[int] = []

    def items():
        for n in range(10):
            pulled.append(n)
            yield n

    entering = admission(from_items(items()))
    assert pulled == []
    event = entering.pull(3)
    assert event is not None
    assert event.keys == ("0", "1", "2")
    assert pulled == [0, 1, 2]
    ends = [entering.exhausted]
    assert entering.pull(100).keys == ("3", "4", "5", "6", "7", "8", "9")  # type: ignore[union-attr]
    ends.append(entering.exhausted)
    assert ends == [False, True]
    assert entering.pull(100) is None
    assert entering.admitted == 10


def test_blocks_are_bounded():
    event = admission(from_items(range(5000))).pull(5000)
    assert event is not None
    assert len(event.keys) == CHUNK_ROOTS


def test_a_slow_source_does_not_keep_the_loop():
    clock = Clock()

    def slow():
        for n in range(3):
            clock.now_s += 1
            yield n

    entering = admission(from_items(slow()), clock=clock)
    assert [entering.pull(10).keys for _ in range(3)] == [("0",), ("1",), ("2",)]  # type: ignore[union-attr]


def test_a_key_that_comes_again_stops_the_run_after_what_came_before():
    entering = admission(from_items("aba", key=lambda c: c))
    assert entering.pull(10).keys == ("a", "b")  # type: ignore[union-attr]
    with pytest.raises(SourceError, match=r"FF314 from_items\(str\) gives the key 'a' twice"):
        entering.pull(10)


def test_or_only_the_first_counts():
    entering = admission(from_items("abaca", key=lambda c: c), duplicates="first")
    assert entering.pull(10).keys == ("a", "b", "c")  # type: ignore[union-attr]
    assert entering.skipped == 2
    with pytest.raises(UsageError, match="FF313"):
        admission(from_items("a"), duplicates="last")


def test_a_source_that_raises_is_named_with_its_cause():
    def items():
        yield 1
        raise OSError("disk gone")

    entering = admission(from_items(items()))
    assert entering.pull(10).keys == ("0",)  # type: ignore[union-attr]
    with pytest.raises(
        SourceError, match=r"FF316 .* raised OSError after 1 item: disk gone"
    ) as told:
        entering.pull(10)
    assert isinstance(told.value.__cause__, OSError)


def test_a_source_that_cannot_be_opened_is_named():
    class Broken(Source[int]):
        def __iter__(self):
            raise PermissionError("not yours")

        def __repr__(self) -> str:
            return "vault"

    with pytest.raises(SourceError, match="FF316 vault raised PermissionError after 0 items"):
        opened(Broken())


@pytest.mark.parametrize("bad", [0, 2])
def test_an_item_that_cannot_travel_is_named_after_what_came_before(bad):
    class Choosy(InlineBackend):
        def put(self, values):
            rows = [(row, v) for row, v in enumerate(values) if v == bad]
            if rows:
                raise Unstorable(
                    [(row, Failure(kind="unpicklable", message="no")) for row, _ in rows]
                )
            return super().put(values)

    entering = admission(from_items(range(3)), backend=Choosy())
    if bad:
        assert entering.pull(10).keys == ("0", "1")  # type: ignore[union-attr]
        assert not entering.exhausted
    with pytest.raises(SourceError, match=f"FF315 the item with key '{bad}' .*: no"):
        entering.pull(10)


def test_values_are_bound_and_their_facts_reported():
    plan = dataclasses.replace(
        PLAN,
        sources=(
            Parameter("kind", Stream(0, 0, stored=False, controls=((0, ("k",)),))),
            Parameter("page", Stream(1, 0)),
        ),
        controls=(Control(0, 3, "label", ("scan", "text")),),
    )
    backend = InlineBackend()
    entering = admission(
        from_items([{"page": "p0", "kind": {"k": "text"}}, ({"k": "odd"}, "p1")]),
        plan,
        backend=backend,
    )
    event = entering.pull(10)
    assert event is not None
    kind, page = event.streams
    assert kind.rows is None
    assert kind.controls[0].labels == (0, 1)
    assert kind.controls[0].illegal == ((1, "'odd' (str)"),)
    assert page.rows is not None
    assert backend.read(("rows", page.rows.ref, 0, 2)) == ["p0", "p1"]


def test_local_copies_of_remote_files_go_when_their_root_is_committed():
    import fsspec

    memory = fsspec.filesystem("memory")
    memory.pipe("/x.bin", b"1")
    entering = admission(from_items([File("memory://x.bin"), File("/local")]))
    entering.pull(10)
    copy = File("memory://x.bin").local()
    entering.committed([1])
    assert copy.exists()
    entering.committed([0])
    assert not copy.exists()
    memory.rm("/x.bin")
