"""Video over two child levels, with two outputs: a record for each video, and one for each frame.

Run it with ``python examples/video_outputs.py``; it writes two files below ``out/video``. It prints both:
videos with a caption for every scene, frames with their place.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fanfold as ff

OUT = Path("out", "video")


@ff.stage
def scenes(video: str) -> Iterator[str]:
    """Cut a video into scenes; this one is a text with a bar at each cut."""
    yield from video.split("|")


@ff.stage
def frames(scene: str) -> Iterator[str]:
    """Decode the frames of a scene: its words."""
    yield from scene.split()


@ff.stage(batch_size=8)
def fake_embedding_model(images: list[str]) -> list[int]:
    """A frame's length stands for its vector."""
    return [len(image) for image in images]


@ff.stage(batch_size=2)
def fake_caption_model(clips: list[list[str]]) -> list[str]:
    """A caption for the frames of a scene."""
    return [f"from {clip[0]} to {clip[-1]}" for clip in clips]


@ff.pipeline(level="video")
def described(row: ff.Port[dict[str, str]]) -> dict[str, ff.Port[dict[str, Any]]]:
    """Two outputs, at two levels; each has a sink of the same name."""
    scene = ff.expand(scenes(ff.field(row, "content", str)), "scene")
    frame = ff.expand(frames(scene), "frame")
    captions = ff.gather(fake_caption_model(ff.gather(frame)))
    return {
        "videos": ff.record(title=row["title"], scenes=captions),
        "frames": ff.record(image=frame, embedding=fake_embedding_model(frame)),
    }


if __name__ == "__main__":
    rows = [
        {"id": "v1", "title": "Harbour", "content": "dawn boats nets|market fish"},
        {"id": "v2", "title": "Hills", "content": "sheep"},
    ]
    sinks = {name: ff.write_jsonl(OUT / f"{name}.jsonl") for name in ("videos", "frames")}
    described.run(ff.from_items(rows, key="id"), sinks, progress=False)
    for name in sinks:
        print((OUT / f"{name}.jsonl").read_text(), end="")
