"""What the compiler says of pipelines that cannot be: the full text, one pipeline for each mistake.

A reader can judge here whether a message says what happened, where, why, and what to do. Line 1 of a pipeline
is its ``def``. What other errors say (options of runs, names in ``using``) is tested where they are raised.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any

import pytest

import fanfold
from tests.pipelines import both, compiled, join, lines, pages, read

ff: Any = fanfold
"""Untyped, since the pipelines below are wrong, also in ways that type checkers would tell."""

TOLD: list[tuple[Callable[..., Any], str]] = []
"""Each wrong pipeline with what is said of it."""


def told(text: str) -> Callable[[Any], Any]:
    """Note what is to be said of the pipeline function below."""

    def decorate(function: Any) -> Any:
        TOLD.append((function, text))
        return function

    return decorate


class Model:
    """A class that is constructed with weights and then called."""

    def __init__(self, weights: str = "w") -> None:
        self.weights = weights

    def __call__(self, item: Any) -> Any:
        return item


escaped: list[Any] = []
"""A port that outlived its own trace."""


@ff.pipeline(level="page")
def inner(page: Any) -> Any:
    escaped.append(page)
    return read(page)


inner.plan()


@told("""
    FF201 pipeline 'gather_at_the_root', line 2: gather of 'read' stands at the root level
    'document', which has no parent to gather to. Gather only what was expanded before; remove this
    gather.
""")
def gather_at_the_root(document: Any) -> Any:
    return ff.gather(read(document))


@told("""
    FF204 pipeline 'gather_of_different_levels', line 3: gather aligns port 'page' (level 'page')
    and port 'line' (level 'line'), which are ports of different levels. Gather each level by
    itself.
""")
def gather_of_different_levels(document: Any) -> Any:
    page = ff.expand(pages(document), "page")
    return ff.gather(page, ff.expand(lines(page), "line"))


@told("""
    FF200 pipeline 'gather_with_members_of_another_level' has 2 problems:
      FF214 line 4: gather of port 'page' (level 'page') takes its members from port 'line' (level
      'line'). Give members= a port of the level 'page'; ff.broadcast brings an ancestor's
      outcomes down.
      FF214 line 4: gather of port 'page' (level 'page') takes its members from port 'document'
      (level 'document'). Give members= a port of the level 'page'; ff.broadcast brings an
      ancestor's outcomes down.
""")
def gather_with_members_of_another_level(document: Any) -> Any:
    page = ff.expand(pages(document), "page")
    line = ff.expand(lines(page), "line")
    return ff.gather(page, members=line), ff.gather(page, members=document)


@told("""
    FF200 pipeline 'gather_with_options_that_cannot_be' has 6 problems:
      FF219 line 3: gather: failed='skip' is none of 'fail', 'drop', 'mark'.
      FF219 line 4: gather: at_least=-1 is negative. Give a whole number of members (3), or a
      float for a share of them (0.9; 1.0 is all).
      FF219 line 5: gather: at_least=True is neither a count nor a share. Give a whole number of
      members (3), or a float for a share of them (0.9; 1.0 is all).
      FF219 line 6: gather: at_least=1.5 is no share between 0.0 and 1.0. Give a whole number of
      members (3), or a float for a share of them (0.9; 1.0 is all).
      FF210 line 7: gather: members= is 'page', not a port. Give what a source, a call or another
      operation of this pipeline gave.
      FF104 line 8: gather has no option 'atleast'. Did you mean 'at_least'? Known: at_least,
      failed, members.
""")
def gather_with_options_that_cannot_be(document: Any) -> Any:
    page = ff.expand(pages(document), "page")
    ff.gather(page, failed="skip")
    ff.gather(page, at_least=-1)
    ff.gather(page, at_least=True)
    ff.gather(page, at_least=1.5)
    ff.gather(page, members="page")
    return ff.gather(page, atleast=3)


@told("""
    FF204 pipeline 'expand_of_different_calls', line 2: expand to 'page' aligns 'pages' and
    'pages#2', which are not outputs of one call. Give one stage several outputs (outputs=2) to make
    aligned children, or expand each port to a level of its own.
