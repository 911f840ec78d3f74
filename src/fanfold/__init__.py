"""Fanfold prepares training data for foundation models: documents and videos fan out and fold back."""

from typing import TYPE_CHECKING, Any

from fanfold.errors import (
    DefinitionError,
    FanfoldError,
    InternalError,
    PipelineError,
    Problem,
    RunStopped,
    SetupError,
    SinkError,
    SourceError,
    UsageError,
)
from fanfold.failures import Failure, ItemFailure, ParentFailure, RetryLater
from fanfold.model.entry import stage
from fanfold.model.ops import broadcast, expand, field, filter, gather, merge, record, split
from fanfold.model.port import Children, Port
from fanfold.model.stage import Stage
from fanfold.outcomes import Outcome, Status
from fanfold.pipeline import Pipeline, pipeline
from fanfold.secret import Secret

if TYPE_CHECKING:
    from fanfold.data.file_source import read_files
    from fanfold.data.files import File
    from fanfold.data.files_sink import write_files
    from fanfold.data.jsonl_sink import write_jsonl
    from fanfold.data.jsonl_source import read_jsonl
    from fanfold.data.sources import from_items
    from fanfold.driver.results import Result
    from fanfold.observe.report import Report
    from fanfold.stage_context import Context, context

_ON_FIRST_USE = {
    "Context": "fanfold.stage_context",
    "File": "fanfold.data.files",
    "Report": "fanfold.observe.report",
    "Result": "fanfold.driver.results",
    "context": "fanfold.stage_context",
    "from_items": "fanfold.data.sources",
    "read_files": "fanfold.data.file_source",
    "read_jsonl": "fanfold.data.jsonl_source",
    "write_files": "fanfold.data.files_sink",
    "write_jsonl": "fanfold.data.jsonl_sink",
}
"""Names that declaring a pipeline does without; their modules cost a third of the import."""

__all__ = [
    "Children",
    "Context",
    "DefinitionError",
    "Failure",
    "FanfoldError",
    "File",
    "InternalError",
    "ItemFailure",
    "Outcome",
    "ParentFailure",
    "Pipeline",
    "PipelineError",
    "Port",
    "Problem",
    "Report",
    "Result",
    "RetryLater",
    "RunStopped",
    "Secret",
    "SetupError",
    "SinkError",
    "SourceError",
    "Stage",
    "Status",
    "UsageError",
    "broadcast",
    "context",
    "expand",
    "field",
    "filter",
    "from_items",
    "gather",
    "merge",
    "pipeline",
    "read_files",
    "read_jsonl",
    "record",
    "split",
    "stage",
    "write_files",
    "write_jsonl",
]


def __getattr__(name: str) -> Any:
    if name in _ON_FIRST_USE:
        import importlib

        value = getattr(importlib.import_module(_ON_FIRST_USE[name]), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'fanfold' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
