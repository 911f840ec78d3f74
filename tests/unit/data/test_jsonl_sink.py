"""JSON Lines: valid at any moment, one record per key, nothing else left."""

import contextlib
import dataclasses
import errno
import fcntl
import json
import os
import pickle

import pytest

from fanfold.data.jsonl_sink import write_jsonl
from fanfold.data.sinks import Item, RootRecords, Sink
from fanfold.errors import SinkError, SinkValueError, UsageError


def put(sink: Sink, key: str, *values, levels=(), ordinals=None) -> None:
    places = ordinals or [()] * len(values)
    items = [Item(value, place) for value, place in zip(values, places, strict=True)]
    sink.prepare(RootRecords(key, levels, items))()


@contextlib.contextmanager
def opened(path):
    """A sink as a run uses it: pickled, opened, closed."""
    sink = pickle.loads(pickle.dumps(write_jsonl(path)))
    sink.open()
    yield sink
    sink.close()


def records(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_folder_gets_its_file_and_nothing_else(tmp_path):
    with opened(tmp_path / "out") as sink:
        put(sink, "a", {"x": 1})
        assert records(tmp_path / "out" / "records.jsonl") == [{"key": "a", "x": 1}]
    assert os.listdir(tmp_path / "out") == ["records.jsonl"]


def test_key_comes_first_and_other_values_are_wrapped(tmp_path):
    @dataclasses.dataclass
    class Page:
        text: str

    class Model:
        def model_dump(self, *, mode):
            return {"mode": mode}

    with opened(tmp_path / "r.jsonl") as sink:
        put(sink, "a", {"x": 1, "key": "a"})
        put(sink, "b", None)
        put(sink, "c", Page("t"))
        put(sink, "d", Model())
    assert (tmp_path / "r.jsonl").read_text() == (
        '{"key": "a", "x": 1}\n{"key": "b", "value": null}\n{"key": "c", "text": "t"}\n'
        '{"key": "d", "mode": "json"}\n'
    )


def test_items_of_a_child_level_are_records_with_ordinals(tmp_path):
    with opened(tmp_path / "r.jsonl") as sink:
        put(sink, "a", {"t": 1}, 2, levels=("page",), ordinals=[(0,), (3,)])
    assert records(tmp_path / "r.jsonl") == [
        {"key": "a", "page": 0, "t": 1},
        {"key": "a", "page": 3, "value": 2},
    ]


def test_a_field_that_means_something_else_is_refused(tmp_path):
    with opened(tmp_path / "r.jsonl") as sink:
        with pytest.raises(SinkError, match=r"FF326 .*'a'.* field 'key' of its own"):
            put(sink, "a", {"key": "other"})
        with pytest.raises(SinkError, match=r"FF326 .*'a', page 1.* field 'page'"):
            put(sink, "a", {"page": "text"}, levels=("page",), ordinals=[(1,)])
    assert records(tmp_path / "r.jsonl") == []


def test_a_rerun_replaces_by_key_and_keeps_the_rest(tmp_path):
    file = tmp_path / "r.jsonl"
    with opened(file) as sink:
        for key in "abc":
            put(sink, key, 1)
    with opened(file) as sink:
        put(sink, "b", 2)
        # At any moment the file itself holds what this run has finished, once.
        assert records(file) == [{"key": "b", "value": 2}]
    assert records(file) == [
        {"key": "b", "value": 2},
        {"key": "a", "value": 1},
        {"key": "c", "value": 1},
    ]
    assert os.listdir(tmp_path) == ["r.jsonl"]


def test_the_same_run_again_gives_the_same_bytes(tmp_path):
    file = tmp_path / "r.jsonl"
    written: list[bytes] = []
    for _ in range(2):
        with opened(file) as sink:
            put(sink, 'quote " and \\ and é', {"x": [1]})
            put(sink, "b", 2)
        written.append(file.read_bytes())
    assert written[0] == written[1]
    assert len(records(file)) == 2


def test_what_was_written_for_a_root_that_fails_now_goes(tmp_path):
    file = tmp_path / "r.jsonl"
    with opened(file) as sink:
        put(sink, "a", 1)
        put(sink, "b", 1, 2, levels=("page",), ordinals=[(0,), (1,)])
        put(sink, "c", 1)
    with opened(file) as sink:
        sink.forget("a")
        put(sink, "b", levels=("page",))
    assert records(file) == [{"key": "c", "value": 1}]


def test_after_a_crash_nothing_is_lost_and_nothing_doubled(tmp_path):
    file = tmp_path / "r.jsonl"
    with opened(file) as sink:
        for key in "abc":
            put(sink, key, 1)
    crashed = write_jsonl(file)
    crashed.open()
    put(crashed, "b", 2)
    os.close(crashed._handle)  # type: ignore[attr-defined]  # killed: nobody closes it
    with file.open("ab") as torn:
        torn.write(b'{"key": "c", "val')
    with opened(file) as sink:
        put(sink, "a", 3)
    assert sorted(records(file), key=lambda r: r["key"]) == [
        {"key": "a", "value": 3},
        {"key": "b", "value": 2},
        {"key": "c", "value": 1},
    ]
    assert os.listdir(tmp_path) == ["r.jsonl"]


def test_lines_that_are_not_ours_stay(tmp_path):
    file = tmp_path / "r.jsonl"
    file.write_text('{"id": 1}\nno json\n{"key": 5}\n{"x": 1, "key": "a"}\n')
    with opened(file) as sink:
        put(sink, "a", 1)
    assert file.read_text() == '{"key": "a", "value": 1}\n{"id": 1}\nno json\n{"key": 5}\n'


def test_when_the_disk_is_full_no_half_line_stays(tmp_path, monkeypatch):
    file = tmp_path / "r.jsonl"
    write = os.write
    with opened(file) as sink:
        put(sink, "a", 1)

        def full(handle, data):
            if len(data) > 10:
                return write(handle, data[:10])
            raise OSError(errno.ENOSPC, "No space left on device")

        with monkeypatch.context() as patched:
            patched.setattr(os, "write", full)
            with pytest.raises(SinkError, match=r"FF328 .*No space left"):
                put(sink, "b", 2)
        assert records(file) == [{"key": "a", "value": 1}]
        put(sink, "b", 2)
    assert records(file) == [{"key": "a", "value": 1}, {"key": "b", "value": 2}]


def test_two_runs_do_not_write_one_file(tmp_path):
    with opened(tmp_path / "r.jsonl") as sink:
        put(sink, "a", 1)
        with pytest.raises(SinkError, match="FF327 another run is writing"):
            write_jsonl(tmp_path / "r.jsonl").open()
    assert records(tmp_path / "r.jsonl") == [{"key": "a", "value": 1}]


def test_a_run_that_starts_as_another_ends_takes_no_file_that_was_set_aside(tmp_path, monkeypatch):
    """The other one let go of the lock on the earlier file, which has another name by then."""
    file = tmp_path / "r.jsonl"
    with opened(file) as sink:
        put(sink, "a", 1)
    flock, running = fcntl.flock, write_jsonl(file)

    def late(handle, how):
        monkeypatch.setattr(fcntl, "flock", flock)
        running.open()
        put(running, "b", 2)
        flock(handle, how)

    monkeypatch.setattr(fcntl, "flock", late)
    with pytest.raises(SinkError, match="FF327 another run is writing"):
        write_jsonl(file).open()
    put(running, "c", 3)
    running.close()
    assert sorted(r["key"] for r in records(file)) == ["a", "b", "c"]


def test_what_is_no_file_is_refused_before_the_run(tmp_path):
    os.mkfifo(tmp_path / "fifo.jsonl")
    with pytest.raises(SinkError, match=r"FF325 .*fifo\.jsonl is no ordinary file"):
        write_jsonl(tmp_path / "fifo.jsonl").check()
    (tmp_path / ".r.jsonl.previous").mkdir()
    with pytest.raises(SinkError, match=r"FF325 .*\.r\.jsonl\.previous is no ordinary file"):
        write_jsonl(tmp_path / "r.jsonl").check()


def test_bytes_are_refused_with_a_remedy(tmp_path):
    words = r"FF326 .*record\['image'\] is bytes.*base64"
    with opened(tmp_path / "r.jsonl") as sink, pytest.raises(SinkError, match=words):
        put(sink, "a", {"image": b"x"})


class Odd:
    def __eq__(self, other):
        raise RuntimeError("the truth of an array")

    __hash__ = None  # type: ignore[assignment]


def test_an_error_of_a_values_own_method_is_a_refusal(tmp_path):
    words = r"FF326 the record of 'a' cannot be written .*: RuntimeError: the truth of an array"
    with opened(tmp_path / "r.jsonl") as sink, pytest.raises(SinkValueError, match=words):
        put(sink, "a", {"key": Odd()})


class Unprintable(Exception):
    def __str__(self) -> str:
        raise RuntimeError


class Worse:
    def tolist(self):
        raise Unprintable


def test_an_error_whose_text_raises_too_is_a_refusal(tmp_path):
    words = r"FF326 the record of 'a' cannot be written .*: Unprintable"
    with opened(tmp_path / "r.jsonl") as sink, pytest.raises(SinkValueError, match=words):
        put(sink, "a", {"x": Worse()})


def test_where_it_writes(tmp_path):
    assert write_jsonl("out").target == "out/records.jsonl"
    assert write_jsonl(tmp_path / "x.ndjson").folder == tmp_path
    with pytest.raises(UsageError, match="FF323"):
        write_jsonl("s3://bucket/out")
    (tmp_path / "x.jsonl").mkdir()
    with pytest.raises(SinkError, match="FF325"):
        write_jsonl(tmp_path / "x.jsonl").check()
    (tmp_path / "file").write_text("")
    with pytest.raises(SinkError, match="FF324"):
        write_jsonl(tmp_path / "file" / "x.jsonl").check()
