"""When a run equals the reference interpreter.

Owns the rule (M33): each item of each output port has the interpreter's outcome, its value if done, and a
cause out of the set that the interpreter gives, and so has each item of an effect, but for its value; a root's
failures are among the plan's, with at least one for each lost output. Where a parent failure may get ahead of
an item, the interpreter gives all that the item may be, and a run has to agree with one of them. Knows neither
how the meaning was computed nor how the run was made.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from fanfold.failures import Failure
from fanfold.outcomes import Outcome
from fanfold.plan import Plan
from fanfold.testing.cases import LOST, Item, Ordinals
from fanfold.testing.interpreter import Interpretation, MarkedFailure

OWN_WORDS: Final = frozenset({"raised", "declared"})
"""Kinds whose message is the user's, so that a run has to repeat it; elsewhere the words are ours."""


@dataclass(frozen=True, slots=True)
class Seen:
    """One output item of a real run: its outcome, its value if done, its cause if lost."""

    outcome: Outcome
    value: Any = None
    failure: Failure | None = None


Observation: TypeAlias = Mapping[int, Mapping[Ordinals, Seen]]
"""By port: the output items of a real run, by their full ordinals (the root's position first)."""


def compare(plan: Plan, interpreted: Interpretation, observed: Observation) -> list[str]:
    """All differences between a run and the meaning of its plan, in words; none if they are equal.

    Args:
        plan: The compiled pipeline.
        interpreted: Its meaning.
        observed: The run's items; those of effects are compared where they are there.
    """
    return list(_differences(plan, interpreted, observed)) if interpreted.whole else []


_Place: TypeAlias = tuple[str, tuple[str, ...], tuple[int, ...]]
"""A failure's key, levels and ordinals."""


def compare_failures(
    plan: Plan, interpreted: Interpretation, failures: Mapping[int, Sequence[Failure]]
) -> list[str]:
    """Differences between the failures listed for each root and those that the plan can have.

    Args:
        plan: The compiled pipeline.
        interpreted: Its meaning.
        failures: By the root's position, the failures that the run listed for it.
    """
    if not interpreted.whole:
        return []
    # By their place: with all places together every failure would be held against all that there can be.
    possible: dict[_Place, set[Failure]] = {}
    for some in (
        interpreted.missing,
        *(
            one.causes
            for items in interpreted.ports.values()
            for item in items.values()
            for one in (item, *item.otherwise)
        ),
    ):
        for cause in some:
            possible.setdefault(_place(cause), set()).add(cause)
    told: dict[tuple[int, _Place], list[Failure]] = {}
    for root, listed in failures.items():
        for failure in listed:
            told.setdefault((root, _place(failure)), []).append(failure)
    found = [
        f"root {root} lists a failure that cannot happen: {show(failure)}"
        for root, listed in failures.items()
        for failure in listed
        if not _is_cause(possible.get(_place(failure), ()), failure)
    ]
    for output in plan.outputs:
        for at, item in interpreted.ports[output.port].items():
            may_be = (item, *item.otherwise)
            if item.optional or any(one.outcome not in LOST for one in may_be):
                continue  # whether it is lost in this run is not known here
            if not any(
                same_failure(cause, failure)
                for one in may_be
                for cause in one.causes
                for failure in told.get((at[0], _place(cause)), ())
            ):
                found.append(
                    f"{_name(plan, output.port, at)} is lost, but none of its causes is listed"
                )
    return found


def _differences(plan: Plan, interpreted: Interpretation, observed: Observation) -> Iterator[str]:
    outputs = {output.port for output in plan.outputs}
    effects = {port for call in plan.effects for port in plan.call(call).outputs} - outputs
    for port in sorted(outputs | (effects & observed.keys())):
        expected, seen = interpreted.ports[port], observed.get(port, {})
        for at in sorted(expected.keys() | seen.keys()):
            name = _name(plan, port, at)
            if at not in seen:
                later = [other for other in seen if other[:-1] == at[:-1] and other > at]
                if later or not expected[at].optional:
                    yield f"{name} is missing; it should be {_show_item(expected[at])}"
            elif at not in expected:
                yield f"{name} does not exist, but was observed as {seen[at]}"
            else:
                different = _compare_item(expected[at], seen[at], valued=port in outputs)
                yield from (f"{name} {text}" for text in different)