""")
def expand_of_different_calls(document: Any) -> Any:
    return ff.gather(*ff.expand(pages(document), pages(document), "page"))


@told("""
    FF200 pipeline 'expand_of_what_no_call_makes' has 2 problems:
      FF202 line 3: expand to 'a' opens port 'document', which is a source. Only what a call
      returns can be opened to children: pass it through a stage first.
      FF202 line 4: expand to 'b' opens port 'gather(page)', which is made by gather, not by a
      call. Only what a call returns can be opened to children: pass it through a stage first.
""")
def expand_of_what_no_call_makes(document: Any) -> Any:
    page = ff.expand(pages(document), "page")
    ff.expand(document, "a")
    return ff.expand(ff.gather(page), "b")


@told("""
    FF212 pipeline 'expand_in_two_ways', line 3: port 'both.0' is expanded to 'leaf' and, at line 3,
    differently to 'page'. Expand it once and use that port twice.
""")
def expand_in_two_ways(document: Any) -> Any:
    a, b = both(document)
    return ff.expand(a, "page"), *ff.expand(a, b, "leaf")


@told("""
    FF219 pipeline 'expand_without_a_name', line 2: expand needs one or more ports and then a name
    for the level of the children. Write for example ff.expand(port, "page").
""")
def expand_without_a_name(document: Any) -> Any:
    return ff.expand(pages(document))


@told("""
    FF200 pipeline 'a_level_name_twice' has 2 problems:
      FF211 line 3: expand gives the name 'page' to a second level (the first: line 2). Give each
      level a name of its own; in a pipeline that is called twice, make the name a setting.
      FF211 line 3: expand gives the name 'document' to a second level (the first: the root). Give
      each level a name of its own; in a pipeline that is called twice, make the name a setting.
""")
def a_level_name_twice(document: Any) -> Any:
    page = ff.expand(pages(document), "page")
    return ff.expand(lines(document), "page"), ff.expand(lines(page), "document")


@told("""
    FF203 pipeline 'siblings_in_a_call', line 4: call 'join' joins levels 'page' and 'frame', which
    are siblings. Gather port 'frame' to 'document' first.
""")
def siblings_in_a_call(document: Any) -> Any:
    page = ff.expand(pages(document), "page")
    frame = ff.expand(lines(document), "frame")
    return join(page, frame)


@told("""
    FF203 pipeline 'cousins_in_a_record', line 5: record joins levels 'line' and 'region', which
    have only 'document' in common. Gather port 'region' to 'frame' and then to 'document' first.
""")
def cousins_in_a_record(document: Any) -> Any:
    page = ff.expand(pages(document), "page")
    line = ff.expand(lines(page), "line")
    region = ff.expand(pages(ff.expand(lines(document), "frame")), "region")
    return ff.record(a=line, b=region)


@told("""
    FF214 pipeline 'a_filter_across_levels', line 3: filter of port 'page' (level 'page') has the
    mask port 'read' (level 'document'). Make the mask at the level 'page'; ff.broadcast brings an
    ancestor's value down.
""")
def a_filter_across_levels(document: Any) -> Any:
    page = ff.expand(pages(document), "page")
    return ff.filter(page, read(document))


@told("""
    FF214 pipeline 'a_split_across_levels', line 3: split of port 'page' (level 'page') has the
    label port 'read' (level 'document'). Make the label at the level 'page'; ff.broadcast brings an
    ancestor's value down.
""")
def a_split_across_levels(document: Any) -> Any:
    page = ff.expand(pages(document), "page")
    return ff.split(page, read(document), into=("a", "b"))


@told("""
    FF214 pipeline 'a_merge_across_levels', line 3: merge joins port 'page' (level 'page') and port
    'document' (level 'document'), which are ports of different levels. Gather the deeper ones or
    ff.broadcast the others: a merge does neither by itself.
""")
def a_merge_across_levels(document: Any) -> Any:
    page = ff.expand(pages(document), "page")
    return ff.merge(page, document)


@told("""
    FF214 pipeline 'a_broadcast_upwards', line 3: broadcast of port 'page' (level 'page') is to be
    like port 'document' (level 'document'), but 'page' is no ancestor of 'document'. Broadcast goes
    down to descendants only; gather the port first.
