"""Values that refuse to be loaded; a module of its own, as users have."""

from __future__ import annotations

from typing import Any

import fanfold as ff


class Refusing:
    """A value that raises when it is loaded anywhere."""

    def __init__(self, how: str) -> None:
        self.how = how

    def __setstate__(self, state: dict[str, str]) -> None:
        refuse(state["how"])


def refuse(how: str) -> None:
    """Raise what is called so."""
    if how == "RecursionError":
        refuse(how)
    kinds: dict[str, type[BaseException]] = {
        "ValueError": ValueError,
        "MemoryError": MemoryError,
        "SystemExit": SystemExit,
        "GeneratorExit": GeneratorExit,
        "KeyboardInterrupt": KeyboardInterrupt,
    }
    raise kinds[how]("not to be loaded")


@ff.stage
def make(number: int, how: str) -> Any:
    """The number, or at 2 what refuses."""
    return Refusing(how) if number == 2 else number


@ff.stage
def double(number: int) -> int:
    """Twice the number."""
    return 2 * number


@ff.stage
def same(value: Any) -> Any:
    """What came."""
    return value


@ff.pipeline(level="document")
def made(number: ff.Port[int], *, how: str = "ValueError") -> Any:
    return make(number, how=how)


@ff.pipeline(level="document")
def read(number: ff.Port[int], *, how: str = "ValueError") -> Any:
    return same(make(number, how=how))


@ff.pipeline(level="document")
def two(number: ff.Port[int], *, how: str = "ValueError") -> dict[str, ff.Port[Any]]:
    return {"double": double(number), "value": ff.record(made=make(number, how=how))}
