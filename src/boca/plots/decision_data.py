"""One decision step by step, as numbers: the bound behind x, and the deviations and the threshold behind z.

The model is the one that decided: its hyperparameters are stored with the trial, and its results are those that the
choice had read.

    tau(z, x)    posterior deviation of g at (z, x)
    c gamma(z)   threshold: only a fidelity where tau is above it is worth a query
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from boca.accounting.cost import costs
from boca.domain.errors import InvalidInput
from boca.domain.space import FloatArray, Point
from boca.domain.trial import History, Trial, sign
from boca.model.dataset import Dataset
from boca.model.fit_record import last_fit
from boca.model.posterior import Model
from boca.plots.axis import Axis, Mask, Note, axis_of
from boca.plots.model_data import CURVE_POINTS
from boca.plots.study import StudyView
from boca.strategies import Boca
from boca.strategies.boca_information import (
    candidate_fidelities,
    fidelity_threshold,
    information_gain,
    information_gap,
    relative_deviation,
)


@dataclass(frozen=True)
class ChoiceOfX:
    """What the model believed along one parameter, the others as in the trial."""

    axis: Axis
    position: FloatArray  # (m,)
    mean: FloatArray  # (m,)
    bound: FloatArray  # (m,), the optimistic one: mean and sqrt(beta) deviations
    chosen: float
    """Where the trial stands on the axis."""
    at_chosen: tuple[float, float]
    """Mean and bound there."""
    read: FloatArray  # (n,), where the results stand that the choice had read
    value: FloatArray  # (n,)
    at_target: Mask


@dataclass(frozen=True)
class ChoiceOfZ:
    """What a query at the trial's x would have told, along one fidelity, the others as in the trial."""

    axis: Axis
    position: FloatArray  # (m,)
    tau: FloatArray  # (m,), in the units of the value
    threshold: FloatArray  # (m,), c gamma
    cost: FloatArray  # (m,), as a share of the target's
    is_candidate: Mask
    chosen: float
    target: float
    at_chosen: tuple[float, float]
    """tau and cost share of the trial."""


@dataclass(frozen=True)
class Decision:
    """One decision; `z` is a note if the trial was not chosen among fidelities."""

    trial: Trial
    x: ChoiceOfX
    z: ChoiceOfZ | Note

    @property
    def reason(self) -> str:
        return str(self.trial.why.get("reason", ""))


def decision(
    study: StudyView, number: int | None = None, *, name: str | None = None, fidelity: str | None = None
) -> Decision | Note:
    """Return how trial `number` was chosen, or the last that a model chose.

    Args:
        study: what to look at.
        number: the trial; None for the last one chosen by a model.
        name: the parameter along which the bound is shown; None for the one with the shortest length scale.
        fidelity: the fidelity along which the deviation is shown; None for the first.
    """
    problem = study.problem
    if name is not None:
        axis_of(problem.space, name, "name")
    if fidelity is not None:
        axis_of(problem.fidelity, fidelity, "fidelity")
    chosen = [t for t in study.history.chosen if "hyperparameters" in t.why]
    if number is not None:
        chosen = [t for t in chosen if t.number == number]
        if not chosen:
            raise InvalidInput(
                f"number must be a trial that was chosen by a model; got {number!r}. Leave it out for the last one."
            )
    if not chosen:
        return Note("No trial has been chosen by a model yet.")
    trial, strategy = chosen[-1], study.strategy
    if not isinstance(strategy, Boca):
        return Note("Only the decisions of Boca() can be shown step by step.")
    past = study.history.read_by(trial)
    model = _as_decided(study, strategy, past, trial)
    if model is None:
        return Note(f"What decided trial {trial.number} is not stored: another version made it.")
    x = _choice_of_x(study, model, past, trial, name)
    return Decision(trial, x, _choice_of_z(study, model, past, trial, fidelity))


def _as_decided(study: StudyView, strategy: Boca, past: History, trial: Trial) -> Model | None:
    """Return the model behind a decision, with the length scales as they were shrunk for it."""
    failures = None if strategy.success else strategy.surrogate.failures
    dataset = Dataset.from_history(study.problem, past, failures)
    shrink = float(trial.why.get("shrink", 1.0))
    if strategy.hyperparameters is not None:
        return strategy.surrogate.known(dataset, strategy.hyperparameters).shrunk(shrink)
    fit = last_fit(History(study.history[: trial.number + 1]))
    if fit is None:
        return None
    return strategy.surrogate.condition(dataset, fit).shrunk(shrink)


