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


@ff.stage
def words(text: str) -> Iterator[str]:
    """Children that are words."""
    yield from text.split()


def initial(word: str) -> str:
    """What words of one batch have in common; of a word that is a number nothing."""
    if word.isdigit():
        raise ValueError(f"{word} has no initial")
    return word[0]


def together(words: list[str]) -> list[str]:
    """By word, all words of its batch."""
    return [" ".join(words)] * len(words)


by_initial = ff.stage(together, name="together", batch_size=4, batch_by=initial)


@ff.pipeline(level="text")
def sorted_by_initial(text: ff.Port[str]) -> ff.Port[list[str]]:
    return ff.gather(by_initial(ff.expand(words(text), "word")))
