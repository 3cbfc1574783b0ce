"""What the plots of the model show, as numbers: slices, maps, the information gap, the hyperparameters.

Each function returns its numbers, or a `Note` if there is nothing to draw.  Matplotlib draws them in `draw_model`, and
Plotly in the report.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boca.domain.errors import InvalidInput
from boca.domain.space import FloatArray, Point, Space
from boca.domain.trial import Trial, sign
from boca.domain.words import point
from boca.model.encoding import Encoding, FidelityAxis
from boca.model.posterior import Model, Posterior
from boca.plots.axis import Axis, Marks, Mask, Note, axis_of, marks
from boca.plots.study import StudyView
from boca.plots.window import Window, window
from boca.strategies.base import knows_gp
from boca.strategies.boca_information import information_gap as gap_of

CURVE_POINTS = 101  # a step of a hundredth of the range, finer than a line is wide
MAP_POINTS = 41  # along either axis: 1,681 predictions, a fraction of a second
BAND = 2.0  # standard deviations, about 95 %


# Along parameters -------------------------------------------------------------------------------------------------


def center(study: StudyView, at: Mapping[str, Any] | None) -> Point:
    """Return the point through which slices go: the recommended one, changed as `at` says."""
    if at is not None and not isinstance(at, Mapping):
        raise InvalidInput(f"at must map names of parameters to values; got {at!r}.")
    base = study.recommendation.x if study.recommendation is not None else study.history.complete[0].x
    space = study.problem.space
    if not space.is_list and len(space.names) == len(space):
        return space.validate({**base, **(at or {})}, "at")
    for name in at or {}:  # of a list: a slice goes through a row, and between the rows
        axis_of(space, name, "at")
    point = {name: value for name, value in {**base, **(at or {})}.items() if name in space}
    return {name: space[name].validate(value, f"at[{name!r}]") for name, value in point.items()}


def by_influence(study: StudyView) -> list[str]:
    """Return the parameters, those with the shortest length scales first: along them f changes most.

    Those that are inactive at the recommended point come last.
    """
    names = list(study.problem.space)
    if study.model is None:
        return names
    first = [names[j] for j in np.argsort(study.model.hyperparameters()["h_x"], kind="stable")]
    advised = study.recommendation
    return first if advised is None else sorted(first, key=lambda name: name not in advised.x)


def _inactive(axis: Axis, through: Point) -> str:
    return f"{axis.name} is inactive at {point(through)}. Pass at={{...}} with a point at which it is active."


def _existing(space: Space, U: FloatArray) -> FloatArray:  # (m, d) -> (m, d)
    """Return points with the right parameters active; one that becomes active is in the middle of its range."""
    return space.snap(U) if space.switches.any() else U


def posterior(model: Posterior, U: FloatArray) -> tuple[FloatArray, FloatArray]:  # (m, d) -> mean (m,), std (m,)
    """Return mean and deviation of f at the target in the user's units."""
    mu, sigma = model.moments(U)
    mean = np.array([model.value_as_told(float(each)) for each in mu])
    return mean, np.array([model.interval_as_told(float(m), float(s)) for m, s in zip(mu, sigma, strict=True)])


@dataclass(frozen=True)
class Slice:
    """The posterior at the target along one parameter, the others as at the center."""

    axis: Axis
    center: Point
    position: FloatArray  # (m,)
    mean: FloatArray  # (m,)
    std: FloatArray  # (m,)
    options: Point
    """The options of the other parameters that the center has."""
    marks: Marks
    """The trials with these options: those with others are results of another curve."""
    useful: Window | None
    """The part of the axis of values that an outlier does not flatten; None for all of it."""


def slices(study: StudyView, name: str | None = None, *, at: Mapping[str, Any] | None = None) -> Slice | Note:
    axis = axis_of(study.problem.space, by_influence(study)[0] if name is None else name, "name")
    if study.model is None:
        return Note(study.why_no_model)
    through = center(study, at)
    if axis.name not in through:
        return Note(_inactive(axis, through))
    u = axis.parameter.axis(CURVE_POINTS)
    U = np.repeat(study.problem.space.to_unit([through]), len(u), axis=0)
    U[:, list(study.problem.space).index(axis.name)] = u
    U = _existing(study.problem.space, U)
    mean, std = posterior(study.model, U)
    others = {key: q for key, q in study.problem.space.items() if key != axis.name and not q.is_ordered}
    options = {key: through[key] for key in others if key in through}
    shown = marks(study, options=options)
    return Slice(axis, through, axis.at(u), mean, std, options, shown, _useful(study))


