"""Fanfold prepares training data for foundation models: documents and videos fan out and fold back."""

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
from fanfold.failures import Failure, ItemFailure
from fanfold.model.entry import stage
from fanfold.model.ops import broadcast, expand, field, filter, gather, merge, record, split
from fanfold.model.port import Children, Port
from fanfold.model.stage import Stage
from fanfold.outcomes import Outcome, Status
from fanfold.pipeline import Pipeline, pipeline

__all__ = [
    "Children",
    "DefinitionError",
    "Failure",
    "FanfoldError",
    "InternalError",
    "ItemFailure",
    "Outcome",
    "Pipeline",
    "PipelineError",
    "Port",
    "Problem",
    "RunStopped",
    "SetupError",
    "SinkError",
    "SourceError",
    "Stage",
    "Status",
    "UsageError",
    "broadcast",
    "expand",
    "field",
    "filter",
    "gather",
    "merge",
    "pipeline",
    "record",
    "split",
    "stage",
]
