"""What the pictures show, as numbers in the user's units: drawn by Matplotlib here and by Plotly in the report.

Each function returns its numbers, or a `Note`, a sentence, where there is nothing to draw.  Positions on an axis are
the user's values; options of a `Choice` stand at 0, 1, 2 and so on.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from boca.domain.errors import InvalidInput
from boca.domain.space import Choice, FloatArray, Int, Parameter, Point, Space
from boca.domain.trial import Trial, sign
from boca.model.encoding import Encoding
from boca.model.posterior import Model, Posterior
from boca.plots.study import StudyView
from boca.render import option
from boca.strategies.boca import information_gap as gap_of

Mask: TypeAlias = NDArray[np.bool_]

LINE = 101  # points of a curve
GRID = 41  # points of a map along either axis
BAND = 2.0  # deviations


class Note(NamedTuple):
    """Why there is nothing to draw."""

    words: str


@dataclass(frozen=True)
class Axis:
    """One parameter as an axis."""

    name: str
    parameter: Parameter

    @property
    def kind(self) -> Literal["linear", "log", "choice"]:
        if isinstance(self.parameter, Choice):
            return "choice"
        return "log" if self.parameter.log else "linear"

    @property
    def is_whole(self) -> bool:
        return isinstance(self.parameter, Int)

    @property
    def options(self) -> list[str]:
        return [option(value) for value in self.parameter.choices] if isinstance(self.parameter, Choice) else []

    def positions(self, values: Sequence[Any]) -> FloatArray:  # (n,)
        if isinstance(self.parameter, Choice):
            return np.round(self.parameter.to_unit(values) * (self.parameter.levels - 1))
        return np.asarray(values, dtype=float)

    def grid(self, points: int) -> FloatArray:  # (m,) in unit coordinates
        """Return coordinates along the whole axis: of whole numbers and options, only those that exist."""
        if isinstance(self.parameter, Choice):
            return self.parameter.to_unit(self.parameter.choices)
        if isinstance(self.parameter, Int) and self.parameter.levels <= points:
            return self.parameter.to_unit(range(self.parameter.low, self.parameter.high + 1))
        return np.unique(self.parameter.snap(np.linspace(0.0, 1.0, points)))

    def at(self, u: FloatArray) -> FloatArray:  # (m,) -> (m,)
        """Return the positions of unit coordinates."""
        return self.positions([self.parameter.from_unit(float(each)) for each in u])

    @cached_property
    def ends(self) -> tuple[float, float]:
        if isinstance(self.parameter, Choice):
            return 0.0, self.parameter.levels - 1.0
        return float(self.parameter.low), float(self.parameter.high)


@dataclass(frozen=True)
class Marks:
    """Trials as marks: what they are, in the order of their numbers."""

    trials: tuple[Trial, ...]
    at_target: Mask
    failed: Mask
    value: FloatArray  # nan where it failed or is out
    cost: FloatArray

    def along(self, axis: Axis) -> FloatArray:  # (n,)
        """Return where the trials stand on an axis."""
        return axis.positions([t.x[axis.name] if axis.name in t.x else t.z[axis.name] for t in self.trials])


def marks(study: StudyView, *, complete: bool = False) -> Marks:
    """Return all trials, or the complete ones alone."""
    trials = tuple(t for t in study.history if t.state == "complete" or not complete)
    return Marks(
        trials,
        np.array([study.problem.is_target(t.z) for t in trials], dtype=bool),
        np.array([t.state == "failed" for t in trials], dtype=bool),
        np.array([math.nan if t.value is None else t.value for t in trials]),
        np.array([study.ledger.worth(t) for t in trials]),
    )


def axis_of(space: Space, name: str, what: str) -> Axis:
    if name not in space:
        raise InvalidInput(f"{what} must be one of {list(space)}; got {name!r}.")
    return Axis(name, space[name])


# Money ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class BestSoFar:
    """The best at the target after what was spent: a staircase that ends at all that was spent."""

    spent: FloatArray  # (m,)
    best: FloatArray  # (m,)
    at: FloatArray  # (k,), what was spent when each result at the target came
    value: FloatArray  # (k,), and what it was
    trials: tuple[Trial, ...]
    unit: str


def progress(study: StudyView) -> BestSoFar | Note:
    charges = np.cumsum([study.ledger.charge(t) for t in study.history.finished])
    told = [
        (float(spent), t)
        for spent, t in zip(charges, study.history.finished, strict=True)
        if t.state == "complete" and study.problem.is_target(t.z)
    ]
    if not told:
        return Note("No trial is complete at the target yet.")
    at, trials = np.array([spent for spent, _ in told]), tuple(t for _, t in told)
    value = np.array([t.value for t in trials], dtype=float)
    turn = sign(study.problem.direction)
    best = turn * np.maximum.accumulate(turn * value)
    return BestSoFar(np.append(at, charges[-1]), np.append(best, best[-1]), at, value, trials, study.ledger.unit)


def regret(study: StudyView, optimum: float) -> BestSoFar | Note:
    """Return how far the best falls short of a known optimum, in place of the values."""
    found = progress(study)
    if isinstance(found, Note):
        return found
    turn = sign(study.problem.direction)
    best, value = (turn * (float(optimum) - values) for values in (found.best, found.value))
    return BestSoFar(found.spent, best, found.at, value, found.trials, found.unit)


@dataclass(frozen=True)
class Fidelities:
    """What was bought, trial by trial."""

    axes: tuple[Axis, ...]
    target: Point
    marks: Marks
    unit: str


def fidelities(study: StudyView) -> Fidelities | Note:
    if not study.problem.fidelity:
        return Note("This problem has no fidelities: every query is at the target.")
    if not study.history:
        return Note("There are no trials yet.")
    axes = tuple(Axis(*item) for item in study.problem.fidelity.items())
    learned = "targets" if study.ledger.seconds is None else "seconds"
    unit = "cost" if study.problem.has_declared_cost else learned
    return Fidelities(axes, study.problem.target, marks(study), unit)


# The model --------------------------------------------------------------------------------------------------------


def centre(study: StudyView, at: Mapping[str, Any] | None) -> Point:
    """Return the point through which slices go: the recommended one, unless another is named in part or wholly."""
    if at is not None and not isinstance(at, Mapping):
        raise InvalidInput(f"at must map names of parameters to values; got {at!r}.")
    base = study.recommendation.x if study.recommendation is not None else study.history.complete[0].x
    return study.problem.space.validate({**base, **(at or {})}, "at")


def by_influence(study: StudyView) -> list[str]:
    """Return the parameters, those with the shortest bandwidths first: along them f changes most."""
    names = list(study.problem.space)
    if study.model is None:
        return names
    return [names[j] for j in np.argsort(study.model.hyperparameters()["h_x"], kind="stable")]


def posterior(model: Posterior, U: FloatArray) -> tuple[FloatArray, FloatArray]:  # (m, d) -> mean (m,), std (m,)
    """Return mean and deviation of f at the target in the user's units."""
    mu, sigma = model.moments(U)
    mean = np.array([model.value_as_told(float(each)) for each in mu])
    return mean, np.array([model.deviation_as_told(float(each)) for each in sigma])


