"""Trainings as curves: which trial continues which, and which of their reports the model sees.

A curve is a chain of trials, each of which continues the one before.  Its number is that of its first trial.

    symbol   meaning
    s, s*    a step, and the step of the target
    rung     how often s was halved from the target: 0 in (s*/2, s*], 1 in (s*/4, s*/2], ...; -1 above the target
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from boca.domain.observation import OBJECTIVE, Observation
from boca.domain.problem import Problem
from boca.domain.space import FloatArray, Point
from boca.domain.trial import History, Trial

MOST_RUNGS = 8
"""Reports of a curve that the model sees at most: the last one of each rung."""
MOST_ROWS = 1000
"""Reports of all curves that the model sees: with more, rungs are merged, so that the cost stays bounded."""
_ROUNDING = 1e-9  # of a rung


class Row(NamedTuple):
    """One number that the model sees."""

    trial: Trial
    z: Point
    value: float | None
    """None for a failure."""
    noise: float | None
    curve: int | None
    """The number of its curve; None for a failure, which has no value of its own."""


@dataclass(frozen=True)
class Curve:
    """The trials of one training, the first one first."""

    trials: tuple[Trial, ...]

    @property
    def number(self) -> int:
        return self.trials[0].number

    @property
    def last(self) -> Trial:
        return self.trials[-1]

    @property
    def x(self) -> Point:
        return self.last.x

    def reports(self) -> list[Observation]:
        """Return the observations of the objective, in the order of the trials."""
        return [o for trial in self.trials for o in trial.observations if o.outcome == OBJECTIVE]


def curves(history: History) -> list[Curve]:
    """Return all curves, in the order of their first trials."""
    chains: dict[int, list[Trial]] = {}
    root: dict[int, int] = {}
    for trial in history:
        before = trial.continues
        root[trial.number] = trial.number if before is None else root.get(before, before)
        chains.setdefault(root[trial.number], []).append(trial)
    return [Curve(tuple(trials)) for trials in chains.values()]


def rung(step: float, target: float) -> int:
    """Return how often a step was halved from the target."""
    return math.floor(math.log2(target / step) + _ROUNDING)


def thinned(problem: Problem, curve: Curve, merged: int = 1) -> list[Observation]:
    """Return the last report of each rung, and so the last of all; `merged` rungs count as one."""
    star = problem.step(problem.target)
    last: dict[int, Observation] = {}
    for report in curve.reports():
        if problem.is_modelled(report.z):
            last[max(-1, min(rung(problem.step(report.z), star), MOST_RUNGS - 1)) // merged] = report
    return list(last.values())


def merged_rungs(count: int) -> int:
    """Return how many rungs count as one for this many curves."""
    return math.ceil(MOST_RUNGS / max(1, min(MOST_RUNGS, MOST_ROWS // max(count, 1))))


def rows(problem: Problem, history: History, *, with_failures: bool) -> list[Row]:
    """Return what the model sees, in the order in which it was told: reports of running trials too."""
    every = curves(history)
    merged = merged_rungs(len(every))
    found: list[tuple[tuple[float, float], Row]] = []
    for curve in every:
        owner = {id(o): trial for trial in curve.trials for o in trial.observations}
        for o in thinned(problem, curve, merged):
            trial = owner[id(o)]
            when = trial.number if o.told is None else o.told
            found.append(((when, problem.step(o.z)), Row(trial, o.z, o.value, o.noise, curve.number)))
        for trial in curve.trials if with_failures else ():
            if trial.state == "failed":
                when = trial.number if trial.told is None else trial.told
                found.append(((when, math.inf), Row(trial, trial.planned, None, None, None)))
    return [row for _, row in sorted(found, key=lambda pair: pair[0])]


def numbers(history: History) -> Mapping[int, int]:
    """Return the number of the curve of every trial, by its number."""
    return {trial.number: curve.number for curve in curves(history) for trial in curve.trials}


def of_trials(history: History, trials: Sequence[Trial]) -> FloatArray:  # (n,)
    """Return the number of the curve of each of these trials."""
    known = numbers(history)
    return np.array([float(known[trial.number]) for trial in trials])
