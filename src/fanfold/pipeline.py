"""Pipelines: ``ff.pipeline`` and the object that it makes, the front door to everything.

Owns what a user can do with a declared program: look at it, change it, run it, call it. Tracing is the
model's work, checking and lowering the compiler's, running the driver's; this module only connects them.
"""

from __future__ import annotations

import functools
import inspect
import pickle
import sys
from collections.abc import Callable, Generator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Generic, Literal, ParamSpec, TypeVar, overload

from fanfold.errors import DefinitionError, UsageError
from fanfold.model.declaration import Declaration, declare
from fanfold.model.declaration import trace as trace_declaration
from fanfold.model.definition import TUNABLE, did_you_mean
from fanfold.model.other_names import said_elsewhere
from fanfold.model.overrides import Overrides
from fanfold.model.port import Port
from fanfold.model.settings import parse_text
from fanfold.model.stage import Stage
from fanfold.model.trace import Trace, current, here

if TYPE_CHECKING:
    from os import PathLike

    from fanfold.backends.base import Backend
    from fanfold.driver.run import Check, Report, Result
    from fanfold.plan import Plan

P = ParamSpec("P")
R = TypeVar("R")


_ANNOUNCED: Final = frozenset(("resume", "retries", "retry_failed", "timeout", "timeout_s"))
"""Run options that will come; the last ones are often looked for here, where a stage will have them."""


