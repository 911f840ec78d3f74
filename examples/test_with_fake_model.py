"""Tests of a pipeline with fakes in the place of its model: no weights, no processes, breakpoints work.

Run it with ``python examples/test_with_fake_model.py``, or with ``pytest`` as your own tests; it needs pytest
(the extra ``testing``). It prints what pytest prints: three tests that pass.
"""

from collections.abc import Iterator

import pytest

import fanfold as ff


@ff.stage
def pages(text: str) -> Iterator[str]:
    """Take a document apart."""
    yield from text.split("|")


class LargeModel:
    """What production uses; here it cannot even be loaded."""

    def __init__(self, weights: str) -> None:
        raise FileNotFoundError(weights)

    def __call__(self, images: list[str]) -> list[str]:
        return images


@ff.pipeline(level="document")
def read(text: ff.Port[str], *, weights: str = "large.onnx") -> ff.Port[list[str]]:
    """The pipeline under test: pages that cannot be read are left out, but half of them must be there."""
    page = ff.expand(pages(text), "page")
    text_of_page = ff.stage(LargeModel, batch_size=8)(weights)(page)
    return ff.gather(text_of_page, failed="drop", at_least=0.5)


def fake_model(images: list[str]) -> list[str | ff.ItemFailure]:
    """Takes over the options of the stage that it replaces, so it is batched as well."""
    return [ff.ItemFailure("blank") if image == "" else image.upper() for image in images]


@pytest.mark.parametrize(("text", "expected"), [("a|b", ["A", "B"]), ("a||b", ["A", "B"])])
def test_pages_are_read_in_order(text: str, expected: list[str]) -> None:
    """`stream` in this thread contains failures, as a run does."""
    (result,) = read.using({"LargeModel": fake_model}).stream([text], backend="inline")
    assert result.value == expected


def test_a_document_of_blank_pages_fails() -> None:
    """What failed is told with its place."""
    (result,) = read.using({"LargeModel": fake_model}).stream(["||c"], backend="inline")
    assert result.status is ff.Status.FAILED
    assert [failure.ordinals for failure in result.failures] == [(0, 0), (0, 1)]


if __name__ == "__main__":
    raise SystemExit(pytest.main([__file__]))