@dataclass(frozen=True)
class Slice:
    """The posterior at the target along one parameter, the others as at the centre."""

    axis: Axis
    centre: Point
    position: FloatArray  # (m,)
    mean: FloatArray  # (m,)
    std: FloatArray  # (m,)
    marks: Marks


def slices(study: StudyView, name: str | None = None, *, at: Mapping[str, Any] | None = None) -> Slice | Note:
    axis = axis_of(study.problem.space, by_influence(study)[0] if name is None else name, "name")
    if study.model is None:
        return Note(study.why_no_model)
    through = centre(study, at)
    u = axis.grid(LINE)
    U = np.repeat(study.problem.space.to_unit([through]), len(u), axis=0)
    U[:, list(study.problem.space).index(axis.name)] = u
    mean, std = posterior(study.model, U)
    return Slice(axis, through, axis.at(u), mean, std, marks(study))


@dataclass(frozen=True)
class Map:
    """The posterior at the target over two parameters, the others as at the centre."""

    x: Axis
    y: Axis
    centre: Point
    x_position: FloatArray  # (m,)
    y_position: FloatArray  # (k,)
    mean: FloatArray  # (k, m)
    std: FloatArray  # (k, m)
    marks: Marks


def map2d(
    study: StudyView, x: str | None = None, y: str | None = None, *, at: Mapping[str, Any] | None = None
) -> Map | Note:
    space = study.problem.space
    for name, what in ((x, "x"), (y, "y")):
        if name is not None:
            axis_of(space, name, what)
    if x is not None and x == y:
        raise InvalidInput(f"A map needs two parameters; got {x!r} twice.")
    if len(space) < 2:
        return Note("There is one parameter only: its slice shows everything.")
    if study.model is None:
        return Note(study.why_no_model)
    free = [name for name in by_influence(study) if name not in (x, y)]
    first = free.pop(0) if x is None else x
    across, along = axis_of(space, first, "x"), axis_of(space, free[0] if y is None else y, "y")
    through = centre(study, at)
    u, v = across.grid(GRID), along.grid(GRID)
    U = np.repeat(space.to_unit([through]), len(u) * len(v), axis=0)
    names = list(space)
    U[:, names.index(across.name)] = np.tile(u, len(v))
    U[:, names.index(along.name)] = np.repeat(v, len(u))
    mean, std = (moment.reshape(len(v), len(u)) for moment in posterior(study.model, U))
    return Map(across, along, through, across.at(u), along.at(v), mean, std, marks(study))


