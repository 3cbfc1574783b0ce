"""What the map of feasibility shows, as numbers: where trials are likely to complete within every limit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from boca.domain.errors import BocaError
from boca.domain.space import FloatArray, Point
from boca.model.feasibility import Feasibility
from boca.model.surrogate import Surrogate
from boca.plots.axis import Axis, Marks, Mask, Note, axis_of, marks
from boca.plots.model_data import MAP_POINTS, center
from boca.plots.study import StudyView

_SEED = 0  # of the fit behind a picture: the same study, the same picture


@dataclass(frozen=True)
class FeasibleMap:
    """The probability to complete within every limit at the target over two parameters, the others as at the center."""

    x: Axis
    y: Axis
    center: Point
    x_position: FloatArray  # (m,)
    y_position: FloatArray  # (k,)
    probability: FloatArray  # (k, m)
    marks: Marks
    infeasible: Mask  # (n,)
    """The complete trials beyond a limit."""


def feasible_map(
    study: StudyView, x: str | None = None, y: str | None = None, *, at: Mapping[str, Any] | None = None
) -> FeasibleMap | Note:
    """Return the map of two parameters; by default of those along which the probability changes most."""
    space = study.problem.space
    for name, what in ((x, "x"), (y, "y")):
        if name is not None:
            axis_of(space, name, what)
    if not study.problem.subject_to and not any(t.state == "failed" for t in study.history):
        return Note("No trial failed and no outcome has a limit: every point is feasible as far as is known.")
    if study.problem.objectives:
        return Note("The map of feasibility is for studies with one objective.")
    if len(space) < 2:
        return Note("There is only one parameter, and a map needs two.")
    if study.lacks is not None or not study.history.complete:
        return Note(study.lacks or "No trial is complete yet: there is no model.")
    feasibility = _feasibility(study)
    if isinstance(feasibility, Note):
        return feasibility
    free = [name for name in _by_influence(feasibility, list(space)) if name not in (x, y)]
    first = free.pop(0) if x is None else x
    across, along = axis_of(space, first, "x"), axis_of(space, free[0] if y is None else y, "y")
    through = center(study, at)
    if across.name not in through or along.name not in through:
        return Note(f"{across.name} or {along.name} is inactive at {through}. Pass at={{...}} where both are active.")
    u, v = across.parameter.axis(MAP_POINTS), along.parameter.axis(MAP_POINTS)
    U = np.repeat(space.to_unit([through]), len(u) * len(v), axis=0)
    names = list(space)
    U[:, names.index(across.name)] = np.tile(u, len(v))
    U[:, names.index(along.name)] = np.repeat(v, len(u))
    U = space.snap(U) if space.switches.any() else U
    probability = feasibility.probability(U).reshape(len(v), len(u))
    shown = marks(study)
    infeasible = np.array([bool(study.problem.exceeded(t.outcomes)) for t in shown.trials], dtype=bool)
    return FeasibleMap(across, along, through, across.at(u), along.at(v), probability, shown, infeasible)


def _feasibility(study: StudyView) -> Feasibility | Note:
    """Return what the history says, by the models of the strategy; a model of failures is made in any case."""
    surrogate = getattr(study.strategy, "surrogate", None)
    try:
        found = Feasibility.after(
            study.problem,
            study.history,
            surrogate if isinstance(surrogate, Surrogate) else Surrogate(),
            np.random.default_rng(_SEED),
            success=True,
        )
    except BocaError as error:
        return Note(f"There is no model: {error}")
    return found if found else Note("Too few results: an outcome has a model from its second result on.")


def _by_influence(feasibility: Feasibility, names: list[str]) -> list[str]:
    """Return the parameters, those with the shortest length scale in any model of an outcome first."""
    scales = [outcome.model.hyperparameters()["h_x"] for outcome in feasibility.outcomes]
    return [names[j] for j in np.argsort(np.min(scales, axis=0), kind="stable")]
