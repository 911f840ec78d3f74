"""What a stage is: the user's function or class, its options, and the checks of both.

Owns the list of stage options, present and announced, and every rule that concerns one stage by itself.
Knows nothing of ports, traces or pipelines. A definition's identity is its pool: the compiler makes one
pool of workers for each :class:`StageDefinition` object that a pipeline uses.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import math
import reprlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from fractions import Fraction
from typing import Any, Final, Literal

from fanfold.errors import DefinitionError
from fanfold.model.other_names import said_elsewhere

ANNOUNCED: Final = frozenset(
    {
        "retry_on",
        "backoff",
        "timeout",
        "timeout_s",
        "crash_attempts",
        "persist",
        "version",
        "deterministic",
        "pools",
        "resources",
        "accelerator",
    }
)
"""Options that the programming model has (or that are often looked for) and this version does not."""
PROBE: Final = 8
"""Items of a parent that go to workers before its first result at a call, unless the stage says otherwise."""


@dataclass(frozen=True, slots=True)
class StageOptions:
    """The options of a stage, as given and checked.

    ``outputs`` names a call's outputs; a number of unnamed ones has names ``""``.
    """

    batch_size: int | None = None
    batch_bytes: int | None = None
    """The most bytes of input values in one batch; None: any number."""
    batch_cost: Callable[..., Any] | None = None
    """Given an item's first input: what the item costs in a batch (pixels, tokens)."""
    max_batch_cost: float | None = None
    """The most that the items of one batch cost together; None: any number."""
    batch_by: Callable[..., Any] | None = None
    """Given an item's first input: only items for which it gives equal values share a batch."""
    linger_s: float | None = None
    """How long a batch that is not full waits for more while a worker is idle; None: not at all."""
    replicas: int | tuple[int, int] | Literal["auto"] = 1
    """A number, or the fewest and the most of what follows the measured work; ``"auto"``: from one up to what
    the machine lets."""
    cpus: int | None = None
    """None: nothing was said. That is one core for libraries' threads, and none that is counted."""
    gpus: Fraction | None = None
    """A whole number of GPUs, or the share of one; None: nothing was said."""
    memory: int | None = None
    """Bytes that one replica's own heap needs; None: nothing was said."""
    recycle_after: int | None = None
    recycle_above: int | None = None
    outputs: tuple[str, ...] = ("",)
    method: str | None = None
    workers: Literal["process", "thread"] = "process"
    retries: int = 0
    on_error: Literal["fail", "stop"] = "fail"
    probe: int = PROBE
    schedule: Literal["fifo", "fair"] = "fair"
    rate_limit: float | None = None
    """Calls that may begin per second, in all workers together; None: any number."""
    max_in_flight: int | None = None
    """None: :data:`MAX_IN_FLIGHT` for an asynchronous stage."""
    identities: bool | None = None
    """None: whether the stage's own code mentions ``context`` (:mod:`fanfold.model.mentions`)."""

    @property
    def fewest_replicas(self) -> int:
        """How many replicas there are at least."""
        if isinstance(self.replicas, tuple):
            return self.replicas[0]
        return 1 if self.replicas == "auto" else self.replicas

    @property
    def most_replicas(self) -> int | None:
        """How many there are at most, 0 for as many as the machine lets; None: their number is fixed."""
        if isinstance(self.replicas, tuple):
            return self.replicas[1] if self.replicas[0] < self.replicas[1] else None
        return 0 if self.replicas == "auto" else None


_SECONDS: Final = {"s": 1.0, "sec": 1.0, "second": 1.0} | {
    **dict.fromkeys(("min", "minute"), 60.0),
    **dict.fromkeys(("h", "hour"), 3_600.0),
}
"""How long the units of a rate are."""
_SHOWN: Final = reprlib.Repr()
"""Shows anything in a few words, also what has a repr that raises."""

