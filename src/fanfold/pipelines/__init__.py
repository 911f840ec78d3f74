"""Ready-made pipelines, each behind an extra of its own, and the table of their names.

A ready-made pipeline is a module with three things: the ``Pipeline`` itself under its name,
``source(paths)`` and ``sinks(folder)``, which the command line connects with what its user wrote.
"""

from __future__ import annotations

from typing import Final

READY_MADE: Final = {"documents": "fanfold.pipelines.documents"}
"""Module by name. Its extra has the same name; the pipeline is the module's attribute of that name."""
