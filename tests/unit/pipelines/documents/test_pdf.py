"""Files and pages out of the ordinary, each with its code; what a page is; what an image shows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from fanfold.failures import ItemFailure
from fanfold.pipelines.documents import pdf
from fanfold.pipelines.documents.pdf import Page, Render, pages
from tests.unit.pipelines.documents.pdfs import Draft, LocalCopy, grey_image, saved, stream, text
from tests.unit.pipelines.documents.pdfs import pdf as written

EXAMPLES = Path(__file__).parents[4] / "examples" / "documents"
PROSE = ["Every map is kept near the long table", "and the ink is counted in spring."]
WHOLE_PAGE = b"q 400 0 0 300 0 0 cm /X0 Do Q\n"
GREY = grey_image(2, 2, b"\x00\x80\x80\xff")


@pytest.fixture
def render() -> Iterator[Render]:
    stage = Render(dpi=72)
    yield stage
    stage.close()


def code_of(file: LocalCopy) -> str:
    with pytest.raises(ItemFailure) as caught:
        list(pages(file))
    return caught.value.code


def only_page(folder: Path, draft: Draft) -> Page:
    (page,) = pages(saved(folder, written(draft)))
    return page


# Files


def test_an_empty_file(tmp_path: Path):
    assert code_of(saved(tmp_path, b"")) == "pdf.empty_file"


def test_a_web_page_named_pdf(tmp_path: Path):
    assert code_of(saved(tmp_path, b"<!doctype html><p>Not found")) == "pdf.not_a_pdf"


def test_a_document_without_pages(tmp_path: Path):
    assert code_of(saved(tmp_path, written())) == "pdf.no_pages"


def test_a_file_that_was_cut_off(tmp_path: Path):
    # The catalogue comes first in files of the test kit, and PDFium repairs what it can; most
    # writers put it at the end, as here.
    whole = written(Draft(text(*PROSE)))
    cut = b"%PDF-1.7\n" + whole[whole.index(b"3 0 obj") : -40]
    assert code_of(saved(tmp_path, cut)) == "pdf.truncated"


def test_a_file_whose_inside_is_broken(tmp_path: Path):
    assert code_of(saved(tmp_path, b"%PDF-1.7\nnothing here\n%%EOF\n")) == "pdf.damaged"


def test_a_password_is_needed():
    assert code_of(LocalCopy(str(EXAMPLES / "encrypted.pdf"))) == "pdf.encrypted"


def test_an_owner_password_does_no_harm():
    (page,) = pages(LocalCopy(str(EXAMPLES / "owner-locked.pdf")))
    assert page.text.startswith("Readable by everybody")


def test_a_file_that_is_gone_is_no_bad_document(tmp_path: Path):
    with pytest.raises(FileNotFoundError):
        list(pages(LocalCopy(str(tmp_path / "gone.pdf"))))


def test_the_header_may_come_late(tmp_path: Path):
    file = saved(tmp_path, b"\n" * 500 + written(Draft(text(*PROSE))))
    assert [page.kind for page in pages(file)] == ["native"]


# Pages


def test_pages_come_one_by_one(tmp_path: Path):
    file = saved(tmp_path, written(*(Draft(text(f"Page of rank {n}")) for n in range(3))))
    stage = pages(file)
    assert next(stage).text == "Page of rank 0"
    assert [page.number for page in stage] == [1, 2]


def test_a_page_of_text(tmp_path: Path):
    page = only_page(tmp_path, Draft(text(*PROSE)))
    assert page == Page(0, "native", 400.0, 300.0, "\n".join(PROSE))


def test_a_page_with_nothing_on_it(tmp_path: Path):
    assert only_page(tmp_path, Draft()) == Page(0, "empty", 400.0, 300.0, "")


def test_a_white_rectangle_is_nothing(tmp_path: Path):
    page = only_page(tmp_path, Draft(b"1 g 0 0 400 300 re f\n"))
    assert page.kind == "empty"


@pytest.mark.parametrize(
    "draft",
    [
        Draft(WHOLE_PAGE, xobjects=(GREY,)),
        Draft(b"0 g 10 10 50 50 re f\n"),
        Draft(WHOLE_PAGE + text("7"), xobjects=(GREY,)),
    ],
    ids=["picture", "drawing", "stamp on a picture"],
)
def test_a_page_to_be_looked_at(tmp_path: Path, draft: Draft):
    page = only_page(tmp_path, draft)
    assert (page.kind, page.text) == ("scan", "")


@pytest.mark.parametrize(("hidden_text", "kind"), [("use", "native"), ("ocr", "scan")])
def test_invisible_text_over_a_picture(tmp_path: Path, hidden_text, kind):
    draft = Draft(text(*PROSE, mode=3) + WHOLE_PAGE, xobjects=(GREY,))
    (page,) = pages(saved(tmp_path, written(draft)), hidden_text=hidden_text)
    assert page.kind == kind


def test_letters_without_meaning_must_be_looked_at(tmp_path: Path):
    # A font with shapes of its own and no word on what they mean, as some writers embed them.
    shape = stream(b"", b"500 0 0 0 500 500 d1 0 0 400 400 re f")
    font = (
        b"<< /Type /Font /Subtype /Type3 /FontBBox [0 0 500 500] /FontMatrix [0.001 0 0 0.001 0 0]"
        b" /FirstChar 65 /LastChar 66 /Widths [500 500] /CharProcs << /g1 6 0 R /g2 6 0 R >>"
        b" /Encoding << /Type /Encoding /Differences [65 /g1 /g2] >> >>"
    )
    page = only_page(tmp_path, Draft(text("ABABAB"), font=font, xobjects=(shape,)))
    assert (page.kind, page.text) == ("scan", "")


@pytest.mark.parametrize(
    ("rotate", "upright"),
    [(90, b"0 1 -1 0 400 0 cm\n"), (180, b"-1 0 0 -1 400 300 cm\n"), (270, b"0 -1 1 0 0 300 cm\n")],
)
def test_size_is_as_shown_and_text_in_order_on_a_turned_page(
    tmp_path: Path, rotate: int, upright: bytes
):
    page = only_page(tmp_path, Draft(upright + text(*PROSE), rotate=rotate))
    assert (page.width_pt, page.height_pt) == ((400, 300) if rotate == 180 else (300, 400))
    assert page.text == "\n".join(PROSE)


def test_sideways_text_on_an_upright_page_is_in_order(tmp_path: Path):
    page = only_page(tmp_path, Draft(b"0 1 -1 0 400 0 cm\n" + text(*PROSE)))
    assert page.text == "\n".join(PROSE)


def test_a_damaged_page_leaves_the_others_alone(tmp_path: Path, render: Render):
    drafts = [Draft(text(f"Page of rank {n}")) for n in range(3)]
    file = saved(tmp_path, written(*drafts, missing=(1,)))
    first, damaged, last = pages(file)
    assert (first.text, last.text) == ("Page of rank 0", "Page of rank 2")
    assert damaged == Page(1, "scan", None, None, "")
    with pytest.raises(ItemFailure) as caught:
        render(file, 1)
    assert caught.value.code == "page.damaged"


@pytest.mark.parametrize("count", [2, pdf.HOPELESS_PAGES + 5])
def test_a_document_of_damaged_pages_only_is_damaged(tmp_path: Path, count: int):
    drafts = [Draft(text("lost"))] * count
    stage = pages(saved(tmp_path, written(*drafts, missing=tuple(range(count)))))
    seen: list[int] = []
    with pytest.raises(ItemFailure) as caught:
        seen.extend(page.number for page in stage)
    assert caught.value.code == "pdf.damaged"
    assert len(seen) < pdf.HOPELESS_PAGES


# Rendering


def test_an_image_is_upright_and_owns_its_memory(tmp_path: Path, render: Render):
    # Black at the lower left corner, which a quarter turn clockwise brings to the upper left.
    file = saved(tmp_path, written(Draft(b"0 g 0 0 100 50 re f\n", rotate=90)))
    image = render(file, 0)
    render.close()
    assert image.shape == (400, 300, 3)
    assert image.flags.owndata
    assert image[20, 20].tolist() == [0, 0, 0]
    assert image[380, 20].tolist() == image[380, 280].tolist() == [255, 255, 255]


def test_colours_are_blue_first(tmp_path: Path, render: Render):
    file = saved(tmp_path, written(Draft(b"1 0 0 rg 0 0 400 300 re f\n")))
    assert render(file, 0)[150, 200].tolist() == [0, 0, 255]


def test_a_document_stays_open_until_another_comes(tmp_path: Path, render: Render):
    first = saved(tmp_path, written(Draft(b"0 g 0 0 400 300 re f\n"), Draft()), "first.pdf")
    second = saved(tmp_path, written(Draft()), "second.pdf")
    assert not render(first, 0).any()
    Path(first.path).unlink()
    assert render(first, 1).all()
    assert render(second, 0).all()
    with pytest.raises(FileNotFoundError):
        render(first, 0)


@pytest.mark.parametrize(
    "draft",
    [
        Draft(b"0 g 10 10 50 50 re f\n", size=(14_400, 14_400)),
        Draft(WHOLE_PAGE, xobjects=(grey_image(30_000, 30_000, b"\x80"),)),
    ],
    ids=["200 × 200 inches", "picture of 30,000 × 30,000"],
)
def test_too_large_is_said_before_anything_is_drawn(
    tmp_path: Path, draft: Draft, monkeypatch: pytest.MonkeyPatch
):
    file = saved(tmp_path, written(draft))
    render = Render(dpi=300)
    (page,) = pages(file)
    assert page.kind == "scan"

    def refused(*_: object, **__: object) -> None:
        raise AssertionError("memory was taken")

    monkeypatch.setattr("pypdfium2.PdfPage.render", refused)
    with pytest.raises(ItemFailure, match="max_pixels") as caught:
        render(file, 0)
    render.close()
    assert caught.value.code == "page.too_large"


def test_the_limit_is_a_setting(tmp_path: Path):
    file = saved(tmp_path, written(Draft(b"0 g 10 10 50 50 re f\n")))
    with pytest.raises(ItemFailure, match="400 × 300 pixels at 72 dpi"):
        Render(dpi=72, max_pixels=119_999)(file, 0)
    assert Render(dpi=72, max_pixels=120_000)(file, 0).shape == (300, 400, 3)
