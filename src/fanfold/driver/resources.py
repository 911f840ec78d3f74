"""What stages declare that their replicas need, against what the machine has: refused, reduced, or assigned.

Owns that decision, before any input is read. Only what was declared counts: a stage that says nothing of cores
may have any number of replicas, since they may well wait for files or servers. How what there is was found out
is :mod:`fanfold.driver.machine`'s. Pure but for asking the machine.

Rules
-----
1. A replica that could not run here alone is refused: more cores, memory or GPUs than there are.
2. What all replicas declare together, and is more than there is, is reduced: a stage loses a replica, the one
   that takes the most of what is short first, down to one each.
3. If one replica each does not fit either, the run is refused for want of memory or GPUs. Cores are shared
   then: work gets slower by that, and not impossible.
4. Where the number of a stage's replicas follows the work, what counts so far is the fewest. What is left
   decides the most: each takes the cores that it says, or one; GPUs and memory are set aside for it.
5. Whole GPUs are a replica's own. Shares of one are spread over what is left if they fit so, else packed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Final, TypeAlias

from fanfold.driver.machine import VISIBLE, Machine, this_machine
from fanfold.errors import SetupError
from fanfold.plan import Plan, StageSpec
from fanfold.sizes import size_in_words

LOCAL: Final = ("local", "LocalBackend")
"""Names of the backend whose workers share this machine."""
Devices: TypeAlias = tuple[str, ...]
"""GPUs that one replica is to see."""


@dataclass(frozen=True)
class Fitted:
    """A plan whose replicas fit this machine: each stage has a number of them, or a fewest and a most."""

    plan: Plan
    gpus: tuple[tuple[Devices, ...] | None, ...] = ()
    """By stage, for each replica: its GPUs; None where nothing was said, and nothing is hidden."""
    notes: tuple[str, ...] = ()
    """What was reduced, and why, in words."""
    cores: int | None = None
    """What the stages whose replicas follow the work have together; None if there is none such."""

    @property
    def declared_bytes(self) -> int:
        """What all replicas that there are at a time need for themselves at most."""
        return _bytes_at_most(self.plan.stages, self.cores or 0)

    def gpus_of(self, stage: int, replica: int) -> Devices | None:
        """The GPUs of one replica; None: it sees what the program does."""
        devices = self.gpus[stage] if self.gpus else None
        return None if devices is None else devices[replica]


def fit(plan: Plan, backend: str, machine: Machine | None = None) -> Fitted:
    """The plan as it can run here.

    Args:
        plan: The compiled pipeline.
        backend: The backend's name. Only workers of this machine share what it has; the inline backend runs
            one item at a time, in the program's own process.
        machine: What there is; by default, this one.

    Raises:
        SetupError: A replica cannot run here (FF432), or one of each stage cannot at the same time (FF435).
    """
    if backend not in LOCAL:
        return fewest(plan)
    machine = machine or this_machine()
    wants_gpus = any(stage.gpus for stage in plan.stages)
    gpus = machine.ask_gpus() if wants_gpus else ()
    _refuse_single(plan, machine, gpus)
    stages = list(plan.stages)
    for short in (_short_of_memory(machine), _short_of_gpus(gpus)):
        _reduce(stages, short)
        if short(stages):
            raise _too_many(plan, stages, machine, gpus)
    _reduce(stages, _short_of_cores(machine))
    notes = _notes(plan, stages, machine, gpus)
    cores = _widen(stages, machine, gpus)
    assigned = _assign(stages, gpus)
    assert assigned is not None, "they were reduced until they fit"
    return Fitted(replace(plan, stages=tuple(stages)), assigned, notes, cores)


def fewest(plan: Plan) -> Fitted:
    """The plan with the fewest replicas that each stage may have, for where nothing is measured."""
    if all(stage.most_replicas is None for stage in plan.stages):
        return Fitted(plan)
    stages = tuple(replace(stage, most_replicas=None) for stage in plan.stages)
    return Fitted(replace(plan, stages=stages))


# ------------------------------------------------------------------------------------------ one replica


def _refuse_single(plan: Plan, machine: Machine, gpus: Devices) -> None:
    demands = [
        (stage.name, demand, there)
        for stage in plan.stages
        for demand, there in _impossible(stage, machine, gpus)
    ]
    if demands:
        refused = [
            f"stage {name!r} has {demand} for each replica, and this machine lets the run use {there}"
            for name, demand, there in demands
        ]
        setting = f"{demands[0][0]}.{demands[0][1].partition('=')[0]}"
        raise SetupError(
            "FF432",
            f"pipeline {plan.name!r} cannot run here: {'; '.join(refused)}.",
            f'Give less, as with pipeline.using({{"{setting}": ...}}), or run it on a larger machine. A '
            f"container's limits count, and so does {VISIBLE}.",
        )


def _impossible(stage: StageSpec, machine: Machine, gpus: Devices) -> Sequence[tuple[str, str]]:
    """What one replica of a stage is to have and cannot: the demand, and what there is."""
    found: list[tuple[str, str]] = []
    if stage.cpus is not None and stage.cpus > machine.cores:
        found.append((f"cpus={stage.cpus}", _cores(machine.cores)))
    there = machine.memory_bytes
    if stage.memory is not None and there is not None and stage.memory > there:
        found.append(
            (f"memory={size_in_words(stage.memory)!r}", f"{size_in_words(there)} of memory")
        )
    if stage.gpus is not None and stage.gpus > len(gpus):
        found.append((f"gpus={float(stage.gpus):g}", _gpus(len(gpus))))
    return found


# ---------------------------------------------------------------------------------------- all together


Short: TypeAlias = Callable[[Sequence[StageSpec]], Sequence[Fraction]]
"""Whether stages need more than there is: what each takes of it if so, else nothing."""


def _short_of_memory(machine: Machine) -> Short:
    there = machine.memory_bytes

    def short(stages: Sequence[StageSpec]) -> Sequence[Fraction]:
        taken = [Fraction(stage.replicas * (stage.memory or 0)) for stage in stages]
        return taken if there is not None and sum(taken) > there else ()

    return short


def _short_of_cores(machine: Machine) -> Short:
    def short(stages: Sequence[StageSpec]) -> Sequence[Fraction]:
        taken = [Fraction(stage.replicas * (stage.cpus or 0)) for stage in stages]
        return taken if sum(taken) > machine.cores else ()

    return short


def _short_of_gpus(gpus: Devices) -> Short:
    def short(stages: Sequence[StageSpec]) -> Sequence[Fraction]:
        taken = [stage.replicas * (stage.gpus or Fraction()) for stage in stages]
        return taken if _assign(stages, gpus) is None else ()

    return short


def _reduce(stages: list[StageSpec], short: Short) -> None:
    """Take replicas away until nothing is short, or nothing can be taken away."""
    while taken := short(stages):
        reducible = [
            index for index, stage in enumerate(stages) if stage.replicas > 1 and taken[index]
        ]
        if not reducible:
            return
        most = max(reducible, key=lambda index: (taken[index], stages[index].replicas, index))
        stages[most] = replace(stages[most], replicas=stages[most].replicas - 1)


def _widen(stages: list[StageSpec], machine: Machine, gpus: Devices) -> int | None:
    """Give the stages whose replicas follow the work the most that they may have; the cores that they share."""
    scaled = [index for index, stage in enumerate(stages) if stage.most_replicas is not None]
    fixed = sum(s.replicas * (s.cpus or 0) for s in stages if s.most_replicas is None)
    taken = sum(stages[index].replicas * (stages[index].cpus or 1) for index in scaled)
    cores = max(machine.cores - fixed, taken)
    for index in scaled:
        stage = stages[index]
        most = stage.replicas + (cores - taken) // (stage.cpus or 1)
        most = min(most, stage.most_replicas or most)
        stages[index] = replace(stage, most_replicas=max(most, stage.replicas))
    there = machine.memory_bytes
    while there is not None and _bytes_at_most(stages, cores) > there:
        _narrow(stages, lambda stage: stage.memory or 0)
    while _assign(stages, gpus) is None:
        _narrow(stages, lambda stage: stage.gpus or 0)
    return cores if scaled else None


def _narrow(stages: list[StageSpec], one: Callable[[StageSpec], int | Fraction]) -> None:
    """Lower the most replicas of the stage that takes the most of something, by one."""
    index = max(
        (i for i, stage in enumerate(stages) if most_of(stage) > stage.replicas and one(stage)),
        key=lambda i: (most_of(stages[i]) * one(stages[i]), i),
    )
    stages[index] = replace(stages[index], most_replicas=most_of(stages[index]) - 1)


def _bytes_at_most(stages: Sequence[StageSpec], cores: int) -> int:
    """What replicas declare to need, if those that follow the work are where that is the most."""
    scaled = [stage for stage in stages if stage.most_replicas is not None]
    left = cores - sum(stage.replicas * (stage.cpus or 1) for stage in scaled)
    total = sum(stage.replicas * (stage.memory or 0) for stage in stages)
    for stage in sorted(scaled, key=lambda s: Fraction(s.memory or 0, s.cpus or 1), reverse=True):
        more = min(most_of(stage) - stage.replicas, -(-left // (stage.cpus or 1)))
        total += more * (stage.memory or 0)
        left = max(0, left - more * (stage.cpus or 1))
    return total


def most_of(stage: StageSpec) -> int:
    """How many replicas a stage has at most, once that is known."""
    return max(stage.replicas, stage.most_replicas or 0)


def _too_many(
    plan: Plan, stages: Sequence[StageSpec], machine: Machine, gpus: Devices
) -> SetupError:
    demands = []
    for stage in stages:
        parts = [] if stage.memory is None else [f"memory={size_in_words(stage.memory)!r}"]
        parts += [f"gpus={float(stage.gpus):g}"] if stage.gpus else []
        if parts:
            demands.append(f"stage {stage.name!r} has {' and '.join(parts)}")
    there = _gpus(len(gpus)) if gpus else ""
    if machine.memory_bytes is not None:
        there = f"{size_in_words(machine.memory_bytes)} of memory" + (there and f" and {there}")
    return SetupError(
        "FF435",
        f"pipeline {plan.name!r} cannot run here: not even one replica of each stage fits at the same time. "
        f"{_sentence(', '.join(demands))}, and this machine lets the run use {there}.",
        'Give less, as with pipeline.using({"Ocr.memory": "2GB"}), let stages share GPUs (gpus=0.5), run the '
        "stages as pipelines one after the other, or use a larger machine.",
    )


def _notes(
    plan: Plan, stages: Sequence[StageSpec], machine: Machine, gpus: Devices
) -> tuple[str, ...]:
    """What was reduced, in words; and where cores are shared."""
    notes = []
    for before, after in zip(plan.stages, stages, strict=True):
        if before.replicas == after.replicas:
            continue
        demands = [
            f"cpus={before.cpus}" if before.cpus is not None else "",
            f"memory={size_in_words(before.memory)!r}" if before.memory is not None else "",
            f"gpus={float(before.gpus):g}" if before.gpus else "",
        ]
        notes.append(
            f"stage {before.name!r} has {after.replicas} replica{'s' * (after.replicas > 1)} and not "
            f"{before.replicas}: each is to have {' and '.join(filter(None, demands))}, and this machine lets "
            f"the run use {_there(before, machine, gpus)} for all stages together. Give {before.name}.replicas "
            "less, or leave out what need not be counted."
        )
    if _short_of_cores(machine)(stages):
        cores = sum(stage.replicas * (stage.cpus or 0) for stage in stages)
        notes.append(
            f"one replica of each stage is to keep {cores} cores busy, together, and this machine lets the run "
            f"use {_cores(machine.cores)}: they share them."
        )
    return tuple(notes)


def _there(stage: StageSpec, machine: Machine, gpus: Devices) -> str:
    parts = [_cores(machine.cores)] if stage.cpus is not None else []
    if stage.memory is not None and machine.memory_bytes is not None:
        parts.append(f"{size_in_words(machine.memory_bytes)} of memory")
    if stage.gpus:
        parts.append(_gpus(len(gpus)))
    return ", ".join(parts)


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def _cores(count: int) -> str:
    return "1 core" if count == 1 else f"{count} cores"


def _gpus(count: int) -> str:
    return "no GPU" if not count else "1 GPU" if count == 1 else f"{count} GPUs"


# ------------------------------------------------------------------------------------------------ GPUs


def _assign(
    stages: Sequence[StageSpec], gpus: Devices
) -> tuple[tuple[Devices, ...] | None, ...] | None:
    """GPUs for each replica of each stage; None if they do not go round."""
    return _placed(stages, gpus, spread=True) or _placed(stages, gpus, spread=False)


def _placed(
    stages: Sequence[StageSpec], gpus: Devices, *, spread: bool
) -> tuple[tuple[Devices, ...] | None, ...] | None:
    """Largest demands first. A share goes to the GPU of which the most is left, or to the fullest one where it
    fits."""
    left = dict.fromkeys(gpus, Fraction(1))
    given: dict[tuple[int, int], Devices] = {}
    demands = [
        (stage.gpus, index, replica)
        for index, stage in enumerate(stages)
        if stage.gpus is not None
        for replica in range(most_of(stage))
    ]
    for demand, index, replica in sorted(demands, key=lambda d: (-d[0], d[1], d[2])):
        if demand >= 1:
            chosen = tuple(name for name in gpus if left[name] == 1)[: int(demand)]
            if len(chosen) < demand:
                return None
            left.update(dict.fromkeys(chosen, Fraction()))
        elif demand:
            fitting = [name for name in gpus if left[name] >= demand]
            if not fitting:
                return None
            name = (
                max(fitting, key=left.__getitem__) if spread else min(fitting, key=left.__getitem__)
            )
            left[name] -= demand
            chosen = (name,)
        else:
            chosen = ()
        given[index, replica] = chosen
    return tuple(
        None if stage.gpus is None else tuple(given[index, r] for r in range(most_of(stage)))
        for index, stage in enumerate(stages)
    )
