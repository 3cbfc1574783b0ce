"""What a plot of runs shows, as numbers: every training as a curve over its steps, stopped ones apart."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from boca.domain.space import FloatArray
from boca.domain.trial import Trial
from boca.plots.axis import Axis, Note
from boca.plots.study import StudyView

Fate: TypeAlias = Literal["stopped", "running", "ended"]

_MOST_CURVES = 400  # beyond, a page would be of megabytes; the last ones are shown


@dataclass(frozen=True)
class Curve:
    """One training: the chain of trials that continue each other."""

    trial: Trial
    """The last of the chain."""
    steps: FloatArray  # (m,)
    values: FloatArray  # (m,)
    fate: Fate


@dataclass(frozen=True)
class Curves:
    axis: Axis
    curves: tuple[Curve, ...]
    left_out: int


def curves(study: StudyView) -> Curves | Note:
    """Return the trainings of a study in the order of their first trials."""
    problem, history = study.problem, study.history
    if problem.steps is None:
        return Note("No fidelity of this problem is Steps: evaluations have no curves.")
    continued = {trial.continues for trial in history}
    found = []
    for trial in history:
        curve = history.curve(problem, trial) if trial.number not in continued else []
        if curve:
            steps, values = (np.array(part, dtype=float) for part in zip(*curve, strict=True))
            found.append(Curve(trial, steps, values, _fate(trial)))
    if not found:
        return Note("No run has reported a step yet.")
    axis = Axis(problem.steps, problem.fidelity[problem.steps])
    return Curves(axis, tuple(found[-_MOST_CURVES:]), max(len(found) - _MOST_CURVES, 0))


def _fate(trial: Trial) -> Fate:
    if trial.state == "running":
        return "running"
    return "stopped" if trial.stop is not None or trial.state == "failed" else "ended"
