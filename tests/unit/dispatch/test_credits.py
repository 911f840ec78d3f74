"""The account of a run's memory: what is promised, what is learned, who gets room."""

from __future__ import annotations

import dataclasses

from fanfold.dispatch.credits import ASSUMED, KEPT, ROOM_BYTES, ROOMS, STEPS, Credits, Spilling
from fanfold.plan import Plan
from tests.plans import fan_out_plan

PAGES, READ, JOIN = 0, 2, 4
BUDGET = 16_000
ROOM = BUDGET // ROOMS
ASSUMED_BYTES = ROOM / ASSUMED
KEPT_BYTES = BUDGET // KEPT
LEFT_BYTES = KEPT_BYTES + ROOM // 3
"""What is left free by the second of three calls that make values."""
MOST_LEFT_BYTES = KEPT_BYTES + ROOM
STEP = (BUDGET - MOST_LEFT_BYTES) // STEPS


def plan(*, stored: bool = True) -> Plan:
    """A generator of pages, and a stage that reads them."""
    found = fan_out_plan(batch_size=None)
    stages = (dataclasses.replace(found.stages[0], generator=True), *found.stages[1:])
    if stored:
        return dataclasses.replace(found, stages=stages)
    (read,) = found.streams[READ].items
    nothing = dataclasses.replace(
        found.streams[READ], items=(dataclasses.replace(read, stored=False),)
    )
    return dataclasses.replace(found, stages=stages, streams={**found.streams, READ: nothing})


class Account:
    """Credits whose blocks take what a test says."""

    def __init__(self, budget_bytes: int = BUDGET, *, stored: bool = True) -> None:
        self.held = 0
        self.credits = Credits(plan(stored=stored), budget_bytes, lambda: self.held)

    def run(self, batch: int, call: int, sizes: list[int]) -> None:
        """A batch from its beginning to its end, which leaves nothing."""
        self.credits.begin(batch, call, len(sizes))
        for size in sizes:
            self.credits.made(batch, size)
        self.credits.ended(batch)


def test_of_a_call_that_nothing_is_known_of_little_is_assumed() -> None:
    account = Account()
    assert account.credits.items(READ, 10_000) == int((BUDGET - LEFT_BYTES) / ASSUMED_BYTES)
    account.credits.begin(1, READ, 100)
    assert account.credits.promised_bytes == int(100 * ASSUMED_BYTES)


def test_sizes_are_moving_means_of_what_batches_made() -> None:
    account = Account()
    account.run(1, READ, [100, 100])
    assert account.credits.items(READ, 10_000) == (BUDGET - LEFT_BYTES) // 100
    account.run(2, READ, [600])
    assert account.credits.items(READ, 10_000) == (BUDGET - LEFT_BYTES) // 200
    account.run(3, READ, [0, 200])
    assert account.credits.items(READ, 10_000) == int((BUDGET - LEFT_BYTES) / 180)


def test_roots_enter_as_far_as_there_is_credit_for_what_they_take() -> None:
    account = Account()
    assert 0 < account.credits.roots(500) < 500, "nothing is known of them"
    account.credits.admitted(4, 4000)
    assert account.credits.roots(500) == (BUDGET - MOST_LEFT_BYTES) // 1000
    account.held = BUDGET - MOST_LEFT_BYTES - 2500
    assert account.credits.roots(500) == 2
    account.held = BUDGET
    assert account.credits.roots(500) == 0


def test_roots_that_take_nothing_enter_while_anything_is_free() -> None:
    account = Account()
    account.credits.admitted(4, 0)
    assert account.credits.roots(500) == 500
    account.held = BUDGET
    assert account.credits.roots(500) == 0


def test_promises_are_paid_back_as_values_arrive_and_at_the_end() -> None:
    account = Account()
    account.run(1, READ, [1000])
    account.credits.begin(2, READ, 3)
    assert account.credits.promised_bytes == 3000
    account.credits.made(2, 1000)
    account.held = 1000
    assert (account.credits.promised_bytes, account.credits.free_bytes) == (2000, BUDGET - 3000)
    account.credits.made(2, 5000)
    assert account.credits.promised_bytes == 0, "more than was promised is no debt"
    account.credits.begin(3, READ, 1)
    account.credits.ended(2)
    account.credits.ended(3)
    account.credits.ended(3)
    assert account.credits.promised_bytes == 0


def test_what_comes_of_an_unknown_batch_is_nobodys() -> None:
    account = Account()
    account.credits.made(7, 1000)
    account.credits.ended(7)
    assert not account.credits.paused(7, 1, 0)
    assert account.credits.free_bytes == BUDGET


