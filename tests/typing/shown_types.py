"""What type checkers see of pipelines: right types, and wrong code flagged.

Never run: mypy and pyright check it, here and in ``./dev check``. A comment that ignores an error stands
where there must be one; both checkers complain about an ignore that is not needed.
"""

# pyright: reportUnnecessaryTypeIgnoreComment=true

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, assert_type

import fanfold as ff


class Page:
    """One page."""


class Ocr:
    """A batched class."""

    def __init__(self, weights: str) -> None:
        self.weights = weights

    def __call__(self, images: list[bytes]) -> list[str]:
        return [self.weights for _ in images]


class Score:
    """A class for single items with two inputs."""

    def __call__(self, text: str, size: int) -> float:
        return len(text) / size


class Words:
    """A class that yields children."""

    def __call__(self, text: str) -> Iterator[str]:
        yield from text.split()


class Model:
    """A class with an entry point of another name."""

    def run(self, text: str) -> str:
        return text


class Remote:
    """A class that is called asynchronously."""

    def __init__(self, token: str) -> None:
        self.token = token

    async def __call__(self, text: str) -> int:
        return len(text)


@ff.stage
def pages(file: str) -> Iterator[Page]:
    yield Page()


@ff.stage(replicas=2)
def render(page: Page, *, dpi: int = 150) -> bytes:
    return bytes(dpi)


@ff.stage
def scale(number: int, *, by: int) -> int:
    return number * by


@ff.stage
def add(a: int, b: int) -> int:
    return a + b


@ff.stage
def either(a: str, b: int = 0) -> int:
    return len(a) + b


@ff.stage
def split_words(text: str) -> list[str]:
    return text.split()


@ff.stage(max_in_flight=4, retries=2, workers="thread", on_error="stop", rate_limit="600/min")
async def fetched(url: str) -> bytes:
    return url.encode()


@ff.stage
async def joined(a: str, b: int) -> str:
    return a * b


@ff.stage(batch_size=4)
async def fetched_together(urls: list[str]) -> list[bytes]:
    return [url.encode() for url in urls]


@ff.stage
def loose(text: str) -> Any:
    return text


@ff.stage
def five(a: int, b: int, c: int, d: int, e: int) -> int:
    return a + b + c + d + e


@ff.stage(outputs=2)
def two(number: int) -> tuple[int, str]:
    return number, str(number)


@ff.stage(batch_size=4)
def lengths(texts: Sequence[str]) -> list[int]:
    return [len(text) for text in texts]


@ff.stage(batch_size=4, cpus=2, gpus=0.5, memory="4GB", recycle_after=100, recycle_above="6GB")
def some_fail(texts: list[str]) -> list[int | ff.ItemFailure]:
    return [len(text) or ff.ItemFailure("empty") for text in texts]


@ff.stage(batch_size=4)
def some_ruin(texts: list[str]) -> list[int | ff.ParentFailure]:
    return [len(text) or ff.ParentFailure("empty") for text in texts]


@ff.stage(batch_size=4)
def some_do_either(texts: list[str]) -> list[int | ff.ItemFailure | ff.ParentFailure]:
    return [len(text) or ff.ItemFailure("empty") for text in texts]


@ff.stage
def assemble(title: str, texts: list[str]) -> str:
    return title + "".join(texts)


@ff.stage
def assemble_marked(texts: list[str | ff.Failure]) -> str:
    return "".join(text for text in texts if isinstance(text, str))


ocr = ff.stage(Ocr, batch_size=32)
score = ff.stage(Score)
words = ff.stage(Words)
model = ff.stage(Model, method="run")
builtin = ff.stage(len)
remote = ff.stage(Remote, max_in_flight=8)