""")
def a_broadcast_upwards(document: Any) -> Any:
    page = ff.expand(pages(document), "page")
    return ff.broadcast(page, like=document)


@told("""
    FF200 pipeline 'labels_that_cannot_be' has 3 problems:
      FF219 line 2: split: into is 'scan', not a tuple of labels. Write for example into=("scan",
      "text"), or into=("scan", "text", ...) to keep the rest.
      FF219 line 3: split: into lists a label twice. Write for example into=("scan", "text"), or
      into=("scan", "text", ...) to keep the rest.
      FF219 line 4: split: into has ... elsewhere than at its end. Write for example into=("scan",
      "text"), or into=("scan", "text", ...) to keep the rest.
""")
def labels_that_cannot_be(document: Any) -> Any:
    ff.split(document, document["kind"], into="scan")
    ff.split(document, document["kind"], into=("scan", "scan"))
    return ff.split(document, document["kind"], into=(..., "scan"))


@told("""
    FF206 pipeline 'a_default_that_is_a_port', line 2: merge has port "document['b']" as its
    default. A default is a plain value; give a port as the last of merge's ports.
""")
def a_default_that_is_a_port(document: Any) -> Any:
    return ff.merge(document["a"], default=document["b"])


@told("""
    FF213 pipeline 'a_mask_of_a_gathered_list', line 3: filter: the mask 'gather(page)' is the
    gathered list 'gather(page)'. Take the mask from a call or a source, or from a field of what one
    made, also through expand, filter, split, merge or broadcast.
""")
def a_mask_of_a_gathered_list(document: Any) -> Any:
    page = ff.expand(pages(document), "page")
    return ff.filter(document, ff.gather(page))


@told("""
    FF213 pipeline 'a_label_out_of_a_record', line 3: split: the label "record(kind)['kind']" is
    read out of a record. Use the port that the record was made of.
""")
def a_label_out_of_a_record(document: Any) -> Any:
    made = ff.record(kind=document["kind"])
    return ff.split(document, made["kind"], into=("a", "b"))


@told("""
    FF213 pipeline 'a_label_that_a_default_cannot_be', line 3: split: merge's default 'c' is no
    legal label. A mask is a bool; a label is one of those in into.
""")
def a_label_that_a_default_cannot_be(document: Any) -> Any:
    kind = ff.merge(document["kind"], default="c")
    return ff.split(document, kind, into=("a", "b"))


@told("""
    FF215 pipeline 'a_field_of_a_gathered_list', line 3: field 'first' is read of port
    'gather(page)', but that is the gathered list 'gather(page)'. Read the field of each child
    instead, or take the list apart in a stage.
""")
def a_field_of_a_gathered_list(document: Any) -> Any:
    page = ff.expand(pages(document), "page")
    return ff.gather(page)["first"]


@told("""
    FF215 pipeline 'a_field_that_a_record_lacks', line 2: field 'b' is read of port 'record(a)', but
    the record of line 2 with the fields a lacks it. Read a field that is there.
""")
def a_field_that_a_record_lacks(document: Any) -> Any:
    return ff.record(a=document)["b"]


@told("""
    FF219 pipeline 'a_field_by_number', line 2: port 'document' is indexed with 0; a field's name is
    a string. Pick elements of a value in a stage.
""")
def a_field_by_number(document: Any) -> Any:
    return document[0]


@told("""
    FF205 pipeline 'a_port_of_another_trace', line 2: call 'join': argument 2 is port 'page' of
    another trace, pipeline 'inner'. A port lives only while its own pipeline's function runs: call
    that pipeline with ports to build on its results.
""")
def a_port_of_another_trace(document: Any) -> Any:
    return join(document, escaped[0])


@told("""
    FF206 pipeline 'a_port_in_a_container', line 2: call 'join': argument 'b' is a list that holds
    port "document['a']". Pass each port as an argument of its own, or make one port of several with
    ff.record.
""")
def a_port_in_a_container(document: Any) -> Any:
    return join(document, b=[document["a"], 1])


@told("""
    FF207 pipeline 'a_port_as_a_truth_value', line 2: port 'document' is used as a truth value (if,
    while, and, or, not). Its value is not known yet: route items with ff.filter or ff.split.
