"""Functions, classes and objects of anyone's as stages: they work as they are, or are refused in words."""

from __future__ import annotations

import collections
import dataclasses
import decimal
import functools
import itertools
import json
import math
import operator
import pathlib
import re
import statistics
import string
import textwrap
from typing import Any

import pytest

import fanfold as ff
from fanfold.model.definition import define


def scaled(x: int, *, by: int = 1) -> int:
    return x * by


@functools.lru_cache
def remembered(x: int) -> int:
    return x + 1


@functools.wraps(scaled)
def wrapped(*args: Any, **kwargs: Any) -> int:
    return scaled(*args, **kwargs)


class Shelf:
    """Its methods of each kind."""

    def __init__(self, k: int = 1) -> None:
        self.k = k

    def add(self, x: int) -> int:
        return x + self.k

    @classmethod
    def of_class(cls, x: int) -> str:
        return f"{cls.__name__} {x}"

    @staticmethod
    def alone(x: int) -> int:
        return -x


@dataclasses.dataclass(frozen=True, slots=True)
class Times:
    """A dataclass whose objects are called; they have slots and no ``__dict__`` to write to."""

    k: int

    def __call__(self, x: int) -> int:
        return x * self.k


class Elusive:
    """An object that answers every question with an exception."""

    def __getattr__(self, name: str) -> Any:
        raise RuntimeError(f"nobody may ask for {name}")

    def __repr__(self) -> str:
        raise RuntimeError("nor see it")

    def __call__(self, x: int) -> int:
        return x + 100


class Delegating:
    """A class whose ``__call__`` is an object."""

    __call__ = Times(3)


FUNCTIONS: list[tuple[Any, Any, Any]] = [
    (len, "abc", 3),
    (min, [3, 1], 1),  # has no signature that Python could tell
    (sum, [1, 2], 3),
    (math.sqrt, 9.0, 3.0),
    (str.upper, "a", "A"),
    (", ".join, ["a", "b"], "a, b"),
    (operator.itemgetter("a"), {"a": 1}, 1),
    (operator.attrgetter("real"), 5, 5),
    (operator.methodcaller("strip", "."), ".a.", "a"),
    (json.loads, "[1]", [1]),
    (textwrap.dedent, "  a", "a"),
    (re.compile("[0-9]+").findall, "a12b3", ["12", "3"]),
    (string.Template("$a!").substitute, {"a": "x"}, "x!"),
    (statistics.mean, [1, 3], 2),
    (functools.partial(scaled, by=3), 2, 6),
    (functools.partial(round, ndigits=1), 1.26, 1.3),
    (functools.partial(pow, 2), 5, 32),
    (functools.partial(functools.partial(scaled), by=2), 2, 4),
    (remembered, 1, 2),
    (wrapped, 4, 4),
    (lambda x: x, 1, 1),
    (Shelf(5).add, 1, 6),
    (Shelf.of_class, 1, "Shelf 1"),
    (Shelf.alone, 1, -1),
    (Times(4), 2, 8),
    (Elusive(), 1, 101),
    (collections.OrderedDict.fromkeys, ["a"], {"a": None}),
]


def run(stage: Any, value: Any) -> Any:
    """What a pipeline of this one stage makes of a value."""
    pipeline = ff.pipeline(level="item")(lambda item: stage(item))
    (result,) = pipeline.stream([value], backend="inline")
    assert result.status is ff.Status.DONE, result.failures
    return result.value


@pytest.mark.parametrize(
    ("target", "value", "expected"), FUNCTIONS, ids=[str(n) for n in range(len(FUNCTIONS))]
)
def test_anything_that_can_be_called_is_a_stage_as_it_is(
    target: Any, value: Any, expected: Any
) -> None:
    stage = ff.stage(target)
    assert stage.target is target
    assert run(stage, value) == stage(value) == expected


