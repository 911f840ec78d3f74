"""The compiler's front: all checks, then the lowering; all problems at once or a plan.

Owns the order of the checks and how their findings are put together. Each check lives in a module of its
own: the trace, :mod:`fanfold.compiler.levels`, :mod:`fanfold.compiler.origins`.
"""

from __future__ import annotations

import warnings

from fanfold.compiler.advice import twin_stages
from fanfold.compiler.levels import Levels
from fanfold.compiler.lower import lower
from fanfold.compiler.origins import check_origins
from fanfold.errors import PipelineError, Problem
from fanfold.model.graph import Graph
from fanfold.plan import Plan


def compile_graph(graph: Graph) -> Plan:
    """Check a traced graph and lower it.

    Raises:
        PipelineError: With all problems that tracing and checking found, by source line within a file.
    """
    levels = Levels(graph)
    problems = [*graph.problems, *levels.problems, *check_origins(graph)]
    if problems:
        raise PipelineError(graph.name, sorted(problems, key=_by_line))
    plan = lower(graph, levels)
    for message in twin_stages(plan):
        warnings.warn(message, stacklevel=3)
    return plan


def _by_line(problem: Problem) -> tuple[str, int]:
    return problem.where.file, problem.where.line
