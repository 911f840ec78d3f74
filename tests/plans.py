"""Small plans written by hand, so that the engine's tests need neither model nor compiler."""

from __future__ import annotations

from fanfold.plan import (
    CallNode,
    CallStreams,
    ExpandNode,
    Expansion,
    GatherNode,
    Input,
    Level,
    Output,
    Plan,
    PortSpec,
    Source,
    StageSpec,
    Stream,
)


def fan_out_plan(*, batch_size: int | None = 256, failed: str = "fail") -> Plan:
    """document → pages() → expand → read() → gather → join(); returns join's output."""
    return Plan(
        name="fan_out",
        levels=(Level(0, "document", 0), Level(1, "page", 1, parent=0, expand=1)),
        stages=tuple(
            StageSpec(i, name, target=len, batch_size=batch_size)
            for i, name in enumerate(("pages", "read", "join"))
        ),
        ports=(
            PortSpec(0, "document", 0, None),
            PortSpec(1, "pages", 0, 0),
            PortSpec(2, "page", 1, 1),
            PortSpec(3, "read", 1, 2),
            PortSpec(4, "gather(read)", 0, 3),
            PortSpec(5, "join", 0, 4),
        ),
        nodes=(
            CallNode(0, "pages", 0, 0, (Input(0),), (1,)),
            ExpandNode(1, 0, 1, (1,), (2,)),
            CallNode(2, "read", 1, 1, (Input(2),), (3,)),
            GatherNode(3, 0, 1, (3,), (4,), failed=failed),  # type: ignore[arg-type]
            CallNode(4, "join", 2, 0, (Input(4),), (5,)),
        ),
        sources=(Source("document", Stream(0, 0)),),
        outputs=(Output(None, 5),),
        structure="single",
        streams={
            0: CallStreams(0, (), (Expansion(1, 1, (Stream(2, 1),)),)),
            2: CallStreams(2, (Stream(3, 1),), ()),
            4: CallStreams(4, (Stream(5, 0),), ()),
        },
    )
