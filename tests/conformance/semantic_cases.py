"""The semantic cases: small programs with their meaning, read from ``cases/semantics.jsonl``.

Owns how a case becomes a pipeline through the public interface, and how what was observed is told in the
cases' own terms.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import fanfold as ff
from fanfold.outcomes import Outcome
from fanfold.plan import Plan
from tests.conformance import case_stages

FILE: Final = Path(__file__).parent / "cases" / "semantics.jsonl"


@dataclass(frozen=True)
class Case:
    """One line of the file."""

    id: str
    title: str
    graph: Mapping[str, Any]
    inputs: Mapping[str, Sequence[Any]]
    expect: Mapping[str, Any]

    def roots(self) -> list[tuple[Any, ...]]:
        return list(zip(*(self.inputs[name] for name in self.graph["sources"]), strict=True))


def load() -> list[Case]:
    """All cases, in the file's order."""
    cases = []
    for line in FILE.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        cases.append(Case(row["id"], row["title"], row["graph"], row["inputs"], row["expect"]))
    return cases


def pipeline_of(case: Case) -> Any:
    """The case's pipeline, the way a user would write it."""
    graph = case.graph
    stages = _Stages()

    def trace(*sources: Any) -> Any:
        ports = dict(zip(graph["sources"], sources, strict=True))
        for node in graph["nodes"]:
            made = _apply(node, ports, stages)
            names = [node["out"]] if isinstance(node["out"], str) else node["out"]
            results = made if isinstance(made, tuple) else (made,)
            ports.update(zip(names, results, strict=True))
        outputs = graph["outputs"]
        return (
            ports[outputs] if isinstance(outputs, str) else tuple(ports[name] for name in outputs)
        )

    def one(a: ff.Port[Any]) -> Any:
        return trace(a)

    def two(a: ff.Port[Any], b: ff.Port[Any]) -> Any:
        return trace(a, b)

    def three(a: ff.Port[Any], b: ff.Port[Any], c: ff.Port[Any]) -> Any:
        return trace(a, b, c)

    function: Any = {1: one, 2: two, 3: three}[len(graph["sources"])]
    return ff.pipeline(level="root")(function)


class _Stages:
    """The case's stage objects; calls with one ``worker`` label share one."""

    def __init__(self) -> None:
        self._shared: dict[str, Any] = {}
        self._made = 0

    def __call__(self, node: Mapping[str, Any]) -> Any:
        label = node.get("worker")
        if label in self._shared:
            return self._shared[label]
        self._made += 1
        options: dict[str, Any] = {
            "name": f"{node['udf']}_{self._made}",
            "batch_size": node["batch"],
        }
        if len(node["out"]) > 1:
            options["outputs"] = len(node["out"])
        policy = node.get("policy", "")
        if policy.startswith("retry:"):
            options["retries"] = int(policy.removeprefix("retry:"))
        if policy != "isolate":
            options["on_error"] = "stop"
        stage = ff.stage(case_stages.Batched, **options)(node["udf"], self._made)
        if label is not None:
            self._shared[label] = stage
        return stage


def _apply(node: Mapping[str, Any], ports: Mapping[str, Any], stages: _Stages) -> Any:
    inputs = [ports[name] for name in node["in"]]
    match node["op"]:
        case "call":
            named = {key: ports[name] for key, name in node.get("kw", {}).items()}
            return stages(node)(*inputs, **named, **node.get("params", {}))
        case "expand":
            return ff.expand(*inputs, f"level {node['out'][0]}")
        case "gather":
            more = {"members": ports[node["members"]]} if "members" in node else {}
            return ff.gather(*inputs, **more)
        case "filter":
            return ff.filter(inputs[0], ports[node["mask"]])
        case "broadcast":
            return ff.broadcast(inputs[0], like=ports[node["like"]])
    raise AssertionError(node["op"])


def differences(case: Case, plan: Plan, items: Mapping[int, Mapping[Any, Any]]) -> list[str]:
    """What of the case's expectation does not hold. ``items`` are the interpreter's or a run's."""
    expected = case.expect["outputs"]
    outputs = [expected] if isinstance(case.graph["outputs"], str) else expected
    found = []
    for output, values in zip(plan.outputs, outputs, strict=True):
        seen = [item for _, item in sorted(items[output.port].items())]
        if len(seen) != len(values) or not all(map(_fits, values, seen)):
            found.append(f"{plan.ports[output.port].name}: expected {values}, got {seen}")
    return found


def _fits(expected: Any, item: Any) -> bool:
    if not isinstance(expected, dict):
        return item.outcome is Outcome.DONE and bool(item.value == expected)
    if item.outcome.value != expected["$"]:
        return False
    cause = expected.get("cause")
    causes = item.causes if hasattr(item, "causes") else [item.failure]
    return cause is None or all(
        cause[1:] in failure.message if cause.startswith("~") else failure.message == cause
        for failure in causes
    )
