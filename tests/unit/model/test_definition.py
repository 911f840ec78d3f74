"""Targets and options of stages: what is taken, what is refused and how."""

import functools
from dataclasses import fields
from fractions import Fraction

import pytest

import fanfold as ff
from fanfold.model import other_names
from fanfold.model.definition import ANNOUNCED, StageOptions, define, did_you_mean


class Upper:
    def __call__(self, text):
        return text.upper()

    def run(self, text, *, mark="!"):
        return text + mark

    @staticmethod
    def plain(text):
        return text


class Silent:
    pass


def error_of(target, **options):
    with pytest.raises(ff.DefinitionError) as caught:
        ff.stage(target, **options)
    return caught.value


@pytest.mark.parametrize("option", sorted(ANNOUNCED))
def test_an_announced_option_is_refused_by_name_as_not_available_yet(option):
    error = error_of(len, **{option: 1})
    assert error.code == "FF103"
    assert repr(option) in error.message and "not available yet" in error.message


@pytest.mark.parametrize(
    ("given", "kept", "fewest", "most"),
    [
        (3, 3, 3, None),
        ("auto", "auto", 1, 0),
        ((2, 5), (2, 5), 2, 5),
        ([1, 8], (1, 8), 1, 8),
        ((4, 4), (4, 4), 4, None),
    ],
)
def test_replicas_are_a_number_or_follow_the_work(given, kept, fewest, most):
    options = define(len, name="Ocr", options={"replicas": given}).options
    assert options.replicas == kept
    assert (options.fewest_replicas, options.most_replicas) == (fewest, most)


@pytest.mark.parametrize(
    "replicas",
    [0, -1, 1.5, True, "many", "Auto", (0, 4), (4, 1), (1, 2, 3), (1, 2.0), (), (1,), [3], None],
)
def test_what_is_no_number_of_replicas_is_refused(replicas):
    error = error_of(len, replicas=replicas)
    assert error.code == "FF102" and "replicas=" in error.message and "auto" in error.hint


def test_an_unknown_option_offers_the_nearest_one():
    error = error_of(len, batchsize=3)
    assert error.code == "FF104"
    assert "'batchsize'" in error.message and "Did you mean 'batch_size'?" in error.hint


@pytest.mark.parametrize(
    ("option", "own"),
    [
        ("num_gpus", "gpus="),
        ("num_cpus", "cpus="),
        ("concurrency", "replicas="),
        ("max_calls", "recycle_after="),
        ("maxtasksperchild", "recycle_after="),
        ("max_requests", "recycle_after="),
        ("cores", "cpus="),
        ("batch_timeout", "linger_s="),
        ("batch_wait_timeout_s", "linger_s="),
        ("max_concurrency", "max_in_flight="),
        ("max_ongoing_requests", "max_in_flight="),
        ("max_batch_size", "batch_size="),
        ("max_num_batched_tokens", "max_batch_cost="),
        ("memory_bytes", "memory="),
        ("rpm", "rate_limit="),
        ("max_retries", "retries="),
        ("num_returns", "outputs="),
        ("fn_constructor_kwargs", "first call"),
    ],
)
def test_an_option_by_the_name_that_others_give_it_is_pointed_to_ours(option, own):
    error = error_of(len, **{option: 1})
    assert error.code == "FF104" and own in error.hint


def test_names_that_others_give_lead_to_options_and_are_none_themselves():
    ours = {option.name for option in fields(StageOptions)}
    for sentence, names in other_names._OURS.items():
        assert sentence.partition("=")[0] in ours
        assert ours.isdisjoint(names) and ANNOUNCED.isdisjoint(names)
    listed = [name for names in other_names._OURS.values() for name in names]
    assert len(listed) == len(set(listed))


