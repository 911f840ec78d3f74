"""What may still become ready at a call, and whether a call's producers are to go on. Pure.

Owns these questions, which the plan's shape, the queues and what is at workers answer together.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from fanfold.dispatch.feeding import consuming_calls, producing_calls
from fanfold.dispatch.pool import Pool
from fanfold.engine.machine import Machine
from fanfold.plan import Plan

BACKLOG_BATCHES: Final = 8
"""Full batches per replica that may wait at a call before its producers pause."""


class Supply:
    """What comes to the calls of a run.

    Args:
        plan: Its plan.
        machine: Its state.
        pool_of_call: By call: the pool that runs it.
    """

    def __init__(self, plan: Plan, machine: Machine, pool_of_call: Mapping[int, Pool]) -> None:
        self._machine = machine
        self._pool_of_call = pool_of_call
        self._consumers = {
            call: [(consumer, machine.queues[consumer]) for consumer in consumers]
            for call, consumers in consuming_calls(plan).items()
        }
        self._producers = producing_calls(plan)
        self.exhausted = False
        """The source has nothing more."""

    def paused(self, call: int) -> bool:
        """Whether a call is not to begin anything, since one that consumes its output has a long queue. What
        is queued can run as soon as a worker takes anything new, so the pause always ends."""
        for consumer, queue in self._consumers[call]:
            count = queue.count
            if count > BACKLOG_BATCHES and count > self._backlog(call, consumer):
                return True
        return False

    def _backlog(self, call: int, consumer: int) -> int:
        """Ready items at a consumer above which its producer pauses: some batches, and what one more batch of
        the producer is likely to add, since the consumer would run dry while it is made."""
        pool = self._pool_of_call[consumer]
        size = pool.batch_size or pool.message_items()
        executed = self._machine.counts[call].executed
        added = self._machine.queues[consumer].total / executed if executed else 0
        producer = self._pool_of_call[call]
        burst = added * (producer.batch_size or producer.message_items())
        places = max(1, len(pool.workers)) * pool.max_in_flight
        return BACKLOG_BATCHES * size * places + int(burst)

    def can_come(self, call: int, room: Callable[[], int]) -> bool:
        """Whether items may become ready at a call before anything else goes on: what is paused counts as
        nothing, since it may be paused for as long as this very call's items are not run.

        Args:
            call: Where.
            room: How many roots may be admitted now.
        """
        if not self.exhausted and room() > 0:
            return True
        machine = self._machine
        return any(
            machine.counts[c].running
            or machine.queues[c].alone
            or (machine.queues[c].count and not self.paused(c))
            for c in self._producers[call]
        )

    def more_to_come(self, call: int) -> bool:
        """Whether items may still become ready at a call without its own doing."""
        if not self.exhausted:
            return True
        machine = self._machine
        return any(
            machine.queues[c].count or machine.queues[c].alone or machine.counts[c].running
            for c in self._producers[call]
        )

    def is_wanted(self, pool: Pool) -> bool:
        """Whether there is, or may come, work for a pool that is not at a worker now."""
        return any(
            queue.count
            or queue.alone
            or self._machine.counts[call].running
            or self.more_to_come(call)
            for call, queue in zip(pool.calls, pool.queues, strict=True)
        )
