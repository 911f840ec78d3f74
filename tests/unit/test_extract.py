"""Facts of values: every way of judging many at once says what judging one by one says."""

from __future__ import annotations

import enum
from collections import UserDict
from dataclasses import dataclass
from math import inf
from random import Random
from types import SimpleNamespace
from typing import Any

import numpy
import pytest

from fanfold.extract import Untold, costs_of, describe, facts, grouped, plain_group, told
from fanfold.plan import Control, FieldCheck, Path, Stream
from fanfold.protocol import NO_GROUP, ControlRows


class Kind(enum.Enum):
    A = "a"
    B = "b"


class Word(enum.StrEnum):
    A = "a"


@dataclass
class Page:
    kind: Any


def control_of(
    values: list[Any],
    labels: tuple[Any, ...],
    *,
    kind: Any = "label",
    rest: bool = False,
    path: Path = (),
) -> ControlRows:
    plan: Any = SimpleNamespace(controls={5: Control(5, 9, kind, labels, rest)}, checks={})
    (rows,), missing = facts(plan, Stream(1, 0, controls=((5, path),)), values)
    assert missing == () and rows.control == 5
    return rows


def labels_of(
    values: list[Any], labels: tuple[Any, ...], **how: Any
) -> tuple[list[list[int]], list[int]]:
    rows = control_of(values, labels, **how)
    sets = [[i for i in range(len(values)) if bits >> i & 1] for bits in rows.labels]
    return sets, [row for row, _ in rows.illegal]


def test_a_mask_is_a_bool():
    assert labels_of([True, False, True], (True,), kind="mask") == ([[0, 2]], [])
    odd = [True, 1, "yes", None, 0, False, 1.0]
    assert labels_of(odd, (True,), kind="mask") == ([[0]], [1, 2, 3, 4, 6])


def test_a_mask_is_a_numpy_bool_but_no_array():
    numpy = pytest.importorskip("numpy")
    values = [numpy.bool_(True), numpy.bool_(False), numpy.array([True]), numpy.int64(1), True]
    assert labels_of(values, (True,), kind="mask") == ([[0, 4]], [2, 3])


def test_labels_are_equal_values():
    assert labels_of(["b", "a", "c", "b"], ("a", "b")) == ([[1], [0, 3]], [2])
    assert labels_of(["b", "a", "c"], ("a",), rest=True) == ([[1]], [])
    assert labels_of([1, True, 1.0, 2], (1, True)) == ([[0, 1, 2], []], [3]), (
        "the first that is equal"
    )


def test_labels_of_other_types():
    assert labels_of([Kind.A, Kind.B, "a"], (Kind.A, Kind.B)) == ([[0], [1]], [2])
    assert labels_of([Word.A, "a", "b"], ("a",)) == ([[0, 1]], [2])
    assert labels_of(["a"], (Word.A,)) == ([[0]], [])
    assert labels_of([["a"], {}, "a"], ("a",)) == ([[2]], [0, 1])


def test_what_cannot_be_compared_is_not_equal():
    numpy = pytest.importorskip("numpy")
    assert labels_of([numpy.array(["a", "a"]), numpy.str_("a")], ("a",)) == ([[1]], [0])


def test_more_labels_than_a_byte_has():
    labels = tuple(range(300))
    sets, illegal = labels_of([299, 3, 300, 3], labels)
    assert sets[299] == [0] and sets[3] == [1, 3] and illegal == [2]


@pytest.mark.parametrize("seed", range(20))
def test_many_at_once_are_judged_as_one_by_one(seed):
    random = Random(seed)
    pools: list[list[Any]] = [
        ["a", "b", "c"],
        [True, False],
        [0, 1, 2, True],
        ["a", 1, None, 2.5],
        [Kind.A, "a", ["a"]],
    ]
    pool = random.choice(pools)
    labels = tuple(dict.fromkeys(v for v in random.sample(pool, 2) if not isinstance(v, list)))
    values = [random.choice(pool) for _ in range(random.randrange(1, 200))]
    sets, illegal = labels_of(values, labels)
    found = [next((i for i, label in enumerate(labels) if label == v), None) for v in values]
    assert sets == [[r for r, f in enumerate(found) if f == i] for i in range(len(labels))]
    assert illegal == [r for r, f in enumerate(found) if f is None]


@pytest.mark.parametrize(
    "make",
    [lambda k: {"kind": k}, Page, lambda k: UserDict(kind=k), lambda k: SimpleNamespace(kind=k)],
)
def test_a_path_leads_through_mappings_and_attributes(make):
    values = [make("a"), make("b"), make("a")]
    assert labels_of(values, ("a", "b"), path=("kind",)) == ([[0, 2], [1]], [])
    nested = [{"page": value} for value in values]
    assert labels_of(nested, ("a", "b"), path=("page", "kind")) == ([[0, 2], [1]], [])


def test_a_row_whose_path_leads_nowhere_has_no_label():
    values = [{"kind": "a"}, {}, Page("a"), 3]
    assert labels_of(values, ("a",), path=("kind",)) == ([[0, 2]], [])
    assert labels_of([{"m": True}, {}], (True,), kind="mask", path=("m",)) == ([[0]], [])


def missing_of(values: list[Any], name: str = "kind", path: Path = ()) -> Any:
    plan: Any = SimpleNamespace(controls={}, checks={4: FieldCheck(4, 9, name)})
    _, missing = facts(plan, Stream(1, 0, checks=((4, path),)), values)
    return missing


def test_rows_that_lack_a_field_are_told_with_what_they_have():
    assert missing_of([{"kind": 1}, {"kind": 2}]) == ()
    ((check, rows, text, _),) = missing_of([{"kind": 1}, {"size": 2}, Page(1), 3])
    assert (check, rows) == (4, 0b1010) and "size" in text


