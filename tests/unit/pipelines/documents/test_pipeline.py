"""The pipeline as a whole: routes, order, marked failures, files out of the ordinary, sinks.

OCR is replaced by stages that tell which page they saw: a page's number is written in its shade of grey.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import fanfold as ff
from fanfold.pipelines.documents import documents, sinks, source
from fanfold.pipelines.documents.ocr import Line, LineText
from tests.unit.pipelines.documents.pdfs import Draft, pdf, text


def detect(image: Any) -> list[Line]:
    """Two lines, the shade of the page in each; none on a page that is nearly white."""
    return [] if image[0, 0, 0] > 250 else [Line(image[:4], ""), Line(image[:4], "\n")]


def recognize(images: list[Any]) -> list[LineText]:
    return [LineText(f"shade {image[0, 0, 0] // 25}", 0.8) for image in images]


def shade(number: int) -> bytes:
    """A page in a shade of grey, with a spot so that there is something on it."""
    return b"%.3f g 0 0 400 300 re f\n0 g 200 100 20 20 re f\n" % ((number * 25 + 5) / 255)


OFFLINE = documents.using({"Detect": detect, "Recognize": recognize, "dpi": 72})


def records_of(folder: Path) -> tuple[dict[str, Any], ff.Report]:
    """Run over a folder of files, in this thread; the records by file name, and the report."""
    report = OFFLINE.run(source([folder]), sinks(folder / "out"), backend="inline", progress=False)
    lines = (folder / "out" / "records.jsonl").read_text().splitlines()
    return {Path(record["key"]).name: record for record in map(json.loads, lines)}, report


def test_pages_of_all_kinds_come_back_in_order(tmp_path: Path):
    drafts = [
        Draft(shade(3)), Draft(text("Rule 1")), Draft(), Draft(shade(5)), Draft(text("Rule 4")),
    ]  # fmt: skip
    (tmp_path / "all.pdf").write_bytes(pdf(*drafts))
    records, report = records_of(tmp_path)
    pages = records["all.pdf"]["pages"]
    assert [page["number"] for page in pages] == [0, 1, 2, 3, 4]
    assert [page["method"] for page in pages] == ["ocr", "native", "empty", "ocr", "native"]
    assert [page["text"] for page in pages] == [
        "shade 3\nshade 3", "Rule 1", "", "shade 5\nshade 5", "Rule 4",
    ]  # fmt: skip
    assert [page["confidence"] for page in pages] == [0.8, None, None, 0.8, None]
    assert records["all.pdf"]["failures"] == []
    assert list(report.failures) == []


def test_a_bad_page_is_marked_in_its_place(tmp_path: Path):
    drafts = [
        Draft(text("Rule 0")), Draft(shade(4), size=(14_400, 14_400)), Draft(text("lost")),
        Draft(shade(2)),
    ]  # fmt: skip
    (tmp_path / "some.pdf").write_bytes(pdf(*drafts, missing=(2,)))
    records, _ = records_of(tmp_path)
    record = records["some.pdf"]
    assert [page["method"] for page in record["pages"]] == ["native", "failed", "failed", "ocr"]
    assert [page.get("error", {}).get("code") for page in record["pages"]] == [
        None, "page.too_large", "page.damaged", None,
    ]  # fmt: skip
    assert [(f["page"], f["code"]) for f in record["failures"]] == [
        (1, "page.too_large"), (2, "page.damaged"),
    ]  # fmt: skip
    markdown = next((tmp_path / "out" / "markdown").rglob("some.pdf.md")).read_text()
    assert markdown.index("page 1 -->") < markdown.index("(page.too_large)")
    assert markdown.index("(page.damaged)") < markdown.index("shade 2")


def test_a_document_whose_only_page_failed_is_not_done(tmp_path: Path):
    (tmp_path / "wall.pdf").write_bytes(pdf(Draft(shade(4), size=(14_400, 14_400))))
    (tmp_path / "good.pdf").write_bytes(pdf(Draft(text("Rule 0"))))
    records, report = records_of(tmp_path)
    assert list(records) == ["good.pdf"]
    assert report.exit_code == 1
    assert {(group.call, group.code) for group in report.failures} == {
        ("Render", "page.too_large"), ("assemble", "page.too_large"),
    }  # fmt: skip


def test_bad_files_fail_with_their_codes_and_harm_nobody(tmp_path: Path):
    whole = pdf(Draft(text("Rule 0")))
    files = {
        "good.pdf": whole,
        "empty.pdf": b"",
        "page.html.pdf": b"<html>Not found</html>",
        "no pages.pdf": pdf(),
        "cut.pdf": b"%PDF-1.7\n" + whole[whole.index(b"3 0 obj") : -40],
        "odd #2; Café.pdf": whole,
        "note.txt": b"not a PDF and not asked for",
    }
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    records, report = records_of(tmp_path)
    assert sorted(records) == ["good.pdf", "odd #2; Café.pdf"]
    failed = {Path(group.example["key"]).name: group.code for group in report.failures}
    assert failed == {
        "empty.pdf": "pdf.empty_file",
        "page.html.pdf": "pdf.not_a_pdf",
        "no pages.pdf": "pdf.no_pages",
        "cut.pdf": "pdf.truncated",
    }


def test_a_scan_without_any_text_is_no_failure(tmp_path: Path):
    white = Draft(b"0.99 g 0 0 400 300 re f\n0 g 200 100 20 20 re f\n")
    (tmp_path / "blank.pdf").write_bytes(pdf(white))
    records, _ = records_of(tmp_path)
    (page,) = records["blank.pdf"]["pages"]
    assert (page["method"], page["text"], page["confidence"]) == ("ocr", "", None)


def test_a_document_on_its_own_is_a_plain_call(tmp_path: Path):
    file = tmp_path / "one.pdf"
    file.write_bytes(pdf(Draft(text("Rule 0"))))
    outputs = OFFLINE(ff.File(file))
    assert outputs["markdown"] == "<!-- page 0 -->\n\nRule 0\n"
    assert outputs["records"]["pages"][0]["text"] == "Rule 0"


def test_hidden_text_has_two_settings():
    with pytest.raises(ff.DefinitionError, match="FF453"):
        documents.using({"hidden_text": "both"}).plan()


def test_stages_can_be_tuned_by_name():
    tuned = documents.using({"Recognize.batch_size": 64, "Recognize.replicas": 4, "dpi": 200})
    stages = {stage.name: stage for stage in tuned.plan().stages}
    assert (stages["Recognize"].batch_size, stages["Recognize"].replicas) == (64, 4)
    assert stages["Render"].args == (200,)