TUNABLE: Final[Mapping[str, Any]] = {
    "batch_size": int | None,
    "batch_bytes": int | str | None,
    "batch_cost": Callable[..., Any] | None,
    "max_batch_cost": float | None,
    "batch_by": Callable[..., Any] | None,
    "linger_s": float | None,
    "replicas": int | Literal["auto"] | tuple[int, int],
    "cpus": int | None,
    "gpus": float | None,
    "memory": int | str | None,
    "recycle_after": int | None,
    "recycle_above": int | str | None,
    "workers": Literal["process", "thread"],
    "retries": int,
    "on_error": Literal["fail", "stop"],
    "probe": int,
    "schedule": Literal["fifo", "fair"],
    "max_in_flight": int,
    "rate_limit": float | str | None,
}
"""Options that ``pipeline.using`` may change, with their types: they leave the pipeline's structure alone."""
OF_PROCESSES: Final = ("gpus", "recycle_after", "recycle_above")
"""Options that only a process can keep."""
_FUNCTIONS: Final = {
    "batch_by": "Give a function of an item's first input that tells what a batch has to have in common: "
    "batch_by=lambda image: image.shape.",
    "batch_cost": "Give a function of an item's first input that tells what it adds to max_batch_cost=: "
    "batch_cost=lambda image: image.size.",
}
"""Options that are functions, and what to do if one is not."""
OF_BATCHES: Final = ("batch_bytes", "batch_cost", "max_batch_cost", "batch_by", "linger_s")
"""Options that say how batches form."""
MAX_IN_FLIGHT: Final = 16
"""How many items an asynchronous stage keeps going per worker, unless it says otherwise."""


@dataclass(frozen=True, eq=False)
class StageDefinition:
    """A stage that can be called with ports: a function, or a class with its constructor arguments."""

    name: str
    target: Callable[..., Any]
    options: StageOptions = StageOptions()
    is_class: bool = False
    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    generator: bool = False
    asynchronous: bool = False
    signature: inspect.Signature | None = field(default=None, repr=False)
    """Of the entry point, without ``self``; None if Python cannot tell it."""

    def tuned(self, options: Mapping[str, Any]) -> StageDefinition:
        """The same stage with some :data:`TUNABLE` options changed: another pool.

        Raises:
            DefinitionError: A value that the option does not take (FF102, FF105, FF110, FF112, FF113).
        """
        checked = check_options(self.name, options)
        changed = replace(self.options, **{name: getattr(checked, name) for name in options})
        _check_generator(self.name, self.generator, changed)
        _check_asynchronous(self.name, self.asynchronous, changed)
        _check_batched(self.name, changed)
        _check_process(self.name, changed)
        return replace(self, options=changed)


def define(target: Any, *, name: str | None, options: Mapping[str, Any]) -> StageDefinition:
    """The definition of ``target`` with raw ``options``, all of it checked.

    Raises:
        DefinitionError: The target is no callable (FF101), an option is wrong (FF102), announced
            (FF103) or unknown (FF104), or the two do not go together (FF105 to FF107, FF110 to FF113).
    """
    if not callable(target) and options.get("method") is None:
        raise DefinitionError(
            "FF101",
            f"stage({_SHOWN.repr(target)}): {a_kind(target)} cannot be called.",
            "Give a function, a class or another callable.",
        )
    if name is not None and (not isinstance(name, str) or not name or set(name) & set(".#")):
        raise DefinitionError(
            "FF102",
            f"stage name {name!r} is not a non-empty string without '.' and '#'.",
            "These two make the names of options (Ocr.batch_size) and of calls (Ocr#2).",
        )
    label = name or _name_of(target)
    checked = check_options(label, options)
    is_class = inspect.isclass(target)
    entry = _entry_point(label, target, is_class, checked.method)
    _refuse_async_generator(label, entry)
    if is_class:
        _check_setup(label, target)
    generator = inspect.isgeneratorfunction(entry)
    asynchronous = inspect.iscoroutinefunction(entry)
    _check_generator(label, generator, checked)
    _check_asynchronous(label, asynchronous, checked)
    _check_batched(label, checked)
    _check_process(label, checked)
    return StageDefinition(
        name=label,
        target=target,
        options=checked,
        is_class=is_class,
        generator=generator,
        asynchronous=asynchronous,
        signature=_signature(target, entry, is_class, checked.method),
    )


