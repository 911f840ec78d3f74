"""What a run is made of, by name."""

import datetime
from dataclasses import replace
from fractions import Fraction

import pytest

import fanfold as ff
from fanfold.backends.inline import InlineBackend
from fanfold.data.jsonl_sink import write_jsonl
from fanfold.data.sinks import SinkWriter
from fanfold.data.sources import from_items
from fanfold.driver.settings import (
    as_source,
    crowded,
    failed_limit,
    make_backend,
    make_run_dir,
    new_run_name,
    refuse_impossible,
    usable_cores,
    worker_specs,
)
from fanfold.errors import SetupError, UsageError
from tests.plans import fan_out_plan


def test_workers_are_named_after_their_stage():
    specs = worker_specs(fan_out_plan())
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


def test_a_stage_of_which_no_replica_fits_this_machine_is_refused_before_anything_starts():
    plan = fan_out_plan()
    pages, read, join = plan.stages
    greedy = replace(plan, stages=(replace(pages, cpus=4), read, replace(join, cpus=3)))
    with pytest.raises(SetupError, match="FF432") as caught:
        refuse_impossible(greedy, "local", cores=2)
    for part in ("stage 'pages' has cpus=4, stage 'join' has cpus=3", "use 2 cores"):
        assert part in caught.value.message
    refuse_impossible(greedy, "local", cores=4)
    refuse_impossible(greedy, "inline", cores=1)
    refuse_impossible(replace(plan, stages=(replace(pages, cpus=usable_cores()),)), "local")

    huge = ff.stage(len, cpus=usable_cores() + 1)
    with pytest.raises(SetupError, match="FF432"):
        list(ff.pipeline(lambda item: huge(item)).stream(["abc"]))
    assert list(ff.pipeline(lambda item: huge(item)).stream(["abc"], backend="inline"))


def test_replicas_that_are_to_keep_more_cores_busy_than_there_are_draw_a_warning():
    plan = fan_out_plan()
    pages, read, join = plan.stages
    many = replace(
        plan, stages=(replace(pages, replicas=64), replace(read, replicas=3, cpus=2), join)
    )
    (told,) = crowded(many, "local", cores=4)
    for part in ("stage 'read'", "3 replicas with cpus=2", "6 cores", "use 4", "read.replicas"):
        assert part in told
    assert crowded(many, "local", cores=6) == crowded(many, "inline", cores=1) == []
    threads = replace(
        plan, stages=(pages, replace(read, replicas=3, cpus=2, workers="thread"), join)
    )
    assert crowded(threads, "local", cores=1) == []

    greedy = ff.stage(len, replicas=2, cpus=usable_cores(), name="greedy")
    if usable_cores() > 1:
        with pytest.warns(UserWarning, match="stage 'greedy' .* 2 replicas") as caught:
            assert [r.value for r in ff.pipeline(lambda item: greedy(item)).stream(["abc"])] == [3]
        assert [warning.filename for warning in caught] == [__file__]


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
