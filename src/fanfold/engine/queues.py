"""Which ready queue a call has: a plain one, unless its stage says more of how batches form."""

from __future__ import annotations

from collections.abc import Iterator

from fanfold.engine.costs import coster
from fanfold.engine.grouped import GroupedQueue
from fanfold.engine.groups import groups_reader
from fanfold.engine.lines import QUANTUM, FairLine, FifoLine
from fanfold.engine.measured import MeasuredQueue
from fanfold.engine.probe import Probe
from fanfold.engine.program import Program
from fanfold.engine.ready import ReadyQueue
from fanfold.engine.weights import weigher


def make_queue(
    program: Program, call: int, sequence: Iterator[int], probe: Probe, span: int
) -> ReadyQueue:
    """The ready queue of a call.

    Args:
        program: The slots.
        call: Whose queue it is.
        sequence: Numbers that grow with time, shared by all queues of a run.
        probe: The call's.
        span: Items in a full chunk.
    """
    stage = program.plan.stages[program.plan.call(call).stage]
    output = program.call_outputs[call][0]
    limit = stage.max_batch_cost if stage.batch_bytes is None else stage.batch_bytes

    def make() -> ReadyQueue:
        line = FairLine(turn) if stage.schedule == "fair" else FifoLine()
        if weigh is None or limit is None:
            return ReadyQueue(sequence, output, probe, line)
        return MeasuredQueue(sequence, output, probe, line, limit=limit, weigh=weigh)

    # A turn of less than a batch would tear families, and let nobody begin sooner.
    turn = min(max(QUANTUM, stage.batch_size or 1), span)
    weigh = None
    if stage.batch_bytes is not None:
        weigh = weigher(program, call)
    elif stage.batch_cost is not None:
        weigh = coster(program, call)
    if stage.batch_by is None:
        return make()
    return GroupedQueue(sequence, output, probe, groups=groups_reader(program, call), make=make)
