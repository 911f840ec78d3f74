"""From a failure in a run to its line of code: one document alone, in this thread, where a debugger works.

Run it with ``python examples/debug_one_document.py``. It prints which item failed in a run of a few
documents, the traceback from a run of that document alone, and the exception as a debugger catches it.
"""

from collections.abc import Iterator

import fanfold as ff


@ff.stage
def pages(document: dict[str, str]) -> Iterator[str]:
    """Take a document apart."""
    yield from document["text"].split("|")


@ff.stage(batch_size=8)
def fake_number_model(images: list[str]) -> list[int]:
    """It has a bug: not every page ends in a number. A ``breakpoint()`` would go here."""
    return [int(image.split()[-1]) for image in images]


@ff.pipeline(level="document")
def numbered(document: ff.Port[dict[str, str]]) -> ff.Port[list[int]]:
    """The number printed on each page."""
    return ff.gather(fake_number_model(ff.expand(pages(document), "page")))


if __name__ == "__main__":
    documents = [
        {"id": "a", "text": "cover 1|index 2"},
        {"id": "b", "text": "plate 1|left blank|plate 3"},
        *({"id": f"many-{n}", "text": "page 1"} for n in range(1000)),
    ]
    # 1. A few documents in worker processes, as in earnest. Which one fails, and where?
    few = ff.from_items(documents, key="id").take(3)
    (bad,) = (result for result in numbered.stream(few) if not result.ok)
    print("failed:", bad.failures[0].where(), "at", bad.failures[0].call)

    # 2. That one alone, in this thread: breakpoints stop, and failures are collected as in a run.
    (alone,) = (document for document in documents if document["id"] == bad.key)
    source = ff.from_items([alone], key="id")
    for result in numbered.stream(source, backend="inline"):
        print(result.failures[0].traceback)

    # 3. Called with the value, exceptions come through: `python -m pdb -c continue` stops at them.
    try:
        numbered(alone)
    except ValueError as error:
        print("raised:", error)