def _compare_item(expected: Item, seen: Seen, *, valued: bool) -> Sequence[str]:
    """How it differs from all that it may be."""
    found = [
        list(_compare_one(one, seen, valued=valued)) for one in (expected, *expected.otherwise)
    ]
    if not all(found):
        return ()
    return [" or ".join(text for texts in found for text in texts)]


def _compare_one(expected: Item, seen: Seen, *, valued: bool) -> Iterator[str]:
    if seen.outcome is not expected.outcome:
        got = (
            seen.outcome.value
            if seen.failure is None
            else f"{seen.outcome.value} ({show(seen.failure)})"
        )
        yield f"should be {_show_item(expected)}, but is {got}"
    elif expected.outcome is Outcome.DONE:
        if valued and not same_value(expected.value, seen.value):
            yield f"should be {expected.value!r}, but is {seen.value!r}"
    elif expected.outcome in LOST:
        if seen.failure is None:
            yield f"is {seen.outcome.value} and names no cause"
        elif not _is_cause(expected.causes, seen.failure):
            yield f"names {show(seen.failure)}, which is none of {_show_all(expected.causes)}"


def _place(failure: Failure) -> _Place:
    return failure.key, failure.levels, failure.ordinals


def _is_cause(causes: Iterable[Failure], failure: Failure) -> bool:
    return any(same_failure(cause, failure) for cause in causes)


def same_failure(expected: Failure, seen: Failure) -> bool:
    """Whether a run's record tells of the failure that the interpreter found.

    What depends on the run (traceback, attempts, worker) does not count, nor do our own words; a
    structural operation's failure may be told at any call.
    """
    same_place = _place(expected) == _place(seen)
    same_call = not expected.call or expected.call == seen.call
    same_kind = (expected.kind, expected.scope) == (seen.kind, seen.scope)
    if not same_place or not same_call or not same_kind:
        return False
    if expected.kind not in OWN_WORDS:
        return True
    return (expected.message, expected.code, expected.exception) == (
        seen.message,
        seen.code,
        seen.exception,
    )


def same_value(expected: Any, seen: Any) -> bool:
    """Equality of values and of their types, with marked failures matched by what may stand there."""
    if isinstance(expected, MarkedFailure):
        return isinstance(seen, Failure) and _is_cause(expected.alternatives, seen)
    if type(expected) is not type(seen):
        return False
    if isinstance(expected, (list, tuple)):
        return len(expected) == len(seen) and all(map(same_value, expected, seen))
    if isinstance(expected, dict):
        return list(expected) == list(seen) and all(
            same_value(value, seen[key]) for key, value in expected.items()
        )
    if isinstance(expected, BaseException):  # inside of a value it is one, and compares by identity
        return bool(expected.args == seen.args and vars(expected) == vars(seen))
    if hasattr(expected, "shape"):
        return bool(expected.shape == seen.shape and (expected == seen).all())
    return bool(expected == seen)


def show(failure: Failure) -> str:
    """A failure in one line."""
    place = f"{failure.call or 'structure'}, {failure.where()} {failure.ordinals}"
    return f"{failure.kind} {failure.message!r} at {place}"


def _show_item(item: Item) -> str:
    if item.outcome is Outcome.DONE:
        return f"done with {item.value!r}"
    return f"{item.outcome.value} {_show_all(item.causes)}" if item.causes else item.outcome.value


def _show_all(causes: frozenset[Failure]) -> str:
    return "{" + "; ".join(sorted(map(show, causes))) + "}"


def _name(plan: Plan, port: int, at: Ordinals) -> str:
    spec = plan.ports[port]
    kind = "output" if any(port == output.port for output in plan.outputs) else "effect"
    return f"{kind} {spec.name} (port {port}, level {plan.levels[spec.level].name}) at {at}"
