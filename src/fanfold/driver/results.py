"""``Result``: what a stream gives for each root; and how a root's outputs take the shape that the pipeline
returned them in, and which calls made one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from fanfold.failures import Failure
from fanfold.outcomes import Status
from fanfold.plan import CallNode, FilterNode, GatherNode, Plan, SplitNode, ports_made, ports_read


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


def makers(plan: Plan, output: int) -> str:
    """The calls that made the values of an output, in the order of the plan: ``Ocr``, or ``Ocr, Layout``; the
    source's parameter if none did."""
    wanted = {plan.outputs[output].port}
    names: list[str] = []
    for node in reversed(plan.nodes):  # readers come after what they read
        if wanted.isdisjoint(ports_made(node)):
            continue
        match node:
            case CallNode():
                names.insert(0, node.name)
            case FilterNode() | SplitNode():  # what they go by is no part of the value
                wanted.add(node.input)
            case GatherNode():
                wanted.update(node.inputs)
            case _:
                wanted.update(ports_read(node))
    return ", ".join(
        names or [source.name for source in plan.sources if source.stream.port in wanted]
    )
