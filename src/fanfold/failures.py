"""Failures as values: what a user raises to fail an item, and the record that tells of it.

Owns :class:`ItemFailure`, :class:`ParentFailure` and :class:`RetryLater` (the exceptions of users' stages) and
:class:`Failure` (the record).
Knows nothing of how failures spread: that is the engine's.
"""

from __future__ import annotations

import traceback
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from math import inf
from typing import Any, Final, Literal

from fanfold.secret import redacted

TRACEBACK_LIMIT_CHARS: Final = 8_000
MESSAGE_LIMIT_CHARS: Final = 2_000
LONGEST_WAIT_S: Final = 3_600.0
"""An item whose service wants to be asked again only later than that fails at once."""

KINDS: Final = frozenset(
    {
        "declared",  # the user's stage said so (ItemFailure, ParentFailure), raised or returned
        "raised",  # any other exception
        "contract",  # a value of the wrong shape: lengths, masks, labels, missing fields
        "unpicklable",  # a value that cannot leave its worker, or be loaded where it is to go
        "too_large",  # a value that does not fit the store
        "put_off",  # the service that the stage asks has told it to come later for too long (RetryLater)
        "worker_died",  # the worker's process ended while it ran the item alone
        "not_deterministic",  # a new attempt yielded fewer children than were already released
        "missing",  # a member of a gathered list (members=) whose own value was dropped
        "too_few",  # fewer members of a gathered list are done than at_least= asks for
    }
)


class ItemFailure(Exception):
    """Fail the one item that a stage is working on, on purpose and without a retry.

    Raise it in a stage that takes one item at a time, or return it in an item's place in a batched
    stage. The item fails with ``kind="declared"``, everything that needs it is suppressed, and its
    batch-mates and all other parents go on.

    Args:
        cause: What is wrong with the item: a sentence, or the exception that told.
        code: A short identifier of your own for reports, such as ``"pdf.encrypted"``.

    Example:
        >>> raise ItemFailure("the file is encrypted", code="pdf.encrypted")
        Traceback (most recent call last):
        ...
        fanfold.failures.ItemFailure: the file is encrypted
    """

    def __init__(self, cause: str | BaseException = "", *, code: str = "") -> None:
        super().__init__(cause)
        self.cause = cause
        self.code = code

    def __reduce__(self) -> tuple[Any, ...]:
        return (_item_failure, (self.cause, self.code))


def _item_failure(cause: str | BaseException, code: str) -> ItemFailure:
    return ItemFailure(cause, code=code)


class ParentFailure(Exception):
    """Fail the parent of the item that a stage is working on: its siblings are not worth the work either.

    Raise it in a stage that takes one item at a time or in a generator, or return it in an item's place in
    a batched stage. The item fails with ``kind="declared"``. Siblings that wait at the same call are
    suppressed, and so is every list gathered to the parent that depends on the call, whatever its options
    say. Siblings that are done stay; so do other ports of the same children and all other parents. It
    reaches the direct parent only. At the root level it is the same as an item failure.

    Args:
        cause: What is wrong with the parent: a sentence, or the exception that told.
        code: A short identifier of your own for reports, such as ``"pdf.encrypted"``.

    Example:
        >>> raise ParentFailure("page 0 is a scan of a blank form", code="form.blank")
        Traceback (most recent call last):
        ...
        fanfold.failures.ParentFailure: page 0 is a scan of a blank form
    """

    def __init__(self, cause: str | BaseException = "", *, code: str = "") -> None:
        super().__init__(cause)
        self.cause = cause
        self.code = code

    def __reduce__(self) -> tuple[Any, ...]:
        return (_parent_failure, (self.cause, self.code))


def _parent_failure(cause: str | BaseException, code: str) -> ParentFailure:
    return ParentFailure(cause, code=code)


class RetryLater(Exception):
    """The service that a stage asks wants to be asked again later: it is busy, or a quota is used up.

    Raise it anywhere in a stage, or return it in an item's place in a batched one. The item is not lost and
    no attempt of ``retries`` is used up: it goes back to the head of its queue, and no call of the stage
    begins in any of its workers until then. Calls that are under way go on. See ``how-to/models-over-http``
    in the documentation for what ends this when the service never gives in.

    Args:
        after_s: When to ask again, in seconds from now: the value of an answer's ``Retry-After`` header.
        cause: Why: a sentence, or the exception that told.

    Raises:
        ValueError: ``after_s`` is no time from 0 on.

    Example:
        >>> raise RetryLater(3, "the server is busy")
        Traceback (most recent call last):
        ...
        fanfold.failures.RetryLater: the server is busy (to be asked again in 3 s)
    """

    def __init__(self, after_s: float, cause: str | BaseException = "") -> None:
        if not (isinstance(after_s, (int, float)) and 0 <= after_s < inf):
            raise ValueError(
                f"RetryLater: after_s={after_s!r} is not a number of seconds from 0 on"
            )
        super().__init__(after_s, cause)
        self.after_s: float = float(after_s)
        self.cause: str | BaseException = cause

    def __str__(self) -> str:
        again = f"to be asked again in {self.after_s:g} s"
        return f"{self.cause} ({again})" if str(self.cause) else again


