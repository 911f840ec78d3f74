"""Failures as records: bounded, plain, and made of whatever exceptions users think of."""

from __future__ import annotations

import enum
import pickle
from typing import Any

from fanfold.failures import (
    MESSAGE_LIMIT_CHARS,
    TRACEBACK_LIMIT_CHARS,
    Failure,
    ItemFailure,
    ParentFailure,
    declared,
)


class Code(enum.StrEnum):
    ENCRYPTED = "pdf.encrypted"


class Odd(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")


def raised(error: BaseException) -> Failure:
    try:
        raise error
    except BaseException as caught:
        return Failure.from_exception(caught, worker="Ocr[1]")


def test_an_exception_is_told_with_type_message_and_place():
    failure = raised(ValueError("bad"))
    assert (failure.kind, failure.message, failure.exception) == (
        "raised",
        "ValueError: bad",
        "ValueError",
    )
    assert "in raised" in failure.traceback and failure.worker == "Ocr[1]"
    assert raised(KeyboardInterrupt()).message == "KeyboardInterrupt"


def test_an_item_failure_is_declared_with_its_code():
    failure = raised(ItemFailure("is encrypted", code=Code.ENCRYPTED))
    assert (failure.kind, failure.message, failure.code) == (
        "declared",
        "is encrypted",
        "pdf.encrypted",
    )
    assert raised(ItemFailure(ValueError("inner"))).message == "inner"
    assert raised(ItemFailure(ValueError())).message == "ValueError"


def test_a_parent_failure_is_declared_and_its_scope_is_the_parent():
    failure = raised(ParentFailure("is a blank form", code=Code.ENCRYPTED))
    assert (failure.kind, failure.message, failure.code, failure.scope) == (
        "declared",
        "is a blank form",
        "pdf.encrypted",
        "parent",
    )
    assert failure.exception == "fanfold.failures.ParentFailure"
    assert raised(ItemFailure("x")).scope == raised(ValueError("x")).scope == "item"
    assert raised(ParentFailure(ValueError("inner"))).message == "inner"


def test_of_several_exceptions_a_parent_failure_decides_and_else_the_first():
    item, parent, other = ItemFailure("i"), ParentFailure("p"), ValueError("v")
    assert declared([1, item, other, parent]) is parent
    assert declared([1, other, item]) is other
    assert declared([1, "a", None, ValueError]) is None, "a class is a value"


def test_a_record_is_made_of_plain_text_only():
    values: list[Any] = list(raised(ItemFailure("x", code=Code.ENCRYPTED)).as_dict().values())
    assert {type(value) for value in values} == {str, tuple, int}


def test_an_exception_without_a_text_is_told_all_the_same():
    assert raised(Odd()).message == "Odd: (a Odd whose text raises RuntimeError)"
    assert "RuntimeError" in raised(ItemFailure(Odd())).message


def test_a_record_is_bounded():
    failure = raised(ValueError("x" * 1_000_000))
    assert len(failure.message) < MESSAGE_LIMIT_CHARS + 100
    assert len(failure.traceback) < TRACEBACK_LIMIT_CHARS + 100


def test_records_and_item_failures_pickle():
    for thing in (raised(ValueError("bad")), ItemFailure("why", code="c")):
        again = pickle.loads(pickle.dumps(thing))
        assert str(again) == str(thing)
    for error in (ItemFailure("why", code="c"), ParentFailure("why", code="c")):
        again = pickle.loads(pickle.dumps(error))
        assert (type(again), again.code) == (type(error), "c")


def test_where_says_key_and_ordinals():
    failure = Failure(
        kind="raised", message="m", key="a.pdf", levels=("document", "page"), ordinals=(7, 3)
    )
    assert failure.where() == "document a.pdf, page 3"


class OddReduce(str):
    """A text that would run code wherever it is unpickled, and lies about itself."""

    def __reduce__(self) -> Any:
        raise SystemExit("unpickled")

    def __str__(self) -> str:
        return self


class OddExit(Exception):
    def __str__(self) -> str:
        raise SystemExit(3)


def test_no_text_of_a_users_own_type_gets_into_a_record():
    for error in (
        ItemFailure("x", code=OddReduce("code")),
        ItemFailure(OddReduce("message")),
        ValueError(OddReduce("message")),
        ItemFailure("x", code=lambda: 1),  # type: ignore[arg-type]
    ):
        failure = raised(error)
        texts = (failure.code, failure.message, failure.exception, failure.traceback)
        assert {type(text) for text in texts} == {str}
        assert pickle.loads(pickle.dumps(failure)) == failure


def test_texts_that_exit_or_raise_anywhere_in_a_chain_are_survived():
    assert "SystemExit" in raised(OddExit()).message
    try:
        raise ValueError("outer") from OddExit()
    except ValueError as caught:
        failure = Failure.from_exception(caught)
    assert failure.message == "ValueError: outer"
    assert "test_texts_that_exit" in failure.traceback