def test_a_batched_array_function_returns_an_array() -> None:
    numpy = pytest.importorskip("numpy", reason="an array library")
    stage = ff.stage(numpy.sqrt, batch_size=4)
    assert run(stage, 9.0) == 3.0
    assert stage.name == "sqrt"


def test_an_iterator_that_a_builtin_returns_is_children() -> None:
    flat: Any = ff.stage(itertools.chain.from_iterable)
    pipeline = ff.pipeline(level="item")(lambda item: ff.gather(ff.expand(flat(item), "part")))
    (result,) = pipeline.stream([[[1], [2, 3]]], backend="inline")
    assert result.value == [1, 2, 3]


def test_classes_of_other_modules_are_constructed_once_and_called_or_asked_by_a_method() -> None:
    template = ff.stage(string.Template, method="substitute")("$a!")
    assert run(template, {"a": 1}) == "1!"
    assert run(ff.stage(Times)(3), 2) == 6
    assert run(ff.stage(Shelf, method="add")(k=2), 1) == 3
    assert run(ff.stage(operator.itemgetter)("a"), {"a": 5}) == 5
    assert run(ff.stage(Delegating)(), 2) == 6
    assert str(define(Delegating, name=None, options={}).signature) == "(x: 'int') -> 'int'"


def test_names_come_from_the_target_or_its_type() -> None:
    names = [
        ff.stage(target).name for target in (min, Times(1), Elusive(), Shelf().add, remembered)
    ]
    assert names == ["min", "Times", "Elusive", "add", "remembered"]


def error_of(target: Any, **options: Any) -> ff.DefinitionError:
    with pytest.raises(ff.DefinitionError) as caught:
        ff.stage(target, **options)
    return caught.value


Point = collections.namedtuple("Point", "x y")


@pytest.mark.parametrize("kind", [str, int, dict, decimal.Decimal, pathlib.Path, Point, ValueError])
def test_a_class_whose_objects_cannot_be_called_is_told_how_to_make_one_of_each_item(
    kind: Any,
) -> None:
    error = error_of(kind)
    assert error.code == "FF107"
    name = kind.__name__
    assert f"{name} has no method '__call__'" in error.message
    assert f"ff.stage(lambda item: {name}(item))" in error.hint


def test_a_mistyped_method_offers_the_nearest_one() -> None:
    error = error_of(string.Template, method="substitue")
    assert error.code == "FF107" and "Did you mean 'substitute'?" in error.hint


def test_a_partial_of_a_class_whose_objects_are_called_is_refused() -> None:
    error = error_of(functools.partial(Times, 3))
    assert error.code == "FF107" and "ff.stage(Times)(…)(port)" in error.hint
    assert run(ff.stage(functools.partial(int, base=2)), "101") == 5, "one of each item, as meant"


@pytest.mark.parametrize(
    "target",
    [3, None, math, iter(()), property(len), [len]],
    ids=lambda value: type(value).__name__,
)
def test_what_cannot_be_called_is_refused_with_its_type(target: Any) -> None:
    error = error_of(target)
    assert error.code == "FF101" and type(target).__name__ in error.message


def test_an_object_that_cannot_even_be_shown_is_refused_in_words() -> None:
    class Hidden:
        def __repr__(self) -> str:
            raise RuntimeError("no")

    assert "Hidden" in error_of(Hidden()).message


def test_they_travel_to_worker_processes() -> None:
    """Builtins, methods, partials and objects, chained: each one in a worker of its own."""
    chain: list[Any] = [
        json.loads,
        operator.itemgetter("n"),
        functools.partial(scaled, by=3),
        Times(2),
        Shelf(5).add,
    ]
    stages = [ff.stage(target, name=f"s{n}") for n, target in enumerate(chain)]

    @ff.pipeline(level="item")
    def through(item: ff.Port[Any]) -> ff.Port[Any]:
        for stage in stages:
            item = stage(item)
        return item

    values = [result.value for result in through.stream(['{"n": 1}', '{"n": 2}'])]
    assert values == [11, 17]
