"""From words on the command line to a pipeline, its source and its sinks."""

import sys
import types
from pathlib import Path

import pytest

from fanfold.cli.target import load
from fanfold.data.sinks import Sink
from fanfold.errors import DefinitionError, SetupError, UsageError
from fanfold.pipelines import READY_MADE

HERE = Path(__file__).parent
FLOW = str(HERE / "flow.py")


@pytest.fixture(autouse=True)
def own_modules(monkeypatch):
    """What a command imports does not stay for the next test."""
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.delitem(sys.modules, "flow", raising=False)
    yield
    sys.modules.pop("flow", None)


def test_a_pipeline_is_named_by_module_or_by_file(monkeypatch):
    assert load(f"{FLOW}:rows").pipeline.name == "rows"
    monkeypatch.delitem(sys.modules, "flow")
    monkeypatch.chdir(HERE)
    assert load("flow:sizes").pipeline.name == "sizes"


@pytest.mark.parametrize(
    ("name", "code", "words"),
    [
        ("flow", "FF501", "no ready-made pipeline 'flow'"),
        ("documnets", "FF501", "Did you mean 'documents'?"),
        (FLOW, "FF507", f"Name one of them: {FLOW}:rows, {FLOW}:sizes, "),
        (str(HERE / "__none__.py"), "FF504", "there is no file"),
        (f"{FLOW}:missing", "FF503", "does not exist"),
        (
            f"{FLOW}:not_a_pipeline",
            "FF503",
            "is a int, not a pipeline. Pipelines there: rows, sizes",
        ),
        ("no_such_module:x", "FF504", "there is no module 'no_such_module'"),
        ("no_such.py:x", "FF504", "there is no file"),
    ],
)
def test_a_name_that_leads_nowhere_is_told(name, code, words):
    with pytest.raises(UsageError) as told:
        load(name)
    assert told.value.code == code
    assert words in str(told.value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("import no_such_package", "No module named 'no_such_package'"),
        ("1 / 0", "ZeroDivisionError: division by zero"),
    ],
)
def test_a_module_that_cannot_be_imported_is_told(tmp_path, text, words):
    (tmp_path / "broken_flow.py").write_text(text)
    with pytest.raises(UsageError, match=f"FF505 importing 'broken_flow' failed: .*{words}"):
        load(str(tmp_path / "broken_flow.py") + ":x")


def test_settings_and_options_are_set():
    target = load(f"{FLOW}:rows", ["factor=5", "scaled.batch_size=1", "scaled.replicas=2"])
    assert target.pipeline.settings["factor"] == 5
    (stage,) = target.pipeline.plan().stages
    assert (stage.batch_size, stage.replicas) == (1, 2)
    with pytest.raises(UsageError, match="FF502"):
        load(f"{FLOW}:rows", ["factor"])
    with pytest.raises(DefinitionError, match="FF221"):
        load(f"{FLOW}:rows", ["scaled.batch=1"])


def test_paths_are_files_unless_all_are_lines_of_json():
    target = load(f"{FLOW}:sizes")
    assert repr(target.source(["a.jsonl", "b.ndjson"])) == "read_jsonl('a.jsonl', 'b.ndjson')"
    assert repr(target.source(["a.txt", "b.pdf"])) == "read_files('a.txt', 'b.pdf')"


def test_lines_of_json_and_files_are_not_mixed():
    with pytest.raises(UsageError, match=r"FF506 'a.jsonl' gives .* 'b.pdf' is an item itself"):
        load(f"{FLOW}:sizes").source(["a.jsonl", "b.pdf"])


def test_each_output_gets_a_file():
    def targets(sinks):
        if isinstance(sinks, dict):
            return {name: sink.target for name, sink in sinks.items()}
        return sinks.target if isinstance(sinks, Sink) else [sink.target for sink in sinks]

    out = Path("out")
    assert targets(load(f"{FLOW}:rows").sinks(out)) == "out/records.jsonl"
    assert targets(load(f"{FLOW}:sizes").sinks(out)) == {
        "size": "out/size.jsonl",
        "path": "out/path.jsonl",
    }
    assert targets(load(f"{FLOW}:pair").sinks(out)) == ["out/output-0.jsonl", "out/output-1.jsonl"]


@pytest.mark.parametrize("name", [f"{FLOW}:rows", f"{FLOW}:sizes", f"{FLOW}:pair", *READY_MADE])
def test_output_does_not_go_to_a_url(name):
    with pytest.raises(UsageError, match=r"FF323 .*s3://bucket/out"):
        load(name).sinks("s3://bucket/out")


def test_every_ready_made_pipeline_has_its_parts():
    for name in READY_MADE:
        target = load(name)
        assert target.pipeline.name == name
        assert callable(target.source)
        assert target.sinks(Path("out"))


def test_a_ready_made_pipeline_whose_extra_is_missing_says_what_to_install(monkeypatch):
    module = types.ModuleType("needs_more")
    monkeypatch.setitem(READY_MADE, "needs_more", module.__name__)
    with pytest.raises(SetupError, match=r'FF430 .* Run: pip install "fanfold\[needs_more\]"'):
        load("needs_more")
