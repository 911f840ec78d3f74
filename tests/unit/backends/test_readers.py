"""Whose values leave the driver's process."""

import fanfold as ff
from fanfold.backends.readers import leaving
from tests.pipelines import compiled, join, pages, read

here = ff.stage(lambda item: item, name="here", workers="thread")
there = ff.stage(lambda item: item, name="there")


def names(function, *, written=False):
    plan = compiled(function)
    threads = frozenset(stage.index for stage in plan.stages if stage.workers == "thread")
    return {plan.ports[port].name for port in leaving(plan, threads, written=written)}


def test_what_only_threads_read_stays():
    def pipeline(n: ff.Port[int]):
        return here(here(n))

    assert names(pipeline) == set()
    assert names(pipeline, written=True) == {"here#2"}


def test_what_a_process_reads_leaves():
    def pipeline(n: ff.Port[int]):
        return here(there(here(n)))

    assert names(pipeline) == {"here"}


def test_what_values_are_put_together_of_leaves_with_them_but_not_masks():
    def pipeline(n: ff.Port[int]):
        page = ff.expand(here(n), "page")
        kept = ff.filter(here(page), here(page))
        first, rest = ff.split(kept, here(kept), into=("a", ...))
        merged = ff.merge(first, rest)
        record = ff.record(merged=merged["text"], n=n)
        return there(ff.gather(record))

    found = names(pipeline)
    assert {"n", "n@page", "here#2", "filter(here#2)", "split(filter(here#2), 'a')"} <= found
    assert not {"here", "here#3", "here#4"} & found, "masks and labels travel with reports"


def test_processes_alone_share_everything_that_they_read():
    def pipeline(n: ff.Port[int]):
        page = ff.expand(pages(n), "page")
        return join(ff.gather(read(page)), n)

    found = names(pipeline)
    assert {"n", "read"} <= found
    assert not {"pages", "join"} & found
