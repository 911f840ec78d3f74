"""A detector's boxes become crops that are read in batches, and come back to their page with their boxes.

Run it with ``python examples/detect_and_crop.py``. It prints a page's boxes with the text in each one; what
cannot be read is left out together with its box.
"""

import re
from typing import Any, NamedTuple

import fanfold as ff


class Box(NamedTuple):
    """A part of a line, in characters from its left end."""

    line: int
    left: int
    right: int


@ff.stage(batch_size=2)
def fake_detector(images: list[list[str]]) -> list[list[Box]]:
    """The boxes of each page: whatever is between blanks."""
    return [
        [Box(n, *word.span()) for n, line in enumerate(image) for word in re.finditer(r"\S+", line)]
        for image in images
    ]


@ff.stage
def cut(image: list[str], box: Box) -> str:
    """The part of a page that a box encloses."""
    return image[box.line][box.left : box.right]


@ff.stage(batch_size=16)
def fake_recogniser(crops: list[str]) -> list[str | ff.ItemFailure]:
    """Reads letters only. The batch holds crops of several pages."""
    return [
        crop.upper() if crop.isalpha() else ff.ItemFailure("illegible", code="crop.illegible")
        for crop in crops
    ]


@ff.pipeline(level="page")
def read(image: ff.Port[list[str]]) -> ff.Port[dict[str, Any]]:
    """Two lists that line up, since they are gathered together."""
    box = ff.expand(fake_detector(image), "crop")
    text = fake_recogniser(cut(image, box))  # the page goes along to each of its boxes
    boxes, texts = ff.gather(box, text, failed="drop")
    return ff.record(boxes=boxes, texts=texts)


if __name__ == "__main__":
    pages = [["ship  to shore", "  ??? over"], [""], ["end"]]
    for result in read.stream(pages):
        for box, text in zip(result.value["boxes"], result.value["texts"], strict=True):
            print(result.key, tuple(box), text)
        print(result.key, "unread:", [failure.ordinals for failure in result.failures])
