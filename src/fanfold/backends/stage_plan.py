"""The part of a plan that one worker needs: its stage, the stage's calls and what is reported of them.

Owns that selection, so that a worker imports its own stage's code and nobody else's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from fanfold.plan import CallNode, CallStreams, Control, FieldCheck, Plan, StageSpec


@dataclass(frozen=True, slots=True)
class StagePlan:
    """One stage, with all that the plan says of it. The mappings have the plan's own indices as keys."""

    stage: StageSpec
    calls: Mapping[int, CallNode]
    streams: Mapping[int, CallStreams]
    controls: Mapping[int, Control]
    checks: Mapping[int, FieldCheck]
    groupers: Mapping[int, Callable[..., Any]]
    """By call, of whichever stage, whose items are grouped by what this one makes: the function."""
    costers: Mapping[int, Callable[..., Any]]
    """By call, of whichever stage, whose items have a cost: the function."""
    class_number: int = 0
    """The same for all stages of one class, which are set up on a node together."""


def stage_plan(plan: Plan, stage: int) -> StagePlan:
    """What the workers of a stage need of a plan."""
    calls = {call.index: call for call in plan.calls() if call.stage == stage}
    streams = {call: plan.streams[call] for call in calls}
    told = [
        stream
        for call in streams.values()
        for stream in (*call.items, *(s for e in call.expansions for s in e.streams))
    ]
    spec, groupers, costers = plan.stages[stage], plan.groupers, plan.costers
    return StagePlan(
        spec,
        calls,
        streams,
        {index: plan.controls[index] for stream in told for index, _ in stream.controls},
        {index: plan.checks[index] for stream in told for index, _ in stream.checks},
        {index: groupers[index] for stream in told for index, _ in stream.groups},
        {index: costers[index] for stream in told for index, _ in stream.costs},
        next(other.index for other in plan.stages if other.target is spec.target),
    )
