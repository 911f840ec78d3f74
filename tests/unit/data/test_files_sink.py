"""A folder of files: whole files only, one per key, nothing else left."""

import contextlib
import errno
import fcntl
import os
import pickle
from pathlib import Path

import pytest

from fanfold.data.files_sink import write_files
from fanfold.data.sinks import Item, RootRecords, Sink
from fanfold.errors import SinkError, SinkValueError, UsageError


def put(sink: Sink, key: str, *values, levels=(), ordinals=None) -> None:
    places = ordinals or [()] * len(values)
    items = [Item(value, place) for value, place in zip(values, places, strict=True)]
    sink.prepare(RootRecords(key, levels, items))()


@contextlib.contextmanager
def opened(path, suffix=".md"):
    sink = pickle.loads(pickle.dumps(write_files(path, suffix)))
    sink.check()
    sink.open()
    yield sink
    sink.close()


def tree(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.name != "lock"
    }


def test_one_file_per_root_named_from_its_key(tmp_path):
    with opened(tmp_path) as sink:
        put(sink, "corpus/a b.pdf", "é")
        put(sink, "../b", b"\xff")
        put(sink, "c", bytearray(b"array"))
        put(sink, "d", memoryview(b"a view")[2:])
    assert tree(tmp_path) == {
        "corpus/a b.pdf.md": "é".encode(),
        "%2E%2E/b.md": b"\xff",
        "c.md": b"array",
        "d.md": b"view",
    }
    assert sorted(os.listdir(tmp_path)) == ["%2E%2E", "c.md", "corpus", "d.md"]


def test_a_dict_becomes_a_folder(tmp_path):
    with opened(tmp_path) as sink:
        put(sink, "a", {"text.txt": "t", "deep/../x": b"i"})
    assert tree(tmp_path) == {"a.md.files/text.txt": b"t", "a.md.files/deep%2F..%2Fx": b"i"}


def test_items_of_a_child_level_are_files_by_ordinal(tmp_path):
    with opened(tmp_path, ".txt") as sink:
        put(sink, "a", "x", {"n": "y"}, levels=("page",), ordinals=[(0,), (12,)])
    assert tree(tmp_path) == {"a.txt.files/00000.txt": b"x", "a.txt.files/00012-n": b"y"}


def test_a_rerun_replaces_key_by_key(tmp_path):
    with opened(tmp_path) as sink:
        put(sink, "a", {"old": "1", "both": "1"})
        put(sink, "b", "1")
        put(sink, "c", "1")
        put(sink, "d", {"x": "1"})
    with opened(tmp_path) as sink:
        put(sink, "a", {"both": "2"})
        put(sink, "b", {"now": "2"})
        put(sink, "d", "2")
    assert tree(tmp_path) == {
        "a.md.files/both": b"2",
        "b.md.files/now": b"2",
        "c.md": b"1",
        "d.md": b"2",
    }


def test_what_was_written_for_a_root_that_fails_now_goes(tmp_path):
    with opened(tmp_path) as sink:
        put(sink, "a", "1")
        put(sink, "b", {"x": "1"})
        put(sink, "b/inside", "1")
        for key in ("a", "b", "never"):
            sink.forget(key)
    assert tree(tmp_path) == {"b/inside.md": b"1"}


def test_keys_inside_each_other_do_not_meet(tmp_path):
    with opened(tmp_path) as sink:
        for key in ("a", "a/b", "a.md/b", "a.files/b", "a.md.files/b"):
            put(sink, key, {"f": key})
            put(sink, key, key)
            put(sink, key, {"f": key})
    assert sorted(tree(tmp_path).values()) == sorted(
        key.encode() for key in ("a", "a/b", "a.md/b", "a.files/b", "a.md.files/b")
    )


def test_other_values_are_refused_and_leave_nothing(tmp_path):
    with opened(tmp_path) as sink:
        with pytest.raises(SinkError, match=r"FF330 the output of 'a' .* is of type int"):
            put(sink, "a", 3)
        with pytest.raises(SinkError, match=r"FF330 the output\['y'\] of 'a' .* is of type list"):
            put(sink, "a", {"x": "1", "y": []})
    assert tree(tmp_path) == {}


def test_text_that_has_no_utf_8_is_refused_and_is_not_written_otherwise(tmp_path):
    with opened(tmp_path) as sink:
        with pytest.raises(
            SinkValueError,
            match=r"FF330 the output of 'a' .* '\\ud800' at character 5, .*surrogate",
        ) as told:
            put(sink, "a", "half \ud800")
        with pytest.raises(SinkValueError, match=r"output\['x'\] of 'b' .* at character 0"):
            put(sink, "b", {"x": "\udcff"})
        put(sink, "c", "whole \U0001f600")
    assert '.encode("utf-8", "replace")' in told.value.hint
    assert tree(tmp_path) == {"c.md": "whole \U0001f600".encode()}


