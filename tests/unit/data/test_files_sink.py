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
from fanfold.errors import SinkError, UsageError


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
        put(sink, "c", "half a pair: \ud800")
    assert tree(tmp_path) == {
        "corpus/a b.pdf.md": "é".encode(),
        "%2E%2E/b.md": b"\xff",
        "c.md": b"half a pair: ?",
    }
    assert sorted(os.listdir(tmp_path)) == ["%2E%2E", "c.md", "corpus"]


def test_a_dict_becomes_a_folder(tmp_path):
    with opened(tmp_path) as sink:
        put(sink, "a", {"text.txt": "t", "deep/../x": b"i"})
    assert tree(tmp_path) == {"a.files/text.txt": b"t", "a.files/deep%2F..%2Fx": b"i"}


def test_items_of_a_child_level_are_files_by_ordinal(tmp_path):
    with opened(tmp_path, ".txt") as sink:
        put(sink, "a", "x", {"n": "y"}, levels=("page",), ordinals=[(0,), (12,)])
    assert tree(tmp_path) == {"a.files/00000.txt": b"x", "a.files/00012-n": b"y"}


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
        "a.files/both": b"2",
        "b.files/now": b"2",
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
        for key in ("a", "a/b", "a.md/b", "a.files/b"):
            put(sink, key, {"f": key})
            put(sink, key, key)
            put(sink, key, {"f": key})
    assert sorted(tree(tmp_path).values()) == sorted(
        key.encode() for key in ("a", "a/b", "a.md/b", "a.files/b")
    )


def test_other_values_are_refused_and_leave_nothing(tmp_path):
    with opened(tmp_path) as sink:
        with pytest.raises(SinkError, match=r"FF330 the output of 'a' .* is of type int"):
            put(sink, "a", 3)
        with pytest.raises(SinkError, match=r"FF330 the output\['y'\] of 'a' .* is of type list"):
            put(sink, "a", {"x": "1", "y": []})
    assert tree(tmp_path) == {}


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


@pytest.mark.parametrize("suffix", ["md", "", "./x", ".files"])
def test_suffixes_that_would_mix_up_names_are_refused(suffix):
    with pytest.raises(UsageError, match="FF329"):
        write_files("out", suffix)


def test_where_it_writes(tmp_path):
    sink = write_files(f"{tmp_path}/md/", ".md")
    assert sink.folder == tmp_path / "md"
    assert sink.target == f"{tmp_path}/md/*.md"
    with pytest.raises(UsageError, match="FF323"):
        write_files("gs://x", ".md")
