"""Credits: what may be begun without going beyond the memory budget. Pure.

Owns the account: what lies in blocks is told by the engine (``HeldBlocks.size_bytes``), what batches at workers
are going to make is promised here when they begin, and paid back as it arrives. How much that is nobody has to
say: it is learned from what earlier items of a call made. Who gets credit first, and who goes on without any
so that nothing can stand still, is the core's decision.

A batch that is no generator gets credit for all that its items are expected to make. A generator gets *room*
for some children, more of it before that is used up while there is credit, and waits where there is none.

Who may use how much of the budget
----------------------------------
Values are let go at the end of a pipeline, so what is nearer to it must not wait for what is farther from it:

* One :data:`KEPT`-th of the budget is kept for the oldest open root, when nothing gets credit.
* Calls that store values may use the rest, but leave a part of one :data:`ROOMS`-th free that is the larger the
  more such calls there are behind them: the last one leaves nothing, new roots leave all of it.
* Generators that go on leave one more room free, so that others can begin: a small parent does not wait for a
  giant.
* A generator that has no more than a *step* left is granted another: a :data:`STEPS`-th of what they may use,
  divided by the number of those at workers, and a room at least. So one that is alone has up to half of the
  budget ahead of it, and its next grant is on the way while it works. Once it is known what items of its call
  usually give, no grant is larger than all before it together.

Without credit a worker may begin one item, or as many as make no more than its part of what is kept for that,
by the largest that the call's items have turned out in any batch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from fanfold.plan import Plan
from fanfold.protocol import StreamRows

ROOM_BYTES: Final = 32 * 1024 * 1024
"""Room that one generator is given at a time, at most; smaller where the budget is."""
ROOMS: Final = 16
"""The budget has at least so many rooms."""
KEPT: Final = 64
"""The share of the budget that is kept for the oldest root."""
STEPS: Final = 4
"""A generator that is alone gets the budget in so many steps; it may have two of them ahead of it."""
SPILLED_ROOMS: Final = 2
"""So much is to be free after spilling, beside what is left free for others: then any generator can go on."""
ASSUMED: Final = 32
"""A room holds so many items of a call of which nothing is known yet."""
FIRST_ROOTS: Final = 8
"""How many roots enter before the size of any is known."""
FRESH: Final = 0.2
"""How much the size of the last items counts among those of all."""


@dataclass(slots=True)
class _Promise:
    call: int
    items: int
    left: int
    """Bytes that are promised and have not arrived."""
    made: int = 0
    """Bytes that have arrived."""
    room: int = 0
    """What a generator was granted in all."""
    generates: bool = False
    """It is known to be a generator's."""

    def extend(self, more: int) -> int:
        """Grant more than has been released, which may be beyond the room; by how much the room grows."""
        step = max(0, self.made - self.room) + more
        self.room += step
        return step


