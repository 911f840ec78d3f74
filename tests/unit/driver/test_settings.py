"""What a run is made of, by name."""

import datetime
from fractions import Fraction

import pytest

import fanfold as ff
from fanfold.backends.inline import InlineBackend
from fanfold.data.jsonl_sink import write_jsonl
from fanfold.data.sinks import SinkWriter
from fanfold.data.sources import from_items
from fanfold.driver.resources import Fitted
from fanfold.driver.settings import (
    as_source,
    failed_limit,
    make_backend,
    make_run_dir,
    new_run_name,
    worker_specs,
)
from fanfold.errors import UsageError
from tests.plans import fan_out_plan


def test_workers_are_named_after_their_stage():
    specs = worker_specs(Fitted(fan_out_plan()))
    assert [(s.worker, s.stage, s.name) for s in specs] == [
        (0, 0, "pages[0]"),
        (1, 1, "read[0]"),
        (2, 2, "join[0]"),
    ]


@pytest.mark.parametrize(
    ("given", "limit"),
    [
        (None, None),
        (0, 0),
        (12, 12),
        (1, 1),
        (1.0, Fraction(1)),
        (0.07, Fraction(7, 100)),
        (0.0, 0),
    ],
)
def test_a_limit_of_failed_roots_is_a_number_or_the_share_that_was_written(given, limit):
    found = failed_limit(given)
    assert found == limit
    assert isinstance(found, Fraction) == isinstance(given, float)


@pytest.mark.parametrize("given", [-1, True, 1.5, -0.1, float("nan"), "3", (1, 2)])
def test_what_is_no_limit_of_failed_roots_is_refused(given):
    with pytest.raises(UsageError, match="FF433 max_failed=") as told:
        failed_limit(given)
    assert repr(given) in told.value.message and "0.05" in told.value.hint


def test_at_the_root_a_parent_failure_is_like_an_item_failure():
    @ff.stage
    def fails(item):
        raise ff.ParentFailure("no", code="form.blank")

    pipeline = ff.pipeline(lambda item: fails(item))
    (result,) = pipeline.stream([1], backend="inline")
    assert result.status is ff.Status.FAILED
    assert [(f.kind, f.code, f.scope) for f in result.failures] == [
        ("declared", "form.blank", "parent")
    ]
    with pytest.raises(ff.ParentFailure):
        pipeline(1)


def test_backends_have_names_or_are_objects():
    assert make_backend("inline")[1] == "inline"
    own = InlineBackend()
    assert make_backend(own) == (own, "InlineBackend")
    for wrong in ("ray", "simulated", 3):
        with pytest.raises(UsageError, match="FF424"):
            make_backend(wrong)  # type: ignore[arg-type]


def test_iterables_are_sources_and_single_values_are_not():
    source = from_items([1])
    assert as_source(source) is source
    assert list(as_source({1})) == [("0", 1)]
    for wrong in ("a.pdf", b"", {"a": 1}, 3, None):
        with pytest.raises(UsageError, match="FF317"):
            as_source(wrong)


def test_run_names_sort_by_time_and_differ():
    early = datetime.datetime(2031, 2, 3, 4, 5, 6, tzinfo=datetime.UTC)
    late = early + datetime.timedelta(seconds=1)
    assert new_run_name(early).startswith("2031-02-03T04-05-06-")
    assert new_run_name(early) < new_run_name(late)
    assert len({new_run_name(early) for _ in range(5)}) > 1


def test_the_run_directory_is_with_the_output_unless_chosen(tmp_path):
    writer = SinkWriter([write_jsonl(tmp_path / "out")], [()])
    assert make_run_dir(None, writer, "r") == tmp_path / "out" / ".fanfold" / "r"
    assert make_run_dir(tmp_path / "own", writer, "r") == tmp_path / "own"
    assert (tmp_path / "own").is_dir()
    assert make_run_dir(None, None, "r") is None