@dataclass(frozen=True)
class Gap:
    """The information gap along one fidelity, the others at the target, and at what was bought."""

    axis: Axis
    position: FloatArray  # (m,)
    xi: FloatArray  # (m,)
    marks: Marks
    bought: FloatArray  # (n,), xi of every trial
    decision: int | None
    """The trial whose decision had these hyper-parameters; None for the model after all results."""


def information_gap(study: StudyView, name: str | None = None, *, number: int | None = None) -> Gap | Note:
    """Return xi(z) as the last decision by a model saw it, or as that of trial `number` did."""
    fidelity = study.problem.fidelity
    if name is not None:
        axis_of(fidelity, name, "name")
    if not fidelity:
        return Note("This problem has no fidelities: there is no gap.")
    chosen = [t for t in study.history.chosen if "h_z" in t.why.get("hyperparameters", {})]
    if number is not None:
        chosen = [t for t in chosen if t.number == number]
        if not chosen:
            raise InvalidInput(f"number must be a trial that was chosen by a model across fidelities; got {number!r}.")
    gap = _gap_of(study, chosen[-1] if chosen else None)
    if gap is None:
        return Note(study.why_no_model)
    axis = axis_of(fidelity, next(iter(fidelity)) if name is None else name, "name")
    u = axis.grid(LINE)
    target = fidelity.to_unit([study.problem.target])
    u = np.unique(np.append(u, target[0, list(fidelity).index(axis.name)]))
    Z = np.repeat(target, len(u), axis=0)
    Z[:, list(fidelity).index(axis.name)] = u
    shown = marks(study)
    bought = gap(fidelity.to_unit([t.z for t in shown.trials])) if shown.trials else np.empty(0)
    return Gap(axis, axis.at(u), gap(Z), shown, bought, chosen[-1].number if chosen else None)


def _gap_of(study: StudyView, decision: Trial | None) -> Callable[[FloatArray], FloatArray] | None:
    """Return xi as a function of unit coordinates: by the numbers of a decision, or by the model."""
    if decision is not None:  # bandwidths of fidelities are those of the squared exponential
        encoding = Encoding(study.problem, "se", is_extended=True)
        numbers = decision.why["hyperparameters"]
        h = np.array([*numbers["h_x"], *numbers["h_z"], numbers.get("jump", 0.0), 0.0])  # of the trend xi knows nothing
    elif isinstance(study.model, Model):
        encoding, h = study.model.encoding, study.model.h
    else:
        return None
    return lambda Z: gap_of(*encoding.fidelity_covariance(h, Z))