@pytest.mark.parametrize(
    "options",
    [
        {"batch_size": 0},
        {"batch_size": True},
        {"batch_size": 2.0},
        {"replicas": 0},
        {"replicas": None},
        {"cpus": -1},
        {"outputs": 0},
        {"outputs": "text"},
        {"outputs": ("text",)},
        {"outputs": ("a", "a")},
        {"outputs": ("a", "b c")},
        {"outputs": ("_a", "b")},
        {"batch_bytes": 0},
        {"batch_bytes": True},
        {"batch_bytes": 1.5},
        {"batch_bytes": "lots"},
        {"batch_bytes": "3 apples"},
        {"batch_by": "language"},
        {"batch_cost": 5},
        {"max_batch_cost": 0},
        {"max_batch_cost": "8"},
        {"max_batch_cost": float("inf")},
        {"max_batch_cost": True},
        {"schedule": "lifo"},
        {"cpus": 1.5},
        {"gpus": 1.5},
        {"gpus": -1},
        {"gpus": True},
        {"gpus": "one"},
        {"gpus": float("inf")},
        {"gpus": float("nan")},
        {"memory": 0},
        {"memory": "4 apples"},
        {"recycle_after": 0},
        {"recycle_after": 1.5},
        {"recycle_above": "much"},
        {"linger_s": -1.0},
        {"linger_s": float("inf")},
        {"linger_s": float("nan")},
        {"linger_s": True},
        {"linger_s": "soon"},
        {"rate_limit": 0},
        {"rate_limit": -1.0},
        {"rate_limit": float("inf")},
        {"rate_limit": True},
        {"rate_limit": "fast"},
        {"rate_limit": "10/fortnight"},
        {"rate_limit": "0/min"},
        {"rate_limit": "/min"},
        {"method": "no method"},
        {"name": ""},
        {"name": "a.b"},
        {"name": "a#2"},
    ],
    ids=str,
)
def test_values_that_an_option_does_not_take_are_refused(options):
    error = error_of(Upper, **options)
    assert error.code == "FF102"
    assert repr(next(iter(options.values()))) in error.message


@pytest.mark.parametrize(
    "options", [{"linger_s": 0.5}, {"batch_bytes": 1000}, {"batch_by": len}], ids=str
)
def test_how_batches_form_is_said_of_batched_stages_alone(options):
    (name, value) = next(iter(options.items()))
    error = error_of(Upper, **options)
    assert error.code == "FF112" and f"{name}={value!r}" in error.message
    assert "give batch_size= too" in error.hint
    assert getattr(ff.stage(Upper, batch_size=4, **options).options, name) == value


def test_a_cost_has_a_function_and_a_limit_and_is_the_only_measure():
    for alone in ({"batch_cost": len}, {"max_batch_cost": 8}):
        error = error_of(Upper, batch_size=4, **alone)
        assert error.code == "FF112" and "not the other" in error.message
    error = error_of(Upper, batch_size=4, batch_cost=len, max_batch_cost=8, batch_bytes=100)
    assert error.code == "FF112" and "both batch_bytes= and batch_cost=" in error.message
    options = ff.stage(Upper, batch_size=4, batch_cost=len, max_batch_cost=8).options
    assert (options.batch_cost, options.max_batch_cost) == (len, 8.0)


def test_what_a_replica_needs_is_said_as_people_say_it():
    options = ff.stage(len, gpus=0.1, memory="4GB", recycle_after=100, recycle_above="6GiB").options
    assert (options.gpus, options.memory) == (Fraction(1, 10), 4_000_000_000)
    assert (options.recycle_after, options.recycle_above) == (100, 6 * 1024**3)
    for gpus in (0, 1, 2.0, Fraction(1, 3)):
        assert define(len, name=None, options={"gpus": gpus}).options.gpus == gpus
    nothing = ff.stage(len).options
    assert (nothing.cpus, nothing.gpus, nothing.memory) == (None, None, None)
    kept = ff.pipeline(lambda item: ff.stage(len, name="Ocr", gpus=0.5, recycle_after=3)(item))
    (stage,) = kept.using({"Ocr": lambda item: 3}).plan().stages
    assert (stage.gpus, stage.recycle_after) == (Fraction(1, 2), 3)


@pytest.mark.parametrize(
    "options", [{"gpus": 0.5}, {"gpus": 0}, {"recycle_after": 3}, {"recycle_above": 10**9}], ids=str
)
def test_what_only_a_process_can_keep_is_not_asked_of_a_thread(options):
    (name, value) = next(iter(options.items()))
    error = error_of(len, workers="thread", **options)
    assert error.code == "FF113" and f"{name}={value!r}" in error.message
    with pytest.raises(ff.DefinitionError, match="FF113"):
        ff.pipeline(lambda item: ff.stage(len, **options)(item)).using({"len.workers": "thread"})
    assert ff.stage(len, workers="thread", cpus=1, memory="1GB").options.memory == 10**9


def test_batch_size_none_means_not_batched():
    assert ff.stage(len, batch_size=None).options.batch_size is None


def test_a_generator_takes_no_batch_size():
    def children(item):
        yield item

    class Children:
        def __call__(self, item):
            yield item

    for target in (children, Children, functools.partial(children), Children()):
        error = error_of(target, batch_size=1)
        assert error.code == "FF105" and "batch_size=1" in error.message


def test_asynchronous_functions_and_classes_are_known():
    async def one(item):
        return item

    class One:
        async def __call__(self, item):
            return item

    for target in (one, One, One(), functools.partial(one)):
        found = define(target, name="x", options={"max_in_flight": 3, "batch_size": 2})
        assert found.asynchronous and found.options.max_in_flight == 3
    assert not define(len, name=None, options={}).asynchronous