def test_where_values_take_it_all_nothing_begins() -> None:
    account = Account()
    account.run(1, READ, [1000])
    account.held = BUDGET - LEFT_BYTES - 2500
    assert account.credits.items(READ, 8) == 2
    account.held = BUDGET - LEFT_BYTES - 500
    assert account.credits.items(READ, 8) == 0
    account.held = BUDGET + 5000
    assert account.credits.items(READ, 8) == account.credits.items(PAGES, 8) == 0


def test_a_call_that_makes_next_to_nothing_begins_while_anything_is_free() -> None:
    account = Account()
    account.run(1, READ, [0, 0])
    assert account.credits.items(READ, 500) == 500
    account.held = BUDGET
    assert account.credits.items(READ, 500) == 0


def test_a_call_whose_values_nobody_keeps_needs_no_credit() -> None:
    account = Account(stored=False)
    account.held = BUDGET * 2
    assert account.credits.items(READ, 500) == 500
    assert account.credits.begin(1, READ, 500) is None
    assert account.credits.promised_bytes == 0


def test_calls_leave_memory_to_those_behind_them_the_more_the_more_of_them_there_are() -> None:
    account = Account()
    for batch, call in enumerate((PAGES, READ, JOIN)):
        account.run(batch, call, [1])
    left = [BUDGET - account.credits.items(call, BUDGET) for call in (JOIN, READ, PAGES)]
    assert left == [KEPT_BYTES, KEPT_BYTES + ROOM // 3, KEPT_BYTES + 2 * ROOM // 3]


def test_calls_whose_values_nobody_keeps_are_not_counted_among_those_behind() -> None:
    account = Account(stored=False)
    account.run(1, PAGES, [1])
    assert BUDGET - account.credits.items(PAGES, BUDGET) == KEPT_BYTES + ROOM // 2


def test_without_credit_a_worker_gets_one_item_or_as_many_as_make_little() -> None:
    account = Account()
    credits = account.credits
    assert credits.without(READ, 64, 1) == 1, "nothing is known of it"
    account.run(1, READ, [0, 0])
    assert credits.without(READ, 64, 1) == 1, "what fails says little of the others"
    account.run(2, READ, [10, 30])
    account.run(3, READ, [1])
    assert credits.without(READ, 64, 1) == KEPT_BYTES // 20, "by the largest, not by the usual"
    assert credits.without(READ, 64, 3) == KEPT_BYTES // 3 // 20
    assert credits.without(READ, 5, 1) == 5
    account.run(4, READ, [BUDGET])
    assert credits.without(READ, 64, 1) == 1


def test_without_credit_one_generator_begins_at_a_worker_however_little_they_give() -> None:
    account = Account()
    account.run(1, PAGES, [1])
    assert account.credits.without(PAGES, 64, 1) == 1


def test_without_credit_what_nobody_keeps_begins_as_ever() -> None:
    assert Account(stored=False).credits.without(READ, 64, 1) == 64


def test_what_begins_without_credit_is_promised_like_anything_else() -> None:
    account = Account()
    account.run(1, READ, [100])
    account.credits.begin(2, READ, 2, overdraft=True)
    assert account.credits.promised_bytes == 200


def test_rooms_are_a_share_of_the_budget_and_no_larger_than_is_of_use() -> None:
    for budget, room in ((BUDGET, STEP), (64 * ROOMS * ROOM_BYTES, ROOM_BYTES)):
        account = Account(budget)
        account.run(1, PAGES, [budget])
        assert account.credits.begin(2, PAGES, 1) == room
        assert account.credits.begin(3, READ, 1) is None, "only generators wait for room"


def test_several_generators_share_what_one_would_get() -> None:
    account = Account()
    account.run(1, PAGES, [50 * ROOM])
    rooms = [account.credits.begin(batch, PAGES, 1) for batch in range(2, 8)]
    assert rooms == [STEP, STEP // 2, STEP // 3, ROOM, ROOM, ROOM]
    for batch in range(2, 8):
        account.credits.ended(batch)
    assert account.credits.begin(9, PAGES, 1) == STEP, "the others have ended"


def test_a_generator_gets_the_room_that_its_items_usually_take() -> None:
    account = Account()
    account.run(1, PAGES, [100])
    assert account.credits.begin(2, PAGES, 3) == 300
    assert account.credits.promised_bytes == 300


def test_a_generator_that_has_little_room_left_asks_and_gets_more_while_there_is_credit() -> None:
    account = Account()
    account.run(1, PAGES, [50 * ROOM])
    credits = account.credits
    assert credits.begin(2, PAGES, 1) == STEP
    assert list(credits.hungry) == [2], "it usually gives more than that"
    assert credits.more(2) == STEP
    assert (list(credits.hungry), credits.promised_bytes) == ([], 2 * STEP)
    credits.made(2, STEP // 2)
    assert list(credits.hungry) == [], "it has more than a step ahead of it"
    credits.made(2, STEP - STEP // 2)
    assert list(credits.hungry) == [2]
    assert credits.more(2) == STEP


def test_a_generator_that_was_granted_little_is_granted_as_much_again() -> None:
    account = Account()
    account.run(1, PAGES, [100])
    credits = account.credits
    assert credits.begin(2, PAGES, 1) == 100
    assert list(credits.hungry) == [], "it usually gives no more"
    for more in (100, 200, 400):
        credits.made(2, 1)
        assert credits.more(2) == more


def test_generators_that_go_on_leave_room_for_one_to_begin() -> None:
    account = Account()
    account.run(1, PAGES, [50 * ROOM])
    credits = account.credits
    credits.begin(2, PAGES, 1)
    while credits.hungry and credits.more(2):
        credits.made(2, STEP)
        account.held += STEP
    assert credits.items(PAGES, 1) == 1


def test_what_was_released_beyond_the_room_is_granted_with_what_comes_next() -> None:
    account = Account()
    account.run(1, PAGES, [50 * ROOM])
    credits = account.credits
    credits.begin(2, PAGES, 1)
    credits.made(2, 3 * STEP)
    assert credits.more(2) == 2 * STEP + STEP
    assert credits.promised_bytes == STEP, "what has been released is held, not promised"


def test_without_credit_there_is_no_more_room_and_the_asking_goes_on() -> None:
    account = Account()
    account.run(1, PAGES, [50 * ROOM])
    credits = account.credits
    credits.begin(2, PAGES, 1)
    credits.made(2, STEP)
    left = MOST_LEFT_BYTES + ROOM
    account.held = BUDGET - left - STEP // 5
    assert credits.more(2) == 0
    assert list(credits.hungry) == [2]
    account.held = BUDGET - left - STEP // 2
    assert credits.more(2) == STEP // 2


def test_as_much_leaves_memory_as_a_generator_needs_to_go_on() -> None:
    account = Account()
    account.run(1, PAGES, [50 * ROOM])
    credits = account.credits
    credits.begin(2, PAGES, 1)
    credits.made(2, STEP)
    account.held = BUDGET
    wanted = Spilling().wanted(credits, 0)
    account.held -= wanted - 1
    assert Spilling().wanted(credits, 0) == 1
    account.held -= 1
    assert Spilling().wanted(credits, 0) == 0
    assert credits.more(2) > 0


def test_a_generator_that_pauses_waits_for_more_and_what_it_did_not_use_is_free() -> None:
    account = Account()
    account.run(1, PAGES, [ROOM // 4])
    credits = account.credits
    room = credits.begin(2, PAGES, 4)
    assert room == ROOM
    credits.made(2, ROOM // 2)
    assert credits.paused(2, 1, ROOM)
    assert (credits.promised_bytes, list(credits.hungry)) == (0, [2])
    credits.ended(2)
    assert list(credits.hungry) == []
    mean = 0.8 * (ROOM // 4) + 0.2 * (ROOM // 2)
    assert credits.begin(3, PAGES, 1) == int(mean), "one item made that: the others were given back"


def test_a_pause_that_did_not_know_of_room_on_its_way_is_no_waiting() -> None:
    account = Account()
    account.run(1, PAGES, [50 * ROOM])
    credits = account.credits
    room = credits.begin(2, PAGES, 1)
    assert room is not None
    credits.made(2, room)
    more = credits.more(2)
    before = credits.promised_bytes
    assert not credits.paused(2, 1, room)
    assert (credits.promised_bytes, list(credits.hungry)) == (before, [])
    assert credits.paused(2, 1, room + more)


def test_without_credit_a_generator_goes_on_by_one_child() -> None:
    account = Account()
    account.run(1, PAGES, [50 * ROOM])
    credits = account.credits
    assert credits.begin(2, PAGES, 1, overdraft=True) == 1
    assert credits.promised_bytes == 0
    credits.made(2, 500)
    assert credits.overdraw(2, 2) == 499 + KEPT_BYTES // 2
    assert credits.promised_bytes == 0
    assert credits.paused(2, 1, 500 + KEPT_BYTES // 2)


def test_without_credit_a_generator_goes_on_however_small_the_budget_is() -> None:
    account = Account(1)
    account.credits.begin(2, PAGES, 1, overdraft=True)
    assert account.credits.overdraw(2, 9) == 1
