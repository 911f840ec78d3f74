"""``Result``: what a stream gives for each root; and how a root's outputs take the shape that the pipeline
returned them in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from fanfold.failures import Failure
from fanfold.outcomes import Status
from fanfold.plan import Plan


@dataclass(frozen=True, slots=True)
class Result:
    """What became of one root.

    Example:
        >>> result = Result("a.pdf", Status.FAILED, None, ())
        >>> result.ok
        False
    """

    key: str
    status: Status
    value: Any
    """As the pipeline returns it (an output of a child level: a list of its done items); None if the root
    was dropped or failed."""
    failures: tuple[Failure, ...] = ()
    """What failed under this root, each where it originated."""

    @property
    def ok(self) -> bool:
        """Whether all of it is done."""
        return self.status is Status.DONE


def shaped(plan: Plan, values: Sequence[Any]) -> Any:
    """Values of the outputs in plan order, as the pipeline's function returned them."""
    if plan.structure == "dict":
        names = [output.name for output in plan.outputs]
        return dict(zip(names, values, strict=True))
    return tuple(values) if plan.structure == "tuple" else values[0]
