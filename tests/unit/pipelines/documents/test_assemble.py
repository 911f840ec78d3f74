"""Lines become a page's text, pages become Markdown and a record."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from fanfold.failures import Failure, ItemFailure
from fanfold.pipelines.documents.assemble import PageText, assemble, join_lines, markdown
from fanfold.pipelines.documents.ocr import LineText
from fanfold.pipelines.documents.pdf import Page
from tests.unit.pipelines.documents.pdfs import LocalCopy

NATIVE: PageText = {"text": "First page", "method": "native", "confidence": None}
EMPTY: PageText = {"text": "", "method": "empty", "confidence": None}
OCR: PageText = {"text": "Third page", "method": "ocr", "confidence": 0.97}
FAILURE = Failure(
    kind="declared", code="page.too_large", message="too\nlarge", call="Render", attempts=2
)


def page(number: int) -> Page:
    return Page(number, "native", 595.28, 841.89, "not read here")


def test_lines_are_joined_by_what_comes_before_them():
    lines = [LineText("Maps", 1.0), LineText("and ink", 0.5), LineText("lamps", 0.9)]
    joined = join_lines(["", " ", "\n\n"], lines)
    assert joined["text"] == "Maps and ink\n\nlamps"
    assert joined["method"] == "ocr"
    assert joined["confidence"] == pytest.approx((4 * 1.0 + 7 * 0.5 + 5 * 0.9) / 16, abs=1e-4)


def test_smudges_are_left_out():
    lines = [LineText("~;", 0.2), LineText("Maps", 0.9), LineText(" ", 0.99), LineText("ink", 0.49)]
    assert join_lines(["", "\n\n", "\n", "\n"], lines)["text"] == "Maps"
    assert join_lines(["", "\n", " ", "\n"], lines, min_confidence=0)["text"] == "~;\nMaps\nink"


def test_no_lines_are_an_empty_text():
    assert join_lines([], []) == {"text": "", "method": "ocr", "confidence": None}


@pytest.mark.parametrize(
    ("code", "told"),
    [("page.too_large", "page.too_large"), ("page.damaged", "pdf.damaged"), ("", "")],
)
def test_a_document_without_a_page_that_could_be_read_fails(code: str, told: str):
    failures = [replace(FAILURE, code=code), replace(FAILURE, code="page.other")]
    with pytest.raises(ItemFailure, match="none of its 2 pages could be read; page 0") as caught:
        assemble(LocalCopy("a.pdf"), [page(0), page(1)], failures)
    assert caught.value.code == told


def test_a_record_keeps_pages_in_order_and_marks_the_failed_one():
    _, record = assemble(
        LocalCopy("a.pdf"), [page(n) for n in range(4)], [NATIVE, EMPTY, OCR, FAILURE]
    )
    assert record["source"] == "a.pdf"
    assert [p["number"] for p in record["pages"]] == [0, 1, 2, 3]
    assert [p["method"] for p in record["pages"]] == ["native", "empty", "ocr", "failed"]
    assert [p["text"] for p in record["pages"]] == ["First page", "", "Third page", ""]
    assert [p["confidence"] for p in record["pages"]] == [None, None, 0.97, None]
    assert {(p["width_pt"], p["height_pt"]) for p in record["pages"]} == {(595.28, 841.89)}
    error = {
        "code": "page.too_large",
        "kind": "declared",
        "call": "Render",
        "message": "too\nlarge",
    }
    assert [p.get("error") for p in record["pages"]] == [None, None, None, error]
    assert record["failures"] == [{"page": 3, **error}]
    assert json.loads(json.dumps(record)) == record


def test_markdown_has_every_page_and_says_which_failed():
    text, _ = assemble(
        LocalCopy("a.pdf"), [page(n) for n in range(4)], [NATIVE, EMPTY, OCR, FAILURE]
    )
    assert text == (
        "<!-- page 0 -->\n\nFirst page\n\n<!-- page 1 -->\n\n<!-- page 2 -->\n\nThird page\n\n"
        "<!-- page 3 -->\n\n> **This page failed** (page.too_large): too large\n"
    )


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("# 5 rules", "\\# 5 rules"),
        ("see\n ## here", "see\n \\## here"),
        ("#5 is no heading", "#5 is no heading"),
        ("<!-- page 9 --> <b>", "\\<!-- page 9 --> \\<b>"),
        ("1 < 2 and 3 > 2", "1 < 2 and 3 > 2"),
        ("- a list\n- stays", "- a list\n- stays"),
    ],
)
def test_text_is_not_taken_for_headings_or_html(text: str, written: str):
    _, record = assemble(LocalCopy("a.pdf"), [page(0)], [{**NATIVE, "text": text}])
    assert markdown(record) == f"<!-- page 0 -->\n\n{written}\n"
