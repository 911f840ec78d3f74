"""What the stages of compared programs do, and what they write down."""

import pytest

from benchmarks.peers import logbook
from benchmarks.peers.logbook import ASSEMBLED, FIRST_PAGE, MODEL, RENDERED, STARTED, entries
from benchmarks.peers.work import FIRST_OF_ALL, RECYCLED_PAGES, Shape, Work


@pytest.mark.parametrize("form", ["bytes", "array"])
@pytest.mark.parametrize("recycled", [False, True])
def test_pages_have_their_size_and_their_number(form, recycled, tmp_path):
    shape = Shape(counts=(3,), page_bytes=1000, form=form, recycled=recycled)
    work = Work(shape, str(tmp_path))
    pages = list(work.renderer().pages(1, 3))
    assert [len(page) for page in pages] == [1000] * 3
    assert work.read(pages) == [0, 1, 2]


def test_recycled_pages_come_again(tmp_path):
    work = Work(Shape(counts=(70,), recycled=True), str(tmp_path)).renderer()
    pages = list(work.pages(1, RECYCLED_PAGES + 1))
    assert pages[0] is pages[-1]
    assert pages[0] is not pages[1]


@pytest.mark.parametrize("numbers", [[FIRST_OF_ALL, 2, 1], [FIRST_OF_ALL, 1], [0, 1, 2]])
def test_a_document_that_lacks_a_page_or_has_them_in_another_order_is_refused(numbers, tmp_path):
    work = Work(Shape(counts=(3,)), str(tmp_path))
    assert work.assemble(0, [FIRST_OF_ALL, 1, 2]) == 3
    with pytest.raises(ValueError, match="document 0 is not what it was"):
        work.assemble(0, numbers)


def test_documents_may_be_assembled_from_pages(tmp_path):
    work = Work(Shape(counts=(2, 2), gathers="pages"), str(tmp_path))
    assert work.assemble(1, list(work.pages(1, 2))) == 2


def test_one_replica_is_the_slow_one(tmp_path):
    shape = Shape(counts=(1,), slow_factor=4.0)
    replicas = [Work(shape, str(tmp_path)).model() for _ in range(3)]
    assert [replica._slowness for replica in replicas] == [4.0, 1.0, 1.0]


def test_everything_that_ran_is_written_down(tmp_path):
    work = Work(Shape(counts=(2,)), str(tmp_path)).model()
    work.assemble(0, work.read(list(work.pages(0, 2))))
    found = entries(tmp_path)
    assert [entry.kind for entry in found] == [STARTED, FIRST_PAGE, RENDERED, MODEL, ASSEMBLED]
    assert [entry.items for entry in found] == [0, 2, 2, 2, 2]
    assert all(entry.seconds >= 0 for entry in found)


def test_an_entry_that_was_cut_off_is_left_out(tmp_path):
    work = Work(Shape(counts=(2,)), str(tmp_path)).model()
    work.read(list(work.pages(0, 2)))
    (file,) = tmp_path.glob("*.log")
    written = file.read_bytes().rstrip(b"\0")
    file.write_bytes(written[:-1])
    assert [entry.kind for entry in entries(tmp_path)] == [STARTED, FIRST_PAGE, RENDERED]


def test_more_is_written_than_a_part_of_the_file_holds(tmp_path, monkeypatch):
    monkeypatch.setattr(logbook, "_PART_BYTES", 100)
    work = Work(Shape(counts=(2,)), str(tmp_path)).model()
    for document in range(5):
        work.read(list(work.pages(document, 2)))
    kinds = [entry.kind for entry in entries(tmp_path)]
    assert kinds == [STARTED, *[FIRST_PAGE, RENDERED, MODEL] * 5]


def test_several_stages_of_one_process_write_beside_each_other(tmp_path):
    for _ in range(2):
        Work(Shape(counts=(2,)), str(tmp_path)).model()
    assert [entry.kind for entry in entries(tmp_path)] == [STARTED, STARTED]