def _useful(study: StudyView) -> Window | None:
    told = np.array([trial.value for trial in study.history.complete], dtype=float)
    turn = sign(study.problem.direction)
    return window(turn * np.max(turn * told, keepdims=True), told, study.problem.direction) if len(told) else None


@dataclass(frozen=True)
class Map:
    """The posterior at the target over two parameters, the others as at the center."""

    x: Axis
    y: Axis
    center: Point
    x_position: FloatArray  # (m,)
    y_position: FloatArray  # (k,)
    mean: FloatArray  # (k, m)
    std: FloatArray  # (k, m)
    marks: Marks
    useful: Window | None
    """The part of the values that an outlier does not flatten; None for all of it."""


def map2d(
    study: StudyView, x: str | None = None, y: str | None = None, *, at: Mapping[str, Any] | None = None
) -> Map | Note:
    space = study.problem.space
    for name, what in ((x, "x"), (y, "y")):
        if name is not None:
            axis_of(space, name, what)
    if x is not None and x == y:
        raise InvalidInput(f"x and y must be two different parameters; got {x!r} twice.")
    if len(space) < 2:
        return Note("There is only one parameter: its slice shows everything.")
    if study.model is None:
        return Note(study.why_no_model)
    free = [name for name in by_influence(study) if name not in (x, y)]
    first = free.pop(0) if x is None else x
    across, along = axis_of(space, first, "x"), axis_of(space, free[0] if y is None else y, "y")
    through = center(study, at)
    for axis in (across, along):
        if axis.name not in through:
            return Note(_inactive(axis, through))
    u, v = across.parameter.axis(MAP_POINTS), along.parameter.axis(MAP_POINTS)
    U = np.repeat(space.to_unit([through]), len(u) * len(v), axis=0)
    names = list(space)
    U[:, names.index(across.name)] = np.tile(u, len(v))
    U[:, names.index(along.name)] = np.repeat(v, len(u))
    U = _existing(space, U)
    mean, std = (moment.reshape(len(v), len(u)) for moment in posterior(study.model, U))
    shown = marks(study)
    return Map(across, along, through, across.at(u), along.at(v), mean, std, shown, _useful(study))


# Along fidelities -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Gap:
    """The information gap along one fidelity, with the others at the target, and at every trial."""

    axis: Axis
    position: FloatArray  # (m,)
    xi: FloatArray  # (m,)
    marks: Marks
    queried: FloatArray  # (n,), xi of every trial
    decision: int | None
    """The trial whose decision had these hyperparameters; None for the model after all results."""

    @property
    def sentence(self) -> str:
        """Say what the gap means, with that of the median trial below the target if there is one."""
        below = self.queried[~self.marks.at_target]
        meaning = "0: a query tells all about f at its x; 1: nothing"
        if not len(below):
            return f"{meaning}."
        gap = float(np.median(below))
        return f"{meaning}. The median trial below the target leaves {gap:.0%} of the standard deviation of f."


def information_gap(study: StudyView, name: str | None = None, *, number: int | None = None) -> Gap | Note:
    """Return xi(z) as the last decision by a model saw it, or as that of trial `number` did."""
    fidelity = study.problem.fidelity
    if name is not None:
        axis_of(fidelity, name, "name")
    if not fidelity:
        return Note("This problem has no fidelities, so there is no information gap.")
    chosen = [t for t in study.history.chosen if "h_z" in t.why.get("hyperparameters", {})]
    if number is not None:
        chosen = [t for t in chosen if t.number == number]
        if not chosen:
            raise InvalidInput(f"number must be a trial that was chosen by a model across fidelities; got {number!r}.")
    gap = _gap_of(study, chosen[-1] if chosen else None)
    if gap is None:
        return Note(study.why_no_model)
    axis = axis_of(fidelity, next(iter(fidelity)) if name is None else name, "name")
    target = fidelity.to_unit([study.problem.target])
    u = np.unique(np.append(axis.parameter.axis(CURVE_POINTS), target[0, list(fidelity).index(axis.name)]))
    Z = np.repeat(target, len(u), axis=0)
    Z[:, list(fidelity).index(axis.name)] = u
    shown = marks(study)
    queried = gap(fidelity.to_unit([t.z for t in shown.trials])) if shown.trials else np.empty(0)
    return Gap(axis, axis.at(u), gap(Z), shown, queried, chosen[-1].number if chosen else None)