class Pipeline(Generic[P, R]):
    """A declared program: a static graph of calls and structural operations, traced from a function.

    Made by :func:`fanfold.pipeline`; immutable: :meth:`using` gives a changed copy. Problems are told when
    it is compiled, which the first use does. Pickles, for ``multiprocessing`` and for Ray: by name where it
    stands in a module, otherwise with all that it was made of (FF229 says if that cannot be).
    """

    __name__: str

    def __init__(
        self,
        declaration: Declaration,
        values: Mapping[str, Any] | None = None,
        overrides: Overrides | None = None,
    ) -> None:
        self._declaration = declaration
        self._values = dict(values or {})
        self._overrides = overrides or Overrides()
        self._plan: Plan | None = None
        self._stages: frozenset[str] = frozenset()
        functools.update_wrapper(self, declaration.function, updated=())

    # ------------------------------------------------------------------------------------- looking

    @property
    def name(self) -> str:
        """``name=``, or the function's name."""
        return self._declaration.name

    @property
    def settings(self) -> Mapping[str, Any]:
        """The settings' values now, by name; those without a default and a value are left out."""
        known = self._declaration.settings.items()
        defaults = {name: setting.default for name, setting in known if not setting.required}
        return MappingProxyType({**defaults, **self._values})

    @property
    def stages(self) -> tuple[str, ...]:
        """Names of the stages that the pipeline calls, as :meth:`using` knows them."""
        self.plan()
        return tuple(sorted(self._stages))

    def plan(self) -> Plan:
        """The compiled plan; the first call traces and checks the pipeline.

        Raises:
            PipelineError: With all problems of the pipeline, each with source line, reason and remedy.
            DefinitionError: A stage that was named in :meth:`using` is not there (FF221).
        """
        if self._plan is None:
            # Only here: a worker that imports the user's module declares the pipeline and compiles nothing.
            from fanfold.compiler.compile import compile_graph

            graph, self._stages = trace_declaration(
                self._declaration, self._values, self._overrides
            )
            plan = compile_graph(graph)
            for name in sorted(self._overrides.names - self._stages):
                raise self._unknown(name)
            self._plan = plan
        return self._plan

    def explain(self, format: Literal["text", "mermaid"] = "text") -> str:
        """The plan for people: settings, levels, calls, queues, pools, broadcasts and warnings.

        Args:
            format: ``"text"``, or ``"mermaid"`` for a flowchart that many Markdown viewers draw.

        Raises:
            PipelineError: The pipeline has problems.
            UsageError: There is no such format (FF226).
        """
        from fanfold.compiler.explain import explain

        plan = self.plan()
        rows: list[tuple[str, object, str]] = []
        for name, setting in self._declaration.settings.items():
            changed = name in self._values and self._values[name] is not setting.default
            if setting.required:
                remark = "has no default"
            else:
                remark = f"default: {setting.default!r}" if changed else "the default"
            rows.append((name, self.settings[name], remark))
        return explain(plan, format, rows)

    def __repr__(self) -> str:
        return f"<Pipeline {self.name}({', '.join(self._declaration.sources)})>"

    def __reduce__(self) -> str | tuple[Any, ...]:
        """By name where a module has it; otherwise by value, with the functions that it was made of.

        Plain ``pickle`` finds no function behind its decorator, so the value is made as for workers.
        """
        module, name = self.__module__, getattr(self, "__qualname__", "")
        if module != "__main__" and getattr(sys.modules.get(module), name, None) is self:
            return name
        from fanfold.backends.local.shipping import pickled

        try:
            data = pickled((self._declaration, self._values, self._overrides))
        except Exception as error:
            raise DefinitionError(
                "FF229",
                f"pipeline {self.name!r} cannot be pickled: {type(error).__name__}: {error}.",
                "Something that its functions use from around them does not pickle: make it inside of a "
                "stage's constructor. Or declare the pipeline at the top of a module: its name travels alone.",
            ) from error
        return _unpickled, (data,)

    # ------------------------------------------------------------------------------------ changing

    def using(self, changes: Mapping[str, Any]) -> Pipeline[P, R]:
        """A changed pipeline; this one stays as it is.

        Args:
            changes: By key: ``"weights"`` a setting's value, ``"Ocr.batch_size"`` an option of the stage
                ``Ocr`` (batch_size, replicas, cpus), ``"Ocr"`` another stage or callable in its place.
                A plain callable takes over the options of the stage that it replaces.

        Raises:
            DefinitionError: A key is unknown (FF221) or a value does not fit (FF102 and others).
            PipelineError: The changed pipeline has problems.

        Example:
            ``to_text.using({"weights": "small.onnx", "Ocr.batch_size": 8, "Vlm": fake_vlm})``
        """
        values = dict(self._values)
        replacements: dict[str, Any] = {}
        options: dict[str, dict[str, Any]] = {}
        for key, value in changes.items():
            stage, dot, option = key.rpartition(".")
            if key in self._declaration.settings:
                values[key] = value
            elif dot:
                self._check_option(key, option)
                options.setdefault(stage, {})[option] = value
            elif isinstance(value, Stage):
                replacements[key] = value.definition
            elif callable(value):
                replacements[key] = value
            else:
                raise self._unknown(key, value)
        overrides = self._overrides.merged(Overrides(replacements, options))
        changed: Pipeline[P, R] = Pipeline(self._declaration, values, overrides)
        known = self._declaration.settings.items()
        if all(name in values or not setting.required for name, setting in known):
            changed.plan()  # so that a wrong key is told here, not at the first use
        return changed

    def parse(self, key: str, text: str) -> Any:
        """The value that ``text`` means for a key of :meth:`using`, as ``--set key=text`` needs it.

        Raises:
            DefinitionError: The key is unknown (FF221), or the text does not fit (FF224).
        """
        if key in self._declaration.settings:
            return self._declaration.settings[key].parse(text)
        _, dot, option = key.rpartition(".")
        if not dot:
            raise self._unknown(key, text)
        self._check_option(key, option)
        return parse_text(f"option {key!r}", text, TUNABLE[option])

    def _check_option(self, key: str, option: str) -> None:
        if option not in TUNABLE:
            raise DefinitionError(
                "FF221",
                f"pipeline {self.name!r}: {key!r} names no option that can be changed.",
                said_elsewhere(option) or did_you_mean(option, TUNABLE),
            )

    def _unknown(self, key: str, value: object = None) -> DefinitionError:
        """What to say of a key that nothing can be done with, given this value."""
        settings = list(self._declaration.settings)
        stages = sorted(self._stages or self._stages_as_declared())
        if key in stages:
            options = ", ".join(f"{key}.{option}" for option in TUNABLE)
            return DefinitionError(
                "FF221",
                f"pipeline {self.name!r}: {value!r} cannot take the place of stage {key!r}.",
                f"Only a stage or another callable can, given in Python; its options are {options}.",
            )
        keys = settings + stages + [f"{stage}.{option}" for stage in stages for option in TUNABLE]
        hint = did_you_mean(key, keys).partition(" Known:")[0]
        listed = (
            f"Settings: {', '.join(settings) or 'none'}. Stages: {', '.join(stages) or 'none'}."
        )
        return DefinitionError(
            "FF221",
            f"pipeline {self.name!r} has no setting or stage {key!r}.",
            f"{hint} {listed}" if hint.startswith("Did") else listed,
        )

    def _stages_as_declared(self) -> frozenset[str]:
        """For messages: the stages before any change; none where the pipeline cannot be traced."""
        try:
            return trace_declaration(self._declaration, self._values, Overrides())[1]
        except DefinitionError:
            return frozenset()

    # ------------------------------------------------------------------------------------- running

    @overload
    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R: ...
    @overload
    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """With ports: inline this pipeline into the one that is being traced. With values: run it here.

        Plain values run in this thread, so that exceptions come through and ``breakpoint()`` works; the
        result has the shape of what the function returns. Settings may be given by keyword.

        Raises:
            DefinitionError: The arguments do not fit (FF227).
        """
        settings = {k: v for k, v in kwargs.items() if k in self._declaration.settings}
        sources = {k: v for k, v in kwargs.items() if k not in self._declaration.settings}
        values = self._bound(args, sources)
        trace = current()
        if trace is not None:
            return self._inlined(trace, values, settings)
        if any(isinstance(value, Port) for value in values):
            raise DefinitionError(
                "FF205",
                f"pipeline {self.name!r} was called with a port at {here().short()}, outside of a "
                "pipeline.",
                "Call it in a function decorated with @ff.pipeline.",
            )
        from fanfold.driver import run as driver

        pipeline = self.using(settings) if settings else self
        return driver.call(pipeline.plan(), values)

    def run(
        self,
        source: Any,
        sink: Any = None,
        *,
        backend: str | Backend = "local",
        run_dir: str | PathLike[str] | None = None,
        order: Literal["source", "completed"] = "source",
        limit: int | None = None,
        max_failed: int | float | None = None,
        memory: int | str | None = None,
        progress: bool | None = None,
        duplicates: Literal["error", "first"] = "error",
        seed: int = 0,
        **later: Any,
    ) -> Report:
        """Run the whole job: every item of a source, records into a sink.

        Args:
            source: A source such as ``ff.read_files("corpus/**/*.pdf")``, or any iterable of items.
            sink: Where records go, such as ``ff.write_jsonl("out/")``; a dict or tuple of sinks where
                the pipeline returns a dict or tuple. None: nothing is written.
            backend: ``"local"`` (worker processes), ``"inline"`` (this thread), or a backend object.
            run_dir: Where ``report.json`` and ``failures.jsonl`` go; by default ``OUT/.fanfold/RUN``.
            order: Records in the order of the ``"source"``, or as they are ``"completed"``.
            limit: Take only so many items of the source, at least one.
            max_failed: How many roots may fail before the run stops: a number, or a share (a float) of those
                that have ended, once these are 100. None for any number.
            memory: How much values may take, in bytes or as ``"8GB"``: what would exceed it waits. None: half
                of what is available when the run starts.
            progress: False: show none. Otherwise standard error shows it, live on a terminal.
            duplicates: Whether a key that comes again is an ``"error"``, or the ``"first"`` item counts.
            seed: What the seeds of items follow from (``ff.context().seed``).
            **later: Options that are not available yet, refused by name.

        Returns:
            What became of every root, and what it cost.

        Raises:
            PipelineError: The pipeline has problems.
            UsageError: The arguments do not fit together, or an option is not available (FF228).
            RunStopped: Failures stopped the run (FF421): ``max_failed`` was passed, a stage with
                ``on_error="stop"`` failed, or a call did nothing but fail. What had ended is written.
            SetupError: A worker or the backend cannot be started.
            SourceError: The source cannot go on. What had ended before is written.
            SinkError: Records cannot be written. (A value that a sink has no form for fails its root only.)
        """
        self._refuse("run", later)
        from fanfold.driver import run as driver

        return driver.run(
            self.plan(),
            source,
            sink,
            backend=backend,
            run_dir=run_dir,
            order=order,
            limit=limit,
            max_failed=max_failed,
            memory=memory,
            progress=progress,
            duplicates=duplicates,
            seed=seed,
        )

    def stream(
        self,
        items: Any,
        *,
        backend: str | Backend = "local",
        order: Literal["source", "completed"] = "source",
        max_failed: int | float | None = None,
        memory: int | str | None = None,
        duplicates: Literal["error", "first"] = "error",
        seed: int = 0,
        **later: Any,
    ) -> Generator[Result, None, None]:
        """Results as parents finish; lazy at both ends. Closing the iterator stops the run.

        Args:
            items: A source, or any iterable of items, which may be endless.
            backend: As for :meth:`run`.
            order: Results in the order of the ``"source"``, or as they are ``"completed"``.
            max_failed: As for :meth:`run`.
            memory: As for :meth:`run`.
            duplicates: Whether a key that comes again is an ``"error"``, or the ``"first"`` item counts.
            seed: What the seeds of items follow from (``ff.context().seed``).
            **later: Options that are not available yet, refused by name.

        Raises:
            PipelineError: The pipeline has problems.
            UsageError: The arguments do not fit together, or an option is not available (FF228).
            RunStopped: Failures stopped the run (FF421); raised after the results of all roots that had
                ended.
            FanfoldError: While iterating: as :meth:`run`.
        """
        self._refuse("stream", later)
        from fanfold.driver import run as driver

        return driver.stream(
            self.plan(),
            items,
            backend=backend,
            order=order,
            max_failed=max_failed,
            memory=memory,
            duplicates=duplicates,
            seed=seed,
        )

    def check(
        self,
        sample: Any,
        n: int = 3,
        *,
        sweep: Sequence[int] | Mapping[str, Sequence[int]] = (),
        profile: str | PathLike[str] | None = None,
    ) -> Check:
        """A dry run of the first ``n`` items, in this thread: what goes into and out of each stage.

        Args:
            sample: A source, or an iterable of items.
            n: How many items.
            sweep: Batch sizes to try besides: ``(1, 8, 32)`` for all batched stages, or by stage:
                ``{"Ocr": (1, 8, 32)}``. The same items run once for each.
            profile: A file for how long the stages took, by the number of items in a call; its shape is
                that of :class:`fanfold.observe.profile.Profile`.

        Raises:
            UsageError: ``n`` is not positive (FF426), or the sweep does not fit the pipeline (FF444).
            SourceError: The source cannot be read.
        """
        from fanfold.driver import run as driver

        return driver.check(self.plan(), sample, n, sweep=sweep, profile=profile)

    def _bound(self, args: tuple[Any, ...], named: Mapping[str, Any]) -> tuple[Any, ...]:
        """The sources' arguments in order."""
        sources = self._declaration.sources
        values = dict(zip(sources, args, strict=False))
        unfit = len(args) > len(sources) or not values.keys().isdisjoint(named)
        values.update(named)
        if unfit or values.keys() != set(sources):
            settings = self._declaration.settings
            takes = f"It takes {', '.join([*sources, *(f'{name}=' for name in settings)])}."
            unknown = next((name for name in named if name not in sources), None)
            if unknown is not None:
                meant, _, _ = did_you_mean(unknown, [*sources, *settings]).rpartition("Known:")
                raise DefinitionError(
                    "FF227",
                    f"pipeline {self.name!r} has no argument {unknown!r}, given at {here().short()}.",
                    f"{meant}{takes}",
                )
            raise DefinitionError(
                "FF227",
                f"pipeline {self.name!r} was called with other arguments than it has at "
                f"{here().short()}.",
                takes,
            )
        return tuple(values[name] for name in sources)

    def _refuse(self, method: Literal["run", "stream"], options: Mapping[str, Any]) -> None:
        """Tell why a method does not have the first of these options."""
        for name in options:
            if name in self._declaration.settings:
                raise UsageError(
                    "FF228",
                    f"{name!r} is a setting of pipeline {self.name!r}, no run option.",
                    f"Use .using({{{name!r}: …}}).{method}(…).",
                )
            parameters = inspect.signature(getattr(Pipeline, method)).parameters.values()
            known = [one.name for one in parameters if one.kind is one.KEYWORD_ONLY]
            if name in _ANNOUNCED:
                raise UsageError(
                    "FF228",
                    f"the run option {name!r} is not available yet.",
                    f"Leave it out; {method}() has {', '.join(known)}.",
                )
            raise UsageError(
                "FF228", f"{method}() has no option {name!r}.", did_you_mean(name, known)
            )

    def _inlined(self, trace: Trace, values: tuple[Any, ...], settings: Mapping[str, Any]) -> Any:
        if trace.inputs(f"pipeline {self.name!r}", values) is None:
            return trace.broken(values, 1)[0]
        with trace.inlining(self._overrides):
            return self._declaration.function(*values, **{**self.settings, **settings})


