"""Profiles: their file's shape, and back."""

import json

import pytest

from fanfold.observe.profile import SCHEMA, Profile, StageProfile, read_profile

PROFILE = Profile(
    "to_text",
    {
        "Ocr": StageProfile(1.9300001, True, {8: (0.112,), 1: (0.031, 0.03)}),
        "pages": StageProfile(0.0, False, {}),
    },
)


def test_the_shape_that_simulations_build_on(tmp_path):
    PROFILE.write(tmp_path / "profile.json")
    assert [path.name for path in tmp_path.iterdir()] == ["profile.json"]
    assert json.loads((tmp_path / "profile.json").read_text()) == {
        "schema": SCHEMA,
        "pipeline": "to_text",
        "stages": {
            "Ocr": {
                "construct_s": 1.93,
                "batched": True,
                "calls": [
                    {"items": 1, "seconds": [0.031, 0.03]},
                    {"items": 8, "seconds": [0.112]},
                ],
            },
            "pages": {"construct_s": 0.0, "batched": False, "calls": []},
        },
    }


def test_what_was_written_is_read(tmp_path):
    PROFILE.write(str(tmp_path / "profile.json"))
    found = read_profile(tmp_path / "profile.json")
    assert found.stages["Ocr"].seconds == PROFILE.stages["Ocr"].seconds
    assert found.to_dict() == PROFILE.to_dict()


@pytest.mark.parametrize(
    ("text", "words"), [("[]", "no profile"), ('{"schema": 2}', "of version 1"), ("{", "Expecting")]
)
def test_anything_else_is_refused(text, words, tmp_path):
    (tmp_path / "profile.json").write_text(text)
    with pytest.raises(ValueError, match=words):
        read_profile(tmp_path / "profile.json")
