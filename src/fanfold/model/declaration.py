"""A pipeline's function: its sources and settings, and how it is traced.

Owns the reading of the function's signature and of what the function returns. Knows nothing of plans and
of running.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from fanfold.errors import DefinitionError, PipelineError, Problem
from fanfold.model.definition import a_kind
from fanfold.model.graph import Graph
from fanfold.model.overrides import Overrides
from fanfold.model.port import Port
from fanfold.model.settings import Setting
from fanfold.model.trace import Trace
from fanfold.parts import Where

Structure = Literal["single", "tuple", "dict"]


@dataclass(frozen=True)
class Declaration:
    """A pipeline's function, read but not yet traced."""

    function: Callable[..., Any]
    name: str
    level: str
    sources: tuple[str, ...]
    settings: Mapping[str, Setting]
    where: Where
    problems: tuple[Problem, ...] = field(default=())


def declare(function: Callable[..., Any], *, name: str | None, level: str) -> Declaration:
    """Read a pipeline's function.

    Raises:
        DefinitionError: It is no ordinary function, or the level's name is no name (FF220).
    """
    if not inspect.isfunction(function):
        raise DefinitionError(
            "FF220",
            f"pipeline: {function!r} is not a function.",
            "Decorate a function (def) that calls stages with its parameters and returns what they give.",
        )
    if inspect.isgeneratorfunction(function) or inspect.iscoroutinefunction(function):
        raise DefinitionError(
            "FF220",
            f"pipeline {function.__name__!r} is a generator or asynchronous.",
            "A pipeline's function only connects stages: let it return its outputs.",
        )
    if not isinstance(level, str) or not level:
        raise DefinitionError(
            "FF220",
            f"pipeline {function.__name__!r}: level={level!r} is not a non-empty string.",
            'Name what one source item is: level="document".',
        )
    where = Where(function.__code__.co_filename, function.__code__.co_firstlineno)
    label = name or function.__name__
    sources: list[str] = []
    settings: dict[str, Setting] = {}
    problems: list[Problem] = []
    annotations = _annotations(function)
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind is parameter.KEYWORD_ONLY:
            annotation = annotations.get(parameter.name, parameter.annotation)
            settings[parameter.name] = Setting(parameter.name, parameter.default, annotation)
            continue
        sources.append(parameter.name)
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            hint = "Name each source; make what is no source keyword-only."
            problems.append(Problem("FF220", where, f"the source {parameter} is variadic.", hint))
        elif parameter.default is not parameter.empty:
            hint = "Put it behind a * to make it a setting, or remove the default."
            message = f"the source {parameter.name!r} has a default."
            problems.append(Problem("FF220", where, message, hint))
    if not sources:
        hint = "Give the function a positional parameter for what the source yields."
        problems.append(Problem("FF208", where, "the pipeline has no source.", hint))
    return Declaration(function, label, level, tuple(sources), settings, where, tuple(problems))


def trace(
    declaration: Declaration, values: Mapping[str, Any], overrides: Overrides
) -> tuple[Graph, frozenset[str]]:
    """Run a pipeline's function on ports.

    Args:
        declaration: The function.
        values: Settings that differ from their defaults.
        overrides: Changes to the stages.

    Returns:
        The graph, and the names of the stages that were called.

    Raises:
        PipelineError: The signature is wrong, or a setting has no value (FF208, FF220, FF224).
        Exception: Whatever the function raises by itself, unless problems were noted before.
    """
    missing = [
        Problem(
            "FF224",
            declaration.where,
            f"the setting {name!r} has no default and was given no value.",
            f'Give it one: pipeline.using({{"{name}": …}}), or {name}=… in a direct call.',
        )
        for name, setting in declaration.settings.items()
        if setting.required and name not in values
    ]
    if declaration.problems or missing:
        raise PipelineError(declaration.name, [*declaration.problems, *missing])
    tracing = Trace(declaration.name, overrides)
    sources = [tracing.source(name) for name in declaration.sources]
    settings = {name: values.get(name, s.default) for name, s in declaration.settings.items()}
    problems = tracing.problems
    structure: Structure = "single"
    outputs: list[tuple[str | None, int]] = []
    complete = True
    with tracing.recording():
        try:
            returned = declaration.function(*sources, **settings)
        except DefinitionError as error:
            complete = False
            problems += _problems_of(declaration, error)
        except Exception as error:
            if not problems:
                error.add_note(f"(while the pipeline {declaration.name!r} was traced)")
                raise
            complete = False
            problems.append(_stopped(declaration, error))
        else:
            structure, outputs = _outputs(tracing, declaration, returned)
    graph = Graph(
        name=declaration.name,
        level=declaration.level,
        ports=tuple(tracing.ports),
        sources=tuple(range(len(sources))),
        ops=tuple(tracing.ops),
        outputs=tuple(outputs),
        structure=structure,
        problems=tuple(problems),
        complete=complete,
    )
    return graph, frozenset(tracing.stage_names)


