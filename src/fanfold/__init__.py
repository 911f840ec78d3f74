"""Fanfold prepares training data for foundation models: documents and videos fan out and fold back."""

from fanfold.model.ops import broadcast, expand, field, filter, gather, merge, record, split
from fanfold.model.port import Children, Port
from fanfold.model.stage import Stage, stage
from fanfold.pipeline import Pipeline, pipeline