def test_a_check_behind_a_missing_field_says_nothing():
    assert missing_of([{}, {"page": {"kind": 1}}], path=("page",)) == ()
    ((_, rows, _, path),) = missing_of([{}, {"page": {}}], path=("page",))
    assert path == ("page",) and rows == 0b10


def test_a_property_that_raises_counts_as_missing():
    class Odd:
        @property
        def kind(self) -> str:
            raise ValueError("no")

    ((_, rows, _, _),) = missing_of([Page(1), Odd()])
    assert rows == 0b10
    ((_, rows, _, _),) = missing_of([Odd()])
    assert rows == 0b1


def test_values_are_described_in_a_few_words():
    class Loud:
        def __repr__(self) -> str:
            raise ValueError("no")

    Impostor = type("list", (), {})  # noqa: N806  # its name misleads the library that shortens

    assert describe("a") == "'a' (str)"
    assert len(describe("x" * 10_000)) < 100
    assert len(describe({f"key {i}": i for i in range(1_000)})) < 200
    assert len(describe(list(range(10_000)))) < 100
    assert describe({}) == "a dict with the keys (none)"
    assert describe(Loud()).startswith("<Loud instance at ")
    assert describe(Impostor()) == "a list whose repr raises TypeError"


def test_a_key_whose_text_raises_is_described_all_the_same():
    class Odd:
        def __str__(self) -> str:
            raise RuntimeError("no text")

    assert describe({Odd(): 1}) == "a dict whose repr raises RuntimeError"


# ------------------------------------------------------------------------------------------- groups


class Language(enum.Enum):
    DE = 1
    EN = 2


def test_equal_values_are_one_group():
    untold = Untold("batch_by")
    assert grouped(lambda value: value % 2, [3, 4, 5, 7], untold) == ((1, 0b1101), (0, 0b0010))


@pytest.mark.parametrize(
    ("value", "group"),
    [
        ("de", "de"),
        (None, None),
        ((3, ("a", b"b")), (3, ("a", b"b"))),
        ([640, 480], (640, 480)),
        (b"id", b"id"),
        (numpy.int64(5), 5),
        (numpy.float64(0.5), 0.5),
        (numpy.bool_(True), True),
        (numpy.str_("x"), "x"),
    ],
    ids=repr,
)
def test_a_group_is_of_plain_types_and_equal_to_the_value(value, group):
    found = plain_group(value)
    assert found == group and type(found) is type(group)


def test_members_of_enums_are_told_by_their_names():
    one, other = plain_group(Language.DE), plain_group(Language.EN)
    assert isinstance(one, str) and one.endswith(".Language.DE") and other != one


def test_rows_of_which_no_group_is_told_are_apart_and_the_first_is_shown(capsys):
    def shape(value):
        return {} if value == "odd" else len(value)

    untold = Untold("batch_by")
    found = grouped(shape, ["ab", 3, "cd", "odd"], untold)
    assert found == ((2, 0b0101), (NO_GROUP, 0b1010))
    shown = capsys.readouterr().err
    assert "shape tells nothing of 3 (int): TypeError" in shown and shown.count("\n") == 1
    assert (untold.count, untold.example.partition(":")[0]) == (2, "3 (int)")


class Rude(Exception):
    """An exception that cannot be shown either."""

    def __repr__(self) -> str:
        raise SystemExit(3)

    __str__ = __repr__


@pytest.mark.parametrize("error", [SystemExit(2), GeneratorExit(), Rude()])
def test_whatever_is_raised_where_a_group_or_a_cost_is_asked_for_harms_nobody(error):
    def broken(value):
        if value == 1:
            raise error
        return 7

    by, cost = Untold("batch_by"), Untold("batch_cost")
    assert grouped(broken, [0, 1], by) == ((7, 0b01), (NO_GROUP, 0b10))
    assert costs_of(broken, [0, 1], cost) == (7.0, inf)
    assert by.count == cost.count == 1
    assert type(error).__name__ in by.example


def test_what_the_user_presses_is_no_fault_of_a_value():
    def pressed(_):
        raise KeyboardInterrupt

    for asked in (grouped, costs_of):
        with pytest.raises(KeyboardInterrupt):
            asked(pressed, [1], Untold("batch_by"))


def test_rows_of_which_nothing_is_told_are_reported_by_call_and_option():
    stream = Stream(0, 0, groups=((7, ()), (8, ())), costs=((9, ()),))
    plan: Any = SimpleNamespace(
        controls={}, checks={}, groupers={7: str.upper, 8: repr}, costers={9: float}
    )
    first, second = told(plan, stream, ["2", 3, "x", -1], None).untold
    assert first[:3] == (7, "batch_by", 2) and first[3].startswith("3 (int): TypeError")
    assert second[:3] == (9, "batch_cost", 2) and second[3].startswith("'x' (str): ValueError")


def test_lists_and_tuples_that_are_alike_share_a_group_and_nan_has_none(capsys):
    nan = float("nan")
    shapes = [(1, 2), [1, 2], nan, (1, nan), numpy.float64(nan), nan]
    found = grouped(lambda shape: shape, shapes, Untold("batch_by"))
    assert found == (((1, 2), 0b000011), (NO_GROUP, 0b111100))
    assert "NaN is no group: it equals nothing" in capsys.readouterr().err


def test_groups_are_told_of_what_a_path_leads_to():
    stream = Stream(0, 0, groups=((7, ("kind",)),))
    plan: Any = SimpleNamespace(controls={}, checks={}, groupers={7: str.upper})
    rows = [{"kind": "a"}, {"other": 1}, {"kind": "A"}]
    assert told(plan, stream, rows, None).groups == ((7, ("kind",), (("A", 0b101),)),)