def _annotations(function: Callable[..., Any]) -> Mapping[str, Any]:
    """Evaluated annotations; where one names something that only type checkers see, the raw ones."""
    try:
        return inspect.get_annotations(function, eval_str=True)
    except Exception:  # any expression may stand there, and only settings need theirs
        return inspect.get_annotations(function)


def _problems_of(declaration: Declaration, error: DefinitionError) -> Sequence[Problem]:
    if isinstance(error, PipelineError):
        return error.problems
    return [Problem(error.code, _line_of(declaration, error), error.message, error.hint)]


def _stopped(declaration: Declaration, error: Exception) -> Problem:
    """Says that the function ended early, very likely because of a problem noted before."""
    return Problem(
        "FF225",
        _line_of(declaration, error),
        f"the pipeline's function stopped here with {type(error).__name__}: {error}.",
        "This may follow from the problems above; what comes after this line was not checked.",
    )


def _line_of(declaration: Declaration, error: Exception) -> Where:
    """The line of the pipeline's function at which an exception left it."""
    where, step = declaration.where, error.__traceback__
    while step is not None:
        if step.tb_frame.f_code is declaration.function.__code__:
            where = Where(declaration.where.file, step.tb_lineno)
        step = step.tb_next
    return where


def _outputs(
    tracing: Trace, declaration: Declaration, returned: object
) -> tuple[Structure, list[tuple[str | None, int]]]:
    """What the function returned, as named ports; notes what is wrong with it."""
    structure: Structure
    parts: list[tuple[str | None, object]]
    match returned:
        case dict():
            structure, parts = "dict", list(returned.items())
        case tuple() | list():
            structure, parts = "tuple", [(None, part) for part in returned]
        case _:
            structure, parts = "single", [(None, returned)]
    if returned is None or not parts:
        tracing.problems.append(
            Problem(
                "FF209",
                declaration.where,
                "the pipeline has no output.",
                "Return a port, or a tuple or dict of ports.",
            )
        )
        return structure, []
    outputs: list[tuple[str | None, int]] = []
    for position, (name, part) in enumerate(parts):
        what = "the output" if structure == "single" else f"output {name or position!r}"
        if isinstance(part, Port) and part._trace is tracing:
            if structure == "dict" and not (isinstance(name, str) and name):
                _bad_output(tracing, declaration, f"output {name!r} is not named by a string.")
            outputs.append((name, part._index))
        elif isinstance(part, Port):
            tracing.problems.append(
                Problem(
                    "FF205",
                    declaration.where,
                    f"{what} is port {part._name!r} of another trace, pipeline "
                    f"{part._trace.name!r}.",
                    "Return ports that were made in this pipeline's function.",
                )
            )
        else:
            _bad_output(tracing, declaration, f"{what} is {a_kind(part)}, not a port.")
    return structure, outputs


def _bad_output(tracing: Trace, declaration: Declaration, message: str) -> None:
    hint = "Return a port, or a tuple or dict of ports; ff.record makes one port of several."
    tracing.problems.append(Problem("FF218", declaration.where, message, hint))
