"""Which ready queue a call has: a plain one, unless its stage says more of how batches form."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from fanfold.engine.grouped import GroupedQueue
from fanfold.engine.groups import groups_reader
from fanfold.engine.measured import MeasuredQueue
from fanfold.engine.probe import Probe
from fanfold.engine.program import Program
from fanfold.engine.ready import ReadyQueue
from fanfold.engine.weights import weigher


def make_queue(program: Program, call: int, sequence: Iterator[int], probe: Probe) -> ReadyQueue:
    """The ready queue of a call.

    Args:
        program: The slots.
        call: Whose queue it is.
        sequence: Numbers that grow with time, shared by all queues of a run.
        probe: The call's.
    """
    stage = program.plan.stages[program.plan.call(call).stage]
    output = program.call_outputs[call][0]
    make: Callable[[], ReadyQueue] = partial(ReadyQueue, sequence, output, probe)
    if stage.batch_bytes is not None:
        make = partial(
            MeasuredQueue,
            sequence,
            output,
            probe,
            limit_bytes=stage.batch_bytes,
            weigh=weigher(program, call),
        )
    if stage.batch_by is None:
        return make()
    return GroupedQueue(sequence, output, probe, groups=groups_reader(program, call), make=make)
