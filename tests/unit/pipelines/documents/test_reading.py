"""The order in which lines are read: rows, paragraphs, columns, tables, titles over columns."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fanfold.pipelines.documents.reading import Box, reading_order


def told(boxes: dict[str, Box]) -> str:
    """The boxes' names as they are read; a line break shows as one, a paragraph as two."""
    names = list(boxes)
    return "".join(lead + names[index] for index, lead in reading_order(list(boxes.values())))


def column(left: float, names: str, top: float = 100, width: float = 180) -> dict[str, Box]:
    """Lines of 20 pixels, 30 apart."""
    return {
        name: Box(left, top + 30 * n, left + width, top + 30 * n + 20)
        for n, name in enumerate(names)
    }


def test_no_lines_have_no_order():
    assert reading_order([]) == []


def test_rows_go_down_and_each_row_from_left_to_right():
    boxes = column(0, "ac") | {"b": Box(200, 103, 380, 121)}
    assert told(boxes) == "a b\nc"


def test_a_wide_gap_is_a_paragraph():
    assert told(column(0, "ab") | column(0, "cd", top=200)) == "a\nb\n\nc\nd"


def test_columns_are_read_one_after_the_other():
    assert told(column(0, "abc") | column(220, "xyz")) == "a\nb\nc\n\nx\ny\nz"


def test_a_title_over_two_columns_does_not_hide_them():
    title = {"T": Box(0, 60, 400, 80)}
    assert told(title | column(0, "abc") | column(220, "xyz")) == "T\n\na\nb\nc\n\nx\ny\nz"


def test_a_line_across_parts_the_columns_into_bands():
    upper = column(0, "abc") | column(220, "ijk")
    lower = column(0, "def", top=230) | column(220, "lmn", top=230)
    across = {"-": Box(0, 195, 400, 215)}
    assert told(upper | across | lower).replace("\n", "") == "abcijk-deflmn"


def test_a_header_row_stays_a_row():
    header = {"H": Box(0, 0, 150, 20), "7": Box(300, 0, 400, 20)}
    across = {"T": Box(0, 60, 400, 80)}
    body = column(0, "abc") | column(220, "xyz")
    assert told(header | across | body).startswith("H 7\n\nT\n\na\nb")


def test_a_table_is_read_by_rows():
    table = column(0, "abc") | column(250, "1 2".replace(" ", "") + "3", width=60)
    assert told(table) == "a 1\nb 2\nc 3"


def test_skewed_lines_stay_in_their_rows():
    left = {"a": Box(0, 100, 180, 124), "c": Box(0, 140, 180, 164)}
    right = {"b": Box(190, 108, 400, 132), "d": Box(190, 148, 400, 172)}
    assert told(left | right) == "a b\nc d"


boxes = st.builds(
    lambda left, top, width, height: Box(left, top, left + width, top + height),
    *(st.floats(0, 1000) for _ in range(2)),
    *(st.floats(1, 400) for _ in range(2)),
)


@given(st.lists(boxes, max_size=30))
def test_every_line_is_read_once(lines: list[Box]):
    order = reading_order(lines)
    assert sorted(index for index, _ in order) == list(range(len(lines)))
    assert [lead for _, lead in order][:1] == [""] * bool(lines)
    assert all(lead in {" ", "\n", "\n\n"} for _, lead in order[1:])


@pytest.mark.parametrize("factor", [0.1, 7.0])
def test_the_order_does_not_depend_on_the_resolution(factor: float):
    lines = column(0, "abc") | column(220, "xyz") | {"T": Box(0, 60, 400, 80)}
    scaled = {name: Box(*(factor * side for side in box)) for name, box in lines.items()}
    assert told(scaled) == told(lines)
