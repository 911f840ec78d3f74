"""Values of the types that people use pass through stages as they are."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
from PIL import Image

from tests.conformance.value_stages import examples, through


def plain(value: Any) -> Any:
    """A value with everything that decides whether it is the same, in a form that compares."""
    if isinstance(value, Image.Image):
        return type(value), value.mode, value.size, value.tobytes()
    if isinstance(value, np.ndarray):
        return type(value), value.dtype, value.shape, value.tolist()
    if isinstance(value, list):
        return list(map(plain, value))
    if isinstance(value, dict):
        return {name: plain(part) for name, part in value.items()}
    if dataclasses.is_dataclass(value):
        parts = [plain(getattr(value, field.name)) for field in dataclasses.fields(value)]
        return type(value), parts
    return type(value), value


@pytest.mark.parametrize("backend", ["inline", "local"])
@pytest.mark.parametrize("memory", ["1GB", "64KB"])
def test_values_of_all_types_come_as_they_were_made(backend: str, memory: str) -> None:
    results = list(through.stream([0, 1], backend=backend, memory=memory))
    assert len(results) == 2
    for result in results:
        assert result.failures == ()
        for value, example in zip(result.value, examples(), strict=True):
            assert plain(value) == plain(example)
