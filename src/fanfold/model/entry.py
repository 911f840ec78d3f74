"""``ff.stage``: the one function with which users make stages, plain or as a decorator.

Owns its documentation and ties the runtime (:mod:`fanfold.model.stage`) to the types that editors see
(:mod:`fanfold.model.overloads`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from fanfold.model.stage import make_stage

if TYPE_CHECKING:
    from fanfold.model.overloads import StageFunction

_NOTHING: Final[Any] = object()


def _stage(target: Any = _NOTHING, /, *, name: str | None = None, **options: Any) -> Any:
    """Make a stage of anyone's function or class.

    ``ff.stage(X, **options)`` is the primitive; ``@ff.stage`` and ``@ff.stage(**options)`` are its short
    forms for functions. A class stage takes its constructor's arguments in a first call and ports in the
    second; equal arguments give the same stage. A stage object is one pool of workers, shared by all its
    calls. Called with plain values outside of a pipeline it runs the user's code here, in this thread.

    A function returns one value for each item. A generator function yields ordered children, which
    ``ff.expand`` opens to a level of their own. An ``async def`` function keeps several items going at a time.

    Of a class there is one object per worker. Its static method ``setup_on_node``, if it has one, is called
    once on each machine before, and its ``close()`` at the worker's end, for which there are five seconds.

    Args:
        target: A function, a class, or another callable.
        name: Its name in calls (``Ocr``, ``Ocr#2``) and reports; by default ``__name__``.
        batch_size: If given, each port arrives as a list of up to so many items, and the target returns
            one element per item: any sequence or array of that length. By default one item comes at a
            time.
        batch_bytes: The most bytes of input values in one batch, a number or ``"128MB"``.
        batch_cost: A function of an item's first input: what the item costs in a batch.
        max_batch_cost: The most that a batch may cost.
        batch_by: A function of an item's first input: only items for which it gives equal values share a
            batch.
        linger_s: How long a batch that is not full waits for more while a worker is idle.
        schedule: In which order ready items go: documents take turns (``"fair"``), or as they became ready
            (``"fifo"``).
        replicas: How many workers hold the stage: a number, or the fewest and the most, as ``(1, 8)``, of what
            follows the measured work; ``"auto"`` is from 1 up to what the machine lets. The default is 1.
        outputs: How many ports a call gives, or their names; each result is then a tuple of so many.
        method: The entry point of a class or object; by default it is called itself.
        cpus: Cores that one replica may keep busy. Only what is given counts towards the machine's.
        gpus: GPUs that one replica has to itself, or the share of one, such as 0.5; with 0 it sees none.
            Without it, a replica sees what the program does.
        memory: What one replica's own heap needs, models included, in bytes or as ``"4GB"``.
        recycle_after: After so many items a worker process is replaced by a new one.
        recycle_above: A worker process whose own memory is larger at the end of a batch is replaced.
        workers: What a replica is: a ``"process"``, or a ``"thread"`` of the program's own process, for code
            that is to share memory with the program or with other stages. Threads cannot be killed.
        retries: How often an item is tried again after an exception that is neither an ``ItemFailure`` nor
            a ``ParentFailure``. In a run only: called with plain values it raises the first exception.
        on_error: What such an exception comes to in the end (and a worker's death, or a result of the wrong
            shape): it fails its item (``"fail"``), or the first one stops the run (``"stop"``).
        probe: Until a parent has its first result at a call, at most so many of its items go to workers while
            other work waits, so that a bad document is found before the workers are full of it.
        max_in_flight: How many items (batches, with ``batch_size``) an ``async def`` stage keeps going per
            worker; 16 unless given.
        rate_limit: How many calls (of a batched stage: batches) may begin, in all workers together: a number
            per second, or text with a unit: ``"10/s"``, ``"600/min"``, ``"5000/hour"``.
        identities: Whether ``ff.context()`` tells keys and ordinals of items; by default, if the stage's own
            code mentions ``context``.

    Returns:
        A :class:`fanfold.Stage`, or a decorator where no target is given.

    Raises:
        DefinitionError: The target or an option is unusable (FF101 to FF111).

    Example:
        >>> import fanfold as ff
        >>> @ff.stage(batch_size=8)
        ... def lengths(texts: list[str]) -> list[int]:
        ...     return [len(text) for text in texts]
        >>> lengths(["a", "abc"])
        [1, 3]
    """
    if target is _NOTHING:
        return lambda decorated: make_stage(decorated, name=name, **options)
    return make_stage(target, name=name, **options)


_stage.__name__ = _stage.__qualname__ = "stage"
stage: StageFunction = _stage
