"""How long blocks are held: small values while memory is plenty, and what may leave it."""

from __future__ import annotations

from fanfold.engine.held import EARLY_ROW_BYTES, SPILLED_BYTES, HeldBlocks
from fanfold.protocol import Rows, StreamRows
from tests.plans import fan_out_plan
from tests.scripted import Script

PAGE = 2


def made(ref: int, count: int, size_bytes: int) -> StreamRows:
    return StreamRows(PAGE, Rows(ref, count, size_bytes))


class Small(Script):
    """A document of pages of 100 bytes, which make texts of one."""

    def __init__(self, budget_bytes: int | None) -> None:
        sizes = {0: 1, PAGE: 100, 3: 1, 5: 1}
        super().__init__(fan_out_plan(batch_size=20), budget_bytes=budget_bytes, row_bytes=sizes)
        self.admit(1)
        (self.document,) = self.dispatch()

    def read(self, pages: int) -> int:
        """Have some pages made and read; what is held then."""
        self.release(self.document, {0: pages})
        while read := [batch for batch in self.dispatch() if batch is not self.document]:
            for batch in read:
                self.finish(batch)
        return self.core.machine.held.size_bytes


def test_small_values_stay_until_their_root_ends_while_memory_is_plenty() -> None:
    one = Small(1_000_000)
    assert one.read(20) == 1 + 20 * 100 + 20
    assert one.read(20) == 1 + 40 * 100 + 40
    assert Small(None).read(500) == 1 + 500 * 100 + 500


def test_small_values_go_at_their_last_reader_once_values_take_half_of_the_memory() -> None:
    one = Small(12_000)
    assert one.read(40) == 1 + 40 * 100 + 40
    assert one.read(40) == 1 + 80, "those that had been read before have gone as well"
    assert one.read(20) == 1 + 100, "and so it stays"
    assert len(one.released) == 3


def test_of_a_block_that_is_read_in_part_nothing_goes_but_its_rows_are_counted() -> None:
    one = Small(12_000)
    one.read(40)
    one.release(one.document, {0: 40})
    first, second = one.dispatch()
    one.finish(first)
    held = one.core.machine.held
    assert held.size_bytes == 1 + 40 * 100 + 40 + 20
    one.finish(second)
    assert held.size_bytes == 1 + 40 + 40


def test_values_that_nobody_has_read_yet_stay_when_memory_gets_short() -> None:
    one = Small(12_000)
    one.release(one.document, {0: 61})
    assert one.core.machine.held.tight
    assert one.core.machine.held.size_bytes == 1 + 61 * 100


def test_large_values_are_worth_releasing_however_much_memory_there_is() -> None:
    held = HeldBlocks()
    assert held.hold(made(1, 2, 2 * EARLY_ROW_BYTES), 2)
    assert not held.hold(made(2, 2, 2 * EARLY_ROW_BYTES - 1), 2)
    held.plenty_bytes = held.size_bytes
    assert held.hold(made(3, 2, 2), 2)


def test_blocks_leave_memory_the_newest_first_and_come_to_what_is_wanted() -> None:
    held = HeldBlocks()
    for ref in range(1, 5):
        held.hold(made(ref, 1, SPILLED_BYTES), 1)
    assert held.idle({4}, 2 * SPILLED_BYTES) == (3, 2)
    assert held.idle((), 1) == (4,)


def test_blocks_that_are_hardly_larger_than_a_reference_stay() -> None:
    held = HeldBlocks()
    held.hold(made(1, 9, SPILLED_BYTES - 1), 9)
    assert held.idle((), 1) == ()


def test_blocks_that_left_memory_take_none_and_are_not_asked_for_again() -> None:
    held = HeldBlocks()
    for ref in (1, 2, 3):
        held.hold(made(ref, 1, SPILLED_BYTES), 1)
    held.spilled(asked=(3, 2), moved=(3,))
    assert held.size_bytes == 2 * SPILLED_BYTES
    assert held.idle((), 9 * SPILLED_BYTES) == (1,)
    for ref in (1, 2, 3):
        held.drop(ref)
    assert held.take_released() == (1, 2, 3)
    assert held.size_bytes == 0


def test_blocks_that_went_before_they_could_be_moved_are_no_news() -> None:
    held = HeldBlocks()
    held.hold(made(1, 1, SPILLED_BYTES), 1)
    held.drop(1)
    held.take_released()
    held.spilled(asked=(1,), moved=(1,))
    assert held.size_bytes == 0
    held.spilled(asked=(1,), moved=())
    assert held.size_bytes == 0


def test_where_values_were_is_forgotten_when_they_have_gone() -> None:
    """Else each of many children that come one by one would be looked for among all that came before."""
    one = Small(2_000)
    for _ in range(40):
        one.read(1)
    pages = one.core.machine.roots.chunk(0).children[1].newest
    assert pages is not None and pages.size == 40
    slot = one.core.machine.program.port[PAGE]
    assert len(pages.segments.get(slot, ())) <= 1
