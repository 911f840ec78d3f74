"""Whose values leave the driver's process, and whose stay there because only its own threads read them.

Owns that one question about a plan. An answer of "leaves" for a value that does not costs a copy; the other
way round would be an error, so whatever is not certain to stay leaves.
"""

from __future__ import annotations

from fanfold.plan import (
    BroadcastNode,
    CallNode,
    ExpandNode,
    FieldNode,
    FilterNode,
    GatherNode,
    MergeNode,
    Node,
    Plan,
    RecordNode,
    SplitNode,
)


def leaving(plan: Plan, threads: frozenset[int], *, written: bool) -> frozenset[int]:
    """The ports whose values are read outside of the driver's process, directly or as part of another's.

    Args:
        plan: The plan.
        threads: The stages whose workers are threads of the driver.
        written: Whether the outputs go to a writer, which is a process of its own.
    """
    found: set[int] = {output.port for output in plan.outputs} if written else set()
    for node in reversed(plan.nodes):  # readers come after what they read
        if isinstance(node, CallNode):
            if node.stage not in threads:
                found.update(item.port for item in node.inputs)
        elif found.intersection(_makes(node)):
            found.update(_reads(node))
    return frozenset(found)


def _makes(node: Node) -> tuple[int, ...]:
    match node:
        case CallNode() | ExpandNode() | GatherNode() | SplitNode():
            return node.outputs
        case FilterNode() | MergeNode() | BroadcastNode() | FieldNode() | RecordNode():
            return (node.output,)


def _reads(node: Node) -> tuple[int, ...]:
    """What a structural operation's values are put together of; children are stored by themselves."""
    match node:
        case CallNode() | ExpandNode():
            return ()
        case GatherNode() | MergeNode():
            return node.inputs
        case FilterNode() | SplitNode() | BroadcastNode() | FieldNode():
            return (node.input,)
        case RecordNode():
            return tuple(part for _, part in node.fields if isinstance(part, int))
