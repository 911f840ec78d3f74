"""The public names: exactly these, importable, documented, and shown in the reference."""

import inspect

import pytest

import fanfold

PUBLIC_NAMES = set(
    """
    Children Context DefinitionError Failure FanfoldError File InternalError ItemFailure Outcome ParentFailure
    Pipeline PipelineError Port Problem Report Result RetryLater RunStopped Secret SetupError SinkError
    SourceError Stage Status UsageError broadcast context expand field filter from_items gather merge pipeline
    read_files read_jsonl record split stage write_files write_jsonl
    """.split()
)
"""A name is added or taken away here on purpose, with a line in CHANGELOG.md."""


def test_the_public_names_are_these():
    assert set(fanfold.__all__) == PUBLIC_NAMES


def test_completion_offers_the_public_names_and_no_others():
    assert set(dir(fanfold)) == PUBLIC_NAMES


@pytest.mark.parametrize("name", sorted(PUBLIC_NAMES))
def test_a_public_name_is_documented(name):
    value = getattr(fanfold, name)
    assert inspect.getdoc(value), f"fanfold.{name} has no docstring"
    if inspect.isclass(value):
        members = [
            member
            for member, own in vars(value).items()
            if not member.startswith("_") and is_callable(own)
        ]
        undocumented = [one for one in members if not inspect.getdoc(getattr(value, one))]
        assert undocumented == [], f"members of fanfold.{name} without a docstring"


def is_callable(value: object) -> bool:
    return inspect.isfunction(value) or isinstance(value, classmethod | staticmethod | property)