def _unpickled(data: bytes) -> Pipeline[Any, Any]:
    return Pipeline(*pickle.loads(data))


@overload
def pipeline(function: Callable[P, R], /) -> Pipeline[P, R]: ...
@overload
def pipeline(
    *, level: str = "item", name: str | None = None
) -> Callable[[Callable[P, R]], Pipeline[P, R]]: ...
def pipeline(
    function: Callable[..., Any] | None = None, /, *, level: str = "item", name: str | None = None
) -> Any:
    """Declare a pipeline: a function that connects stages.

    The function runs once, on ports, when the pipeline is compiled. Its positional parameters are the
    sources; keyword-only ones are settings. It returns a port, or a tuple or dict of ports.

    Args:
        function: The function, when used as a plain decorator.
        level: What one item of the source is: ``"document"``, ``"video"``.
        name: The pipeline's name; by default the function's.

    Raises:
        DefinitionError: What was decorated is no ordinary function (FF220).

    Example:
        >>> import fanfold as ff
        >>> @ff.stage
        ... def shout(text: str, *, mark: str) -> str:
        ...     return text.upper() + mark
        >>> @ff.pipeline(level="line")
        ... def loud(text: ff.Port[str], *, mark: str = "!") -> ff.Port[str]:
        ...     return shout(text, mark=mark)
        >>> loud.settings["mark"]
        '!'
    """
    if function is not None:
        return Pipeline(declare(function, name=name, level=level))
    return lambda decorated: Pipeline(declare(decorated, name=name, level=level))