""")
def a_port_as_a_truth_value(document: Any) -> Any:
    if document:
        return read(document)
    return document


@told("""
    FF200 pipeline 'a_port_that_is_compared_iterated_and_computed_with' has 3 problems:
      FF207 line 2: port 'document' is iterated over or unpacked. Open it to a level of its own
      with ff.expand; for a call with several results give its stage outputs=.
      FF207 line 4: port 'document' is asked for its length. Count in a stage: its input is the
      list.
      FF207 line 5: port "document['n']" is computed with (an operator such as +). Compute in a
      stage.
""")
def a_port_that_is_compared_iterated_and_computed_with(document: Any) -> Any:
    for page in document:
        read(page)
    len(document)
    return ff.filter(document, document["n"] + 1 == 3)


@told("""
    FF200 pipeline 'unpacking_one_output' has 2 problems:
      FF207 line 2: port 'read' is iterated over or unpacked. Open it to a level of its own with
      ff.expand; for a call with several results give its stage outputs=.
      FF225 line 2: the pipeline's function stopped here with ValueError: not enough values to
      unpack (expected 2, got 0). This may follow from the problems above; what comes after this
      line was not checked.
""")
def unpacking_one_output(document: Any) -> Any:
    a, b = read(document)
    return a, b


@told("""
    FF208 pipeline 'no_source', line 1: the pipeline has no source. Give the function a positional
    parameter for what the source yields.
""")
def no_source() -> Any:
    return None


@told("""
    FF220 pipeline 'a_source_with_a_default', line 1: the source 'other' has a default. Put it
    behind a * to make it a setting, or remove the default.
""")
def a_source_with_a_default(document: Any, other: Any = None) -> Any:
    return document


@told("""
    FF209 pipeline 'no_output', line 1: the pipeline has no output. Return a port, or a tuple or
    dict of ports.
""")
def no_output(document: Any) -> Any:
    read(document)


@told("""
    FF218 pipeline 'an_output_that_is_no_port', line 1: output 'b' is an int, not a port. Return a
    port, or a tuple or dict of ports; ff.record makes one port of several.
""")
def an_output_that_is_no_port(document: Any) -> Any:
    return {"a": document, "b": 3}


@told("""
    FF200 pipeline 'a_call_without_a_port' has 2 problems:
      FF210 line 2: call 'read': argument 1 is 3, not a port. Give values that are the same for
      all items by keyword.
      FF210 line 2: call 'join' has no port among its arguments, so it belongs to no item. Pass it
      a port; to compute something once, call a plain function outside of the pipeline.
""")
def a_call_without_a_port(document: Any) -> Any:
    return read(3), join(a=1, b=2)


@told("""
    FF210 pipeline 'a_constant_by_position', line 2: call 'join': argument 2 is 150, not a port.
    Give values that are the same for all items by keyword.
""")
def a_constant_by_position(document: Any) -> Any:
    return join(document, 150)


@told("""
    FF200 pipeline 'a_call_that_does_not_fit' has 2 problems:
      FF217 line 2: call 'join' does not fit join(a, b): missing a required argument: 'b'. Each
      port is one argument of the stage.
      FF217 line 2: call 'read' does not fit read(item): got an unexpected keyword argument 'dpi'.
      Each port is one argument of the stage.
""")
def a_call_that_does_not_fit(document: Any) -> Any:
    return join(document), read(document, dpi=3)


@told("""
    FF222 pipeline 'a_class_called_with_a_port', line 2: stage 'Model' is a class: its first call
    takes the constructor's arguments, the second takes ports. Write Model(…)(port), or
    Model()(port) if there are none.
""")
def a_class_called_with_a_port(document: Any) -> Any:
    return ff.stage(Model)(document)


@told("""
    FF217 pipeline 'a_constructor_given_other_arguments', line 2: stage 'Model': the constructor
    Model(weights='w') was given other arguments at line 2: got an unexpected keyword argument
    'colour'. The first call of a class stage takes the constructor's arguments.
""")
def a_constructor_given_other_arguments(document: Any) -> Any:
    return ff.stage(Model)(colour=3)(document)


@told("""
    FF224 pipeline 'a_setting_without_a_value', line 1: the setting 'weights' has no default and was
    given no value. Give it one: pipeline.using({"weights": …}), or weights=… in a direct call.
