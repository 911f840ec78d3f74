"""Explain: a plan in words and as a picture.

Owns the layout of ``pipeline.explain()``; reads the plan and nothing else.
"""

from __future__ import annotations

from fanfold.errors import UsageError
from fanfold.plan import Plan


def explain(plan: Plan, format: str = "text") -> str:
    raise UsageError("FF226", f"explain has no format {format!r}.", 'Use "text" or "mermaid".')
