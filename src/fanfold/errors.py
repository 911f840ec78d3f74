"""Every exception that Fanfold raises itself: a code, what happened, where, why, what to do.

Owns the error hierarchy and its exit codes. Knows nothing of pipelines, engines or workers: whoever
raises an error writes its words. Failures of a user's *items* are not exceptions but values; they live
in :mod:`fanfold.failures`.
"""

from __future__ import annotations


class FanfoldError(Exception):
    """Base of every error of Fanfold's own.

    Args:
        code: Stable identifier such as ``FF203``; each has an anchor in the documentation.
        message: What happened, where and why, in one or two sentences.
        hint: What to do about it, one sentence; may be empty.

    Errors pickle (they cross process boundaries), compare by identity and print as
    ``CODE message hint``.
    """

    exit_code = 70

    def __init__(self, code: str, message: str, hint: str = "") -> None:
        super().__init__(code, message, hint)
        self.code = code
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.code} {self.message}" + (f" {self.hint}" if self.hint else "")


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


class RunStopped(FanfoldError):
    """A run ended early on purpose: interrupted, or stopped by a rule that the user set."""

    exit_code = 130


class InternalError(FanfoldError):
    """A broken invariant of Fanfold itself; the message tells the events that led there."""

    exit_code = 70
