"""What each ready item of a call costs in a batch (``batch_cost``), as the producers of its first input told.

Owns the way from the call's first port back to what was told, through structural operations. Unlike bytes
(:mod:`fanfold.engine.weights`) a cost is the item's own: siblings that share a broadcast value each have it.
"""

from __future__ import annotations

from fanfold.engine.chunks import Chunk
from fanfold.engine.program import Program
from fanfold.engine.weights import Weigh, first_done, in_order, rows_of
from fanfold.plan import (
    BroadcastNode,
    CallNode,
    ExpandNode,
    FieldNode,
    FilterNode,
    MergeNode,
    Path,
    SplitNode,
)


def coster(program: Program, call: int) -> Weigh:
    """How to tell what a call's items cost; where nobody told anything (a merge's default) it is nothing."""
    return _reader(program, call, program.plan.call(call).inputs[0].port, ())


def _reader(program: Program, call: int, port: int, path: Path) -> Weigh:
    index = program.plan.ports[port].node
    node = None if index is None else program.plan.nodes[index]
    match node:
        case None | CallNode() | ExpandNode():
            return _told(port, call, path)
        case FilterNode() | SplitNode():
            return _reader(program, call, node.input, path)
        case FieldNode():
            return _reader(program, call, node.input, (node.name, *path))
        case BroadcastNode():
            return _of_parents(_reader(program, call, node.input, path))
        case MergeNode():
            return first_done(
                [(program.port[p], _reader(program, call, p, path)) for p in node.inputs]
            )
        case _:
            raise AssertionError(f"port {port} is on no control path")


def _told(port: int, call: int, path: Path) -> Weigh:
    def weigh(chunk: Chunk, items: int) -> list[float]:
        found: list[tuple[int, list[float]]] = []
        told = () if chunk.costs is None else chunk.costs.get((port, call, path), ())
        for members, costs, row in told:
            if here := members & items:
                found.append((here, rows_of(here, members, costs, row)))
                if here == items:
                    break
        return in_order(items, found)

    return weigh


def _of_parents(inner: Weigh) -> Weigh:
    def weigh(chunk: Chunk, items: int) -> list[float]:
        assert chunk.parent is not None
        parents = chunk.parents_of(items)
        costs: list[float] = []
        counts = chunk.sizes(parents, items)
        for cost, count in zip(inner(chunk.parent, parents), counts, strict=True):
            costs += [cost] * count
        return costs

    return weigh
