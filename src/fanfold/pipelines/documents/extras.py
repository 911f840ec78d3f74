"""Loads the optional libraries of the document pipeline when they are first needed.

Owns the message for a missing one. The libraries carry no complete types, so what is loaded here is
``Any`` and stays inside ``pdf.py`` and ``ocr.py``. Must not be imported by anything but this package.
"""

from __future__ import annotations

import importlib
import importlib.util
from typing import Any, Final

from fanfold.errors import SetupError

INSTALL: Final = 'pip install "fanfold[documents]"'
LIBRARIES: Final = ("pypdfium2", "numpy", "cv2", "onnxruntime", "rapidocr")


def load(module: str) -> Any:
    """Import ``module``, one of the libraries of the extra ``documents`` or a part of one.

    Raises:
        SetupError: FF450, it cannot be imported; the message says why and what to install.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise SetupError(
            "FF450",
            f"The documents pipeline cannot import {module!r}: {error}.",
            f"Install it with: {INSTALL}",
        ) from error


def check() -> None:
    """Look whether all libraries are there, without importing any: a run should not start in vain.

    Raises:
        SetupError: FF450, naming all that are missing.
    """
    missing = [name for name in LIBRARIES if importlib.util.find_spec(name) is None]
    if missing:
        raise SetupError(
            "FF450",
            f"The documents pipeline needs packages that are not installed: {', '.join(missing)}.",
            f"Install them with: {INSTALL}",
        )
