"""Stages and shortcuts for tests that trace and compile pipelines without running them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

import fanfold as ff
from fanfold.plan import Plan


@ff.stage
def pages(document: Any) -> Iterator[Any]:
    yield from document


@ff.stage
def lines(page: Any) -> Iterator[Any]:
    yield from page


@ff.stage
def read(item: Any) -> Any:
    return item


@ff.stage
def join(a: Any, b: Any) -> Any:
    return a, b


@ff.stage(outputs=2)
def both(item: Any) -> Any:
    return item, item


def compiled(function: Callable[..., Any]) -> Plan:
    """The plan of a pipeline function over documents."""
    return ff.pipeline(level="document")(function).plan()


def problems_of(function: Callable[..., Any]) -> list[ff.Problem]:
    """All problems of a pipeline function over documents; fails if there is none."""
    with pytest.raises(ff.PipelineError) as caught:
        compiled(function)
    return list(caught.value.problems)


def problem_of(function: Callable[..., Any]) -> ff.Problem:
    """The only problem of a pipeline function over documents."""
    problems = problems_of(function)
    assert len(problems) == 1, "\n".join(map(str, problems))
    return problems[0]


def named(plan: Plan, kind: type, position: int = 0) -> Any:
    """The plan's nth node of a kind."""
    return [node for node in plan.nodes if isinstance(node, kind)][position]
