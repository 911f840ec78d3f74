"""A profile: how long the stages of a pipeline take, by the number of items in a call; and its file.

Owns the file's shape, which simulations build on: :data:`SCHEMA` goes up when a field changes its meaning or
goes away. Measures nothing itself.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

SCHEMA: Final = 1
DURATIONS: Final = 200
"""So many durations are kept for each stage and number of items."""


@dataclass(frozen=True, slots=True)
class StageProfile:
    """How long one stage takes."""

    construct_s: float
    """How long its constructor took; 0 for a function."""
    batched: bool
    """Whether it takes lists."""
    seconds: Mapping[int, Sequence[float]]
    """By the number of items in a call: how long each call took, in the order in which they were made."""


@dataclass(frozen=True, slots=True)
class Profile:
    """How long the stages of a pipeline take.

    As JSON::

        {"schema": 1, "pipeline": "to_text", "stages": {
            "Ocr": {"construct_s": 1.93, "batched": true, "calls": [
                {"items": 1, "seconds": [0.031, 0.030]},
                {"items": 8, "seconds": [0.112]}]}}}
    """

    pipeline: str
    stages: Mapping[str, StageProfile]

    def to_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON."""
        return {
            "schema": SCHEMA,
            "pipeline": self.pipeline,
            "stages": {
                name: {
                    "construct_s": round(stage.construct_s, 6),
                    "batched": stage.batched,
                    "calls": [
                        {"items": items, "seconds": [round(s, 6) for s in seconds]}
                        for items, seconds in sorted(stage.seconds.items())
                    ],
                }
                for name, stage in self.stages.items()
            },
        }

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write it as JSON, in one step: a reader sees the whole file or none."""
        file = Path(path)
        temporary = file.with_name(f".{file.name}.writing")
        temporary.write_text(json.dumps(self.to_dict(), indent=2) + "\n", encoding="utf-8")
        os.replace(temporary, file)


def read_profile(path: str | os.PathLike[str]) -> Profile:
    """What :meth:`Profile.write` wrote.

    Raises:
        OSError: The file cannot be read.
        ValueError: It is no profile, or one of another version.
    """
    data = json.loads(Path(path).read_text(encoding="utf-8"))
    if not isinstance(data, dict) or data.get("schema") != SCHEMA:
        raise ValueError(f"{os.fspath(path)!r} is no profile of version {SCHEMA}")
    stages = {
        name: StageProfile(
            stage["construct_s"],
            stage["batched"],
            {call["items"]: tuple(call["seconds"]) for call in stage["calls"]},
        )
        for name, stage in data["stages"].items()
    }
    return Profile(data["pipeline"], stages)
