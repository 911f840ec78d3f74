"""Settings that would give nonsense are refused where they are set, before anything runs."""

from __future__ import annotations

import math
from typing import Any

import pytest

import fanfold as ff
from fanfold.cli.main import main
from fanfold.pipelines.documents import documents


@pytest.mark.parametrize(
    ("name", "value", "allowed"),
    [
        ("dpi", 0, "from 10 to 2400"),
        ("dpi", -5, "from 10 to 2400"),
        ("dpi", 150.5, "whole number"),
        ("max_pixels", -1, "1 or more"),
        ("detect_side_px", 0, "32 or more"),
        ("recognize_chunk", 0, "1 or more"),
        ("recognize_chunk", True, "1 or more"),
        ("min_confidence", 7, "from 0 to 1"),
        ("min_confidence", -0.1, "from 0 to 1"),
        ("min_confidence", math.nan, "from 0 to 1"),
        ("min_confidence", "0.5", "from 0 to 1"),
        ("threads", -3, "0 or more"),
    ],
)
def test_a_number_out_of_range_is_refused(name: str, value: Any, allowed: str):
    with pytest.raises(ff.DefinitionError) as caught:
        documents.using({name: value}).plan()
    assert caught.value.code == "FF454"
    assert f"{name}={value!r}" in caught.value.message
    assert allowed in caught.value.hint


@pytest.mark.parametrize(
    "settings",
    [
        {"dpi": 10, "min_confidence": 0, "threads": 0, "max_pixels": 1},
        {"dpi": 2400, "min_confidence": 1, "threads": 64, "detect_side_px": 32},
    ],
)
def test_the_ends_of_a_range_belong_to_it(settings: dict[str, Any]):
    assert documents.using(settings).plan().outputs


def test_the_command_ends_with_2(capsys: pytest.CaptureFixture[str], tmp_path: Any):
    command = ["run", "documents", str(tmp_path), "--out", str(tmp_path / "out")]
    assert main([*command, "--set", "min_confidence=7"]) == 2
    said = capsys.readouterr().err
    assert "fanfold: FF454" in said
    assert "min_confidence=7.0 is not allowed.\n  Give a number from 0 to 1." in said
    assert not (tmp_path / "out").exists()
