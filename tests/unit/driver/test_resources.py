"""What is refused, reduced and assigned on machines of all sizes."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

import fanfold as ff
from fanfold.driver.machine import VISIBLE, Machine, usable_cores
from fanfold.driver.resources import Fitted, fit
from fanfold.errors import SetupError
from fanfold.plan import Plan
from tests.plans import fan_out_plan

GB = 1_000_000_000


def machine(cores: int = 4, memory_bytes: int | None = 10 * GB, gpus: str = "") -> Machine:
    return Machine(cores, memory_bytes, lambda: tuple(gpus.split()))


def plan_of(*stages: dict[str, Any]) -> Plan:
    """A plan whose stages are called pages, read and join."""
    plan = fan_out_plan()
    changed = [
        replace(stage, **options)
        for stage, options in zip(plan.stages, (*stages, {}, {}, {}), strict=False)
    ]
    return replace(plan, stages=tuple(changed))


def replicas(fitted: Fitted) -> list[int]:
    return [stage.replicas for stage in fitted.plan.stages]


def shares(text: str) -> dict[str, Any]:
    return {"gpus": Fraction(text)}


@pytest.mark.parametrize(
    ("stage", "there", "words"),
    [
        ({"cpus": 5}, machine(), ("cpus=5", "4 cores")),
        ({"cpus": 2}, machine(cores=1), ("cpus=2", "1 core")),
        ({"memory": 11 * GB}, machine(), ("memory='11GB'", "10GB of memory")),
        (shares("1"), machine(), ("gpus=1", "no GPU")),
        (shares("0.5"), machine(), ("gpus=0.5", "no GPU")),
        (shares("2"), machine(gpus="0"), ("gpus=2", "1 GPU")),
    ],
)
def test_a_replica_that_cannot_run_here_is_refused(
    stage: dict[str, Any], there: Machine, words: tuple[str, ...]
) -> None:
    plan = plan_of({}, stage)
    with pytest.raises(SetupError, match="FF432 pipeline 'fan_out'") as told:
        fit(plan, "local", there)
    for part in ("stage 'read'", *words):
        assert part in told.value.message
    setting = words[0].partition("=")[0]
    assert f'using({{"read.{setting}": ...}})' in told.value.hint and VISIBLE in told.value.hint
    assert fit(plan, "inline", there).plan is plan


def test_all_that_is_impossible_is_told_at_once() -> None:
    plan = plan_of({"cpus": 5}, {"memory": 11 * GB}, shares("1"))
    with pytest.raises(SetupError) as told:
        fit(plan, "local", machine())
    for part in ("'pages' has cpus=5", "'read' has memory='11GB'", "'join' has gpus=1"):
        assert part in told.value.message


def test_only_what_was_declared_counts() -> None:
    plan = plan_of({"replicas": 64}, {"replicas": 100})
    fitted = fit(plan, "local", machine(cores=1, memory_bytes=1))
    assert fitted.plan == plan and fitted.notes == ()
    assert fitted.gpus_of(0, 63) is None


def test_six_workers_of_a_core_each_are_four_on_four_cores() -> None:
    fitted = fit(plan_of({}, {"replicas": 6, "cpus": 1}), "local", machine())
    assert replicas(fitted) == [1, 4, 1]
    (note,) = fitted.notes
    for part in ("stage 'read' has 4 replicas and not 6", "cpus=1", "4 cores", "read.replicas"):
        assert part in note
    assert replicas(fit(plan_of({"replicas": 3, "cpus": 2}), "local", machine())) == [2, 1, 1]
    fitted = fit(plan_of({"replicas": 4, "cpus": 1}), "local", machine())
    assert replicas(fitted) == [4, 1, 1] and fitted.notes == ()


def test_of_four_gigabytes_each_there_are_two_in_ten() -> None:
    heavy = {"replicas": 3, "memory": 4 * GB}
    fitted = fit(plan_of(heavy), "local", machine())
    assert replicas(fitted) == [2, 1, 1] and fitted.declared_bytes == 8 * GB
    assert "memory='4GB'" in fitted.notes[0] and "10GB of memory" in fitted.notes[0]
    assert replicas(fit(plan_of(heavy, heavy), "local", machine())) == [1, 1, 1]
    assert replicas(fit(plan_of(heavy, heavy), "local", machine(memory_bytes=None))) == [3, 3, 1]


def test_the_stage_that_takes_the_most_gives_way_first() -> None:
    stages = ({"replicas": 4, "cpus": 1}, {"replicas": 2, "cpus": 4})
    assert replicas(fit(plan_of(*stages), "local", machine(cores=8))) == [4, 1, 1]


@pytest.mark.parametrize(
    ("stage", "words"),
    [
        ({"memory": 4 * GB}, ("memory='4GB'", "10GB of memory")),
        (shares("1"), ("gpus=1", "2 GPUs")),
        (shares("0.7"), ("gpus=0.7", "2 GPUs")),  # of which no GPU holds two
    ],
)
def test_one_of_each_that_does_not_fit_at_the_same_time_is_refused(
    stage: dict[str, Any], words: tuple[str, ...]
) -> None:
    with pytest.raises(SetupError, match=r"FF435 .* not even one replica of each stage") as told:
        fit(plan_of(stage, stage, stage), "local", machine(gpus="0 1"))
    for part in ("stage 'join'", *words):
        assert part in told.value.message.replace("Stage", "stage")


def test_cores_are_shared_in_the_end_and_that_is_told() -> None:
    core = {"cpus": 1, "replicas": 3}
    fitted = fit(plan_of(core, core, core), "local", machine(cores=2))
    assert replicas(fitted) == [1, 1, 1]
    assert "3 cores busy" in fitted.notes[-1] and "2 cores: they share" in fitted.notes[-1]


def assigned(there: str, *stages: dict[str, Any]) -> list[Any]:
    return list(fit(plan_of(*stages), "local", machine(gpus=there)).gpus)


def test_whole_gpus_are_a_replicas_own() -> None:
    pairs = {**shares("2"), "replicas": 2}
    assert assigned("3 1 0 7", pairs) == [(("3", "1"), ("0", "7")), None, None]


def test_shares_are_spread_where_there_is_room_and_packed_where_there_is_not() -> None:
    half = {**shares("0.5"), "replicas": 2}
    assert assigned("0 1", half)[0] == (("0",), ("1",))
    assert assigned("0 1", half, shares("1"))[:2] == [(("1",), ("1",)), (("0",),)]
    assert assigned("0 1", {**shares("0.5"), "replicas": 4})[0] == (
        ("0",),
        ("1",),
        ("0",),
        ("1",),
    )
    # Spread, 0.6 and 0.4 on two GPUs, would leave no room for another 0.6.
    mixed = (shares("0.6"), {**shares("0.4"), "replicas": 2}, shares("0.6"))
    gpus = assigned("a b", *mixed)
    assert gpus[0] != gpus[2] and sorted(gpus[1]) == [("a",), ("b",)]


def test_a_tenth_is_a_tenth() -> None:
    fitted = fit(plan_of({**shares("0.1"), "replicas": 11}), "local", machine(gpus="0"))
    assert replicas(fitted) == [10, 1, 1]
    assert fitted.gpus_of(0, 9) == ("0",) and "gpus=0.1" in fitted.notes[0]


def test_no_gpu_is_seen_where_none_was_asked_for_in_words() -> None:
    assert assigned("0", shares("0"), shares("1")) == [((),), (("0",),), None]


def test_nobody_is_asked_for_gpus_that_nobody_wants() -> None:
    def ask() -> tuple[str, ...]:
        raise AssertionError("asked")

    assert fit(plan_of({}, shares("0")), "local", Machine(1, None, ask)).gpus[1] == ((),)


# ------------------------------------------------------------------------------------------ whole runs


def seen(item: Any) -> tuple[str | None, int]:
    return os.environ.get(VISIBLE), os.getpid()


class Seen:
    """What its constructor saw, and what the module that has it was imported under."""

    def __init__(self) -> None:
        self._visible = os.environ.get(VISIBLE)

    def __call__(self, item: Any) -> str | None:
        return self._visible


class Unread:
    """A source that must not be read."""

    def __iter__(self) -> Any:
        raise AssertionError("it was read")


def test_what_cannot_run_is_refused_before_any_input_is_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(VISIBLE, "")
    impossible: tuple[dict[str, Any], ...] = (
        {"gpus": 1},
        {"cpus": usable_cores() + 1},
        {"memory": "1000TB"},
    )
    for options in impossible:
        stage = ff.stage(len, name="greedy", **options)
        greedy = ff.pipeline(lambda item: stage(item))  # noqa: B023  # traced at once
        with pytest.raises(SetupError, match=r"FF432 .*'greedy'"):
            greedy.run(Unread())
        with pytest.raises(SetupError, match=r"FF432 .*'greedy'"):
            list(greedy.stream(Unread()))
        assert [r.value for r in greedy.stream(["abc"], backend="inline")] == [3]


def test_what_was_reduced_is_told_in_a_warning_and_in_the_report() -> None:
    cores = usable_cores()
    many = ff.stage(len, replicas=cores + 2, cpus=1, name="many")
    pipeline = ff.pipeline(lambda item: many(item))
    with pytest.warns(UserWarning, match="stage 'many' has .* and not") as caught:
        report = pipeline.run(["abc", "d"], progress=False)
    assert [warning.filename for warning in caught] == [__file__]
    assert len(report.workers) == cores
    assert report.notes == tuple(str(warning.message) for warning in caught)
    assert report.notes[0] in str(report) and report.to_dict()["notes"] == report.notes
    with pytest.warns(UserWarning, match="stage 'many' has") as caught:
        assert [result.value for result in pipeline.stream(["abc"])] == [3]
    assert [warning.filename for warning in caught] == [__file__]


def test_each_worker_sees_its_gpus_and_a_new_process_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(VISIBLE, "2,5,GPU-8f1c")
    one = ff.stage(seen, name="one", gpus=1, replicas=2, recycle_after=2)
    made = ff.stage(Seen, name="made", gpus=0.5)()
    hidden = ff.stage(seen, name="hidden", gpus=0)
    free = ff.stage(seen, name="free")
    pipeline = ff.pipeline(lambda item: (one(item), made(item), hidden(item), free(item)))
    results = [result.value for result in pipeline.stream(range(40))]
    by_process: dict[int, set[str | None]] = {}
    for (visible, pid), _, _, _ in results:
        by_process.setdefault(pid, set()).add(visible)
    assert len(by_process) > 2  # they were replaced
    assert {len(visible) for visible in by_process.values()} == {1}
    assert set().union(*by_process.values()) <= {"2", "5"}
    assert {value for _, value, _, _ in results} == {"GPU-8f1c"}
    assert {visible for _, _, (visible, _), _ in results} == {""}
    assert {visible for _, _, _, (visible, _) in results} == {"2,5,GPU-8f1c"}


def test_a_stages_module_is_imported_when_its_gpus_are_known(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    monkeypatch.setenv(VISIBLE, "7,9")
    (tmp_path / "looking_model.py").write_text(
        f"import os\nSEEN = os.environ[{VISIBLE!r}]\n\n\ndef look(item):\n    return SEEN\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    import looking_model  # type: ignore[import-not-found]  # made just now

    try:
        look = ff.stage(looking_model.look, gpus=1)
        assert [r.value for r in ff.pipeline(lambda item: look(item)).stream([1])] == ["7"]
    finally:
        del sys.modules["looking_model"]


def test_gpus_and_memory_may_be_set_from_outside() -> None:
    ocr = ff.stage(len, name="Ocr")
    pipeline = ff.pipeline(lambda item: ocr(item))
    keys = {"Ocr.gpus": "0.5", "Ocr.memory": "4GB", "Ocr.recycle_after": "9", "Ocr.cpus": "2"}
    changed = pipeline.using({key: pipeline.parse(key, text) for key, text in keys.items()})
    (stage,) = changed.plan().stages
    assert (stage.gpus, stage.memory) == (Fraction(1, 2), 4 * GB)
    assert (stage.recycle_after, stage.cpus) == (9, 2)
    for part in ("2 cores each", "0.5 GPUs each", "4GB of memory each", "replaced after 9 items"):
        assert part in changed.explain()
    whole = pipeline.using(
        {"Ocr.gpus": pipeline.parse("Ocr.gpus", "1"), "Ocr.recycle_above": "6GB"}
    )
    assert "1 GPU each" in whole.explain() and "replaced above 6GB" in whole.explain()


# -------------------------------------------------------------------------- replicas that follow the work

AUTO: dict[str, Any] = {"most_replicas": 0}


def most(fitted: Fitted) -> list[int | None]:
    return [stage.most_replicas for stage in fitted.plan.stages]


def fitted_to(there: Machine, *stages: dict[str, Any]) -> Fitted:
    return fit(plan_of(*stages), "local", there)


def test_stages_that_follow_the_work_have_what_the_cores_leave_to_each() -> None:
    fitted = fitted_to(machine(cores=16), AUTO, AUTO, {})
    assert (replicas(fitted), most(fitted), fitted.cores) == ([1, 1, 1], [15, 15, None], 16)


def test_what_others_declare_is_taken_off() -> None:
    fitted = fitted_to(machine(cores=16), AUTO, {"cpus": 3, "replicas": 2}, AUTO)
    assert (most(fitted), fitted.cores) == ([9, None, 9], 10)


def test_what_a_replica_takes_decides_how_many_there_can_be() -> None:
    assert most(fitted_to(machine(cores=16), AUTO | {"cpus": 4}, AUTO)) == [3, 12, None]


def test_the_bounds_of_a_stage_are_kept_to_where_there_is_room() -> None:
    stages = ({"replicas": 2, "most_replicas": 5}, {"replicas": 3, "most_replicas": 50})
    fitted = fitted_to(machine(cores=16), *stages)
    assert (replicas(fitted), most(fitted)) == ([2, 3, 1], [5, 14, None])


def test_the_fewest_are_kept_to_where_there_is_none() -> None:
    fitted = fitted_to(machine(cores=2), {"replicas": 4, "most_replicas": 8}, AUTO)
    assert (replicas(fitted), most(fitted), fitted.cores) == ([4, 1, 1], [4, 1, None], 5)


def test_memory_is_there_for_the_most() -> None:
    fitted = fitted_to(machine(cores=16), AUTO | {"memory": 3 * GB})
    assert most(fitted)[0] == 3 and fitted.declared_bytes == 9 * GB


def test_memory_is_counted_for_replicas_that_there_can_be_at_a_time() -> None:
    stages = (AUTO | {"memory": GB}, AUTO | {"memory": GB})
    fitted = fitted_to(machine(cores=8), *stages)
    assert most(fitted) == [7, 7, None] and fitted.declared_bytes == 8 * GB


def test_gpus_are_set_aside_for_the_most() -> None:
    fitted = fitted_to(machine(cores=16, gpus="0 1 2 3"), AUTO | shares("1"), shares("1"))
    assert most(fitted)[0] == 3
    assert {fitted.gpus_of(0, r) for r in range(3)} | {fitted.gpus_of(1, 0)} == {
        ("0",),
        ("1",),
        ("2",),
        ("3",),
    }


@pytest.mark.parametrize("backend", ["inline", "Mine"])
def test_where_nothing_is_shared_there_are_the_fewest(backend: str) -> None:
    fitted = fit(plan_of({"replicas": 2, "most_replicas": 5}, AUTO), backend)
    assert (replicas(fitted), most(fitted), fitted.cores) == ([2, 1, 1], [None] * 3, None)


def test_without_such_stages_no_cores_are_shared() -> None:
    assert fitted_to(machine(cores=16), {"replicas": 2}).cores is None