def check_options(stage: str, options: Mapping[str, Any]) -> StageOptions:
    """The options with every value checked.

    Raises:
        DefinitionError: See :func:`define`.
    """
    known = [option.name for option in fields(StageOptions)]
    for name in options:
        if name in ANNOUNCED:
            raise DefinitionError(
                "FF103",
                f"stage {stage!r}: the option {name!r} is not available yet.",
                f"Leave it out; this version has {', '.join(known)}.",
            )
        if name not in known:
            raise DefinitionError(
                "FF104",
                f"stage {stage!r} has an unknown option {name!r}.",
                said_elsewhere(name) or did_you_mean(name, known),
            )
    checked = dict(options)
    if "replicas" in checked:
        checked["replicas"] = _replicas(stage, checked["replicas"])
    if "probe" in checked:
        _check_count(stage, "probe", checked["probe"])
    for name in ("batch_size", "max_in_flight", "cpus", "recycle_after"):
        if checked.get(name) is not None:
            _check_count(stage, name, checked[name])
    if "retries" in checked:
        _check_count(stage, "retries", checked["retries"], least=0)
    for name in ("batch_bytes", "memory", "recycle_above"):
        if checked.get(name) is not None:
            checked[name] = _bytes(stage, name, checked[name])
    if checked.get("gpus") is not None:
        checked["gpus"] = _gpus(stage, checked["gpus"])
    for name, advice in _FUNCTIONS.items():
        if checked.get(name) is not None and not callable(checked[name]):
            raise DefinitionError(
                "FF102",
                f"stage {stage!r}: {name}={_SHOWN.repr(checked[name])} is not a function.",
                advice,
            )
    if checked.get("max_batch_cost") is not None:
        checked["max_batch_cost"] = _positive(stage, "max_batch_cost", checked["max_batch_cost"])
    if checked.get("linger_s") is not None:
        checked["linger_s"] = _seconds(stage, "linger_s", checked["linger_s"])
    if checked.get("rate_limit") is not None:
        checked["rate_limit"] = _rate(stage, checked["rate_limit"])
    if checked.get("workers", "process") not in ("process", "thread"):
        raise DefinitionError(
            "FF102",
            f'stage {stage!r}: workers={checked["workers"]!r} is neither "process" nor "thread".',
            "How many there are is replicas=.",
        )
    if checked.get("on_error", "fail") not in ("fail", "stop"):
        raise DefinitionError(
            "FF102",
            f'stage {stage!r}: on_error={checked["on_error"]!r} is neither "fail" nor "stop".',
            'With "fail" an error fails its item; with "stop" the first one stops the run.',
        )
    if checked.get("schedule", "fifo") not in ("fifo", "fair"):
        raise DefinitionError(
            "FF102",
            f'stage {stage!r}: schedule={checked["schedule"]!r} is neither "fifo" nor "fair".',
            'With "fifo" items run in the order in which they became ready, with "fair" roots take turns.',
        )
    if not isinstance(checked.get("identities"), bool | None):
        raise DefinitionError(
            "FF102",
            f"stage {stage!r}: identities={checked['identities']!r} is neither true nor false.",
        )
    if "outputs" in checked:
        checked["outputs"] = _output_names(stage, checked["outputs"])
    method = checked.get("method")
    if method is not None and not (isinstance(method, str) and method.isidentifier()):
        raise DefinitionError(
            "FF102", f"stage {stage!r}: method={method!r} is not the name of a method."
        )
    return StageOptions(**checked)


def did_you_mean(given: str, known: Iterable[str]) -> str:
    """A sentence that offers the nearest known name, or else lists all of them."""
    import difflib  # nobody who makes no mistake needs it

    names = sorted(known)
    if close := difflib.get_close_matches(given, names, n=1):
        return f"Did you mean {close[0]!r}? Known: {', '.join(names)}."
    return f"Known: {', '.join(names)}." if names else "There are none."


def a_kind(value: object) -> str:
    """A value's type in words: ``an int``."""
    name = type(value).__name__
    return f"{'an' if name[:1].lower() in 'aeiou' else 'a'} {name}"


def plain(signature: inspect.Signature) -> str:
    """A signature for people: names and defaults, without annotations."""
    empty = inspect.Signature.empty
    parameters = [one.replace(annotation=empty) for one in signature.parameters.values()]
    return str(signature.replace(parameters=parameters, return_annotation=empty))


def _check_count(stage: str, option: str, value: Any, least: int = 1) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise DefinitionError(
            "FF102",
            f"stage {stage!r}: {option}={value!r} is not a whole number of at least {least}.",
        )


def _replicas(stage: str, value: Any) -> int | tuple[int, int] | Literal["auto"]:
    pair = isinstance(value, (tuple, list))
    bounds = tuple(value) if pair else (value, value)
    whole = all(isinstance(n, int) and not isinstance(n, bool) and n >= 1 for n in bounds)
    if whole and len(bounds) == 2 and bounds[0] <= bounds[1]:
        return (bounds[0], bounds[1]) if pair else bounds[0]
    if isinstance(value, str) and value == "auto":
        return "auto"
    raise DefinitionError(
        "FF102",
        f"stage {stage!r}: replicas={_SHOWN.repr(value)} is no number of replicas.",
        'Give a whole number from 1 on, the fewest and the most as (1, 8), or "auto": then their number '
        "follows the measured work.",
    )


