"""The peers' libraries, which have no types and are not there in Fanfold's own environment.

Owns how they are imported and how Ray is started. README.md gives the reason for each setting.
"""

from __future__ import annotations

import importlib
import logging
import os
from typing import Any

NO_CORES = 0.01
"""What a sleeping stage asks of a core: with whole ones only two could sleep at a time on two cores."""
LOGICAL_CORES = 128
STORE_BYTES = 4 * 1024**3
START_TRIES = 3
"""It gives itself 30 s to start, which a busy machine may exceed; the next try finds its files in memory."""


def library(name: str) -> Any:
    """A module, without types."""
    return importlib.import_module(name)


def ray_started(memory_bytes: int | None, folder: str, cores: int = LOGICAL_CORES) -> Any:
    """A Ray of this process's own, with an object store as large as the memory that values may take."""
    ray = library("ray")
    for tries_left in reversed(range(START_TRIES)):
        try:
            ray.init(
                num_cpus=cores,
                include_dashboard=False,
                object_store_memory=memory_bytes or STORE_BYTES,
                logging_level=logging.ERROR,
                log_to_driver=False,
                _temp_dir=os.path.join(folder, "ray"),
            )
            break
        except Exception:
            if not tries_left:
                raise
            ray.shutdown()
    return ray
