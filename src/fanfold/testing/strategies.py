"""Made-up pipelines for property tests: a Hypothesis strategy for programs and their inputs.

Owns nothing but the link: what a program may look like is :mod:`fanfold.testing.drawing`'s, and here
Hypothesis makes the choices, so that a failing example shrinks. Needs the package ``hypothesis``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from hypothesis import strategies as st

from fanfold.testing.drawing import USUAL, Limits, draw_sketch
from fanfold.testing.sketches import Sketch

T = TypeVar("T")


class _Drawn:
    """Choices that Hypothesis makes; implements :class:`fanfold.testing.drawing.Chance`."""

    def __init__(self, draw: Callable[..., Any]) -> None:
        self._draw = draw

    def choose(self, options: Sequence[T]) -> T:
        chosen: T = self._draw(st.sampled_from(options))
        return chosen

    def flag(self) -> bool:
        return bool(self._draw(st.booleans()))

    def number(self, least: int, most: int) -> int:
        return int(self._draw(st.integers(least, most)))

    def several(self, options: Sequence[T], least: int, most: int) -> list[T]:
        positions = st.lists(
            st.sampled_from(range(len(options))),
            min_size=min(least, len(options)),
            max_size=min(most, len(options)),
            unique=True,
        )
        return [options[position] for position in self._draw(positions)]


@st.composite
def sketches(draw: Any, limits: Limits = USUAL) -> Sketch:
    """Programs with one or two sources, up to three levels below the root, and several outputs.

    Args:
        limits: How large they may become.
    """
    return draw_sketch(_Drawn(draw), limits)
