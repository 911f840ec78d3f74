"""Stages whose batches tell what they were; a module of its own, as users have."""

from __future__ import annotations

from collections.abc import Iterator

import fanfold as ff

LARGE_BYTES = 400_000
SMALL_BYTES = 1_000


@ff.stage
def blobs(count: int) -> Iterator[bytes]:
    """Children of which every fourth is large."""
    for i in range(count):
        yield bytes(LARGE_BYTES if i % 4 == 0 else SMALL_BYTES)


def batch_of(values: list[bytes]) -> list[tuple[int, int]]:
    """By value: how many there are in its batch, and how many bytes."""
    return [(len(values), sum(map(len, values)))] * len(values)


batch = ff.stage(batch_of, name="batch", batch_size=16, linger_s=3600)


@ff.pipeline(level="document")
def batches(count: ff.Port[int]) -> ff.Port[list[tuple[int, int]]]:
    return ff.gather(batch(ff.expand(blobs(count), "blob")))
