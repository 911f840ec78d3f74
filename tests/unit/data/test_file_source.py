"""Listing files: order, keys, strange names, URLs, and words for what is not there."""

import os
from pathlib import Path

import pytest

from fanfold.data.file_source import read_files
from fanfold.errors import UsageError

STRANGE = "Entwurf #2; Übersicht [1] für das Café.pdf"


@pytest.fixture
def corpus(tmp_path, monkeypatch):
    """A folder with files at several depths; tests run next to it."""
    for name in (
        "b.pdf",
        "a.pdf",
        f"deep/er/{STRANGE}",
        "deep/c.PDF",
        "deep/notes.txt",
        ".git/x.pdf",
    ):
        path = tmp_path / "corpus" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(name.encode())
    monkeypatch.chdir(tmp_path)
    return tmp_path / "corpus"


def keys(*paths, **options) -> list[str]:
    return [key for key, _ in read_files(*paths, **options)]


def test_globs_span_folders_and_are_sorted(corpus):
    assert keys("corpus/*.pdf") == ["corpus/a.pdf", "corpus/b.pdf"]
    assert keys("corpus/**/*.pdf") == [
        "corpus/a.pdf",
        "corpus/b.pdf",
        f"corpus/deep/er/{STRANGE}",
    ]


@pytest.mark.parametrize("written", ["corpus", "corpus/", "./corpus"])
def test_a_folder_is_all_files_below_that_are_not_hidden(corpus, written):
    assert keys(written) == [
        "corpus/a.pdf",
        "corpus/b.pdf",
        "corpus/deep/c.PDF",
        f"corpus/deep/er/{STRANGE}",
        "corpus/deep/notes.txt",
    ]


def test_hidden_names_come_only_if_the_pattern_has_their_dot(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("c/a.txt", "c/.b.txt", "c/.d/e.txt"):
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text(name)
    assert keys("c") == keys("c/*") == keys("c/**") == keys("c/**/*.txt") == ["c/a.txt"]
    assert keys("c/.*") == keys("c/.b.txt") == ["c/.b.txt"]
    assert keys("c/.d") == keys("c/.d/*") == keys("c/.*/*") == ["c/.d/e.txt"]
    urls = [key.rpartition("/c/")[2] for key in keys(f"file://{tmp_path}/c/**")]
    assert urls == [".b.txt", ".d/e.txt", "a.txt"]


def test_a_suffix_chooses_from_folders_but_not_from_names(corpus):
    assert keys("corpus/deep", "corpus/deep/notes.txt", suffix=".pdf") == [
        "corpus/deep/c.PDF",
        f"corpus/deep/er/{STRANGE}",
        "corpus/deep/notes.txt",
    ]


def test_the_working_folder_can_be_named(corpus, monkeypatch):
    monkeypatch.chdir(corpus)
    assert keys(".")[:2] == ["a.pdf", "b.pdf"]


def test_a_name_that_exists_is_no_pattern(corpus):
    name = f"corpus/deep/er/{STRANGE}"
    ((key, file),) = read_files(name)
    assert key == name
    assert file.read_bytes() == f"deep/er/{STRANGE}".encode()
    assert file.size == len(f"deep/er/{STRANGE}".encode())


def test_arguments_keep_their_order_and_no_file_comes_twice(corpus):
    assert keys("corpus/b.pdf", "corpus/*.pdf", "./corpus/a.pdf", str(corpus / "a.pdf")) == [
        "corpus/b.pdf",
        "corpus/a.pdf",
    ]


def test_a_link_to_a_folder_above_is_no_circle(corpus):
    (corpus / "deep" / "up").symlink_to(corpus)
    assert len(keys("corpus")) == 5


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("corpus/*.docx", r"the pattern 'corpus/\*.docx' matches no file"),
        ("missing.pdf", "there is no file 'missing.pdf'"),
        ("empty", "the folder 'empty' holds no file"),
        ("memory://nowhere/*.pdf", "'memory://nowhere/\\*.pdf' matches no file"),
    ],
)
def test_what_matches_nothing_is_named_before_anything_is_read(corpus, path, words):
    os.mkdir("empty")
    with pytest.raises(UsageError, match="FF308 " + words):
        iter(read_files("corpus/a.pdf", path))


def test_nothing_to_read_is_refused():
    with pytest.raises(UsageError, match="FF307"):
        read_files()


def test_urls_go_through_fsspec():
    import fsspec

    memory = fsspec.filesystem("memory")
    memory.pipe({"/box/b.txt": b"bb", "/box/a #1.txt": b"a", "/box/in/c.bin": b""})
    try:
        assert keys("memory://box/*.txt") == [
            "memory://box/a #1.txt",
            "memory://box/b.txt",
        ] or keys("memory://box/*.txt") == ["memory:///box/a #1.txt", "memory:///box/b.txt"]
        files = dict(read_files("memory://box"))
        assert sorted(file.read_bytes() for file in files.values()) == [b"", b"a", b"bb"]
        assert sorted(file.size for file in files.values()) == [0, 1, 2]
    finally:
        memory.rm("/box", recursive=True)


def test_a_file_url_is_a_local_file(corpus):
    ((key, file),) = read_files(f"file://{corpus}/a.pdf")
    assert key == f"file://{corpus}/a.pdf"
    assert file.is_local
    assert file.local() == corpus / "a.pdf"


def test_the_source_says_what_it_is():
    assert repr(read_files("a", "b/*")) == "read_files('a', 'b/*')"