def declared(values: Iterable[object]) -> BaseException | None:
    """The exception that decides for a task in whose results some stand: a parent failure before others.

    Exceptions are told by their types alone, since a user's value may do anything when it is asked.
    """
    found = [value for value in values if issubclass(type(value), BaseException)]
    serious = (value for value in found if issubclass(type(value), ParentFailure))
    first = next(serious, found[0] if found else None)
    return first if isinstance(first, BaseException) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """What failed, where and why: one record, counted once where it originates.

    ``ordinals`` are counted from 0, one per level below the root (the root itself is told by ``key``);
    ``levels`` names them. ``gather(failed="mark")`` puts a ``Failure`` in the failed member's place.
    """

    kind: str
    """One of :data:`KINDS`."""
    message: str
    code: str = ""
    exception: str = ""
    """Qualified name of the exception's type; empty if none was involved."""
    traceback: str = ""
    call: str = ""
    """The call at which it happened, such as ``Ocr#2``."""
    key: str = ""
    """Key of the root item."""
    levels: tuple[str, ...] = ()
    """Names of the levels, the root's first."""
    ordinals: tuple[int, ...] = ()
    """One for each of ``levels``; the root's own is its position in the source."""
    attempts: int = 1
    worker: str = ""
    scope: Literal["item", "parent"] = "item"
    """Whether it fails its item alone, or condemns the siblings at the call too (:class:`ParentFailure`)."""
    after_s: float | None = None
    """When the item should have been tried again, in seconds (:class:`RetryLater`). In what workers report,
    ``attempts=0`` beside it says that the item was not begun, since its worker was told so before."""

    @classmethod
    def from_exception(cls, error: BaseException, *, worker: str = "") -> Failure:
        """The record of an exception that a user's stage raised or returned (bounded in size, and without the
        values of secrets)."""
        name = type(error).__qualname__
        module = type(error).__module__
        qualified = name if module == "builtins" else f"{_text(module)}.{name}"
        raised = error.__traceback__ is not None  # a failure that was returned has none to show
        text = _traced(error) if raised else ""
        if isinstance(error, (ItemFailure, ParentFailure)):
            cause = error.cause
            inner = type(cause).__qualname__ if issubclass(type(cause), BaseException) else ""
            return cls(
                kind="declared",
                code=redacted(
                    _text(error.code)
                ),  # records cross to the driver: nothing of a user's may
                message=_shorten(_text(cause) or inner, MESSAGE_LIMIT_CHARS),
                exception=qualified,
                traceback=_shorten(text, TRACEBACK_LIMIT_CHARS),
                worker=worker,
                scope="parent" if isinstance(error, ParentFailure) else "item",
            )
        told = _text(error)
        return cls(
            kind="raised",
            message=_shorten(f"{name}: {told}" if told else name, MESSAGE_LIMIT_CHARS),
            exception=qualified,
            traceback=_shorten(text, TRACEBACK_LIMIT_CHARS),
            worker=worker,
        )

    def where(self) -> str:
        """The item in words: ``document corpus/a.pdf, page 3``."""
        parts = [f"{self.levels[0]} {self.key}"] if self.levels else [self.key]
        parts += [f"{name} {n}" for name, n in zip(self.levels[1:], self.ordinals[1:], strict=True)]
        return ", ".join(parts)

    def as_dict(self) -> Mapping[str, Any]:
        """Plain JSON-ready form, as ``failures.jsonl`` holds it."""
        found = asdict(self)
        del found["after_s"]  # it says when to go on, and nobody goes on from here
        return found


def _text(thing: object) -> str:
    """``str`` of something of a user's, which may do anything."""
    try:
        return str.__add__("", str(thing))  # a plain string, whatever subclass it was
    except BaseException as error:
        return f"(a {type(thing).__name__} whose text raises {type(error).__name__})"


def _traced(error: BaseException) -> str:
    """The traceback's text; shown with the text of causes, and code of a user's makes that."""
    try:
        return _text("".join(traceback.format_exception(error)))
    except BaseException as raised:
        lines = "".join(traceback.format_tb(error.__traceback__))
        return f"{lines}(the traceback's text raises {type(raised).__name__})"


def _shorten(text: str, limit_chars: int) -> str:
    """Keep head and tail: the head of a traceback names the entry, its tail the culprit. No secret is left."""
    text = redacted(text)
    if len(text) <= limit_chars:
        return text
    half = limit_chars // 2
    return f"{text[:half]}\n… {len(text) - 2 * half} characters left out …\n{text[-half:]}"
