"""The compiler's front: all checks, then the lowering; all problems at once or a plan.

Owns the order of the checks and how their findings are put together. Each check lives in a module of its
own: the trace, :mod:`fanfold.compiler.levels`, :mod:`fanfold.compiler.origins`.
"""

from __future__ import annotations

import warnings

from fanfold.compiler.advice import twin_stages
from fanfold.compiler.levels import Levels
from fanfold.compiler.lower import lower, needed_ops
from fanfold.compiler.origins import check_origins
from fanfold.errors import PipelineError, Problem
from fanfold.model.graph import CallOp, Graph
from fanfold.plan import Plan


def compile_graph(graph: Graph) -> Plan:
    """Check a traced graph and lower it.

    Raises:
        PipelineError: With all problems that tracing and checking found, by source line within a file.
    """
    levels = Levels(graph)
    problems = [*graph.problems, *levels.problems, *check_origins(graph)]
    if graph.complete and graph.outputs:
        problems += _unreachable(graph, levels)
    if problems:
        raise PipelineError(graph.name, sorted(problems, key=_by_line))
    plan = lower(graph, levels)
    for message in twin_stages(plan):
        warnings.warn(message, stacklevel=3)
    return plan


def _unreachable(graph: Graph, levels: Levels) -> list[Problem]:
    """Calls whose results no output depends on."""
    needed = needed_ops(graph, levels)
    return [
        Problem(
            "FF216",
            op.where,
            f"no output can be reached from call {op.name!r}, so it would run for nothing.",
            "Return what it makes, or remove it (calls for their effect alone are not available yet).",
        )
        for index, op in enumerate(graph.ops)
        if isinstance(op, CallOp) and index not in needed
    ]


def _by_line(problem: Problem) -> tuple[str, int]:
    return problem.where.file, problem.where.line
