"""Parent failures: what one call's parent failure suppresses, under the parent and beside it.

Owns the reach of a condemnation (M15 of the model): the siblings at the call, those that come later, and the
lists that depend on the call. Other calls over the same children are untouched.
"""

from __future__ import annotations

from collections.abc import Mapping

from fanfold.engine.chunks import Chunk
from fanfold.engine.program import Program
from fanfold.engine.ready import ReadyQueue
from fanfold.engine.rules import State
from fanfold.failures import Failure


class Condemning:
    """Spreads parent failures.

    Args:
        program: The slots.
        queues: By call: what is told that some of its items died.
    """

    def __init__(self, program: Program, queues: Mapping[int, ReadyQueue]) -> None:
        self._program = program
        self._queues = queues

    def condemn(self, state: State, call: int, chunk: Chunk, parent: int, cause: Failure) -> None:
        """A parent failure at ``call``: what has not ended there under the parent is suppressed, and the
        lists that depend on the call."""
        program = self._program
        level, outputs = program.plan.nodes[call].level, program.call_outputs[call]
        self._queues[call].alarm()
        if chunk.condemned is None:
            chunk.condemned = {}
        chunk.condemned.setdefault(call, []).append((parent, cause))
        for child in chunk.children[level].chunks(parent):
            items = child.items_of(parent)
            for slot in outputs:
                state.settle_lost(child, slot, suppressed=items, causes=((items, cause),))
        for gather in program.condemned.get(call, ()):
            expansion = program.expansion[gather.child_level]
            children = chunk.children.get(gather.child_level)
            begun = 0 if children is None else children.begun
            # Where no child is known the expansion may be dropped yet, and then the list is.
            certain = parent & (begun | chunk.terminal(expansion))
            for slot in map(program.port.__getitem__, gather.outputs):
                if certain:
                    state.settle_lost(chunk, slot, suppressed=certain, causes=((parent, cause),))
                else:
                    chunk.given_up.setdefault(slot, []).append((parent, cause))

    def arrived(self, state: State, chunk: Chunk, new: int) -> None:
        """Children came: those of condemned parents are suppressed."""
        assert chunk.parent is not None
        for call, condemned in (chunk.parent.condemned or {}).items():
            if self._program.plan.nodes[call].level == chunk.level:
                for parents, cause in condemned:
                    items = chunk.items_of(parents) & new
                    for slot in self._program.call_outputs[call]:
                        state.settle_lost(chunk, slot, suppressed=items, causes=((items, cause),))