def _bytes(stage: str, option: str, value: Any) -> int:
    from fanfold.sizes import as_bytes  # most stages are declared without

    try:
        return as_bytes(value)
    except ValueError:
        raise DefinitionError(
            "FF102",
            f"stage {stage!r}: {option}={value!r} is not a size in bytes.",
            'Give a whole number from 1 on, or text such as "128MB" or "1.5GiB".',
        ) from None


def _positive(stage: str, option: str, value: Any) -> float:
    if isinstance(value, (int, float)) and not isinstance(value, bool) and 0 < value < math.inf:
        return float(value)
    raise DefinitionError(
        "FF102", f"stage {stage!r}: {option}={value!r} is not a number greater than 0."
    )


def _gpus(stage: str, value: Any) -> Fraction:
    """A number of GPUs as it was written: 0.1 is a tenth."""
    if isinstance(value, (int, float, Fraction)) and not isinstance(value, bool) and value >= 0:
        with contextlib.suppress(ValueError):  # infinity is no fraction
            found = Fraction(str(value))
            if found <= 1 or found.denominator == 1:
                return found
    raise DefinitionError(
        "FF102",
        f"stage {stage!r}: gpus={value!r} is neither a whole number of GPUs nor a share of one.",
        "A replica has whole GPUs (gpus=2), or a share of one (gpus=0.5); one and a half cannot be had.",
    )


def _seconds(stage: str, option: str, value: Any) -> float:
    if isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < math.inf:
        return float(value)
    raise DefinitionError(
        "FF102", f"stage {stage!r}: {option}={value!r} is not a number of seconds from 0 on."
    )


def _rate(stage: str, value: Any) -> float:
    """A rate as it was given, per second."""
    number, seconds = value, 1.0
    if isinstance(value, str):
        text, slash, unit = value.partition("/")
        with contextlib.suppress(ValueError, KeyError):
            number, seconds = float(text), _SECONDS[unit.strip().lower() if slash else "s"]
    if isinstance(number, (int, float)) and not isinstance(number, bool) and 0 < number < math.inf:
        return number / seconds
    raise DefinitionError(
        "FF102",
        f"stage {stage!r}: rate_limit={value!r} is not a rate.",
        'Give calls per second, or text such as "10/s", "600/min" or "5000/hour".',
    )


def _output_names(stage: str, outputs: Any) -> tuple[str, ...]:
    if isinstance(outputs, int):
        _check_count(stage, "outputs", outputs)
        return ("",) * outputs
    names = tuple(outputs) if isinstance(outputs, (list, tuple)) else ()
    if len(names) < 2 or not all(isinstance(name, str) for name in names):
        raise DefinitionError(
            "FF102",
            f"stage {stage!r}: outputs={outputs!r} is neither a number nor two or more names.",
            'Give for example outputs=2 or outputs=("text", "score").',
        )
    if len(set(names)) < len(names) or not all(
        name.isidentifier() and not name.startswith("_") for name in names
    ):
        raise DefinitionError(
            "FF102",
            f"stage {stage!r}: outputs={outputs!r} must be different identifiers.",
            "Each becomes an attribute of what a call returns.",
        )
    return names


def _name_of(target: Any) -> str:
    if isinstance(target, functools.partial):
        return _name_of(target.func)
    try:
        return str(target.__name__)
    except Exception:  # none, or an object of anyone's that answers with something else
        return type(target).__name__


def _entry_point(stage: str, target: Any, is_class: bool, method: str | None) -> Any:
    """What is called for each item: the function itself, or a class's or object's method."""
    if inspect.isroutine(target) or isinstance(target, functools.partial):
        if method is not None:
            raise DefinitionError(
                "FF107",
                f"stage {stage!r}: method={method!r} was given for a function.",
                "Leave it out, or give a class that has this method.",
            )
        _refuse_bound_class(stage, target)
        return target
    name = method or "__call__"
    owner = target if is_class else type(target)
    # Not by getattr_static: for a class it would find the metaclass's __call__ as well.
    entry = next((vars(base)[name] for base in owner.__mro__ if name in vars(base)), None)
    if entry is None or not callable(getattr(owner, name, None)):
        raise DefinitionError(
            "FF107",
            f"stage {stage!r}: {owner.__name__} has no method {name!r}.",
            f"A class is constructed once per worker, and then its object is called for each item: name "
            f"the entry point with method=. To make a {owner.__name__} of each item, give a function that "
            f"does: ff.stage(lambda item: {owner.__name__}(item))."
            if method is None
            else did_you_mean(name, [one for one in dir(owner) if not one.startswith("_")]),
        )
    return entry.__func__ if isinstance(entry, (staticmethod, classmethod)) else entry


