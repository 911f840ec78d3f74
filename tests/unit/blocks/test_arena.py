"""Arenas: space is handed out once, joined when it comes back, and gone with its last holder."""

from __future__ import annotations

import os
from random import Random

import pytest

from fanfold.blocks import arena
from fanfold.blocks.arena import GRAIN_BYTES, Reader, Writer, create, grain


@pytest.fixture(params=["memory", "directory"])
def descriptor(request, tmp_path):
    directory = None if request.param == "memory" else str(tmp_path)
    fd = create("test", directory=directory)
    yield fd
    os.close(fd)
    assert os.listdir(tmp_path) == []


def test_what_is_written_is_read_by_others(descriptor):
    writer, reader = Writer(descriptor), Reader(descriptor)
    first, memory = writer.allocate(5)
    memory[:] = b"hello"
    second, memory = writer.allocate(3_000_000)
    memory[-3:] = b"end"
    assert bytes(reader.view(first, 5)) == b"hello"
    assert bytes(reader.view(second + 2_999_997, 3)) == b"end"
    with pytest.raises(TypeError):
        reader.view(first, 5)[0] = 1


def test_without_memory_files_an_unlinked_file_serves(monkeypatch, tmp_path):
    monkeypatch.delattr(os, "memfd_create")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    fd = create("test")
    assert "deleted" in os.readlink(f"/proc/self/fd/{fd}")
    assert os.listdir(tmp_path) == []
    os.close(fd)


def test_extents_never_overlap_and_join_again(descriptor):
    writer, random = Writer(descriptor), Random(3)
    held: dict[int, int] = {}
    for _ in range(2_000):
        if held and random.random() < 0.5:
            offset = random.choice(list(held))
            writer.free(offset, held.pop(offset))
            continue
        size = random.choice((0, 1, 63, 64, 65, 1_000, 40_000))
        offset, memory = writer.allocate(size)
        assert len(memory) == size and offset % GRAIN_BYTES == 0
        assert all(
            offset + grain(size) <= other or other + grain(n) <= offset for other, n in held.items()
        )
        held[offset] = size
    for offset, size in held.items():
        writer.free(offset, size)
    assert writer.free_extents == [(0, os.fstat(descriptor).st_size)]


def test_space_is_used_again(descriptor):
    writer = Writer(descriptor)
    first, _ = writer.allocate(500_000)
    size = os.fstat(descriptor).st_size
    for _ in range(100):
        writer.free(first, 500_000)
        again, _ = writer.allocate(400_000)
        assert again == first
        writer.free(again, 400_000)
        first, _ = writer.allocate(500_000)
    assert os.fstat(descriptor).st_size == size


def test_a_successor_keeps_what_is_in_use(descriptor):
    writer = Writer(descriptor)
    kept, memory = writer.allocate(100)
    memory[:4] = b"kept"
    lost, _ = writer.allocate(1_000)
    also, _ = writer.allocate(100)
    successor = Writer(descriptor, used=[(also, 100), (kept, 100)])
    offset, memory = successor.allocate(1_000)
    assert offset == lost, "what the dead process had not told of is free"
    memory[:] = b"x" * 1_000
    assert bytes(Reader(descriptor).view(kept, 4)) == b"kept"
    successor.free(kept, 100)
    successor.free(also, 100)
    successor.free(lost, 1_000)
    assert successor.free_extents == [(0, os.fstat(descriptor).st_size)]


def test_a_limit_is_kept(descriptor):
    writer = Writer(descriptor, limit_bytes=100_000)
    with pytest.raises(MemoryError, match=r"100,032 bytes do not fit"):
        writer.allocate(100_001)
    offset, _ = writer.allocate(90_000)
    with pytest.raises(MemoryError):
        writer.allocate(20_000)
    writer.free(offset, 90_000)
    writer.allocate(20_000)


def test_what_the_machine_does_not_have_is_refused_before_it_is_touched(monkeypatch, tmp_path):
    monkeypatch.setattr(arena, "available_bytes", lambda: 64 * 1024 * 1024)
    in_memory, on_disk = create("test"), create("test", directory=str(tmp_path))
    writer = Writer(in_memory)
    with pytest.raises(MemoryError, match="available"):
        writer.allocate(65 * 1024 * 1024)
    writer.allocate(1_000)
    Writer(on_disk).allocate(65 * 1024 * 1024)  # a disk has room of its own
    os.close(in_memory)
    os.close(on_disk)


def test_a_full_disk_is_an_error_and_no_signal(tmp_path, monkeypatch):
    def full(*_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full)
    fd = create("test", directory=str(tmp_path))
    with pytest.raises(MemoryError, match="No space left"):
        Writer(fd).allocate(10)
    os.close(fd)


def test_available_memory_is_told():
    assert 0 < arena.available_bytes() <= arena.ARENA_BYTES
