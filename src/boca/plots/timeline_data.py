"""When every trial ran, and on which worker: bars in lanes.

A lane is a worker; where workers are not known, the process that had the trial.  A process that has more than one trial
at a time has as many lanes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from boca.domain.problem import Problem
from boca.domain.space import FloatArray
from boca.domain.trial import Trial
from boca.plots.axis import Mask, Note
from boca.plots.study import StudyView

_UNKNOWN = "unknown"


@dataclass(frozen=True)
class Timeline:
    """Bars in the order in which their trials began."""

    trials: tuple[Trial, ...]
    began: FloatArray
    """In seconds since 1970."""
    ended: FloatArray
    """That of a trial that is running is the last moment of the study that is known."""
    lane: tuple[int, ...]
    lanes: tuple[str, ...]
    at_target: Mask

    @property
    def span(self) -> float:
        """Seconds between the first beginning and the last end."""
        return float(self.ended.max() - self.began.min())

    @property
    def utilization(self) -> float:
        """The share of this time in which the lanes had a trial."""
        busy = float(np.sum(self.ended - self.began))
        return busy / (len(self.lanes) * self.span) if self.span > 0 else 1.0


def timeline(study: StudyView) -> Timeline | Note:
    return of_trials(study.problem, list(study.history))


def of_trials(
    problem: Problem, trials: Sequence[Trial], *, last: int | None = None, now: float | None = None
) -> Timeline | Note:
    """Return the bars of trials, or of the last ones.

    Args:
        problem: says which are at the target.
        trials: in any order; those that were imported, or never began, have no bar.
        last: how many to show at most.
        now: when running trials end on the picture; None for the last moment that a trial tells.
    """
    known = sorted((t for t in trials if _is_time(t.began)), key=lambda t: (t.began, t.number))
    known = known if last is None else known[-last:]
    if not known:
        return Note("No trial here says when it ran.")
    began = np.array([t.began for t in known], dtype=float)
    told = [t.ended for t in known if t.ended is not None and _is_time(t.ended)]
    end = max([*began.tolist(), *told]) if now is None else now
    ended = np.array([t.ended if _is_time(t.ended) else end for t in known], dtype=float)
    ended = np.maximum(ended, began)  # the clocks of two machines differ
    lane, lanes = _lanes([_place(t) for t in known], began, ended)
    at_target = np.array([problem.is_target(t.z) for t in known], dtype=bool)
    return Timeline(tuple(known), began, ended, lane, lanes, at_target)


def _is_time(moment: float | None) -> bool:
    return moment is not None and math.isfinite(moment)  # a damaged database may hold anything


def _place(trial: Trial) -> str:
    if trial.worker is not None:
        return trial.worker
    return _UNKNOWN if trial.host is None else f"{trial.host}:{trial.process}"


def _lanes(places: Sequence[str], began: FloatArray, ended: FloatArray) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """Return the lane of every bar, and the names of lanes, those of one place beside each other."""
    free: dict[str, list[float]] = {}  # place -> when each of its lanes is free again
    found: list[tuple[str, int]] = []
    for place, start, end in zip(places, began.tolist(), ended.tolist(), strict=True):
        lanes = free.setdefault(place, [])
        index = next((i for i, until in enumerate(lanes) if until <= start), len(lanes))
        if index == len(lanes):
            lanes.append(end)
        lanes[index] = end
        found.append((place, index))
    order = [(place, i) for place in sorted(free) for i in range(len(free[place]))]
    names = tuple(place if len(free[place]) == 1 else f"{place} #{i + 1}" for place, i in order)
    places_of = {key: i for i, key in enumerate(order)}
    return tuple(places_of[key] for key in found), names
