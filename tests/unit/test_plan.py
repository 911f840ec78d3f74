"""What little logic a plan has: travelling to workers, source lines."""

import pickle

import cloudpickle

from fanfold.plan import StageSpec, Where
from tests import pipelines


def by_value(item):
    return item


def test_a_decorated_function_travels_by_its_name():
    spec = StageSpec(0, "read", pipelines.read.target)
    for library in (pickle, cloudpickle):
        data = library.dumps(spec)
        assert pickle.loads(data).target is pipelines.read.target
        assert len(data) < 600, "the function itself seems to be in there"


def test_other_targets_travel_as_they_always_do():
    for target in (by_value, len, dict, lambda item: item + 1):
        again = pickle.loads(cloudpickle.dumps(StageSpec(0, "f", target, kwargs={"a": 1})))
        assert again.kwargs == {"a": 1} and callable(again.target)
    assert pickle.loads(pickle.dumps(StageSpec(0, "f", by_value))).target is by_value


def test_where_is_short_for_messages():
    assert Where("/srv/flows/flow.py", 41).short() == "flow.py:41"
    assert Where(r"C:\me\flow.py", 41).short() == "flow.py:41"
    assert str(Where("/srv/flows/flow.py", 41)) == "/srv/flows/flow.py:41"
