"""Which output goes to which sink, and how a root's records commit together."""

from pathlib import Path
from types import MappingProxyType

import pytest

from fanfold.data.files_sink import write_files
from fanfold.data.jsonl_sink import write_jsonl
from fanfold.data.sinks import (
    Sink,
    SinkWriter,
    bind_sinks,
    local_folder,
    make_folder,
    output_folder,
)
from fanfold.errors import SinkError, SinkValueError, UsageError
from fanfold.plan import Level, Output, Plan, PortSpec
from fanfold.protocol import RootResult


class Memory(Sink):
    """A sink in memory that tells what is done to it."""

    def __init__(self, name: str, story: list[str], refuses: str = "") -> None:
        self.name = name
        self.story = story
        self.refuses = refuses

    @property
    def folder(self) -> Path:
        return Path("/") / self.name

    @property
    def target(self) -> str:
        return self.name

    def open(self) -> None:
        if self.refuses == "open":
            raise SinkError("FF328", "cannot be opened")
        self.story.append(f"open {self.name}")

    def prepare(self, records):
        if self.refuses == records.key:
            raise SinkValueError("FF326", "cannot be written")
        text = " ".join(f"{item.ordinals}={item.value}" for item in records.items)
        return lambda: self.story.append(f"{self.name} {records.key} {records.levels}: {text}")

    def forget(self, key: str) -> None:
        self.story.append(f"forget {self.name} {key}")

    def close(self) -> None:
        self.story.append(f"close {self.name}")


def plan(structure, *outputs) -> Plan:
    return Plan(
        name="p",
        levels=(
            Level(0, "document", 0),
            Level(1, "page", 1, parent=0),
            Level(2, "line", 2, parent=1),
        ),
        stages=(),
        ports=tuple(PortSpec(i, f"port{i}", level, None) for i, (_, level) in enumerate(outputs)),
        nodes=(),
        sources=(),
        outputs=tuple(Output(name, i) for i, (name, _) in enumerate(outputs)),
        structure=structure,
        streams=MappingProxyType({}),
    )


def test_all_sinks_prepare_before_any_commits():
    story: list[str] = []
    writer = SinkWriter([Memory("a", story), Memory("b", story, refuses="bad")], [(), ()])
    writer.open()
    writer.write(RootResult(0, "good", "done", ()), ["x", None])
    with pytest.raises(SinkValueError) as told:
        writer.write(RootResult(1, "bad", "done", ()), ["x", "y"])
    assert told.value.sink == repr(writer.sinks[1])
    writer.close()
    assert story == [
        "open a",
        "open b",
        "a good (): ()=x",
        "b good (): ()=None",
        "forget a bad",
        "forget b bad",
        "close b",
        "close a",
    ]


@pytest.mark.parametrize("status", ["failed", "dropped"])
def test_a_root_without_records_is_forgotten(status):
    story: list[str] = []
    SinkWriter([Memory("a", story)], [()]).write(RootResult(0, "k", status, (None,)), [[]])
    assert story == ["forget a k"]


def test_items_of_a_child_level_come_with_their_ordinals():
    story: list[str] = []
    writer = SinkWriter([Memory("a", story)], [("page", "line")])
    writer.write(RootResult(0, "k", "partial", (), {0: ((0, 1), (2, 0))}), [["x", "y"]])
    assert story == ["a k ('page', 'line'): (0, 1)=x (2, 0)=y"]


def test_sinks_opened_before_one_fails_are_closed():
    story: list[str] = []
    with pytest.raises(SinkError):
        SinkWriter([Memory("a", story), Memory("b", story, refuses="open")], [(), ()]).open()
    assert story == ["open a", "close a"]


def test_outputs_find_their_sinks_by_name_or_position():
    a, b = Memory("a", []), Memory("b", [])
    by_name = bind_sinks(plan("dict", ("x", 0), ("y", 2)), {"y": b, "x": a})
    assert by_name is not None
    assert by_name.sinks == (a, b)
    by_position = bind_sinks(plan("tuple", (None, 0), (None, 0)), [b, a])
    assert by_position is not None
    assert by_position.sinks == (b, a)
    single = bind_sinks(plan("single", (None, 0)), a)
    assert single is not None
    assert single.sinks == (a,)
    assert bind_sinks(plan("single", (None, 0)), None) is None


@pytest.mark.parametrize(
    ("structure", "outputs", "sink", "words"),
    [
        ("dict", [("x", 0), ("y", 0)], {"x": 1}, "FF322 .*a dict of sinks with the names 'x', 'y'"),
        ("dict", [("x", 0)], Memory("a", []), "FF322"),
        ("tuple", [(None, 0), (None, 0)], [Memory("a", [])], "FF322 .*a tuple of 2 sinks"),
        ("single", [(None, 0)], {"x": Memory("a", [])}, "FF322 .*needs one sink"),
        ("single", [(None, 0)], "out/", "FF320 'out/' is no sink"),
        ("dict", [("x", 0), ("y", 0)], {"x": Memory("a", []), "y": Memory("a", [])}, "FF321"),
    ],
)
def test_what_does_not_fit_is_refused(structure, outputs, sink, words):
    with pytest.raises(UsageError, match=words):
        bind_sinks(plan(structure, *outputs), sink)


def test_the_output_folder_is_where_all_sinks_are(tmp_path):
    def folder(*sinks):
        return output_folder(SinkWriter(sinks, [()] * len(sinks)))

    jsonl = write_jsonl(tmp_path / "out")
    assert folder(jsonl) == tmp_path / "out"
    assert folder(write_files(tmp_path / "out" / "md"), jsonl) == tmp_path / "out"
    beside = [write_files(tmp_path / "out" / name) for name in ("md", "html")]
    assert folder(*beside) == tmp_path / "out"
    far = write_files(tmp_path / "a" / "b" / "c")
    assert folder(jsonl, far) == tmp_path / "out"


def test_urls_and_folders_that_cannot_be_made_are_refused(tmp_path):
    with pytest.raises(UsageError, match=r"FF323 .*'s3://b/x'"):
        local_folder("s3://b/x", "write_jsonl()")
    with pytest.raises(UsageError, match="FF323"):  # what pathlib makes of it
        local_folder(str(Path("s3://b/x")), "write_jsonl()")
    local_folder("./s3:/b/x", "write_jsonl()")
    (tmp_path / "file").write_text("")
    with pytest.raises(SinkError, match="FF324"):
        make_folder(tmp_path / "file" / "sub")
    make_folder(tmp_path / "a" / "b")
    assert list((tmp_path / "a" / "b").iterdir()) == []
