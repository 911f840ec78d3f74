"""Reads text in page images: the stages ``Detect`` (page to lines) and ``Recognize`` (lines to text).

Owns how RapidOCR's models are loaded and called. Both run on ONNX Runtime with the models that
RapidOCR's wheel ships; nothing here touches the network. Must not know of files, pages or documents.
Why the defaults are what they are: ``docs/explanation/ocr-defaults.md``.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fanfold.errors import SetupError
from fanfold.pipelines.documents.extras import INSTALL, load
from fanfold.pipelines.documents.reading import Box, reading_order

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Image = NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class Line:
    """A line of text on a page: where it stands in the page's text, and what it looks like."""

    image: Image
    """Height × width × 3 bytes, blue first, upright."""
    lead: str
    """What comes before the line in the page's text: nothing, a space, a line break or two."""


@dataclass(frozen=True, slots=True)
class LineText:
    """What was read in one line."""

    text: str
    confidence: float
    """The model's mean probability of the characters, 0 to 1."""


class Detect:
    """Finds the lines of text on a page image, in reading order.

    Args:
        max_side_px: A page whose longer side has more pixels is looked at in a copy of this size;
            the lines are cut out of the page itself.
        threads: Threads of one worker; 0 takes the cores that the worker owns.
        cuda: Use the first GPU (needs ``onnxruntime-gpu`` in place of ``onnxruntime``).

    Raises:
        SetupError: FF450, FF451 or FF452: a library, a model or the GPU is missing.
    """

    def __init__(self, max_side_px: int = 1280, *, threads: int = 0, cuda: bool = False) -> None:
        config = _config("Det", threads=threads, cuda=cuda)
        config.limit_type = "max"
        config.limit_side_len = max_side_px
        self._detector = load("rapidocr.ch_ppocr_det").TextDetector(config)
        _check_device(self._detector, cuda)
        self._crop = load("rapidocr.utils.process_img").get_rotate_crop_image

    def __call__(self, image: Image) -> list[Line]:
        """The lines of one page; none if there is no text on it."""
        corners = self._detector(image).boxes
        if corners is None:
            return []
        boxes = [Box(*quad.min(axis=0).tolist(), *quad.max(axis=0).tolist()) for quad in corners]
        return [
            Line(self._crop(image, corners[index].copy()), lead)
            for index, lead in reading_order(boxes)
        ]


class Recognize:
    """Reads line images.

    Lines of one model call are padded to the widest of them, which on a CPU costs more than the call
    saves; so a batch is worked off in small ``chunk``s of similar width. On a GPU raise it.

    Args:
        chunk: Lines in one call of the model.
        threads: Threads of one worker; 0 takes the cores that the worker owns.
        cuda: Use the first GPU (needs ``onnxruntime-gpu`` in place of ``onnxruntime``).

    Raises:
        SetupError: FF450, FF451 or FF452: a library, a model or the GPU is missing.
    """

    def __init__(self, chunk: int = 1, *, threads: int = 0, cuda: bool = False) -> None:
        config = _config("Rec", threads=threads, cuda=cuda)
        config.rec_batch_num = chunk
        config.font_path = None
        recognizer = load("rapidocr.ch_ppocr_rec")
        self._recognizer = recognizer.TextRecognizer(config)
        _check_device(self._recognizer, cuda)
        self._input = recognizer.TextRecInput

    def __call__(self, images: Sequence[Image]) -> list[LineText]:
        """The text of each line, and how sure the model is."""
        output = self._recognizer(self._input(img=list(images)))
        return [
            LineText(str(text), float(score))
            for text, score in zip(output.txts, output.scores, strict=True)
        ]


def own_cores() -> int:
    """How many cores this worker may keep busy: what the backend set, else what the process may use."""
    try:
        return max(1, int(os.environ["OMP_NUM_THREADS"]))
    except (KeyError, ValueError):
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1


def _config(task: str, *, threads: int, cuda: bool) -> Any:
    """RapidOCR's configuration of one model, bound to the file in the wheel and to our threads.

    A ``model_path`` that exists is what keeps RapidOCR from ever looking for one to download.
    """
    rapidocr = load("rapidocr.main")
    logging.getLogger("RapidOCR").setLevel(logging.WARNING)
    everything = load("rapidocr.utils.parse_parameters").ParseParams.load(rapidocr.DEFAULT_CFG_PATH)
    config, engine = everything[task], everything.EngineConfig.onnxruntime
    # ONNX Runtime heeds no environment variable, and by default takes every core of the machine.
    engine.intra_op_num_threads = threads or own_cores()
    engine.inter_op_num_threads = 1
    engine.use_cuda = cuda
    config.engine_cfg = engine
    config.model_path = str(_model(Path(rapidocr.root_dir) / "models", task.lower()))
    return config


def _check_device(model: Any, cuda: bool) -> None:
    """RapidOCR falls back to the CPU with no more than a warning; a run asked for a GPU must not."""
    providers = model.session.session.get_providers()
    if cuda and "CUDAExecutionProvider" not in providers:
        raise SetupError(
            "FF452",
            f"A GPU was asked for, and ONNX Runtime offers only {', '.join(providers)}.",
            "Replace onnxruntime by onnxruntime-gpu, or leave out cuda=True.",
        )


def _model(folder: Path, task: str) -> Path:
    """The model for a task (``det``, ``rec``) among those that the wheel brought along."""
    found = sorted(folder.glob(f"*_{task}_*.onnx"))
    if not found:
        raise SetupError(
            "FF451",
            f"RapidOCR's folder {folder} has no model for {task!r}; other releases ship none.",
            f"Install the release that Fanfold was tested with: {INSTALL}",
        )
    return found[-1]
