"""How BOCA chooses x and z where outcomes have limits, or where trials may fail.

    symbol   meaning
    p_k(x)   probability that outcome k is within its limit at the target; P(x) their product
    w_k      weight of what a query tells of outcome k: the entropy of p_k in bits, 1 where it is open and 0 where it is
             known; the weight of f is P
    G(z)     information in nats that a query at (z, x) has about f and all outcomes at the target, so weighed

x maximizes an improvement times P.  Nothing can be improved upon before some point is likely feasible: until then, x
maximizes P alone.  z is the cheapest fidelity that is still uncertain, about f or about an outcome whose limit is open,
and that has at least as much G per cost as the target.

[G14] Gardner, Kusner, Xu, Weinberger, Cunningham: Bayesian Optimization with Inequality Constraints, ICML 2014.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from boca.domain.problem import Problem
from boca.domain.space import BoolArray, FloatArray
from boca.domain.trial import History
from boca.model.feasibility import LIKELY, Feasibility
from boca.model.outcome_model import OutcomeModel
from boca.model.posterior import Model
from boca.search import acquisition
from boca.search.acquisition import Acquisition, BoundAcquisition, Weighed
from boca.search.maximizer import space_filling
from boca.strategies.boca_information import (
    candidate_fidelities,
    fidelity_threshold,
    information_gain,
    information_gap,
    relative_deviation,
)

FEASIBILITY = "feasibility"
"""The acquisition while no point is likely feasible."""

WHERE_FEASIBLE = "where all outcomes are likeliest to be within their limits"
"""Its maximum, in words."""

_OPEN_FROM_BITS = 0.3  # entropy of a probability between 0.05 and 0.95
_LEAST_GAIN_NATS = 0.35  # about an outcome that every fidelity tells alike: below it, noise is most of what is left
_MAXIMA_DRAWN_AT, _DRAWN_MAXIMA = 256, 10
_INCUMBENTS, _INCUMBENT_DRAWS = 16, 16

Improvement: TypeAlias = Callable[[Model, FloatArray, Feasibility, float, np.random.Generator], BoundAcquisition]
"""From the model, the incumbents (k, d), what is known of feasibility, beta and random numbers."""


def incumbents(problem: Problem, history: History, model: Model, feasibility: Feasibility) -> FloatArray:  # (k, d)
    """Return the x to improve upon: seen feasible at the target; if there is none, likely feasible and queried."""
    if seen := history.feasible(problem):
        return np.unique(problem.space.to_unit([t.x for t in seen]), axis=0)
    queried = model.queried
    return feasibility.likely(queried[problem.space.feasible(queried)])


def anchors(model: Model, feasibility: Feasibility, count: int = 5) -> FloatArray:  # (count, d)
    """Return the queried x with the highest means of those likely feasible, then those likeliest to be."""
    x = model.queried
    p = feasibility.probability(x)
    means = model.means(x)
    order = np.lexsort((-np.where(p >= LIKELY, means, p), p < LIKELY))
    return x[order[:count]]


def weighed(
    by: str, model: Model, history: History, feasibility: Feasibility, beta: float, rng: np.random.Generator
) -> Weighed:
    """Return the acquisition of an aim or a turn, weighed by the probability of feasibility.  [G14]"""
    limits = tuple(
        BoundAcquisition(o.model, acquisition.LogFeasible(o.bound, o.noise, o.least, o.highest))
        for o in feasibility.outcomes
    )
    best = incumbents(feasibility.problem, history, model, feasibility)
    improvement = IMPROVEMENTS[by](model, best, feasibility, beta, rng) if len(best) else None
    return Weighed(improvement, limits)


# Improvements ---------------------------------------------------------------------------------------------------------


def _bound_over_best(
    model: Model, best: FloatArray, feasibility: Feasibility, beta: float, rng: np.random.Generator
) -> BoundAcquisition:
    formula = acquisition.LogBoundImprovement(beta, float(np.max(model.means(best))))
    return BoundAcquisition(model, formula)


def _bound_alone(
    model: Model, best: FloatArray, feasibility: Feasibility, beta: float, rng: np.random.Generator
) -> BoundAcquisition:
    return _bound_over_best(model.at_target(), best, feasibility, beta, rng)


def _over_best_mean(
    model: Model, best: FloatArray, feasibility: Feasibility, beta: float, rng: np.random.Generator
) -> BoundAcquisition:
    return BoundAcquisition(model, acquisition.LogEI(float(np.max(model.means(best)))))


def _over_draws(
    model: Model, best: FloatArray, feasibility: Feasibility, beta: float, rng: np.random.Generator
) -> BoundAcquisition:
    highest = best[np.argsort(-model.means(best), kind="stable")[:_INCUMBENTS]]
    given, values = model.given_draws(highest, rng.standard_normal((len(highest), _INCUMBENT_DRAWS)))
    return BoundAcquisition(model, acquisition.LogNoisyEI(np.max(values, axis=0)), given)


def _about_feasible_maximum(
    model: Model, best: FloatArray, feasibility: Feasibility, beta: float, rng: np.random.Generator
) -> BoundAcquisition:
    """Return the information about the maximum over the points that are likely feasible."""
    points = np.vstack([space_filling(model.problem.space, rng, _MAXIMA_DRAWN_AT), model.anchors()])
    points = np.vstack([feasibility.likely(points), best])
    maxima: Acquisition = acquisition.LogInformation(
        model.gp.eta2, acquisition.drawn_maxima(*model.moments(points), rng, _DRAWN_MAXIMA)
    )
    return BoundAcquisition(model, maxima)


IMPROVEMENTS: Mapping[str, Improvement] = {
    "ucb": _bound_over_best,
    "max_value": _about_feasible_maximum,
    "log_ei": _over_best_mean,
    "log_noisy_ei": _over_draws,
    "ucb_alone": _bound_alone,
}
"""What every aim and turn becomes: the logarithm of something that is not negative, so that it can be weighed."""


# Fidelities -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Quantity:
    """What a query at one x and each of m fidelities tells about f, or about an outcome, at the target."""

    weight: float
    is_open: BoolArray  # (m,)
    """Where the query is a candidate for the sake of this quantity."""
    gain: FloatArray  # (m,)
    """Nats."""
    gain_at_target: float


def cheapest_informative(
    u: FloatArray,
    models: Sequence[Model],
    feasibility: Feasibility,
    *,
    cost: FloatArray,
    target_cost: float,
    beta: float,
    c: float,
    per_cost: bool,
    floor: float,
    relative: bool,
) -> int | None:  # u (d,), cost (m,)
    """Return the index of the cheapest fidelity that is still worth a query at x; None if that is the target.

    `models` are those of f, or of several objectives.
    `floor` and `relative` are `Boca.information_floor` and `Boca.relative_deviation`.
    """
    x = u[None, :]
    p = {name: float(found[0]) for name, found in feasibility.probabilities(x).items()}
    setting = _Setting(u, cost / target_cost, beta, c, floor, relative)
    of_f = [_of_model(setting, model, weight=math.prod(p.values())) for model in models]
    of_outcomes = [
        _of_outcome(setting, outcome, weight=entropy_bits(p[outcome.name])) for outcome in feasibility.outcomes
    ]
    quantities = [*of_f, *of_outcomes]
    passes = np.any([q.is_open for q in quantities], axis=0) & (cost < target_cost)
    if per_cost:
        told = np.sum([q.weight * q.gain for q in quantities], axis=0)
        at_target = sum(q.weight * q.gain_at_target for q in quantities)
        passes &= told / cost >= at_target / target_cost
    found = np.flatnonzero(passes)
    return int(found[np.argmin(cost[found])]) if len(found) else None


def entropy_bits(p: float) -> float:
    """Return the entropy of a probability: 1 at one half, 0 at both ends."""
    return 0.0 if p <= 0.0 or p >= 1.0 else -(p * math.log2(p) + (1.0 - p) * math.log2(1.0 - p))


@dataclass(frozen=True)
class _Setting:
    """What the choices of a fidelity at one x share."""

    u: FloatArray  # (d,)
    cost_ratio: FloatArray  # (m,)
    beta: float
    c: float
    floor: float
    relative: bool


def _of_outcome(setting: _Setting, outcome: OutcomeModel, *, weight: float) -> Quantity:
    m = len(setting.cost_ratio)
    is_open = weight >= _OPEN_FROM_BITS
    if outcome.is_everywhere_alike:
        gain = _gain_at(setting, outcome.model)
        return Quantity(weight, np.full(m, is_open and gain >= _LEAST_GAIN_NATS), np.full(m, gain), gain)
    found = _of_model(setting, outcome.model, weight=weight)
    if not outcome.tells_below:
        return Quantity(weight, np.zeros(m, dtype=bool), np.zeros(m), found.gain_at_target)
    return Quantity(weight, found.is_open & is_open, found.gain, found.gain_at_target)


def _gain_at(setting: _Setting, model: Model) -> float:
    """Return the information in nats that a query at the target has about the value there."""
    variance = model.moments(setting.u[None, :])[1] ** 2
    noise = model.gp.eta2 + setting.floor * variance
    return float(information_gain(variance, float(variance[0]), variance, noise)[0])


def _of_model(setting: _Setting, model: Model, *, weight: float) -> Quantity:
    m, problem, u = len(setting.cost_ratio), model.problem, setting.u
    if model.guard is not None:  # the cheaper fidelities are switched off
        return Quantity(weight, np.zeros(m, dtype=bool), np.zeros(m), _gain_at(setting, model))
    Z = problem.grid[1]
    k, own, prior = model.encoding.fidelity_covariance(model.h, Z)
    xi = information_gap(k, own, prior)
    q = 1.0 / (len(problem.fidelity) + problem.space.widest + 2)
    gamma = fidelity_threshold(model.kappa0, xi, setting.cost_ratio, q=q)
    queries = model.at(u, Z)
    star = np.concatenate([model.encoding.x_features(u[None, :])[0], model.encoding.target])
    tau2, covariance, sigma2 = model.gp.covariance_with(queries, star)
    tau = np.sqrt(tau2) / relative_deviation(own, prior) if setting.relative else np.sqrt(tau2)
    least_gap = float(np.max(xi)) / math.sqrt(setting.beta)
    is_open = candidate_fidelities(setting.cost_ratio, 1.0, tau, setting.c * gamma, xi, least_gap)
    gain = information_gain(covariance, sigma2, tau2, model.noise(queries) + setting.floor * sigma2)
    return Quantity(weight, is_open, gain, _gain_at(setting, model))
