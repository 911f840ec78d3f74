"""Classes that travel by value: whole where they arrive, and untouched where they come from."""

from __future__ import annotations

import dataclasses
import enum
import pickle
import subprocess
import sys
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

import pytest

from fanfold import byvalue

THERE = """\
import pickle, sys
from fanfold import byvalue
make = pickle.load(sys.stdin.buffer)
sys.stdout.buffer.write(byvalue.dumps(make()))
"""


def made_elsewhere(make: Callable[[], Any]) -> Any:
    """What ``make`` returns in another process, brought here."""
    done = subprocess.run(
        [sys.executable, "-c", THERE], input=byvalue.dumps(make), capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr.decode()
    return pickle.loads(done.stdout)


def test_a_class_of_this_process_keeps_its_attributes():
    class Page:
        made = 0
        names: ClassVar[list[str]] = []

        def __init__(self) -> None:
            Page.made += 1
            Page.names.append("there")

    def make() -> list[Page]:
        return [Page(), Page()]

    Page.made = 1000
    names = Page.names
    pages = made_elsewhere(make)
    assert [type(page) for page in pages] == [Page, Page]
    assert Page.made == 1000
    assert Page.names is names == []


def test_no_second_class_is_made_on_the_way():
    made: list[type] = []

    class Base:
        def __init_subclass__(cls) -> None:
            made.append(cls)

    class Leaf(Base):
        pass

    leaf = pickle.loads(byvalue.dumps(Leaf()))
    assert type(leaf) is Leaf
    assert made == [Leaf]


def test_what_the_maker_changes_in_its_class_is_seen_there():
    class Page:
        made = 0

    def make() -> Any:
        data = byvalue.dumps(Page())
        Page.made += 1
        return type(pickle.loads(data)).made

    assert made_elsewhere(make) == 1


def _slots_dataclass() -> tuple[type, Callable[[], Any], Any]:
    @dataclasses.dataclass(slots=True)
    class Slots:
        a: int
        b: bytes = b"x"

    return Slots, lambda: Slots(3), Slots(3)


def _frozen_dataclass() -> tuple[type, Callable[[], Any], Any]:
    @dataclasses.dataclass(slots=True, frozen=True, weakref_slot=True)
    class Frozen:
        a: int

    return Frozen, lambda: Frozen(3), Frozen(3)


def _slots_of_two_classes() -> tuple[type, Callable[[], Any], Any]:
    class Base:
        __slots__ = ("a",)

        def __eq__(self, other: object) -> bool:
            return isinstance(other, Sub) and isinstance(self, Sub) and self.told() == other.told()

        __hash__ = None  # type: ignore[assignment]

    class Sub(Base):
        __slots__ = {"__hidden": "mangled", "b": "with what it is"}
        a: int
        b: int
        __hidden: int

        def told(self) -> tuple[int, int, int]:
            return self.a, self.b, self.__hidden

        @classmethod
        def of(cls, a: int) -> Sub:
            new = cls()
            new.a, new.b, new.__hidden = a, 2 * a, 3 * a
            return new

    return Sub, lambda: Sub.of(1), Sub.of(1)


def _one_slot_beside_a_dict() -> tuple[type, Callable[[], Any], Any]:
    class Base:
        __slots__ = "a"

    class Loose(Base):
        def __init__(self) -> None:
            self.a, self.b = 1, 2

        def __eq__(self, other: object) -> bool:
            return isinstance(other, Loose) and vars(self) == vars(other) and self.a == other.a

        __hash__ = None  # type: ignore[assignment]

    return Loose, Loose, Loose()


def _generic_slots() -> tuple[type, Callable[[], Any], Any]:
    T = TypeVar("T")

    @dataclasses.dataclass(slots=True)
    class Box(Generic[T]):
        value: T

    return Box, lambda: Box(3), Box(3)


def _enumeration() -> tuple[type, Callable[[], Any], Any]:
    class Kind(enum.Enum):
        SCAN = 1
        TEXT = "text"

        def twice(self) -> list[Kind]:
            return [self, Kind.TEXT]

    return Kind, lambda: Kind.SCAN, Kind.SCAN


def _named_tuple() -> tuple[type, Callable[[], Any], Any]:
    class Box(NamedTuple):
        left: int
        right: int = 2

    return Box, lambda: Box(1), Box(1)


def _abstract_class() -> tuple[type, Callable[[], Any], Any]:
    class Shape(ABC):
        __slots__ = ("side",)

        @abstractmethod
        def area(self) -> int: ...

    @dataclasses.dataclass
    class Square(Shape):
        side: int

        def area(self) -> int:
            return self.side**2

    return Square, lambda: Square(2), Square(2)


def _refers_to_itself() -> tuple[type, Callable[[], Any], Any]:
    @dataclasses.dataclass
    class Node:
        next: Any = None

        def longer(self) -> Node:
            return Node(self)

    Node.empty = Node()  # type: ignore[attr-defined]
    return Node, lambda: Node().longer(), Node(Node())


def _nested() -> tuple[type, Callable[[], Any], Any]:
    class Outer:
        @dataclasses.dataclass(slots=True)
        class Inner:
            a: int

        def make(self) -> Inner:
            return self.Inner(7)

    return Outer.Inner, lambda: Outer().make(), Outer.Inner(7)


def _pydantic_model() -> tuple[type, Callable[[], Any], Any]:
    pydantic = pytest.importorskip("pydantic")

    class Model(pydantic.BaseModel):  # type: ignore[name-defined,misc]  # imported just now
        a: int
        _hidden: int = pydantic.PrivateAttr(default=3)

    return Model, lambda: Model(a=3), Model(a=3)


KINDS = (
    _slots_dataclass,
    _frozen_dataclass,
    _slots_of_two_classes,
    _one_slot_beside_a_dict,
    _generic_slots,
    _enumeration,
    _named_tuple,
    _abstract_class,
    _refers_to_itself,
    _nested,
    _pydantic_model,
)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__[1:])
def test_values_come_back_as_instances_of_the_class_they_were_made_of(
    kind: Callable[[], tuple[type, Callable[[], Any], Any]],
):
    expected_type, make, expected = kind()
    before = dict(vars(expected_type))
    value = made_elsewhere(make)
    assert type(value) is expected_type
    assert value == expected
    after = dict(vars(expected_type))
    after.pop("__slotnames__", None)  # what pickle finds out of any class, and keeps there
    assert after == before


