"""Changes to a pipeline's stages by name: other options, another stage in its place.

Owns how ``pipeline.using`` reaches stages. Knows nothing of ports or of the trace that applies it.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from fanfold.errors import DefinitionError
from fanfold.model.definition import StageDefinition, define


class Overrides:
    """Replacements and options by stage name, applied consistently: one result for each stage.

    Args:
        replacements: A definition or a plain callable for a stage's name.
        options: Changed options for a stage's name, applied after the replacement.
    """

    def __init__(
        self,
        replacements: Mapping[str, Any] | None = None,
        options: Mapping[str, Mapping[str, Any]] | None = None,
    ) -> None:
        self._replacements = dict(replacements or {})
        self._options = {name: dict(values) for name, values in (options or {}).items()}
        self._applied: dict[StageDefinition, StageDefinition] = {}

    @property
    def names(self) -> frozenset[str]:
        """The stages' names that are to be changed."""
        return frozenset(self._replacements) | frozenset(self._options)

    def merged(self, later: Overrides) -> Overrides:
        """These changes and then those of ``later``."""
        options = dict(self._options)
        for name, values in later._options.items():
            options[name] = {**options.get(name, {}), **values}
        return Overrides({**self._replacements, **later._replacements}, options)

    def apply(self, stage: StageDefinition) -> StageDefinition:
        """The stage that is called where ``stage`` is written.

        Raises:
            DefinitionError: The replacement does not fit (FF102 and others), or an option does not (FF109
                and others).
        """
        if stage.name not in self.names:
            return stage
        if stage not in self._applied:
            self._applied[stage] = self._changed(stage)
        return self._applied[stage]

    def _changed(self, stage: StageDefinition) -> StageDefinition:
        name = stage.name
        options = self._options.get(name, {})
        declared = True
        if name in self._replacements:
            declared = isinstance(self._replacements[name], StageDefinition)
            stage = _replaced(stage, self._replacements[name])
        if declared and "batch_size" in options and not stage.generator:
            _check_batching(stage, options["batch_size"])
        return stage.tuned(options) if options else stage


def _check_batching(stage: StageDefinition, batch_size: object) -> None:
    """A size may change, but not whether there are batches: the code is written for the one or the other."""
    was = stage.options.batch_size
    if was is None and batch_size is not None:
        raise DefinitionError(
            "FF109",
            f"{stage.name}.batch_size={batch_size!r}: stage {stage.name!r} was declared without batch_size "
            "and takes one item at a time, so it cannot be given lists.",
            "Declare it with batch_size=1 and let it take and return lists, or replace the stage.",
        )
    if was is not None and batch_size is None:
        raise DefinitionError(
            "FF109",
            f"{stage.name}.batch_size=None: stage {stage.name!r} was declared with batch_size={was} and takes "
            "lists, so it cannot be given one item at a time.",
            "Use batch_size=1 for batches of one, or replace the stage.",
        )


def _takes(target: Any, stage: StageDefinition) -> bool:
    """Whether the class ``target`` can be constructed with ``stage``'s arguments."""
    try:
        inspect.signature(target).bind(*stage.args, **stage.kwargs)
    except TypeError:
        return False
    except ValueError:  # no signature to ask: assume that a replacement is made alike
        return True
    return True


def _replaced(stage: StageDefinition, replacement: Any) -> StageDefinition:
    """``replacement`` under the old name; a plain callable takes the old options over."""
    if isinstance(replacement, StageDefinition):
        new = replace(replacement, name=stage.name)
    else:
        old = stage.options
        outputs = old.outputs if any(old.outputs) else len(old.outputs)
        kept = {
            "batch_size": old.batch_size,
            "batch_bytes": old.batch_bytes,
            "batch_cost": old.batch_cost,
            "max_batch_cost": old.max_batch_cost,
            "batch_by": old.batch_by,
            "linger_s": old.linger_s,
            "rate_limit": old.rate_limit,
            "replicas": old.replicas,
            "cpus": old.cpus,
            "gpus": old.gpus,
            "memory": old.memory,
            "recycle_after": old.recycle_after,
            "recycle_above": old.recycle_above,
            "outputs": outputs,
            "workers": old.workers,
            "retries": old.retries,
            "on_error": old.on_error,
            "probe": old.probe,
            "schedule": old.schedule,
        }
        new = define(replacement, name=stage.name, options=kept)
    if new.is_class and not (new.args or new.kwargs) and _takes(new.target, stage):
        new = replace(new, args=stage.args, kwargs=stage.kwargs)
    if len(new.options.outputs) != len(stage.options.outputs):
        raise DefinitionError(
            "FF102",
            f"the replacement of stage {stage.name!r} has {len(new.options.outputs)} outputs, "
            f"not {len(stage.options.outputs)}.",
            "Give it the same outputs= as the stage that it replaces.",
        )
    return new