@dataclass(frozen=True)
class Hyperparameters:
    """The numbers of the models behind the decisions, in the order of the trials."""

    numbers: NDArray[np.int_]  # (n,)
    bandwidths: dict[str, FloatArray]  # name -> (n,), in units of the unit cube, not shrunk
    fidelities: frozenset[str]
    signal: FloatArray  # (n,), the deviation of f in the user's units
    noise: FloatArray  # (n,), that of the noise
    refit: Mask  # (n,)
    bounds: tuple[float, float] | None
    """Between which bandwidths are learned; None where they are given."""


def hyperparameters(study: StudyView) -> Hyperparameters | Note:
    decisions = [t for t in study.history.chosen if "hyperparameters" in t.why]
    if not decisions:
        return Note("No trial was chosen by a model yet.")
    told = [t.why["hyperparameters"] for t in decisions]
    is_off = ["guard" in t.why for t in decisions]  # fidelities that have no say have no bandwidth either
    columns: dict[str, FloatArray] = {}
    for key, space in (("h_x", study.problem.space), ("h_z", study.problem.fidelity)):
        for j, name in enumerate(space):
            values = [
                numbers[key][j] if key in numbers and not (off and key == "h_z") else math.nan
                for numbers, off in zip(told, is_off, strict=True)
            ]
            if not np.all(np.isnan(values)):
                columns[name] = np.array(values)
    shrink = np.array([t.why.get("shrink", 1.0) for t in decisions])
    for name in study.problem.space:
        columns[name] = columns[name] * shrink
    given = getattr(study.strategy, "hyperparameters", None) is not None
    return Hyperparameters(
        np.array([t.number for t in decisions]),
        columns,
        frozenset(study.problem.fidelity),
        np.sqrt([numbers["kappa0"] for numbers in told]),
        np.sqrt([numbers["eta2"] for numbers in told]),
        np.array([bool(t.why.get("refit")) for t in decisions]),
        None if given else bandwidth_bounds(study),
    )


def bandwidth_bounds(study: StudyView) -> tuple[float, float]:
    prior = Encoding(study.problem, "se").prior(informative=False)
    return math.exp(prior.low[1]), math.exp(prior.high[1])


# All at once ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Column:
    """One upright axis of parallel coordinates: where its marks stand, from 0 to 1, and what they say."""

    name: str
    position: FloatArray  # (n,)
    ticks: list[tuple[float, str]]


@dataclass(frozen=True)
class Parallel:
    columns: tuple[Column, ...]
    marks: Marks
    """The complete trials alone."""


def parallel_coordinates(study: StudyView) -> Parallel | Note:
    shown = marks(study, complete=True)
    if not shown.trials:
        return Note("No trial is complete yet.")
    columns = [
        Column(name, parameter.to_unit([(t.x if name in t.x else t.z)[name] for t in shown.trials]), _ticks(parameter))
        for name, parameter in (*study.problem.space.items(), *study.problem.fidelity.items())
    ]
    low, high = float(shown.value.min()), float(shown.value.max())
    spread = (
        (0.5 * shown.value - 0.5 * low) / (0.5 * high - 0.5 * low) if high > low else np.full(len(shown.trials), 0.5)
    )
    ticks = [(0.0, option(low, 12)), (1.0, option(high, 12))] if high > low else [(0.5, option(low, 12))]
    return Parallel((*columns, Column("value", spread, ticks)), shown)


def _ticks(parameter: Parameter) -> list[tuple[float, str]]:
    if isinstance(parameter, Choice):
        return [(float(parameter.to_unit([value])[0]), option(value, 16)) for value in parameter.choices]
    values = sorted({parameter.from_unit(u) for u in (0.0, 0.5, 1.0)})
    return [(float(u), option(value, 12)) for u, value in zip(parameter.to_unit(values), values, strict=True)]
