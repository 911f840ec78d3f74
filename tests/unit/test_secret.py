"""Secrets: resolved where the stage runs, shown nowhere."""

import pickle

import pytest

import fanfold as ff
from fanfold import secret
from fanfold.extract import describe
from fanfold.failures import Failure
from fanfold.secret import Secret, hide, names_in, redacted, resolved

VALUES = {"TOKEN": "abc/def 'x'", "LONGER": "abc/def 'x' and more"}


@pytest.fixture(autouse=True)
def _nothing_hidden(monkeypatch):
    monkeypatch.setattr(secret, "_hidden", {})


def test_a_secret_is_its_name():
    assert Secret("TOKEN") == Secret("TOKEN") != Secret("LONGER")
    assert repr(Secret("TOKEN")) == "Secret(name='TOKEN')"
    assert pickle.loads(pickle.dumps(Secret("TOKEN"))) == Secret("TOKEN")


def test_secrets_are_resolved_in_containers_and_the_rest_stays_the_same_object():
    plain = [1, {"a": (2,)}]
    assert resolved(plain, VALUES) is plain
    given = {"token": Secret("TOKEN"), "more": [({"x": Secret("LONGER")},), plain]}
    found = resolved(given, VALUES)
    assert found == {"token": VALUES["TOKEN"], "more": [({"x": VALUES["LONGER"]},), plain]}
    assert found["more"][1] is plain
    assert given["token"] == Secret("TOKEN"), "what was given is left alone"
    assert names_in(given) == {"TOKEN", "LONGER"}
    assert names_in(plain) == set()


def test_a_secret_that_is_not_there_is_told_by_name():
    with pytest.raises(ff.SetupError, match="FF440 the secret 'TOKEN'"):
        resolved([Secret("TOKEN")], {})


def test_what_was_resolved_is_hidden_in_texts_also_in_other_forms():
    assert redacted("abc/def 'x'") == "abc/def 'x'"
    resolved([Secret("TOKEN"), Secret("LONGER")], VALUES)
    assert redacted("<abc/def 'x'>") == "<<secret TOKEN>>"
    assert redacted("abc/def 'x' and more") == "<secret LONGER>"
    assert redacted("?t=abc%2Fdef%20%27x%27") == "?t=<secret TOKEN>"
    assert redacted("?t=abc%2Fdef+%27x%27") == "?t=<secret TOKEN>"
    assert redacted('{"t": "abc/def \'x\'"}') == '{"t": "<secret TOKEN>"}'


def test_what_is_too_short_to_be_a_secret_is_not_hidden():
    hide("EMPTY", "")
    hide("SHORT", "tex")
    assert redacted("text") == "text"


def test_failures_and_descriptions_hold_no_secret():
    hide("TOKEN", "abcdef")
    try:
        raise ValueError("no access with abcdef") from KeyError("abcdef")
    except ValueError as error:
        failure = Failure.from_exception(error)
    assert failure.message == "ValueError: no access with <secret TOKEN>"
    assert "abcdef" not in failure.traceback and "<secret TOKEN>" in failure.traceback
    declared = Failure.from_exception(ff.ItemFailure("abcdef", code="is.abcdef"))
    assert (declared.message, declared.code) == ("<secret TOKEN>", "is.<secret TOKEN>")
    assert describe("abcdef") == "'<secret TOKEN>' (str)"
    assert describe({"abcdef": 1}) == "a dict with the keys <secret TOKEN>"


def test_a_secret_at_the_place_where_a_long_text_is_cut_is_hidden_whole():
    hide("TOKEN", "abcdef" * 100)
    failure = Failure.from_exception(ValueError("x" * 700 + "abcdef" * 100 + "y" * 5000))
    assert "abcdef" not in failure.message
