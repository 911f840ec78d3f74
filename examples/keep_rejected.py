"""A cheap filter before an expensive model; what it rejects is kept in a file of its own, with the reason.

Run it with ``python examples/keep_rejected.py``; it writes two files below ``out/rejected``. It prints both,
and how many rows the expensive model saw.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fanfold as ff

OUT = Path("out", "rejected")


@ff.stage
def rows(shard: dict[str, Any]) -> Iterator[str]:
    """The rows of a shard."""
    yield from shard["rows"]


@ff.stage
def verdict(row: str) -> str:
    """``good``, or the reason why not."""
    if len(row) < 4:
        return "too short"
    return "good" if row.isascii() else "not English"


@ff.stage(batch_size=8)
def fake_quality_model(texts: list[str]) -> list[int]:
    """The expensive one: it sees only what was kept."""
    return [len(set(text)) for text in texts]


@ff.pipeline(level="shard")
def cleaned(shard: ff.Port[dict[str, Any]]) -> dict[str, ff.Port[dict[str, Any]]]:
    """A row has a record in one of the two. Roots could not: dropped at one output is dropped at all."""
    row = ff.expand(rows(shard), "row")
    said = verdict(row)
    kept, rejected = ff.split(row, said, into=("good", ...))  # ... takes all other labels
    return {
        "kept": ff.record(text=kept, quality=fake_quality_model(kept)),
        "rejected": ff.record(text=rejected, reason=said),
    }


if __name__ == "__main__":
    shards = [
        {"id": "s0", "rows": ["a long walk", "no", "Zürich at night"]},
        {"id": "s1", "rows": ["harbour", "x"]},
    ]
    sinks = {name: ff.write_jsonl(OUT / f"{name}.jsonl") for name in ("kept", "rejected")}
    report = cleaned.run(ff.from_items(shards, key="id"), sinks, progress=False)
    for name in sinks:
        print(f"{name}:\n{(OUT / f'{name}.jsonl').read_text()}", end="")
    print("the model saw", {call.name: call.done for call in report.calls}["fake_quality_model"])
