"""Blocks on disk: moved, read from their new place, forgotten; and what happens when a disk is full."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from fanfold.backends.local.spill import Spill, spill_file
from fanfold.backends.local.store import SPILLED, ArenaValues, BlockRef
from fanfold.blocks.arena import create
from fanfold.errors import SetupError

ARENA = 3


class Desk:
    """A worker's values, and the file for those that leave memory."""

    def __init__(self, directory: str) -> None:
        self.files = {ARENA: create("arena"), SPILLED: create("spill", directory=directory)}
        self.values = ArenaValues(self.files, ARENA)
        self.spill = Spill(self.files[SPILLED])

    def put(self, *rows: object) -> BlockRef:
        ref = self.values.put(0, rows).ref
        assert isinstance(ref, tuple)
        return ref

    def move(self, *refs: BlockRef) -> list[BlockRef]:
        moved = self.spill.move(refs, self.files)
        self.values.free(moved)
        return moved

    def read(self, ref: BlockRef, count: int) -> list[object]:
        return self.values.read([self.spill.relocated(("rows", ref, 0, count))])[0]


@pytest.fixture
def desk(tmp_path) -> Iterator[Desk]:
    desk = Desk(str(tmp_path))
    yield desk
    for file in desk.files.values():
        os.close(file)


def test_what_was_moved_is_read_though_its_place_in_memory_is_another_blocks(desk: Desk) -> None:
    frame, text = bytes(range(256)) * 4000, {"a": [1, 2]}
    first = desk.put(frame, text)
    assert desk.move(first) == [first] and desk.spill
    second = desk.put(b"\xff" * 1_000_000)
    assert second[1] == first[1], "the place was free again"
    assert desk.read(first, 2) == [frame, text]
    assert desk.read(second, 1) == [b"\xff" * 1_000_000]


def test_a_block_that_is_forgotten_gives_its_place_on_disk_to_another(desk: Desk) -> None:
    refs = [desk.put(bytes([i]) * 5_000_000) for i in range(3)]
    assert desk.move(*refs) == refs
    size = os.fstat(desk.files[SPILLED]).st_size
    assert desk.spill.forget(refs[1]) and not desk.spill.forget(refs[1])
    again = desk.put(b"\x07" * 5_000_000)
    desk.move(again)
    assert os.fstat(desk.files[SPILLED]).st_size == size
    assert [desk.read(ref, 1)[0] for ref in (refs[0], again, refs[2])] == [
        bytes([i]) * 5_000_000 for i in (0, 7, 2)
    ]


def test_columns_of_other_blocks_stay_as_they_are(desk: Desk) -> None:
    here, there = desk.put(b"here"), desk.put(b"there")
    column = ("lists", ("cat", (("rows", here, 0, 1), ("rows", there, 0, 1))), (2,))
    assert desk.spill.relocated(column) is column
    desk.move(there)
    assert desk.values.read([desk.spill.relocated(column)]) == [[[b"here", b"there"]]]


def test_where_the_disk_takes_no_more_the_rest_stays_in_memory(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second, third = (desk.put(bytes([i]) * 100_000) for i in range(3))
    copy, copied = os.sendfile, list[int]()

    def sendfile(out: int, source: int, offset: int, count: int) -> int:
        copied.append(count)
        if len(copied) == 2:
            raise OSError(28, "No space left on device")
        return copy(out, source, offset, count)

    monkeypatch.setattr("fanfold.backends.local.spill.os.sendfile", sendfile)
    assert desk.move(first, second, third) == [first]
    assert [desk.read(ref, 1)[0][:1] for ref in (first, second, third)] == [b"\0", b"\1", b"\2"]  # type: ignore[index]
    assert desk.move(second, third) == [second, third], "later there is space again"


def test_a_folder_that_is_not_there_is_named_with_the_variable_that_names_it(monkeypatch, tmp_path):
    monkeypatch.setenv("FANFOLD_SPILL_DIR", str(tmp_path / "none"))
    with pytest.raises(SetupError, match=r"FF410 .*none.*No such file.*FANFOLD_SPILL_DIR"):
        spill_file(None)
    with pytest.raises(SetupError, match="other"):
        spill_file(str(tmp_path / "other"))


def test_the_variable_says_where_the_file_is(monkeypatch, tmp_path):
    monkeypatch.setenv("FANFOLD_SPILL_DIR", str(tmp_path))
    descriptor = spill_file(None)
    assert os.readlink(f"/proc/self/fd/{descriptor}").startswith(str(tmp_path))
    os.close(descriptor)
