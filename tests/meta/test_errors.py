"""Rules for errors: each code is documented, each class pickles and has its exit code."""

import importlib
import inspect
import pickle
import pkgutil
import re
from pathlib import Path
from typing import Any

import pytest

import fanfold
from fanfold.errors import FanfoldError, PipelineError, Problem
from fanfold.plan import Where
from tools.error_codes import Site, page, sites

ROOT = Path(__file__).resolve().parents[2]
LITERAL = re.compile(r"""["'](FF\d{3})["']""")
EXIT_CODES = {1, 2, 3, 70, 130}


def codes_in_sources() -> set[str]:
    texts = [path.read_text(encoding="utf-8") for path in (ROOT / "src").rglob("*.py")]
    return {code for text in texts for code in LITERAL.findall(text)}


def test_every_code_has_an_entry_with_an_anchor_and_a_message():
    entries = re.findall(r"\((ff\d{3})\)=\n### (FF\d{3})\n\n(> )?", page())
    assert all(anchor.upper() == code for anchor, code, _ in entries)
    assert [code for _, code, _ in entries] == sorted(codes_in_sources())
    silent = [code for _, code, message in entries if not message]
    assert silent == [], (
        "their messages were not found; give the text in the call or just before it"
    )


SOURCE = '''
def define(name, depth):
    if depth:
        raise DefinitionError("FF201", f"call {name!r} is at *{self._depth}*.", "Gather it first.")
    message = "it is " + str(depth)
    problem(message, code="FF202")
    hint("FF2031", "FF20")


class Many(DefinitionError):
    """Several things are wrong.

    More about it.
    """

    def __init__(self, lines):
        super().__init__("FF203", ", ".join(lines))
'''


def test_messages_are_found_with_what_is_filled_in(tmp_path):
    (tmp_path / "ops.py").write_text(SOURCE)
    assert sites(tmp_path) == [
        Site("FF201", "ops.py", ("call {name} is at *{depth}*.", "Gather it first.")),
        Site("FF202", "ops.py", ("it is {…}",)),
        Site("FF203", "ops.py", ("Several things are wrong.",)),
    ]


def error_classes() -> list[type[FanfoldError]]:
    found: set[type[FanfoldError]] = set()
    for module in pkgutil.walk_packages(fanfold.__path__, "fanfold."):
        for _, value in inspect.getmembers(importlib.import_module(module.name), inspect.isclass):
            if issubclass(value, FanfoldError):
                found.add(value)
    return sorted(found, key=lambda one: one.__qualname__)


ARGUMENTS: dict[type[FanfoldError], tuple[Any, ...]] = {
    PipelineError: (
        "to_text",
        [Problem(f"FF20{n}", Where("flow.py", n), "what is wrong", "what to do") for n in (1, 2)],
    ),
}
"""What to construct an error with, for classes that do not take code, message and hint."""


def test_what_to_do_stands_apart_from_a_traceback():
    assert str(FanfoldError("FF999", "It broke.", "Mend it.")) == "FF999 It broke. Mend it."
    traced = FanfoldError("FF999", "It broke.\nTraceback: here\n", "Mend it.")
    assert str(traced) == "FF999 It broke.\nTraceback: here\nWhat to do: Mend it."
    assert str(FanfoldError("FF999", "It broke.\n")) == "FF999 It broke.\n"


@pytest.mark.parametrize("error_class", error_classes())
def test_an_error_pickles_and_has_an_exit_code(error_class):
    error = error_class(*ARGUMENTS.get(error_class, ("FF999", "what happened", "what to do")))
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is error_class
    assert str(again) == str(error)
    assert vars(again) == vars(error)
    assert error_class.exit_code in EXIT_CODES
