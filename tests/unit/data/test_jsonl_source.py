"""Lines of JSON: keys, and errors with file and line."""

import gzip
import re

import pytest

from fanfold.data.jsonl_source import read_jsonl
from fanfold.data.sources import Unreadable
from fanfold.errors import SourceError, UsageError


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_keys_are_the_field_key_then_id_then_the_line(here):
    (here / "a.jsonl").write_text('{"key": "k", "id": 1}\n\n{"id": 7}\n[1]\n{"x": null}\n')
    assert list(read_jsonl("a.jsonl")) == [
        ("k", {"key": "k", "id": 1}),
        ("7", {"id": 7}),
        ("a.jsonl:4", [1]),
        ("a.jsonl:5", {"x": None}),
    ]


def test_a_field_or_a_function_gives_the_key(here):
    (here / "a.jsonl").write_text('{"url": "u"}\n')
    assert [key for key, _ in read_jsonl("a.jsonl", key="url")] == ["u"]
    assert [key for key, _ in read_jsonl("a.jsonl", key=lambda v: v["url"] * 2)] == ["uu"]


def test_a_line_that_is_not_json_is_named(here):
    (here / "a.jsonl").write_text('{"id": 1}\n{"id": \n')
    with pytest.raises(SourceError, match=r"FF310 a.jsonl:2 is not valid JSON.*column"):
        list(read_jsonl("a.jsonl"))


def test_a_line_without_the_key_field_is_named(here):
    (here / "a.jsonl").write_text('{"id": 1}\n{"x": 1}\n')
    with pytest.raises(SourceError, match=r"FF304 a.jsonl:2 has no field 'id'"):
        list(read_jsonl("a.jsonl", key="id"))


def test_text_that_is_not_utf8_is_named(here):
    (here / "a.jsonl").write_bytes(b'{"id": 1}\n{"id": "\xff"}\n')
    with pytest.raises(
        SourceError, match=r"FF310 a.jsonl:2 is not UTF-8: invalid start byte.* on_error="
    ):
        list(read_jsonl("a.jsonl"))


def test_lines_that_cannot_be_read_may_be_skipped_and_are_told_in_their_places(here):
    deep, long = "[" * 100_000, "9" * 5000  # too deep and too long for Python
    lines = [
        '{"id": 1}',
        '{"id": ',
        '{"id": "\udcff"}',
        "{}",
        deep,
        long,
        '{"id": true}',
        '{"id": 8}',
    ]
    (here / "a.jsonl").write_text("\n".join(lines), errors="surrogateescape")
    (here / "b.jsonl").write_text(deep)
    with pytest.raises(SourceError, match=r"FF310 b.jsonl:1 is not valid JSON"):
        list(read_jsonl("b.jsonl"))
    found = list(read_jsonl("a.jsonl", key="id", on_error="skip"))
    assert [key for key, _ in found] == ["1", *(f"a.jsonl:{n}" for n in range(2, 8)), "8"]
    told = [value.reason for _, value in found if isinstance(value, Unreadable)]
    expected = (
        "FF310 .* JSON: .*column",
        "FF310 .* UTF-8",
        "FF304 .*'id'",
        "JSON",
        "JSON",
        "FF305 .*True",
    )
    assert len(told) == 6
    assert all(re.search(part, text) for part, text in zip(expected, told, strict=True)), told


def test_what_to_do_with_such_lines_is_one_of_two_words():
    with pytest.raises(UsageError, match=r'FF318 .*ignore.* "stop" or "skip"'):
        read_jsonl("a.jsonl", on_error="ignore")  # type: ignore[arg-type]


def test_packed_files_byte_order_marks_and_line_separators(here):
    with gzip.open(here / "a.jsonl.gz", "wt", encoding="utf-8-sig") as file:
        file.write('{"id": "a\u2028b"}\r\n{"id": 2}')
    assert [key for key, _ in read_jsonl("a.jsonl.gz")] == ["a\u2028b", "2"]


def test_a_broken_archive_is_named(here):
    (here / "a.jsonl.gz").write_bytes(gzip.compress(b'{"id": 1}\n' * 1000)[:-12])
    with pytest.raises(SourceError, match=r"FF311 a.jsonl.gz cannot be read"):
        list(read_jsonl("a.jsonl.gz"))


def test_a_folder_means_its_lines_files(here):
    (here / "in").mkdir()
    (here / "in" / "a.jsonl").write_text("1\n")
    (here / "in" / "b.txt").write_text("no json")
    assert list(read_jsonl("in")) == [("in/a.jsonl:1", 1)]


def test_a_missing_file_shows_before_the_first_line():
    with pytest.raises(UsageError, match="FF308"):
        iter(read_jsonl("missing.jsonl"))


def test_the_source_says_what_it_is():
    assert repr(read_jsonl("a.jsonl")) == "read_jsonl('a.jsonl')"
