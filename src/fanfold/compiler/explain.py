"""Explain: a plan in words, for ``pipeline.explain()``.

Owns the layout of the text; :mod:`fanfold.compiler.mermaid` draws the picture. Reads the plan and nothing
else, and shows no machine's paths.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fanfold.compiler.advice import advice
from fanfold.compiler.mermaid import mermaid
from fanfold.errors import UsageError
from fanfold.plan import (
    BroadcastNode,
    CallNode,
    ExpandNode,
    FieldNode,
    FilterNode,
    GatherNode,
    MergeNode,
    Node,
    Plan,
    RecordNode,
    SplitNode,
    StageSpec,
)
from fanfold.sizes import size_in_words

_ARGUMENT_LIMIT_CHARS = 40


def explain(
    plan: Plan, format: str = "text", settings: Sequence[tuple[str, object, str]] = ()
) -> str:
    """A plan for people.

    Args:
        plan: The plan.
        format: ``"text"`` or ``"mermaid"``.
        settings: Name, value and a remark for each setting with which the plan was made.

    Raises:
        UsageError: There is no such format (FF226).
    """
    if format == "mermaid":
        return mermaid(plan)
    if format != "text":
        raise UsageError("FF226", f"explain has no format {format!r}.", 'Use "text" or "mermaid".')
    sections = [
        ("settings", [[name, _shown(value), remark] for name, value, remark in settings]),
        ("levels", _levels(plan)),
        ("calls, each with a ready queue of its own", _calls(plan)),
        ("pools of workers", _pools(plan)),
        ("structural operations, which occupy no worker", _operations(plan)),
        ("broadcasts, each one level down", _broadcasts(plan)),
        ("outputs", _outputs(plan)),
        ("effects, which no output depends on", _effects(plan)),
        ("warnings", [[warning] for warning in advice(plan)]),
    ]
    lines = [f"pipeline {plan.name}"]
    for title, rows in sections:
        if rows:
            lines += ["", title, *_table(rows)]
    return "\n".join(lines)


def _levels(plan: Plan) -> list[list[str]]:
    rows = []
    for level in plan.levels:
        name = "  " * level.depth + level.name
        if level.expand is None:
            rows.append([name, "the source: " + ", ".join(source.name for source in plan.sources)])
            continue
        node = plan.nodes[level.expand]
        assert isinstance(node, ExpandNode)
        opened = ", ".join(plan.ports[port].name for port in node.inputs)
        rows.append([name, f"expand of {opened}", node.where.short()])
    return rows


def _calls(plan: Plan) -> list[list[str]]:
    return [
        [
            call.name,
            plan.levels[call.level].name,
            _how(plan.stages[call.stage]),
            "reads " + ", ".join(_input(plan, call, i) for i in range(len(call.inputs))),
            call.where.short(),
        ]
        for call in plan.calls()
    ]


def _input(plan: Plan, call: CallNode, position: int) -> str:
    item = call.inputs[position]
    name = plan.ports[item.port].name
    return name if item.keyword is None else f"{item.keyword}={name}"


def _how(stage: StageSpec) -> str:
    rate = "" if stage.rate_limit is None else f", at most {_rate(stage.rate_limit)}"
    return _taken(stage) + rate


def _rate(per_s: float) -> str:
    """A rate in the largest numbers that read well."""
    if per_s >= 1:
        return f"{per_s:g} calls a second"
    return (
        f"{per_s * 60:g} calls a minute" if per_s * 60 >= 1 else f"{per_s * 3600:g} calls an hour"
    )


def _taken(stage: StageSpec) -> str:
    if stage.generator:
        return "one item at a time, yields children"
    if stage.batch_size is not None:
        going = f", {stage.max_in_flight} going" if stage.asynchronous else ""
        return f"batches of up to {stage.batch_size}{_forming(stage)}{going}"
    return f"{stage.max_in_flight} items going" if stage.asynchronous else "one item at a time"


def _forming(stage: StageSpec) -> str:
    """What else is said of how batches form."""
    size = "" if stage.batch_bytes is None else f" or {stage.batch_bytes:,} bytes"
    if stage.batch_cost is not None:
        size += f" or {stage.max_batch_cost:,g} of {getattr(stage.batch_cost, '__name__', 'batch_cost')}"
    if stage.batch_by is not None:
        size += f" of equal {getattr(stage.batch_by, '__name__', 'batch_by')}"
    linger = "" if stage.linger_s is None else f", lingering {stage.linger_s:g} s"
    return size + linger


def _pools(plan: Plan) -> list[list[str]]:
    rows = []
    for stage in plan.stages:
        worker = "thread" if stage.workers == "thread" else "worker"
        workers = f"1 {worker}" if stage.replicas == 1 else f"{stage.replicas} {worker}s"
        resources = ", ".join(_resources(stage))
        calls = [call.name for call in plan.calls() if call.stage == stage.index]
        rows.append([stage.name, workers, resources, _made_of(stage), f"for {', '.join(calls)}"])
    return rows


def _resources(stage: StageSpec) -> Iterator[str]:
    """What a replica has, and when it is replaced."""
    cores = stage.cpus or 1
    yield "1 core each" if cores == 1 else f"{cores} cores each"
    if stage.gpus is not None:
        yield "1 GPU each" if stage.gpus == 1 else f"{float(stage.gpus):g} GPUs each"
    if stage.memory is not None:
        yield f"{size_in_words(stage.memory)} of memory each"
    if stage.recycle_after is not None:
        yield f"replaced after {stage.recycle_after:,} items"
    if stage.recycle_above is not None:
        yield f"replaced above {size_in_words(stage.recycle_above)}"


def _made_of(stage: StageSpec) -> str:
    name = getattr(stage.target, "__qualname__", type(stage.target).__qualname__)
    method = f".{stage.method}" if stage.method else ""
    if not stage.is_class:
        return f"{name}{method}"
    arguments = [_shown(value) for value in stage.args]
    arguments += [f"{key}={_shown(value)}" for key, value in stage.kwargs.items()]
    return f"{name}({', '.join(arguments)}){method}"


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _ARGUMENT_LIMIT_CHARS else f"<{type(value).__name__}>"


def _operations(plan: Plan) -> list[list[str]]:
    return [
        [plan.levels[node.level].name, words, node.where.short()]
        for node in plan.nodes
        if (words := _words(plan, node))
    ]


def _words(plan: Plan, node: Node) -> str:
    def names(ports: Sequence[int]) -> str:
        return ", ".join(plan.ports[port].name for port in ports)

    match node:
        case GatherNode():
            level = plan.levels[node.child_level].name
            failed = "" if node.failed == "fail" else f', failed="{node.failed}"'
            least = "" if node.at_least is None else f", at_least={node.at_least}"
            members = "" if node.members is None else f", members={names([node.members])}"
            return f"gather {names(node.inputs)} of each {level}{failed}{least}{members}"
        case FilterNode():
            return f"filter {names([node.input])} by {names([node.mask])}"
        case SplitNode():
            labels = [*map(repr, node.labels), *(["..."] if node.rest else [])]
            return f"split {names([node.input])} by {names([node.by])} into {', '.join(labels)}"
        case MergeNode():
            default = "" if node.default is None else f", default={_shown(node.default.value)}"
            failed = "" if node.failed == "stop" else f', failed="{node.failed}"'
            return f"merge {names(node.inputs)}{default}{failed}"
        case RecordNode():
            return f"record of {', '.join(name for name, _ in node.fields)}"
        case ExpandNode():
            opened = f"expand {names(node.inputs)}"
            return opened if len(node.inputs) == 1 else f"{opened}, aligned"
        case CallNode() | FieldNode() | BroadcastNode():
            return ""


def _broadcasts(plan: Plan) -> list[list[str]]:
    rows = []
    for node in plan.nodes:
        if isinstance(node, BroadcastNode):
            source = plan.ports[node.input]
            way = f"{plan.levels[source.level].name} to {plan.levels[node.level].name}"
            rows.append([source.name, way, node.where.short()])
    return rows


def _outputs(plan: Plan) -> list[list[str]]:
    rows = []
    for output in plan.outputs:
        port = plan.ports[output.port]
        rows.append(
            [output.name or "-", port.name, f"one record per {plan.levels[port.level].name}"]
        )
    return rows


def _effects(plan: Plan) -> list[list[str]]:
    return [
        [call.name, f"once per {plan.levels[call.level].name}", call.where.short()]
        for call in plan.calls()
        if call.index in plan.effects
    ]


def _table(rows: Sequence[Sequence[str]]) -> list[str]:
    """Rows with aligned columns; the last column is as long as it is."""
    columns = max(len(row) for row in rows)
    widths = [
        max((len(row[column]) for row in rows if len(row) > column + 1), default=0)
        for column in range(columns)
    ]
    return [
        "  "
        + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=False)).rstrip()
        for row in rows
    ]
