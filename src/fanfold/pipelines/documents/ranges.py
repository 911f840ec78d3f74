"""What the numeric settings of the pipeline ``documents`` may be, and the refusal of anything else.

Owns the ranges. A value outside of them would not fail but give nonsense: no text, or endless work.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from fanfold.errors import DefinitionError


@dataclass(frozen=True, slots=True)
class Range:
    """The numbers that a setting may be, both ends included."""

    kind: type[int] | type[float]
    least: float
    most: float | None = None

    def __contains__(self, value: Any) -> bool:
        """Whether ``value`` is such a number. ``True`` is none, nor is a number that is not one (NaN).

        >>> 0.5 in Range(float, 0, 1), 7 in Range(float, 0, 1), 1.5 in Range(int, 1), True in Range(int, 1)
        (True, False, False, False)
        """
        if isinstance(value, bool) or not isinstance(value, (int, self.kind)):
            return False
        # Two comparisons that hold, since none holds for NaN.
        return value >= self.least and (self.most is None or value <= self.most)

    def __str__(self) -> str:
        noun = "a whole number" if self.kind is int else "a number"
        if self.most is None:
            return f"{noun} of {self.least:g} or more"
        return f"{noun} from {self.least:g} to {self.most:g}"


RANGES: Final = {
    "dpi": Range(int, 10, 2400),
    "max_pixels": Range(int, 1),
    "detect_side_px": Range(int, 32),
    "recognize_chunk": Range(int, 1),
    "min_confidence": Range(float, 0, 1),
    "threads": Range(int, 0),
}


def check_ranges(**settings: Any) -> None:
    """Refuse the first of these settings that is out of its range.

    Raises:
        DefinitionError: FF454, naming the setting, its value and what is allowed.
    """
    for name, value in settings.items():
        allowed = RANGES[name]
        if value not in allowed:
            raise DefinitionError("FF454", f"{name}={value!r} is not allowed.", f"Give {allowed}.")
