"""Wrong pipelines, each with what is said of it: how tests of messages are written."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import fanfold as ff
from tests.pipelines import compiled


class Said:
    """The wrong pipelines of one module."""

    def __init__(self) -> None:
        self.of: list[tuple[Callable[..., Any], str]] = []

    def told(self, text: str) -> Callable[[Any], Any]:
        """Note what is to be said of the pipeline function below."""

        def decorate(function: Any) -> Any:
            self.of.append((function, text))
            return function

        return decorate


def shown(function: Callable[..., Any]) -> str:
    """All that is said of a pipeline function, with its lines counted from its ``def``."""
    with pytest.raises(ff.PipelineError) as caught:
        compiled(function)
    source, first = inspect.getsourcelines(function)
    first += next(n for n, line in enumerate(source) if line.startswith("def "))
    module = Path(inspect.getfile(function)).name

    def line(match: re.Match[str]) -> str:
        return f"line {max(int(match.group(1)) - first + 1, 1)}"  # a decorator is above it

    return re.sub(rf"{re.escape(module)}:(\d+)", line, str(caught.value))
