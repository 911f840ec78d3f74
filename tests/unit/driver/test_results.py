"""Which calls an output's values are of, for messages."""

from typing import Any

import fanfold as ff
from fanfold.driver.results import makers
from fanfold.testing.sketches import plan_of


def ocr(page: Any) -> str:
    return str(page)


def layout(page: Any) -> list[int]:
    return [page]


def wanted(page: Any) -> bool:
    return bool(page)


@ff.pipeline(level="document")
def many(document: ff.Port[Any], other: ff.Port[Any]) -> Any:
    page = ff.expand(ff.stage(layout)(document), "page")
    kept = ff.filter(page, ff.stage(wanted)(page))
    text = ff.stage(ocr)(kept)
    return (
        text,
        ff.gather(kept),
        ff.record(text=ff.gather(text), layout=ff.gather(page), constant=1),
        other["name"],
    )


def test_an_output_is_traced_to_the_calls_that_made_its_values():
    plan = plan_of(many)
    assert [makers(plan, output) for output in range(4)] == [
        "ocr",
        "layout",
        "layout, ocr",
        "other",
    ]
