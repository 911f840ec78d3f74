"""Judges a page's text layer: is it what a reader sees, or must the page be read by OCR?

Owns that decision and the tidying of PDFium's text. Pure: must not know of PDFium, images or files.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Literal

HiddenText = Literal["use", "ocr"]
HIDDEN_TEXT: Final[tuple[HiddenText, ...]] = ("use", "ocr")

BAD_SHARE: Final = 0.1
"""A layer with a larger share of characters that mean nothing is garbage."""
PICTURE_SHARE: Final = 0.5
"""A page that pictures cover to this share may be a scan."""
SCAN_CHARS: Final = 50
"""So few characters over such a picture are a stamp or a page number, not the page's text."""
# Control, surrogate and private-use characters, and what stands for unknown ones. A pattern, because
# looking each character up costs more than PDFium's work on the page.
_BAD: Final = re.compile(
    "[\x00-\x08\x0e-\x1f\x7f-\x9f\ud800-\udfff\ue000-\uf8ff\ufdd0-\ufdef\ufffd\uffff"
    "\U000f0000-\U0010ffff]"
)
_CONTROL: Final = dict.fromkeys((*range(9), *range(11, 32), *range(127, 160)))
LINE_END_HYPHEN: Final = "\ufffe"
"""PDFium writes this for a hyphen at the end of a line, together with the line break after it."""


@dataclass(frozen=True, slots=True)
class Layer:
    """A page's text layer as PDFium gives it, and what surrounds it."""

    text: str
    unmapped_share: float = 0.0
    """Share of the characters whose font does not say what they mean."""
    hidden_share: float = 0.0
    """Share of the characters that are drawn invisibly."""
    picture_share: float = 0.0
    """Share of the page that is covered by pictures."""


def is_doubtful(text: str, hidden_text: HiddenText = "use") -> bool:
    """Whether a layer with this text can be judged only by what is seen on the page.

    Looking costs more than reading, and most pages need none: without it, the last two fields of
    :class:`Layer` may stay 0.
    """
    return hidden_text == "ocr" or _count(text) < SCAN_CHARS


def has_usable_text(layer: Layer, hidden_text: HiddenText = "use") -> bool:
    """Whether the layer's text can stand for the page.

    Example:
        >>> has_usable_text(Layer("Seven rules for maps"))
        True
        >>> has_usable_text(Layer("page 7", picture_share=0.98))
        False
    """
    count = _count(layer.text)
    if not count:
        return False
    if len(_BAD.findall(layer.text)) > BAD_SHARE * count or layer.unmapped_share > BAD_SHARE:
        return False
    if layer.picture_share >= PICTURE_SHARE:
        if count < SCAN_CHARS:
            return False
        if hidden_text == "ocr" and layer.hidden_share > 0.5:
            return False
    return True


def tidy(text: str) -> str:
    """Text with plain line ends and hyphens, no control characters, no space at the ends of lines.

    Example:
        >>> tidy("An exam\\ufffeple \\r\\nof it\\x00")
        'An exam-\\nple\\nof it'
    """
    text = text.replace("\r\n", "\n").replace("\r", "\n").replace(LINE_END_HYPHEN, "-\n")
    return re.sub(r"[ \t]+(?=\n|\Z)", "", text.translate(_CONTROL)).strip("\n")


def _count(text: str) -> int:
    """How many characters there are to see."""
    return sum(map(len, text.replace(LINE_END_HYPHEN, "").split()))