""")
def a_setting_without_a_value(document: Any, *, weights: Any) -> Any:
    return document


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
      out.
      FF216 line 5: call 'by_kind#2' batches by its first input, but "record(page)['page']" is read out of
      a record. Put a port first that a call or a source makes, or a field of one, also through expand,
      filter, split, merge or broadcast; or leave batch_by out.
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
    FF102 pipeline 'an_option_that_is_no_count', line 2: stage 'read': replicas=0 is not a whole
    number of at least 1.
""")
def an_option_that_is_no_count(document: Any) -> Any:
    return ff.stage(read.target, replicas=0)(document)


@told("""
    FF104 pipeline 'an_unknown_option', line 2: stage 'read' has an unknown option 'batchsize'. Did
    you mean 'batch_size'? Known: batch_by, batch_bytes, batch_size, cpus, gpus, identities, linger_s,
    max_in_flight, memory, method, on_error, outputs, probe, recycle_above, recycle_after, replicas, retries,
    workers.
""")
def an_unknown_option(document: Any) -> Any:
    return ff.stage(read.target, batchsize=8)(document)


@told("""
    FF103 pipeline 'an_option_that_comes_later', line 2: stage 'read': the option 'persist' is not
    available yet. Leave it out; this version has batch_size, batch_bytes, batch_by, linger_s, replicas, cpus,
    gpus, memory, recycle_after, recycle_above, outputs, method, workers, retries, on_error, probe,
    max_in_flight, identities.
""")
def an_option_that_comes_later(document: Any) -> Any:
    return ff.stage(read.target, persist=True)(document)


@told("""
    FF113 pipeline 'a_thread_with_a_gpu', line 2: stage 'read' has workers="thread" and gpus=0.5:
    GPUs are given to a process, by its environment, and threads share that of the program. Leave
    out one of the two; with workers="process" it works.
""")
def a_thread_with_a_gpu(document: Any) -> Any:
    return ff.stage(read.target, gpus=0.5, workers="thread")(document)


@told("""
    FF210 pipeline 'a_pipeline_in_a_pipeline_given_a_value', line 2: pipeline 'inner': argument 1 is
    3, not a port. Give what a source, a call or another operation of this pipeline gave.
""")
def a_pipeline_in_a_pipeline_given_a_value(document: Any) -> Any:
    return inner(3), inner(document)


@told("""
    FF200 pipeline 'many_at_once' has 6 problems:
      FF201 line 2: gather of 'document' stands at the root level 'document', which has no parent
      to gather to. Gather only what was expanded before; remove this gather.
      FF202 line 3: expand to 'page' opens port 'document', which is a source. Only what a call
      returns can be opened to children: pass it through a stage first.
      FF207 line 4: port 'document' is used as a truth value (if, while, and, or, not). Its value
      is not known yet: route items with ff.filter or ff.split.
      FF210 line 5: call 'read' has no port among its arguments, so it belongs to no item. Pass it
      a port; to compute something once, call a plain function outside of the pipeline.
      FF210 line 6: call 'read#2': argument 2 is 3, not a port. Give values that are the same for
      all items by keyword.
      FF211 line 6: expand gives the name 'document' to a second level (the first: the root). Give
      each level a name of its own; in a pipeline that is called twice, make the name a setting.
""")
def many_at_once(document: Any) -> Any:
    ff.gather(document)
    page = ff.expand(document, "page")
    if document:
        read()
    return read(page, 3), ff.expand(lines(document), "document")


def shown(function: Callable[..., Any]) -> str:
    """All that is said of a pipeline function, with its lines counted from its ``def``."""
    with pytest.raises(ff.PipelineError) as caught:
        compiled(function)
    source, first = inspect.getsourcelines(function)
    first += next(n for n, line in enumerate(source) if line.startswith("def "))

    def line(match: re.Match[str]) -> str:
        return f"line {max(int(match.group(1)) - first + 1, 1)}"  # a decorator is above it

    return re.sub(r"test_diagnostics\.py:(\d+)", line, str(caught.value))


@pytest.mark.parametrize(("function", "text"), TOLD, ids=[f.__name__ for f, _ in TOLD])
def test_what_is_said(function: Callable[..., Any], text: str) -> None:
    assert " ".join(shown(function).split()) == " ".join(text.split())
