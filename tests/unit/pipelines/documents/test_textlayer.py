"""Which text layers are believed, and how their text is tidied."""

from __future__ import annotations

import pytest

from fanfold.pipelines.documents.textlayer import (
    HiddenText,
    Layer,
    has_usable_text,
    is_doubtful,
    tidy,
)

PROSE = "Every map is kept near the long table, and the ink is counted in spring. "


@pytest.mark.parametrize(
    ("layer", "usable"),
    [
        (Layer(PROSE), True),
        (Layer("7"), True),
        (Layer(""), False),
        (Layer(" \r\n\t"), False),
        (Layer("地图"), True),
        (Layer("\ue000\ue001\ue002 map"), False),
        (Layer("\x01\x02\x03\x04 map"), False),
        (Layer("\ufffd" * 5 + PROSE), True),
        (Layer("\ufffd" * 9 + PROSE), False),
        (Layer(PROSE, unmapped_share=0.5), False),
        (Layer("Page 7", picture_share=0.95), False),
        (Layer("Page 7", picture_share=0.3), True),
        (Layer(PROSE, picture_share=0.95), True),
        (Layer(PROSE, picture_share=0.95, hidden_share=1.0), True),
    ],
)
def test_a_layer_is_believed(layer: Layer, usable: bool):
    assert has_usable_text(layer) is usable


@pytest.mark.parametrize(("hidden_text", "usable"), [("use", True), ("ocr", False)])
def test_invisible_text_over_a_scan_is_a_matter_of_choice(hidden_text: HiddenText, usable: bool):
    layer = Layer(PROSE, hidden_share=1.0, picture_share=1.0)
    assert has_usable_text(layer, hidden_text) is usable


def test_invisible_text_beside_no_scan_is_all_there_is():
    assert has_usable_text(Layer(PROSE, hidden_share=1.0), "ocr")


@pytest.mark.parametrize(
    ("text", "hidden_text", "doubtful"),
    [(PROSE, "use", False), (PROSE, "ocr", True), ("7", "use", True), ("", "use", True)],
)
def test_only_doubtful_layers_need_a_look_at_the_page(
    text: str, hidden_text: HiddenText, doubtful: bool
):
    assert is_doubtful(text, hidden_text) is doubtful


@pytest.mark.parametrize(
    ("raw", "clean"),
    [
        ("a\r\nb\rc", "a\nb\nc"),
        ("exam\ufffeple", "exam-\nple"),
        ("\na  \nb\t\n\n", "a\nb"),
        ("a\x00b\x02", "ab"),
        ("a\tb", "a\tb"),
        ("first\n\n  second", "first\n\n  second"),
    ],
)
def test_tidied(raw: str, clean: str):
    assert tidy(raw) == clean
