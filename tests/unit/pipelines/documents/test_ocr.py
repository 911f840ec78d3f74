"""The models of RapidOCR's wheel, called stage by stage, with the network out of reach."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fanfold.errors import SetupError
from fanfold.pipelines.documents import ocr
from fanfold.pipelines.documents.ocr import Detect, Recognize, own_cores
from fanfold.pipelines.documents.pdf import Render
from tests.unit.pipelines.documents.pdfs import LocalCopy

EXAMPLES = Path(__file__).parents[4] / "examples" / "documents"


@pytest.fixture(scope="module", autouse=True)
def offline() -> Iterator[None]:
    def unreachable(*_: object, **__: object) -> None:
        raise AssertionError("the network was asked for")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(socket.socket, "connect", unreachable)
        patch.setattr(socket, "getaddrinfo", unreachable)
        yield


@pytest.fixture(scope="module")
def detect() -> Detect:
    return Detect(threads=1)


@pytest.fixture(scope="module")
def recognize() -> Recognize:
    return Recognize(threads=1)


def image_of(name: str, number: int = 0) -> Any:
    render = Render()
    image = render(LocalCopy(str(EXAMPLES / name)), number)
    render.close()
    return image


def read(image: Any, detect: Detect, recognize: Recognize) -> str:
    lines = detect(image)
    texts = recognize([line.image for line in lines])
    return "".join(line.lead + text.text for line, text in zip(lines, texts, strict=True))


def test_a_scan_is_read(detect: Detect, recognize: Recognize):
    text = read(image_of("letter-scan.pdf"), detect, recognize)
    assert text.startswith("Letter to the reading room\n\nThe parcel with the harbour maps")
    assert text.endswith("Please send the bill to the lower store.")


def test_columns_are_read_one_after_the_other(detect: Detect, recognize: Recognize):
    text = read(image_of("minutes-scan.pdf", 2), detect, recognize)
    assert text.index("the lower lamp.") < text.index("The right column")


def test_chinese_is_read(detect: Detect, recognize: Recognize):
    assert "地图不得带出阅览室" in read(image_of("languages.pdf", 3), detect, recognize)


def test_a_white_page_has_no_lines(detect: Detect):
    assert detect(np.full((400, 300, 3), 255, np.uint8)) == []


def test_texts_line_up_with_images_of_any_width(detect: Detect, recognize: Recognize):
    images = [line.image for line in detect(image_of("letter-scan.pdf"))]
    forwards = recognize(images)
    backwards = recognize(images[::-1])
    assert [line.text for line in forwards] == [line.text for line in backwards[::-1]]
    assert all(0.9 < line.confidence <= 1 for line in forwards)


def test_chunks_change_nothing_but_speed(detect: Detect, recognize: Recognize):
    images = [line.image for line in detect(image_of("mixed.pdf", 1))]
    together = Recognize(8, threads=1)
    assert [t.text for t in together(images)] == [t.text for t in recognize(images)]


def test_threads_are_the_cores_that_the_worker_owns(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    assert own_cores() == 3
    monkeypatch.setenv("OMP_NUM_THREADS", "none of them")
    assert own_cores() == len(os.sched_getaffinity(0))


@pytest.mark.parametrize(("threads", "told"), [(0, 1), (2, 2)])
def test_onnx_runtime_is_told_the_threads(threads: int, told: int, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    stage = Detect(threads=threads)
    options = stage._detector.session.session.get_session_options()
    assert options.intra_op_num_threads == told


def test_a_gpu_that_is_not_there_is_refused():
    with pytest.raises(SetupError, match="FF452 A GPU was asked for"):
        Detect(cuda=True, threads=1)


def test_a_release_without_models_is_refused(tmp_path: Path):
    with pytest.raises(SetupError, match=r"FF451 .*fanfold\[documents\]"):
        ocr._model(tmp_path, "det")
