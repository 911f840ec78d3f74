"""What a process takes by itself, and replicas that take too much from the start."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import pytest

from fanfold.backends.own_memory import asked_bytes, own_bytes, refuse_grown
from fanfold.errors import SetupError
from fanfold.plan import StageSpec

MB = 1_000_000
STAGE = StageSpec(0, "Ocr", len)


ALLOCATING = """
import mmap
from fanfold.backends.own_memory import own_bytes
MB = 1_000_000
before = own_bytes()
kept = b"x" * (64 * MB)
assert own_bytes() - before >= 60 * MB
shared = mmap.mmap(-1, len(kept))  # anonymous, and shared with whoever is forked
shared.write(kept)
assert own_bytes() - before < 100 * MB
"""


def test_what_is_allocated_counts_and_what_is_shared_does_not() -> None:
    """In a process of its own: this one may have memory left over from other tests."""
    done = subprocess.run([sys.executable, "-c", ALLOCATING], capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()


def test_only_those_who_ask_are_measured() -> None:
    assert asked_bytes(STAGE) == 0
    assert asked_bytes(replace(STAGE, recycle_above=MB)) > MB


def test_a_limit_below_what_a_replica_takes_at_its_start_is_refused() -> None:
    refuse_grown(STAGE)
    refuse_grown(replace(STAGE, recycle_above=own_bytes() + 100 * MB))
    with pytest.raises(SetupError, match=r"FF436 stage 'Ocr' has recycle_above='1MB'"):
        refuse_grown(replace(STAGE, recycle_above=MB))
