"""What processes hold, and who belongs to whom."""

import os
import subprocess
import sys

from benchmarks.processes import (
    Process,
    alive,
    arena_bytes,
    descendants,
    end,
    identified,
    pss_bytes,
    sampled,
)
from fanfold.blocks.arena import Writer, create

WAITING = [sys.executable, "-c", "print(flush=True); input()"]


def waiting() -> subprocess.Popen[bytes]:
    process = subprocess.Popen(WAITING, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()
    return process


def test_a_family_is_found_and_ended():
    with waiting() as child:
        assert child.pid in descendants(os.getpid())
        family = identified([child.pid])
        end({Process(child.pid, "another that had its number")})
        assert alive(child.pid)
        end(family)
        child.wait()
        assert not alive(child.pid)
        assert identified([child.pid]) == set()


def test_arenas_count_by_what_is_used_of_them_and_once():
    before = arena_bytes([os.getpid()])
    descriptor = create("test")
    twin = os.dup(descriptor)
    try:
        _, memory = Writer(descriptor).allocate(1_000_000)
        memory[:] = bytes(1_000_000)
        grown = arena_bytes([os.getpid()]) - before
        assert 1_000_000 <= grown < 1_500_000
    finally:
        os.close(descriptor)
        os.close(twin)


def test_there_is_at_least_one_sample():
    with sampled(os.getpid(), every_s=60) as samples:
        pass
    assert len(samples) >= 1
    assert samples[0].pss_bytes > 0
    assert pss_bytes(0) == 0
