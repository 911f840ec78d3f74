"""What is said when the optional libraries are missing, and that none is loaded too early."""

from __future__ import annotations

import subprocess
import sys

import pytest

from fanfold.errors import SetupError
from fanfold.pipelines.documents import extras


def test_what_is_there_loads():
    assert extras.load("json").loads("[7]") == [7]
    extras.check()


def test_a_missing_library_is_named_with_the_command():
    with pytest.raises(SetupError) as caught:
        extras.load("no_such_library")
    assert caught.value.code == "FF450"
    assert "no_such_library" in str(caught.value)
    assert 'pip install "fanfold[documents]"' in str(caught.value)


def test_all_missing_libraries_are_named_at_once(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(extras, "LIBRARIES", ("json", "no_such_library", "nor_this_one"))
    with pytest.raises(SetupError, match=r"no_such_library, nor_this_one\. .*fanfold\[documents\]"):
        extras.check()


def test_importing_the_pipeline_loads_no_library():
    program = (
        "import sys, fanfold.pipelines.documents\n"
        f"print(sorted(set(sys.modules) & set({extras.LIBRARIES!r})))"
    )
    answer = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert answer.stdout.strip() == "[]"
