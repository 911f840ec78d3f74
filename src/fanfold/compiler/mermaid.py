"""Mermaid: a plan as a flowchart that many Markdown viewers draw.

Owns the drawing: levels are nested boxes, calls are rectangles with their pool, structural operations are
rounded, sources and outputs are stadiums; a mask or a label is a dotted arrow.
"""

from __future__ import annotations

from collections.abc import Iterator

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


def mermaid(plan: Plan) -> str:
    """The flowchart of a plan, without the Markdown fence."""
    lines = ["flowchart TB"]
    lines += _box(plan, 0, "  ")
    for number, output in enumerate(plan.outputs):
        lines.append(f"  {_output(number, output.name or 'output')}")
    for node in plan.nodes:
        for port, arrow in _arrows(node):
            lines.append(f"  {_maker(plan, port)} {arrow} N{node.index}")
    for number, output in enumerate(plan.outputs):
        lines.append(f"  {_maker(plan, output.port)} --> O{number}")
    return "\n".join(lines)


def _box(plan: Plan, level: int, indent: str) -> Iterator[str]:
    """A level's box: what lives there, then the boxes of the levels below."""
    yield f'{indent}subgraph L{level}["{_text(plan.levels[level].name)}"]'
    if level == 0:
        for number, source in enumerate(plan.sources):
            yield f'{indent}  S{number}(["{_text(source.name)}"])'
    for node in plan.nodes:
        if node.level == level:
            yield f"{indent}  {_shape(plan, node)}"
    for below in plan.levels:
        if below.parent == level:
            yield from _box(plan, below.index, indent + "  ")
    yield f"{indent}end"


def _replicas(stage: StageSpec) -> str:
    match stage.most_replicas:
        case None:
            return str(stage.replicas)
        case 0:
            return f"{stage.replicas} or more"
        case most:
            return f"{stage.replicas} to {most}"


def _shape(plan: Plan, node: Node) -> str:
    match node:
        case CallNode():
            stage = plan.stages[node.stage]
            batch = "" if stage.batch_size is None else f", batch {stage.batch_size}"
            effect = "<br/>effect" if node.index in plan.effects else ""
            pool = f"{_replicas(stage)} × {_text(stage.name)}{batch}"
            return f'N{node.index}["{_text(node.name)}<br/>{pool}{effect}"]'
        case ExpandNode():
            return f'N{node.index}("expand to {_text(plan.levels[node.level].name)}")'
        case GatherNode():
            return f'N{node.index}("gather of {_text(plan.levels[node.child_level].name)}")'
        case FieldNode():
            return f'N{node.index}("field {_text(node.name)}")'
        case SplitNode():
            labels = [*map(str, node.labels), *(["..."] if node.rest else [])]
            return f'N{node.index}("split: {_text(", ".join(labels))}")'
        case RecordNode():
            names = ", ".join(name for name, _ in node.fields)
            return f'N{node.index}("record: {_text(names)}")'
        case FilterNode() | MergeNode() | BroadcastNode():
            kind = type(node).__name__.removesuffix("Node").lower()
            return f'N{node.index}("{kind}")'


def _arrows(node: Node) -> list[tuple[int, str]]:
    """The ports that a node reads, each with the arrow to draw."""
    match node:
        case CallNode():
            return [(item.port, "-->") for item in node.inputs]
        case GatherNode():
            members = [] if node.members is None else [(node.members, "-.->")]
            return [*((port, "-->") for port in node.inputs), *members]
        case ExpandNode() | MergeNode():
            return [(port, "-->") for port in node.inputs]
        case FilterNode():
            return [(node.input, "-->"), (node.mask, "-.->")]
        case SplitNode():
            return [(node.input, "-->"), (node.by, "-.->")]
        case BroadcastNode() | FieldNode():
            return [(node.input, "-->")]
        case RecordNode():
            return [(part, "-->") for _, part in node.fields if isinstance(part, int)]


def _maker(plan: Plan, port: int) -> str:
    """The drawn thing that makes a port."""
    node = plan.ports[port].node
    if node is not None:
        return f"N{node}"
    return next(f"S{n}" for n, source in enumerate(plan.sources) if source.stream.port == port)


def _output(number: int, name: str) -> str:
    return f'O{number}(["{_text(name)}"])'


def _text(text: str) -> str:
    """Quotes and brackets would end a label."""
    return (
        text.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;").replace(">", "&gt;")
    )
