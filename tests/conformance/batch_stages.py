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


def pages_of(size: int) -> int:
    """What a blob costs: a point for each thousand bytes; of an odd size nothing is known."""
    if size % 2:
        raise ValueError(f"{size} is odd")
    return size // 1_000


@ff.stage
def numbers(text: str) -> list[int]:
    """Children that are numbers."""
    return [int(word) for word in text.split()]


def costly(numbers: list[int]) -> list[tuple[int, ...]]:
    """By number, all numbers of its batch."""
    return [tuple(numbers)] * len(numbers)


by_cost = ff.stage(costly, batch_size=8, batch_cost=pages_of, max_batch_cost=10, linger_s=3600)


@ff.pipeline(level="text")
def sorted_by_cost(text: ff.Port[str]) -> ff.Port[list[tuple[int, ...]]]:
    return ff.gather(by_cost(ff.expand(numbers(text), "number")))


@ff.stage
def counted(count: int) -> list[int]:
    """As many children."""
    return list(range(count))


def whole(numbers: list[int]) -> list[int]:
    """A batch as it is."""
    return numbers


in_turns = ff.stage(whole, name="whole", batch_size=8)


@ff.pipeline(level="document")
def lengths(count: ff.Port[int]) -> ff.Port[list[int]]:
    return ff.gather(in_turns(ff.expand(counted(count), "page")))


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


def puzzled(number: int) -> int:
    """What a number costs, or the group that it is of; odd ones are too much for it."""
    if number % 2:
        raise SystemExit("odd")
    return 0


@ff.stage(batch_size=8)
def how_many(numbers: list[int]) -> list[int]:
    """How large the batch is, for each."""
    return [len(numbers)] * len(numbers)


@ff.pipeline(level="document")
def puzzling(count: ff.Port[int]) -> ff.Port[list[int]]:
    return ff.gather(how_many(ff.expand(counted(count), "number")))


@ff.pipeline(level="document")
def puzzling_source(number: ff.Port[int]) -> ff.Port[int]:
    return how_many(number)