class Unreadable(dict[str, str]):
    def items(self):
        raise LookupError("closed")


class Unprintable(Exception):
    def __str__(self) -> str:
        raise RuntimeError


class WorseThanUnreadable(dict[str, str]):
    def items(self):
        raise Unprintable


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ({3: "x"}, "a file's name of type int"),
        ({"fine": "x", None: "y"}, "a file's name of type NoneType"),
        ({"": "x"}, "a file's name that is empty"),
        (Unreadable(), "cannot be read: LookupError: closed"),
        (WorseThanUnreadable(), "cannot be read: Unprintable"),
    ],
)
def test_a_dict_that_makes_no_files_fails_its_own_root_only(tmp_path, value, why):
    with opened(tmp_path) as sink:
        with pytest.raises(SinkValueError, match=rf"FF330 the output of 'a' for .* {why}"):
            put(sink, "a", value)
        put(sink, "b", "text")
    assert tree(tmp_path) == {"b.md": b"text"}


def test_sinks_with_other_suffixes_leave_each_others_files_alone(tmp_path):
    with opened(tmp_path, ".md") as one, opened(tmp_path, ".html") as two:
        put(one, "a", {"text": "of one"})
        put(two, "a", {"text": "of two"})
        put(one, "b", {"text": "of one"})
        put(two, "b", "of two")
        put(one, "c", "of one")
        put(one, "b.html.files/inside", "of one")
        put(two, "b.md.files/inside", "of two")
        two.forget("c")
    assert tree(tmp_path) == {
        "a.md.files/text": b"of one",
        "a.html.files/text": b"of two",
        "b.md.files/text": b"of one",
        "b.html": b"of two",
        "c.md": b"of one",
        "b.html%2Efiles/inside.md": b"of one",
        "b.md%2Efiles/inside.html": b"of two",
    }


def test_a_write_that_fails_leaves_the_old_file_and_no_other(tmp_path, monkeypatch):
    with opened(tmp_path) as sink:
        put(sink, "a", "old")

        def no_space(self, data):
            raise OSError(28, "No space left on device")

        with monkeypatch.context() as patched:
            patched.setattr(Path, "write_bytes", no_space)
            with pytest.raises(SinkError, match=r"FF328 .*No space left"):
                put(sink, "a", "new")
            with pytest.raises(SinkError, match="FF328"):
                put(sink, "a", {"x": "new"})
        assert tree(tmp_path) == {"a.md": b"old"}
        put(sink, "a", "new")
    assert tree(tmp_path) == {"a.md": b"new"}
    assert os.listdir(tmp_path) == ["a.md"]


def test_what_a_killed_run_left_is_cleared_away(tmp_path):
    killed = write_files(tmp_path, ".md")
    killed.open()
    put(killed, "a", "1")
    (left,) = (path for path in (tmp_path / ".fanfold-writing.md").iterdir() if path.is_dir())
    (left / "file").write_text("half")
    os.close(killed._lock)  # type: ignore[attr-defined]  # killed: nobody closes it
    with opened(tmp_path):
        assert not left.exists()
    assert os.listdir(tmp_path) == ["a.md"]


def test_two_runs_do_not_write_one_folder(tmp_path):
    with opened(tmp_path) as sink:
        with pytest.raises(SinkError, match="FF327 another run is writing"):
            write_files(tmp_path, ".md").open()
        with opened(tmp_path, ".html") as other:  # another output of the same run
            put(other, "a", "html")
        put(sink, "a", "md")
    assert tree(tmp_path) == {"a.md": b"md", "a.html": b"html"}
    assert sorted(os.listdir(tmp_path)) == ["a.html", "a.md"]


def test_without_locks_no_file_holds_what_another_run_writes(tmp_path, monkeypatch):
    def unsupported(handle, how):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", unsupported)
    with opened(tmp_path) as one, opened(tmp_path) as two:
        replace, others = os.replace, iter([lambda: put(two, "b", "of b")])

        def meanwhile(source, target):
            for other in others:
                other()
            replace(source, target)

        with monkeypatch.context() as patched:
            patched.setattr(os, "replace", meanwhile)
            put(one, "a", "of a")
    assert tree(tmp_path) == {"a.md": b"of a", "b.md": b"of b"}
    assert sorted(os.listdir(tmp_path)) == ["a.md", "b.md"]


@pytest.mark.parametrize("suffix", ["md", "", "./x", ".files", ".md.files"])
def test_suffixes_that_would_mix_up_names_are_refused(suffix):
    with pytest.raises(UsageError, match="FF329"):
        write_files("out", suffix)


def test_where_it_writes(tmp_path):
    sink = write_files(f"{tmp_path}/md/", ".md")
    assert sink.folder == tmp_path / "md"
    assert sink.target == f"{tmp_path}/md/*.md"
    with pytest.raises(UsageError, match="FF323"):
        write_files("gs://x", ".md")