class Credits:
    """The account of one run.

    Args:
        plan: The compiled pipeline.
        budget_bytes: How much all blocks may take.
        held: What they take now.
    """

    def __init__(self, plan: Plan, budget_bytes: int, held: Callable[[], int]) -> None:
        self.budget_bytes = budget_bytes
        self._held = held
        self._room = max(1, min(ROOM_BYTES, budget_bytes // ROOMS))
        self._kept = budget_bytes // KEPT
        self._assumed = max(1.0, self._room / ASSUMED)
        """What an item makes, as long as nothing is known of its call."""
        self._stores = {
            call.index: any(
                stream.stored
                for stream in (
                    *plan.streams[call.index].items,
                    *(s for e in plan.streams[call.index].expansions for s in e.streams),
                )
            )
            for call in plan.calls()
        }
        storing = [call for call, stores in self._stores.items() if stores]
        self._left_free = {
            call: self._kept + budget_bytes // ROOMS * behind // len(storing)
            for behind, call in enumerate(sorted(storing, reverse=True))
        }
        """By call: what it leaves of the budget to those behind it."""
        self._most_free = self._kept + budget_bytes // ROOMS
        """The most that is left so, by new roots."""
        self._expanding = {
            call.index
            for call in plan.calls()
            if plan.stages[call.stage].batch_size is None
            and not plan.stages[call.stage].asynchronous
            and any(s.stored for e in plan.streams[call.index].expansions for s in e.streams)
        }
        """Calls that may turn out to generate: what a function returns may be an iterator."""
        self._generators = {
            index for index in self._expanding if plan.stages[plan.call(index).stage].generator
        }
        self._usual_root: float | None = None
        self.hungry: dict[int, None] = {}
        """Batches of generators that could do with more room, in the order of their asking."""
        self._usual: dict[int, float] = {}
        """By call: bytes that an item makes."""
        self._largest: dict[int, float] = {}
        """By call: bytes that an item made in the batch where that was most."""
        self._generating = 0
        """Batches of generators at workers."""
        self._promises: dict[int, _Promise] = {}
        self._promised = 0

    @property
    def room_bytes(self) -> int:
        """What one generator is given at a time, at least."""
        return self._room

    @property
    def ample_bytes(self) -> int:
        """With so much free nothing lacks credit."""
        return self._most_free + SPILLED_ROOMS * self._room

    @property
    def _step(self) -> int:
        """What one generator is given at a time, with those that there are now."""
        alone = (self.budget_bytes - self._most_free) // STEPS
        return max(self._room, min(ROOM_BYTES, alone // max(1, self._generating)))

    @property
    def free_bytes(self) -> int:
        """What may be promised yet; less than nothing where values turned out larger than expected."""
        return self.budget_bytes - self._held() - self._promised

    @property
    def promised_bytes(self) -> int:
        """What is promised and has not arrived."""
        return self._promised

    def items(self, call: int, wanted: int) -> int:
        """How many of some items of a call may begin now."""
        if not self._stores[call]:
            return wanted
        free = self.free_bytes - self._left_free[call]
        usual = self._usual.get(call, self._assumed)
        if 0 < usual * wanted <= free:
            return wanted
        if call in self._generators:
            usual = min(usual, self._room)
        if usual <= 0:
            return wanted if free > 0 else 0
        return max(0, min(wanted, int(free / usual)))

    def roots(self, wanted: int) -> int:
        """How many of some roots may enter now."""
        usual = self._usual_root
        if usual is None:
            return min(wanted, FIRST_ROOTS)
        free = self.free_bytes - self._most_free
        return min(wanted, int(free / usual) if usual > 0 else wanted) if free > 0 else 0

    def admitted(self, count: int, size_bytes: int) -> None:
        """Roots have entered, with values of this size."""
        usual = size_bytes / count
        self._usual_root = _mean(self._usual_root, usual)

    def without(self, call: int, wanted: int, workers: int) -> int:
        """How many items of a call one of several workers may begin without credit: one, or as many as make
        next to nothing."""
        if not self._stores[call]:
            return wanted
        largest = self._largest.get(call, 0.0)
        if largest <= 0 or call in self._expanding:
            return 1
        return max(1, min(wanted, int(self._kept // workers / largest)))

    def begin(self, batch: int, call: int, items: int, *, overdraft: bool = False) -> int | None:
        """A batch begins: promise what it is going to make. The room of its generators, if it has any; the
        least if it begins without credit."""
        if not self._stores[call]:
            return None
        usual = self._usual.get(call, self._assumed)
        generates, expands = call in self._generators, call in self._expanding
        self._generating += generates
        whole = 0.0 if overdraft and expands else usual * items
        expected = int(min(whole, self._step) if generates else whole)
        room = max(1, expected) if expands else None
        self._promises[batch] = _Promise(call, items, expected, room=room or 0, generates=generates)
        self._promised += expected
        if generates and whole > self._step:
            self.hungry[batch] = None  # the first step will be used up
        return room

    def made(self, batch: int, size_bytes: int) -> None:
        """So much of a batch has arrived."""
        promise = self._promises.get(batch)
        if promise is None:
            return
        promise.made += size_bytes
        paid = min(promise.left, size_bytes)
        promise.left -= paid
        self._promised -= paid
        if promise.generates and promise.left <= self._step:
            self.hungry[batch] = None

    def more(self, batch: int) -> int:
        """How much more room a hungry generator gets now; 0: there is no credit."""
        promise = self._promises[batch]
        wanted = self._step
        if promise.call in self._usual:
            # What usually gives little gets little, until it gives more.
            wanted = min(wanted, max(promise.room, self._room // ASSUMED, 1))
        more = min(wanted, self.free_bytes - self._most_free - self._room)
        if more <= wanted // 4:
            return 0
        promise.left += more
        self._promised += more
        del self.hungry[batch]
        return promise.extend(more)

    def overdraw(self, batch: int, workers: int) -> int:
        """A generator goes on without credit: the room for one more child, or for one of several workers' share
        of what is kept for that."""
        return self._promises[batch].extend(max(1, self._kept // workers))

    def paused(self, batch: int, items: int, room: int) -> bool:
        """A generator has used up the room that it knew of, and items of its batch were given back; whether it
        waits. If not, more is on its way to it."""
        promise = self._promises.get(batch)
        if promise is None or room < promise.room:
            return False
        self._generators.add(promise.call)
        self._generating += not promise.generates
        promise.generates = True
        promise.items = items
        self._promised -= promise.left
        promise.left = 0
        self.hungry[batch] = None
        return True

    def put_off(self, batch: int, items: int) -> None:
        """So many items of a batch were not run: they say nothing of what one makes."""
        if batch in self._promises:
            self._promises[batch].items -= items

    def ended(self, batch: int) -> None:
        """A batch makes nothing more."""
        self.hungry.pop(batch, None)
        promise = self._promises.pop(batch, None)
        if promise is None:
            return
        self._promised -= promise.left
        self._generating -= promise.generates
        if promise.items <= 0:
            return
        per_item = promise.made / promise.items
        usual = self._usual.get(promise.call)
        self._usual[promise.call] = _mean(usual, per_item)
        self._largest[promise.call] = max(per_item, self._largest.get(promise.call, 0.0))


def size_bytes(streams: Iterable[StreamRows]) -> int:
    """What the blocks of some streams take."""
    size = 0
    for stream in streams:
        if stream.rows is not None:
            size += stream.rows.size_bytes
    return size


def _mean(known: float | None, size: float) -> float:
    """A moving mean. What turns out larger shows in the account itself, as soon as it is there."""
    return size if known is None else (1 - FRESH) * known + FRESH * size


class Spilling:
    """When blocks are to leave memory: where credit is lacking, and not more often than as much as one room
    holds was made."""

    def __init__(self) -> None:
        self._under_way = False
        self._looked_at: int | None = None

    def wanted(self, credits: Credits, made_bytes: int) -> int:
        """How much should go now.

        Args:
            credits: The account.
            made_bytes: What all blocks of the run have taken so far.
        """
        before, self._looked_at = self._looked_at, made_bytes
        if self._under_way or (before is not None and made_bytes - before < credits.room_bytes):
            self._looked_at = before
            return 0
        return max(0, credits.ample_bytes - credits.free_bytes)

    def asked(self) -> None:
        """The backend was asked."""
        self._under_way = True

    def answered(self) -> None:
        """It has answered; if credit is lacking still, it may be asked again."""
        self._under_way, self._looked_at = False, None