def test_instances_have_no_more_attributes_elsewhere_than_here():
    _, make, _ = _slots_dataclass()
    assert not hasattr(make(), "__dict__")
    assert made_elsewhere(lambda: hasattr(make(), "__dict__")) is False


def test_a_class_of_another_process_is_made_here_once():
    def make() -> list[Any]:
        class Found:
            __slots__ = ("a",)

            def __init__(self, a: int) -> None:
                self.a = a

        return [byvalue.dumps(Found(1)), byvalue.dumps(Found(2))]

    first, second = made_elsewhere(make)
    one = pickle.loads(first)
    type(one).note = "of this process"
    del type(one).__init__
    other = pickle.loads(second)
    assert type(other) is type(one)
    assert (one.a, other.a, other.note) == (1, 2, "of this process")
    assert "__init__" not in vars(type(one))


class _Refuses:
    """Refuses to be loaded until it is told otherwise."""

    ready = False

    def __setstate__(self, state: object) -> None:
        if not _Refuses.ready:
            raise ValueError("not yet")

    def __getstate__(self) -> int:
        return 1


def test_a_class_that_could_not_be_loaded_to_its_end_is_made_whole_by_the_next_load(
    monkeypatch: pytest.MonkeyPatch,
):
    def make() -> bytes:
        refuses = _Refuses()  # what only a class's body names would not travel along

        class Late:
            held = refuses  # loaded after the class is made, before it has its attributes
            name = "whole"

        return byvalue.dumps(Late)

    data = made_elsewhere(make)
    with pytest.raises(ValueError, match="not yet") as failed:
        pickle.loads(data)
    monkeypatch.setattr(_Refuses, "ready", True)
    assert pickle.loads(data).name == "whole"
    del failed  # it held the frames of the load that failed, and so the class


class _Meets:
    """Waits where its class is half made until another thread has come as far."""

    barrier = threading.Barrier(2)

    def __setstate__(self, state: object) -> None:
        _Meets.barrier.wait(60)

    def __getstate__(self) -> int:
        return 1


def test_two_threads_that_load_a_class_at_once_get_it_whole():
    def make() -> bytes:
        meets = _Meets()

        class Shared:
            held = meets
            name = "whole"

        return byvalue.dumps(Shared)

    data = made_elsewhere(make)
    loaded: list[Any] = []
    names: list[str] = []

    def load() -> None:
        loaded.append(pickle.loads(data))
        names.append(loaded[-1].name)

    threads = [threading.Thread(target=load) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert names == ["whole", "whole"]
    assert loaded[0] is loaded[1]
