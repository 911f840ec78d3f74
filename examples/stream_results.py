"""Results one by one, as a notebook wants them: from an endless source, until there are enough.

Run it with ``python examples/stream_results.py``. It prints the first result, the next ones up to a page of
six characters, and the first of another run. Both runs are stopped long before their source ends.
"""

from collections.abc import Iterator
from itertools import count

import fanfold as ff


def endless() -> Iterator[str]:
    """Documents without an end; a run asks for the next one only when it has room."""
    for number in count(1):
        yield "|".join("x" * (page * number % 7) for page in range(1, 4))


@ff.stage
def pages(text: str) -> Iterator[str]:
    """Take a document apart."""
    yield from text.split("|")


@ff.stage(batch_size=4)
def fake_model(images: list[str]) -> list[int]:
    """Measures pages."""
    return [len(image) for image in images]


@ff.pipeline(level="document")
def measured(text: ff.Port[str]) -> ff.Port[list[int]]:
    """The length of each page."""
    return ff.gather(fake_model(ff.expand(pages(text), "page")))


if __name__ == "__main__":
    # In one cell of a notebook: a run that goes on for as long as `results` is there.
    results = measured.stream(endless())
    print("first:", next(results).value)

    # In the next one: some more of the same run.
    for result in results:
        print("next:", result.key, result.value)
        if max(result.value) == 6:
            break
    results.close()  # now it stops: workers end, and the source is not read any more

    # A run that nothing but the loop holds stops with the loop, so `break` is enough.
    for result in measured.stream(endless()):
        print("another run:", result.key, result.value)
        break
