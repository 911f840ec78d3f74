"""Judges a page's text layer: is it what a reader sees, or must the page be read by OCR?

Owns that decision and the tidying of PDFium's text. Pure: must not know of PDFium, images or files.
"""

from __future__ import annotations

import re
import unicodedata
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
BAD_CATEGORIES: Final = frozenset({"Cc", "Cn", "Co", "Cs"})
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


def has_usable_text(layer: Layer, hidden_text: HiddenText = "use") -> bool:
    """Whether the layer's text can stand for the page.

    Example:
        >>> has_usable_text(Layer("Seven rules for maps"))
        True
        >>> has_usable_text(Layer("page 7", picture_share=0.98))
        False
    """
    characters = [c for c in layer.text if not c.isspace() and c != LINE_END_HYPHEN]
    if not characters:
        return False
    bad = sum(c == "\ufffd" or unicodedata.category(c) in BAD_CATEGORIES for c in characters)
    if bad > BAD_SHARE * len(characters) or layer.unmapped_share > BAD_SHARE:
        return False
    if layer.picture_share >= PICTURE_SHARE:
        if len(characters) < SCAN_CHARS:
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
    text = "".join(c for c in text if c in "\n\t" or unicodedata.category(c) != "Cc")
    return re.sub(r"[ \t]+(?=\n|\Z)", "", text).strip("\n")
