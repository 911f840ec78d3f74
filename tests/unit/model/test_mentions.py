"""Whether code mentions a name."""

import functools

import fanfold as ff
from fanfold.model.mentions import mentions
from tests.pipelines import compiled


def asks(item):
    return ff.context().seed


def deeper(item):
    return Helper(item).value


class Helper:
    def __init__(self, item):
        self.value = middle(item)


def middle(item):
    return [asks(one) for one in [item]]


def silent(item):
    return item


class Asking:
    @property
    def seed(self):
        return ff.context().seed

    def __call__(self, item):
        return item


class Derived(Asking):
    pass


def test_code_is_searched_with_all_that_it_names_in_its_module():
    for target in (
        asks,
        deeper,
        Asking,
        Derived,
        Asking(),
        functools.partial(middle),
        Asking().__call__,
    ):
        assert mentions(target, "context"), target


def test_other_code_is_not():
    for target in (silent, len, str.upper, functools.partial(silent), type("Empty", (), {})):
        assert not mentions(target, "context"), target


def test_closures_and_code_within_code_are_searched():
    def inner(item):
        return (lambda: ff.context())()

    def outer(item):
        return inner(item) if item else later(item)

    assert mentions(outer, "context")

    def later(item):
        return item


def test_a_stage_is_told_who_its_items_are_if_its_code_asks_or_an_option_says_so():
    asking, quiet = ff.stage(asks), ff.stage(silent)
    told, untold = ff.stage(silent, identities=True), ff.stage(asks, identities=False)

    def pipeline(n: ff.Port[int]):
        return asking(n), quiet(n), told(n), untold(n)

    assert [stage.identities for stage in compiled(pipeline).stages] == [True, False, True, False]
