"""Every exception that Fanfold raises itself: a code, what happened, where, why, what to do.

Owns the error hierarchy and its exit codes. Knows nothing of pipelines, engines or workers: whoever
raises an error writes its words. Failures of a user's *items* are not exceptions but values; they live
in :mod:`fanfold.failures`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fanfold.parts import Where

if TYPE_CHECKING:
    from fanfold.failures import Failure


class FanfoldError(Exception):
    """Base of every error of Fanfold's own.

    Args:
        code: Stable identifier such as ``FF203``; each has an anchor in the documentation.
        message: What happened, where and why, in one or two sentences.
        hint: What to do about it, one sentence; may be empty.

    Errors pickle (they cross process boundaries), compare by identity and print as
    ``CODE message hint``. After a message of several lines, such as one with a traceback, the hint has a line
    of its own that says what it is.
    """

    exit_code = 70
    report: Any = None
    """The report of the run that the error stopped, if there was one."""

    def __init__(self, code: str, message: str, hint: str = "") -> None:
        super().__init__(code, message, hint)
        self.code = code
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        if not self.hint:
            return f"{self.code} {self.message}"
        if "\n" in self.message:
            return f"{self.code} {self.message.rstrip()}\nWhat to do: {self.hint}"
        return f"{self.code} {self.message} {self.hint}"


class DefinitionError(FanfoldError):
    """A pipeline, stage or option is wrong; found before any work starts."""

    exit_code = 2


class UsageError(FanfoldError):
    """A function or command was called in a way that cannot work (arguments, paths, names)."""

    exit_code = 2


class SetupError(FanfoldError):
    """This machine or environment lacks something: a package, a device, memory, a worker that starts."""

    exit_code = 3


class SourceError(FanfoldError):
    """A source could not go on: unreadable input, a missing or doubled key."""

    exit_code = 3


class SinkError(FanfoldError):
    """A sink could not write; records committed before stay."""

    exit_code = 3


class SinkValueError(SinkError):
    """A sink has no form for a value: only that root fails, and the others are written.

    A sink raises it while it prepares a root's records.
    """

    sink: str = ""
    """The sink in words, such as ``write_jsonl('out/records.jsonl')``; filled in by whoever asked it."""


class RunStopped(FanfoldError):
    """Failures stopped a run before its end: a call that only fails, more failed roots than ``max_failed``
    allows, or a stage with ``on_error="stop"``.

    Roots that had ended are written (or were handed out); open ones are *unfinished*, not failed.
    """

    exit_code = 1
    failure: Failure | None = None
    """The first failure that led to it."""


class InternalError(FanfoldError):
    """A broken invariant of Fanfold itself; the message tells the events that led there."""

    exit_code = 70


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong with a pipeline: what, at which source line, and what to change."""

    code: str
    where: Where
    message: str
    hint: str = ""

    def __str__(self) -> str:
        text = f"{self.code} {self.where.short()}: {self.message}"
        return f"{text} {self.hint}" if self.hint else text


class PipelineError(DefinitionError):
    """A pipeline cannot be compiled; tells *all* its problems at once, before any work starts.

    Args:
        pipeline: The pipeline's name.
        problems: At least one problem, in the order in which they were found.

    ``code`` is the problem's own if there is one, ``FF200`` if there are several.
    """

    def __init__(self, pipeline: str, problems: Sequence[Problem]) -> None:
        self.pipeline = pipeline
        self.problems: tuple[Problem, ...] = tuple(problems)
        if len(self.problems) == 1:
            problem = self.problems[0]
            place = f"pipeline {pipeline!r}, {problem.where.short()}:"
            super().__init__(problem.code, f"{place} {problem.message}", problem.hint)
            return
        lines = [f"pipeline {pipeline!r} has {len(self.problems)} problems:"]
        lines += [f"  {problem}" for problem in self.problems]
        super().__init__("FF200", "\n".join(lines))

    def __reduce__(self) -> tuple[Any, ...]:
        return (PipelineError, (self.pipeline, self.problems))