def test_an_asynchronous_generator_is_refused():
    async def many(item):
        yield item

    assert error_of(many).code == "FF106"


def test_only_asynchronous_stages_keep_several_calls_going():
    error = error_of(len, max_in_flight=2)
    assert error.code == "FF110" and "replicas=" in error.hint
    with pytest.raises(ff.DefinitionError, match="FF110"):
        define(len, name=None, options={}).tuned({"max_in_flight": 2})


@pytest.mark.parametrize(
    "options",
    [
        {"retries": -1},
        {"retries": True},
        {"on_error": "isolate"},
        {"on_error": None},
        {"workers": "fibre"},
        {"workers": 3},
        {"max_in_flight": 0},
        {"identities": "yes"},
    ],
)
def test_options_of_workers_are_checked(options):
    assert error_of(len, **options).code == "FF102"


def test_options_of_workers_are_taken():
    given = {"retries": 0, "workers": "thread", "identities": False, "on_error": "stop"}
    found = define(len, name=None, options=given).options
    assert (found.retries, found.workers, found.on_error) == (0, "thread", "stop")
    assert found.identities is False


def test_setup_on_node_is_called_without_an_object():
    class Wrong(Upper):
        def setup_on_node(self): ...

    class Right(Upper):
        @staticmethod
        def setup_on_node(): ...

    error = error_of(Wrong, method="run")
    assert error.code == "FF111" and "Wrong.setup_on_node" in error.message
    define(Right, name=None, options={"method": "run"})
    assert "static method" in error_of(len, setup_on_node=print).hint


def test_what_cannot_be_called_is_no_stage():
    assert error_of(3).code == "FF101"
    assert error_of(ff.stage(len)).code == "FF101"
    error = error_of(Silent)
    assert error.code == "FF107" and "Silent has no method '__call__'" in error.message


def test_method_names_the_entry_point_of_a_class_or_an_object_but_not_of_a_function():
    assert (
        str(define(Upper, name=None, options={"method": "run"}).signature) == "(text, *, mark='!')"
    )
    assert str(define(Upper, name=None, options={"method": "plain"}).signature) == "(text)"
    assert (
        str(define(Upper(), name=None, options={"method": "run"}).signature)
        == "(text, *, mark='!')"
    )
    assert error_of(Upper, method="walk").code == "FF107"
    assert error_of(len, method="run").code == "FF107"


@pytest.mark.parametrize(
    ("target", "name"),
    [(Upper, "Upper"), (Upper(), "Upper"), (len, "len"), (functools.partial(max, 1), "max")],
)
def test_a_stage_is_named_after_its_target(target, name):
    assert ff.stage(target).name == name
    assert ff.stage(target, name="other").name == "other"


def test_generators_are_known_through_classes_and_partials():
    def children(item, n):
        yield item

    class Children:
        def __call__(self, item):
            yield item

    assert define(functools.partial(children, n=1), name=None, options={}).generator
    assert define(Children, name=None, options={}).generator
    assert not define(Upper, name=None, options={}).generator


def test_a_callable_without_a_signature_is_welcome():
    assert define(dict.fromkeys, name=None, options={}).options.batch_size is None
    assert define(min, name=None, options={}).signature is None


def test_tuned_changes_options_and_checks_them():
    stage = define(len, name=None, options={"batch_size": 2})
    tuned = stage.tuned({"batch_size": 8, "replicas": 3})
    assert (tuned.options.batch_size, tuned.options.replicas) == (8, 3)
    assert stage.options.batch_size == 2
    with pytest.raises(ff.DefinitionError, match="FF102"):
        stage.tuned({"replicas": 0})


def test_did_you_mean_lists_what_there_is():
    assert did_you_mean("Orc", ["Ocr", "Vlm"]) == "Did you mean 'Ocr'? Known: Ocr, Vlm."
    assert did_you_mean("x", ["Ocr", "Vlm"]) == "Known: Ocr, Vlm."
    assert did_you_mean("x", []) == "There are none."


@pytest.mark.parametrize(
    ("given", "per_s"),
    [
        (10, 10.0),
        (0.5, 0.5),
        ("10", 10.0),
        ("10/s", 10.0),
        ("600/min", 10.0),
        (" 60 / Hour", 60 / 3600),
    ],
)
def test_a_rate_is_kept_per_second(given, per_s):
    assert define(len, name=None, options={"rate_limit": given}).options.rate_limit == per_s
    assert (
        define(len, name=None, options={}).tuned({"rate_limit": given}).options.rate_limit == per_s
    )
