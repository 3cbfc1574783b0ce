"""What the plots of several objectives show, as numbers: the front, and its hypervolume against the budget spent."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np

from boca.domain.hypervolume import growth
from boca.domain.objectives import reference_point, scores, turns_of
from boca.domain.space import FloatArray
from boca.domain.trial import Trial
from boca.plots.axis import Mask, Note
from boca.plots.study import StudyView
from boca.plots.trial_data import BestSoFar, counted

_ONE = "There is one objective: a front needs two."
_NOTHING = "No trial is complete at the target yet."


@dataclass(frozen=True)
class Plane:
    """Two of the objectives, of all trials that have them."""

    names: tuple[str, str]
    labels: tuple[str, str]
    x: FloatArray  # (n,)
    y: FloatArray  # (n,)


@dataclass(frozen=True)
class Front:
    """The trials of several objectives in the planes of all pairs of objectives."""

    planes: tuple[Plane, ...]
    trials: tuple[Trial, ...]
    at_target: Mask  # (n,)
    on_front: Mask  # (n,)
    feasible: Mask  # (n,)


def front(study: StudyView) -> Front | Note:
    """Return the trials with all objectives; with three or four, there is a plane for each pair."""
    problem = study.problem
    if not problem.objectives:
        return Note(_ONE)
    trials = study.history.told(problem)
    if not trials:
        return Note("No trial has told all objectives yet.")
    members = {t.number for t in study.front}
    kept = {t.number for t in study.history.feasible(problem)}
    words = {name: f"{name} ({'higher' if d == 'maximize' else 'lower'} is better)" for name, d in _directions(study)}
    told = {name: np.array([t.outcomes[name] for t in trials]) for name in problem.objectives}
    planes = [Plane((a, b), (words[a], words[b]), told[a], told[b]) for a, b in combinations(problem.objectives, 2)]
    return Front(
        tuple(planes),
        trials,
        np.array([problem.is_target(t.z) for t in trials], dtype=bool),
        np.array([t.number in members for t in trials], dtype=bool),
        np.array([t.number in kept or not problem.exceeded(t.outcomes) for t in trials], dtype=bool),
    )


def _directions(study: StudyView) -> list[tuple[str, str]]:
    return list(study.problem.objectives.items())


def staircase(found: Front, plane: Plane, study: StudyView) -> tuple[FloatArray, FloatArray]:
    """Return the border of what the front dominates in a plane of two objectives, which have no third."""
    turns = turns_of(study.problem)
    a, b = (turns[name] for name in plane.names)
    points = sorted({(a * x, b * y) for x, y in zip(plane.x[found.on_front], plane.y[found.on_front], strict=True)})
    corners: list[tuple[float, float]] = []
    for point, after in zip(points, [*points[1:], None], strict=True):
        corners.append(point)
        if after is not None:
            corners.append((point[0], after[1]))  # along the first objective, the second falls at once
    border = np.array(corners).reshape(-1, 2)
    return a * border[:, 0], b * border[:, 1]


def hypervolume(study: StudyView) -> BestSoFar | Note:
    """Return the hypervolume of the front against the budget spent, from one reference for all of the study."""
    problem = study.problem
    if not problem.objectives:
        return Note(_ONE)
    unit, one = counted(study)
    charges = np.cumsum([study.ledger.charge(t) for t in study.history.finished]) / one
    kept = {t.number for t in study.history.feasible(problem)}
    told = [(s, t) for s, t in zip(charges, study.history.finished, strict=True) if t.number in kept]
    if not told:
        return Note(_NOTHING)
    at, trials = np.array([float(spent) for spent, _ in told]), tuple(t for _, t in told)
    grown = growth(scores(problem, trials), reference(study))
    return BestSoFar(np.append(at, charges[-1]), np.append(grown, grown[-1]), at, grown, trials, unit)


def reference(study: StudyView) -> FloatArray:  # (m,), turned
    """Return the point from which the hypervolume of this study is measured: by all of its results."""
    problem = study.problem
    told = [t for t in study.history.told(problem) if problem.space.violated(t.x) is None]
    feasible = scores(problem, study.history.feasible(problem))
    everything = scores(problem, told)
    return reference_point(problem, feasible if len(feasible) else everything, everything)


def reference_in_words(study: StudyView) -> str:
    """Return the reference as the user tells values."""
    turned = zip(turns_of(study.problem).items(), reference(study), strict=True)
    return ", ".join(f"{name} {turn * float(value):.4g}" for (name, turn), value in turned)
