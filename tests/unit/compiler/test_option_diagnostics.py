"""What the compiler says of stages whose options cannot be: the full text, one pipeline for each mistake."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import fanfold
from tests.pipelines import pages, read
from tests.unit.compiler.said import Said, shown

ff: Any = fanfold
"""Untyped, since the pipelines below are wrong, also in ways that type checkers would tell."""

SAID = Said()
told = SAID.told


@told("""
    FF105 pipeline 'options_that_contradict', line 2: stage 'pages' is a generator and has
    batch_size=8. A generator takes one item at a time: leave batch_size out.
""")
def options_that_contradict(document: Any) -> Any:
    return ff.stage(pages.target, batch_size=8)(document)


@told("""
    FF112 pipeline 'an_option_of_batches_without_batches', line 2: stage 'read' takes one item at a time
    and has linger_s=0.5. It says how batches form: give batch_size= too, the most items of one batch.
""")
def an_option_of_batches_without_batches(document: Any) -> Any:
    return ff.stage(read.target, linger_s=0.5)(document)


@told("""
    FF102 pipeline 'a_size_that_is_none', line 2: stage 'read': batch_bytes='64 apples' is not a size in
    bytes. Give a whole number from 1 on, or text such as "128MB" or "1.5GiB".
""")
def a_size_that_is_none(document: Any) -> Any:
    return ff.stage(read.target, batch_size=8, batch_bytes="64 apples")(document)


@told("""
    FF102 pipeline 'a_group_that_is_no_function', line 2: stage 'read': batch_by='language' is not a
    function. Give a function of an item's first input that tells what a batch has to have in common:
    batch_by=lambda image: image.shape.
""")
def a_group_that_is_no_function(document: Any) -> Any:
    return ff.stage(read.target, batch_size=8, batch_by="language")(document)


@told("""
    FF200 pipeline 'groups_of_what_no_producer_makes' has 2 problems:
      FF216 line 4: call 'by_kind' batches by its first input, but 'gather(page)' is the gathered list
      'gather(page)', of which no single worker makes the values. Put a port first that a call or a source
      makes, or a field of one, also through expand, filter, split, merge or broadcast; or leave batch_by
      and batch_cost out.
      FF216 line 5: call 'by_kind#2' batches by its first input, but "record(page)['page']" is read out of
      a record. Put a port first that a call or a source makes, or a field of one, also through expand,
      filter, split, merge or broadcast; or leave batch_by and batch_cost out.
""")
def groups_of_what_no_producer_makes(document: Any) -> Any:
    by_kind = ff.stage(read.target, name="by_kind", batch_size=8, batch_by=len)
    page = ff.expand(pages(document), "page")
    whole = by_kind(ff.gather(page))
    return whole, ff.gather(by_kind(ff.record(page=page)["page"]))


@told("""
    FF102 pipeline 'a_time_that_is_none', line 2: stage 'read': linger_s=-1 is not a number of seconds
    from 0 on.
""")
def a_time_that_is_none(document: Any) -> Any:
    return ff.stage(read.target, batch_size=8, linger_s=-1)(document)


@told("""
    FF102 pipeline 'an_option_that_is_no_count', line 2: stage 'read': probe=0 is not a whole number
    of at least 1.
""")
def an_option_that_is_no_count(document: Any) -> Any:
    return ff.stage(read.target, probe=0)(document)


@told("""
    FF102 pipeline 'no_number_of_replicas', line 2: stage 'read': replicas=(4, 1) is no number of
    replicas. Give a whole number from 1 on, the fewest and the most as (1, 8), or "auto": then
    their number follows the measured work.
""")
def no_number_of_replicas(document: Any) -> Any:
    return ff.stage(read.target, replicas=(4, 1))(document)


@told("""
    FF104 pipeline 'an_unknown_option', line 2: stage 'read' has an unknown option 'batchsize'. Did
    you mean 'batch_size'? Known: batch_by, batch_bytes, batch_cost, batch_size, cpus, gpus, identities,
    linger_s, max_batch_cost, max_in_flight, memory, method, on_error, outputs, probe, rate_limit,
    recycle_above, recycle_after, replicas, retries, schedule, workers.
""")
def an_unknown_option(document: Any) -> Any:
    return ff.stage(read.target, batchsize=8)(document)


@told("""
    FF103 pipeline 'an_option_that_comes_later', line 2: stage 'read': the option 'timeout_s' is not
    available yet. Leave it out; this version has batch_size, batch_bytes, batch_cost, max_batch_cost, batch_by,
    linger_s, replicas, cpus, gpus, memory, recycle_after, recycle_above, outputs, method, workers, retries,
    on_error, probe, schedule, rate_limit, max_in_flight, identities.
""")
def an_option_that_comes_later(document: Any) -> Any:
    return ff.stage(read.target, timeout_s=3)(document)


@told("""
    FF113 pipeline 'a_thread_with_a_gpu', line 2: stage 'read' has workers="thread" and gpus=0.5:
    GPUs are given to a process, by its environment, and threads share that of the program. Leave
    out one of the two; with workers="process" it works.
""")
def a_thread_with_a_gpu(document: Any) -> Any:
    return ff.stage(read.target, gpus=0.5, workers="thread")(document)


@told("""
    FF102 pipeline 'one_and_a_half_gpus', line 2: stage 'read': gpus=1.5 is neither a whole number
    of GPUs nor a share of one. A replica has whole GPUs (gpus=2), or a share of one (gpus=0.5); one and
    a half cannot be had.
""")
def one_and_a_half_gpus(document: Any) -> Any:
    return ff.stage(read.target, gpus=1.5)(document)


@pytest.mark.parametrize(("function", "text"), SAID.of, ids=[f.__name__ for f, _ in SAID.of])
def test_what_is_said(function: Callable[..., Any], text: str) -> None:
    assert " ".join(shown(function).split()) == " ".join(text.split())