@ff.pipeline(level="document")
def to_text(file: ff.Port[str], n: ff.Port[int], *, weights: str = "w") -> ff.Port[list[str]]:
    opened = pages(file)
    assert_type(opened, ff.Port[ff.Children[Page]])
    page = ff.expand(opened, "page")
    assert_type(page, ff.Port[Page])
    image = render(page, dpi=300)
    assert_type(image, ff.Port[bytes])
    text = ocr(weights)(image)
    assert_type(text, ff.Port[str])
    assert_type(ff.expand(words()(text), "word"), ff.Port[str])
    assert_type(ff.expand(split_words(text), "other"), ff.Port[str])
    assert_type(score()(text, n), ff.Port[float])
    assert_type(scale(n, by=3), ff.Port[int])
    assert_type(add(n, n), ff.Port[int])
    assert_type(add(n, b=n), ff.Port[int])
    assert_type(add(a=n, b=n), ff.Port[int])
    assert_type(either(text), ff.Port[int])
    assert_type(either(text, n), ff.Port[int])
    assert_type(lengths(text), ff.Port[int])
    assert_type(some_fail(text), ff.Port[int])
    assert_type(some_ruin(text), ff.Port[int])
    assert_type(some_do_either(text), ff.Port[int])
    assert_type(builtin(text), ff.Port[int])
    assert_type(fetched(text), ff.Port[bytes])
    assert_type(joined(text, n), ff.Port[str])
    assert_type(remote(ff.Secret("TOKEN"))(text), ff.Port[int])

    gathered = ff.gather(text)
    assert_type(gathered, ff.Port[list[str]])
    assert_type(ff.gather(text, failed="drop"), ff.Port[list[str]])
    assert_type(ff.gather(text, failed="mark"), ff.Port[list[str | ff.Failure]])
    assert_type(ff.gather(text, image), tuple[ff.Port[list[str]], ff.Port[list[bytes]]])
    assert_type(ff.gather(text, at_least=3), ff.Port[list[str]])
    assert_type(ff.gather(text, failed="drop", at_least=0.9, members=page), ff.Port[list[str]])
    assert_type(
        ff.gather(text, failed="mark", at_least=0.9, members=page),
        ff.Port[list[str | ff.Failure]],
    )
    assert_type(
        ff.gather(text, image, members=page),
        tuple[ff.Port[list[str]], ff.Port[list[bytes]]],
    )
    assert_type(
        ff.gather(text, image, failed="mark"),
        tuple[ff.Port[list[str | ff.Failure]], ff.Port[list[bytes | ff.Failure]]],
    )
    assert_type(assemble(ff.field(text, "title", str), gathered), ff.Port[str])
    assert_type(assemble_marked(ff.gather(text, failed="mark")), ff.Port[str])
    a, b = ff.split(text, text["kind"], into=("a", "b"))
    assert_type(a, ff.Port[str])
    assert_type(
        ff.split(text, text["kind"], into=("a", "b", ...)),
        tuple[ff.Port[str], ff.Port[str], ff.Port[str]],
    )
    assert_type(ff.merge(a, b), ff.Port[str])
    assert_type(ff.merge(a, b, default=None), ff.Port[str | None])
    assert_type(ff.filter(text, text["good"]), ff.Port[str])
    assert_type(ff.broadcast(n, like=text), ff.Port[int])
    assert_type(ff.field(text, "size", int), ff.Port[int])
    assert_type(text["size"], ff.Port[Any])
    assert_type(ff.record(text=text, version=1), ff.Port[dict[str, Any]])
    return gathered


def plain_values(n: ff.Port[int], text: ff.Port[str]) -> None:
    """Outside of pipelines, and where types are not known."""
    assert_type(add(1, 2), int)
    assert_type(fetched("a"), bytes)
    fetched_together(text).anything()
    assert_type(lengths(["a"]), Sequence[int])
    assert_type(ocr("w")([b"x"]), Sequence[str])
    assert_type(to_text(text, n), ff.Port[list[str]])
    loose(text).anything()
    two(n).anything()
    five(n, n, n, n, n).anything()
    model()(text).anything()


def wrong_code(n: ff.Port[int], text: ff.Port[str]) -> None:
    """Each line has one mistake."""
    add(text, n)  # type: ignore[arg-type]
    add("a", 1)  # type: ignore[call-overload]
    ocr("w")(n)  # type: ignore[arg-type]
    lengths(n)  # type: ignore[arg-type]
    words()(n)  # type: ignore[arg-type]
    pages(n)  # type: ignore[arg-type]
    fetched(n)  # type: ignore[arg-type]
    scale(text, by=3)  # type: ignore[arg-type]
    ff.gather("text")  # type: ignore[call-overload]
    ff.gather(text, failed="skip")  # type: ignore[call-overload]
    ff.gather(text, at_least="3")  # type: ignore[call-overload]
    ff.gather(text, members=["a"])  # type: ignore[call-overload]
    ff.gather(text, atleast=3)  # type: ignore[call-overload]
    assemble(text, text)  # type: ignore[arg-type]
    assemble(ff.gather(text), text)  # type: ignore[arg-type]
    assemble_marked(text)  # type: ignore[arg-type]
    assemble(text, ff.gather(text, failed="mark"))  # type: ignore[arg-type]
    ff.gather(assemble(text, ff.gather(n)))  # type: ignore[arg-type]
    ff.expand(n, "page")  # type: ignore[arg-type]
    ff.split(text, text["kind"], into=3)  # type: ignore[call-overload]
    ff.filter(text, mask=True)  # type: ignore[arg-type]
    ff.field(text, "size")  # type: ignore[call-arg]
    ff.stage(len, batchsize=3)  # type: ignore[call-overload]
    ff.stage(3)  # type: ignore[call-overload]
    len(text)  # type: ignore[arg-type]
    text.kind  # type: ignore[attr-defined]  # noqa: B018
    text + 1  # type: ignore[operator]
    for _ in text:  # type: ignore[attr-defined]
        pass

    @ff.stage(batch_size=8)  # type: ignore[arg-type]
    def one_at_a_time(number: int) -> int:
        return number
