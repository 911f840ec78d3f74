"""Fields read out of records: an inlined pipeline that returns a record is used like any value."""

from typing import Any

import fanfold as ff
from tests.pipelines import pages


@ff.stage
def describe(page):
    return {"odd": page} if page % 2 else {"even": page}


@ff.stage
def increase(number):
    return number + 1


@ff.pipeline(level="page")
def described(page):
    return ff.record(about=describe(page), page=page, fixed={"number": 5})


@ff.pipeline(level="document")
def numbers(document):
    part = described(ff.expand(pages(document), "page"))
    odd = part["about"]["odd"]
    number = ff.merge(odd, part["fixed"]["number"], failed="next")
    return ff.gather(increase(number)), ff.gather(odd, failed="mark"), ff.gather(part["page"])


def test_a_field_inside_of_a_records_field_is_checked_by_its_producer():
    results = list(numbers.stream([[1, 2, 3], []], backend="inline"))
    assert [result.status for result in results] == [ff.Status.DONE] * 2
    increased, odd, page = results[0].value
    assert increased == [2, 6, 4] and page == [1, 2, 3]
    assert (odd[0], odd[2]) == (1, 3)
    assert odd[1].kind == "contract" and "'odd'" in odd[1].message
    assert results[1].value == ([], [], [])


def test_called_with_plain_values_it_means_the_same():
    value: Any = numbers([1, 2])
    increased, odd, page = value
    assert increased == [2, 6] and odd[0] == 1 and page == [1, 2]
    assert isinstance(odd[1], ff.Failure)