def _choice_of_x(study: StudyView, model: Model, past: History, trial: Trial, name: str | None) -> ChoiceOfX:
    space = study.problem.space
    active = [key for key in space if key in trial.x]
    if name is None:
        scales = dict(zip(space, model.hyperparameters()["h_x"], strict=True))
        name = min(active, key=lambda key: scales[key])
    elif name not in active:
        raise InvalidInput(f"name is {name!r}, which is inactive in trial {trial.number}. Name one of {active}.")
    axis = axis_of(space, name, "name")
    u = np.unique(np.append(axis.parameter.axis(CURVE_POINTS), axis.parameter.to_unit([trial.x[name]])))
    U = np.repeat(space.to_unit([trial.x]), len(u), axis=0)
    U[:, list(space).index(name)] = u
    beta = float(trial.why["beta"])
    mean, bound = _mean_and_bound(model, U, beta)
    here = _mean_and_bound(model, space.to_unit([trial.x]), beta)
    told = [t for t in past.valued if name in t.x]
    return ChoiceOfX(
        axis,
        axis.at(u),
        mean,
        bound,
        float(axis.positions([trial.x[name]])[0]),
        (float(here[0][0]), float(here[1][0])),
        axis.positions([t.x[name] for t in told]),
        np.array([t.value for t in told], dtype=float),
        np.array([study.problem.is_target(t.z) for t in told], dtype=bool),
    )


def _mean_and_bound(model: Model, U: FloatArray, beta: float) -> tuple[FloatArray, FloatArray]:
    """Return the mean, and the bound that is optimistic, in the units of the value."""
    mu, sigma = model.moments(U)
    bound = mu + math.sqrt(beta) * sigma
    return tuple(np.array([model.value_as_told(float(v)) for v in values]) for values in (mu, bound))  # type: ignore[return-value]


def _choice_of_z(study: StudyView, model: Model, past: History, trial: Trial, name: str | None) -> ChoiceOfZ | Note:
    problem, why = study.problem, trial.why
    if not problem.fidelity:
        return Note("This problem has no fidelities.")
    if "guard" in why:
        return Note("The cheaper fidelities were off: results at the target were predicted better without them.")
    x, shrink = trial.x, None
    if "fidelity_by" in why:  # the fidelity was chosen for another x, with other length scales
        x, shrink = why["fidelity_by"]["x"], float(why["fidelity_by"]["shrink"])
        model = model.shrunk(shrink / model.shrink)
    axis = axis_of(problem.fidelity, next(iter(problem.fidelity)) if name is None else name, "fidelity")
    j = list(problem.fidelity).index(axis.name)
    own_place = problem.fidelity.to_unit([trial.planned])
    target_place = problem.fidelity.to_unit([problem.target])
    u = np.unique(np.concatenate([axis.parameter.axis(CURVE_POINTS), own_place[:, j], target_place[:, j]]))
    Z = np.repeat(own_place, len(u), axis=0)
    Z[:, j] = u
    price = costs(problem, past)
    share = np.array([price.of(problem.fidelity.from_unit(z)) for z in Z]) / price.target
    tau, threshold, is_candidate = _deviations(study, model, x, Z, share, why)
    k = int(np.argmin(np.abs(u - own_place[0, j])))
    return ChoiceOfZ(
        axis,
        axis.at(u),
        tau,
        threshold,
        share,
        is_candidate,
        float(axis.positions([trial.planned[axis.name]])[0]),
        float(axis.positions([problem.target[axis.name]])[0]),
        (float(tau[k]), float(share[k])),
    )


def _deviations(
    study: StudyView, model: Model, x: Point, Z: FloatArray, share: FloatArray, why: Mapping[str, Any]
) -> tuple[FloatArray, FloatArray, Mask]:  # (m, p) -> tau (m,), c gamma (m,), candidates (m,)
    """Return deviations and thresholds in the units of the value, and which fidelities were candidates.

    `Boca.relative_deviation` divides the deviation by that of the prior.  With `Boca.information_per_cost` a candidate
    tells at least as much about f, for what it costs, as a query at the target.
    """
    space, strategy = study.problem.space, study.strategy
    assert isinstance(strategy, Boca)
    (u,) = space.to_unit([x])
    k, own, star = model.encoding.fidelity_covariance(model.h, Z)
    xi = information_gap(k, own, star)
    here = np.concatenate([model.encoding.x_features(u[None, :])[0], model.encoding.target])
    queries = model.at(u, Z)
    tau2, covariance, sigma2 = model.gp.covariance_with(queries, here)
    tau = np.sqrt(tau2) / (relative_deviation(own, star) if strategy.relative_deviation else 1.0)
    q = 1.0 / (len(study.problem.fidelity) + space.widest + 2)
    threshold = float(why["c"]) * fidelity_threshold(model.kappa0, xi, share, q=q)
    least_gap = _largest_gap(study, model) / math.sqrt(float(why["beta"]))
    is_candidate = candidate_fidelities(share, 1.0, tau, threshold, xi, least_gap)
    if strategy.information_per_cost:
        floor = strategy.information_floor * sigma2
        gain = information_gain(covariance, sigma2, tau2, model.noise(queries) + floor)
        at_target = information_gain(np.array([sigma2]), sigma2, np.array([sigma2]), model.gp.eta2 + floor)[0]
        is_candidate &= gain / share >= at_target
    scale = model.deviation_as_told(1.0)
    return scale * tau, scale * threshold, is_candidate


def _largest_gap(study: StudyView, model: Model) -> float:
    k, own, star = model.encoding.fidelity_covariance(model.h, study.problem.grid[1])
    return float(np.max(information_gap(k, own, star)))


def better_side(study: StudyView) -> str:
    """Return where the optimistic bound lies."""
    return "upper" if sign(study.problem.direction) > 0 else "lower"
