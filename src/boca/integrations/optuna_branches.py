"""Which parameters an Optuna objective suggests only for some values of another, read from its complete trials.

A parameter that only some trials have gets `when` if another one explains it: one that the objective always suggests
before it, with values that the trials with the parameter have and the trials without it never have.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from optuna.distributions import BaseDistribution
from optuna.trial import FrozenTrial

from boca.domain.conditions import When
from boca.integrations.optuna_bridge import Dimension

_MOST_LEVELS = 64  # of a number that decides what is active, such as the number of layers


def branching(
    known: Mapping[str, Dimension], sometimes: Mapping[str, Dimension], trials: Sequence[FrozenTrial]
) -> dict[str, Dimension]:
    """Return the known parameters, and those of the others that a condition on another one explains.

    Args:
        known: Parameters of the space; those that are in `sometimes` too may get a condition.
        sometimes: Parameters that some of the trials lack.
        trials: The complete trials, with the names of their parameters in the order in which they were suggested.
    """
    settled = {name: axis for name, axis in known.items() if name not in sometimes}
    explained: dict[str, Dimension] = {}
    while found := {
        name: when
        for name in sometimes
        if name not in explained and (when := _condition(name, settled | explained, trials)) is not None
    }:
        for name, when in found.items():
            axis = sometimes[name]
            explained[name] = replace(axis, parameter=replace(axis.parameter, when=when))
    return {**known, **explained}


def sometimes_there(trials: Sequence[FrozenTrial], leave_out: Mapping[str, Any]) -> dict[str, Dimension]:
    """Return the parameters that some trials lack and that always have the same range."""
    ranges: dict[str, BaseDistribution] = {}
    counts: dict[str, int] = {}
    changed = set()
    for trial in trials:
        for name, distribution in trial.distributions.items():
            counts[name] = counts.get(name, 0) + 1
            if ranges.setdefault(name, distribution) != distribution:
                changed.add(name)
    return {
        name: Dimension.of(distribution, name)
        for name, distribution in sorted(ranges.items())
        if counts[name] < len(trials) and name not in changed and name not in leave_out and not distribution.single()
    }


def _condition(name: str, axes: Mapping[str, Dimension], trials: Sequence[FrozenTrial]) -> When | None:
    """Return the condition on one other parameter that tells the trials with a parameter from those without it.

    Of several, the one that names the most values: it has been tested most.
    """
    best: tuple[int, When] | None = None
    having = [trial for trial in trials if name in trial.params]
    for other, axis in axes.items():
        levels = axis.parameter.levels
        if levels is None or levels > _MOST_LEVELS or not all(_is_before(other, name, trial) for trial in having):
            continue
        inside = {trial.params[other] for trial in having}
        outside = {trial.params[other] for trial in trials if other in trial.params and name not in trial.params}
        if not outside or inside & outside:
            continue
        values = sorted((axis.encode(value, other) for value in inside), key=repr)
        size = len(inside) + len(outside)
        if best is None or size > best[0]:
            best = size, When({other: values})
    return None if best is None else best[1]


def _is_before(other: str, name: str, trial: FrozenTrial) -> bool:
    """Whether a trial has both parameters, and was asked for the other one first."""
    names = list(trial.params)
    return other in trial.params and names.index(other) < names.index(name)