def _gap_of(study: StudyView, decision: Trial | None) -> Callable[[FloatArray], FloatArray] | None:
    """Return xi as a function of unit coordinates: by the numbers of a decision, or by the model."""
    if decision is not None:
        encoding, h = _as_decided(study, decision.why["hyperparameters"])
    elif isinstance(study.model, Model):
        encoding, h = study.model.encoding, study.model.h
    else:
        return None
    return lambda Z: gap_of(*encoding.fidelity_covariance(h, Z))


def _as_decided(study: StudyView, numbers: Mapping[str, Any]) -> tuple[Encoding, FloatArray]:
    """Return the encoding behind the numbers of a decision, and its h without a trend, of which xi knows nothing."""
    axis: FidelityAxis = "fading" if "fade" in numbers else "learned" if "axis" in numbers else "as_declared"
    profile = study.model.encoding.fidelity_profile if isinstance(study.model, Model) else "se"
    encoding = Encoding(study.problem, "se", is_extended=True, axis=axis, fidelity_profile=profile)
    of_axis = [*np.log(numbers.get("axis", [])), *numbers.get("fade", []), *np.log(numbers.get("fade_length", []))]
    return encoding, np.array([*numbers["h_x"], *numbers["h_z"], *of_axis, numbers.get("jump", 0.0), 0.0])


# Over the trials --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Hyperparameters:
    """The numbers of the models behind the decisions, in the order of the trials."""

    numbers: NDArray[np.int_]  # (n,)
    length_scales: dict[str, FloatArray]  # name -> (n,), in units of the unit cube, not shrunk
    fidelities: frozenset[str]
    signal: FloatArray  # (n,), the deviation of f in the user's units
    noise: FloatArray  # (n,), that of the noise
    refit: Mask  # (n,)
    bounds: tuple[float, float] | None
    """Between which length scales are learned; None if they are given."""


def hyperparameters(study: StudyView) -> Hyperparameters | Note:
    decisions = [t for t in study.history.chosen if "hyperparameters" in t.why]
    if study.problem.objectives:
        return Note(study.why_no_model)
    if not decisions:
        return Note("No trial has been chosen by a model yet.")
    used = [t.why["hyperparameters"] for t in decisions]
    are_given = knows_gp(study.strategy)
    return Hyperparameters(
        np.array([t.number for t in decisions]),
        _length_scales(study, decisions),
        frozenset(study.problem.fidelity),
        np.sqrt([numbers["kappa0"] for numbers in used]),
        np.sqrt([numbers["eta2"] for numbers in used]),
        np.array([bool(t.why.get("refit")) for t in decisions]),
        None if are_given else length_scale_bounds(study),
    )


def _length_scales(study: StudyView, decisions: Sequence[Trial]) -> dict[str, FloatArray]:  # name -> (n,)
    """Return the length scales of every decision, before shrinking; NaN for fidelities that are switched off."""
    columns: dict[str, FloatArray] = {}
    for key, space in (("h_x", study.problem.space), ("h_z", study.problem.fidelity)):
        for j, name in enumerate(space):
            values = [_length_scale(t.why, key, j) for t in decisions]
            if not np.all(np.isnan(values)):
                columns[name] = np.array(values)
    shrink = np.array([t.why.get("shrink", 1.0) for t in decisions])
    for name in study.problem.space:
        columns[name] = columns[name] * shrink
    return columns


def _length_scale(why: Mapping[str, Any], key: str, j: int) -> float:
    is_off = key == "h_z" and "guard" in why
    numbers = why["hyperparameters"]
    return math.nan if is_off or key not in numbers else float(numbers[key][j])


def length_scale_bounds(study: StudyView) -> tuple[float, float]:
    prior = Encoding(study.problem, "se").prior(informative=False)
    return math.exp(prior.low[1]), math.exp(prior.high[1])