def _refuse_bound_class(stage: str, target: Any) -> None:
    """A class with arguments bound: as a function it would be constructed anew for every item."""
    inner = target.func if isinstance(target, functools.partial) else None
    if inspect.isclass(inner) and "__call__" in {
        name for base in inner.__mro__ for name in vars(base)
    }:
        raise DefinitionError(
            "FF107",
            f"stage {stage!r}: functools.partial of the class {inner.__name__} would construct an object "
            "for each item and never call it.",
            f"Give the class, and its arguments in a first call: ff.stage({inner.__name__})(…)(port).",
        )


def _refuse_async_generator(stage: str, entry: Any) -> None:
    if inspect.isasyncgenfunction(entry):
        raise DefinitionError(
            "FF106",
            f"stage {stage!r} is an asynchronous generator, which is not available yet.",
            "Let the async function return a list of children, or make it an ordinary generator.",
        )


def _check_asynchronous(stage: str, asynchronous: bool, options: StageOptions) -> None:
    if options.max_in_flight is not None and not asynchronous:
        raise DefinitionError(
            "FF110",
            f"stage {stage!r} is no async function and has max_in_flight={options.max_in_flight}.",
            "An ordinary function runs one call at a time: use replicas=, or make it async def.",
        )


def _check_batched(stage: str, options: StageOptions) -> None:
    """Options that say how batches form need batches."""
    if options.batch_size is None:
        for name in OF_BATCHES:
            if (value := getattr(options, name)) is not None:
                raise DefinitionError(
                    "FF112",
                    f"stage {stage!r} takes one item at a time and has {name}={_SHOWN.repr(value)}.",
                    "It says how batches form: give batch_size= too, the most items of one batch.",
                )
    if (options.batch_cost is None) != (options.max_batch_cost is None):
        raise DefinitionError(
            "FF112",
            f"stage {stage!r} has one of batch_cost= and max_batch_cost=, but not the other.",
            "batch_cost= is a function of an item's first input, max_batch_cost= what a batch may come to.",
        )
    if options.batch_cost is not None and options.batch_bytes is not None:
        raise DefinitionError(
            "FF112",
            f"stage {stage!r} has both batch_bytes= and batch_cost=.",
            "Give one of them: a cost may be a number of bytes.",
        )


def _check_process(stage: str, options: StageOptions) -> None:
    """What belongs to a process cannot be asked of a thread."""
    if options.workers == "process":
        return
    for name in OF_PROCESSES:
        if (value := getattr(options, name)) is not None:
            why = (
                "GPUs are given to a process, by its environment, and threads share that of the program"
                if name == "gpus"
                else "what a thread leaks is the program's, and would not go with it"
            )
            raise DefinitionError(
                "FF113",
                f'stage {stage!r} has workers="thread" and {name}={_shown_option(value)}: {why}.',
                'Leave out one of the two; with workers="process" it works.',
            )


def _shown_option(value: Any) -> str:
    """An option's value as it is written: a share of a GPU as a decimal."""
    return f"{float(value):g}" if isinstance(value, Fraction) else _SHOWN.repr(value)


def _check_setup(stage: str, target: type) -> None:
    """``setup_on_node`` is called on the class, before there is an object."""
    setup = inspect.getattr_static(target, "setup_on_node", None)
    if setup is not None and not isinstance(setup, (staticmethod, classmethod)):
        raise DefinitionError(
            "FF111",
            f"stage {stage!r}: {target.__name__}.setup_on_node is no static method.",
            "It runs once on each node before any object is constructed: put @staticmethod before it.",
        )


def _check_generator(stage: str, generator: bool, options: StageOptions) -> None:
    if generator and options.batch_size is not None:
        raise DefinitionError(
            "FF105",
            f"stage {stage!r} is a generator and has batch_size={options.batch_size}.",
            "A generator takes one item at a time: leave batch_size out.",
        )


def _signature(
    target: Any, entry: Any, is_class: bool, method: str | None
) -> inspect.Signature | None:
    try:
        if not is_class:
            return inspect.signature(getattr(target, method) if method else target)
        signature = inspect.signature(entry)
    except Exception:  # built-in callables need not tell theirs, and anyone's object may raise
        return None
    if isinstance(inspect.getattr_static(target, method or "__call__"), staticmethod):
        return signature
    if not hasattr(type(entry), "__get__"):
        return signature  # an object that is called in a method's place gets no self
    parameters = list(signature.parameters.values())
    if parameters and parameters[0].kind is not inspect.Parameter.VAR_POSITIONAL:
        parameters = parameters[1:]
    return signature.replace(parameters=parameters)
