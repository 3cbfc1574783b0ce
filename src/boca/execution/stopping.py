"""When to stop before the budget is spent: when no query is worth its price.

    symbol       meaning
    price        cost units that an improvement by one unit of the objective is worth
    best         highest posterior mean of f among the queried x
    s(z, x)      deviation by which a query at (z, x) is expected to move the mean of f(x)
    EI(z, x)     expected improvement of that mean over the best one
    cost(z)      cost of a query

[W79] Weitzman: Optimal Search for the Best Alternative, Econometrica 1979.
[X26] Xie, Cai, Terenin, Frazier, Scully: Cost-aware Stopping for Bayesian Optimization, ICML 2026, arXiv 2507.12453.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np

from boca.accounting.cost import costs
from boca.domain.errors import InvalidInput
from boca.domain.problem import Problem
from boca.domain.space import FloatArray, positive_number
from boca.domain.trial import History
from boca.model.posterior import Model
from boca.model.surrogate import Surrogate
from boca.search.acquisition import BoundAcquisition, LogEI, log_ei
from boca.search.maximizer import MAXIMIZERS
from boca.strategies import Strategy
from boca.strategies.base import posterior

_POINTS = 8  # x whose fidelities are all tried: those with the highest expected improvement at the target
_DEVIATIONS_ABOVE, _STEPS_ABOVE = 8.0, 129  # of the integral of an improvement: its end, and its grid
_LEAST_DEVIATION = 1e-12  # of the values: a query that moves the mean by less tells nothing


@runtime_checkable
class StoppingRule(Protocol):
    """A rule that needs more than the history: the problem, and the model of the strategy."""

    def of(self, problem: Problem, strategy: Strategy, /) -> Callable[[History], bool]:
        """Return the rule as a function of the history."""
        ...


@dataclass(frozen=True)
class NotWorthIt:
    """Stop when no query is expected to improve the objective by as much as it costs.

    `price` says what an improvement by one unit of the objective is worth, in cost units; with measured costs these are
    seconds.  If an hour is worth 0.01 of accuracy, the price is 3600 / 0.01.  The run stops as soon as

        price * EI(z, x) < cost(z)    for every x and every fidelity z.

    At the target this compares the Gittins index of every x with the best value so far: the index is the value over
    which the expected improvement pays for the query exactly, so the best index is below the best value exactly then.
    For independent options with known distributions, no rule has a higher expected value of what is found less what is
    paid [W79].  For a Gaussian process, whose options are not independent, a run that queries by improvement per cost
    or by this index, and stops by this rule, has an expected regret, costs included, no worse than that of stopping
    after the first query [X26].  Neither guarantee covers noise, learned length scales, cheaper fidelities or `Boca`:
    with these the rule looks one step ahead, and a cheap query that prepares others counts for what it tells itself.

    The rule is asked after the start, and once there is a result at the target.
    """

    price: float

    def __post_init__(self) -> None:
        positive_number(self.price, "price")

    def of(self, problem: Problem, strategy: Strategy) -> Callable[[History], bool]:
        if problem.objectives:
            raise InvalidInput(
                f"stop is {self!r}, which judges improvements of one objective, and outcomes has "
                f"{list(problem.objectives)}. Give a function of the history, or leave stop out."
            )
        if problem.subject_to:
            raise InvalidInput(
                f"stop is {self!r}, which judges improvements of the objective alone, and subject_to limits "
                f"{list(problem.subject_to)}. Give a function of the history, or leave stop or subject_to out."
            )
        return lambda history: not is_worth_it(problem, strategy, history, self.price)


def is_worth_it(problem: Problem, strategy: Strategy, history: History, price: float) -> bool:
    """Return whether some query is expected to improve the objective by at least what it costs."""
    if not history.chosen or not any(problem.is_target(trial.z) for trial in history.valued):
        return True
    model = posterior(strategy, problem, history)
    if not isinstance(model, Model):  # of a finite list of fidelities: the usual one of all is asked
        model = Surrogate().model(problem, history, np.random.default_rng(0))
    return bool(np.max(surplus(problem, history, model, price)) >= 0.0)


def surplus(problem: Problem, history: History, model: Model, price: float) -> FloatArray:  # (k,)
    """Return price * EI(z, x) - cost(z) for the x with the highest improvements and all fidelities."""
    queried = model.queried
    best = float(np.max(model.means(queried)))
    objective = BoundAcquisition(model, LogEI(best))
    ranked = MAXIMIZERS["sobol"](objective, problem.space, np.random.default_rng(0), model.anchors())
    known = costs(problem, history)
    Z = np.vstack([problem.grid[1], problem.fidelity.to_unit([problem.target])])
    cost = np.append(known.grid, known.target)
    found = []
    for u in ranked[:_POINTS]:
        queries = model.at(u, Z)
        star = model.at(u, Z[-1:])[0]
        tau2, covariance, _ = model.gp.covariance_with(queries, star)
        moved = np.maximum(np.abs(covariance) / np.sqrt(tau2 + model.noise(queries)), _LEAST_DEVIATION)
        mean = np.full(len(Z), float(model.means(u[None, :])[0]))
        found.append(price * expected_improvement(model, mean, moved, best) - cost)
    return np.concatenate(found)


def expected_improvement(model: Model, mean: FloatArray, moved: FloatArray, best: float) -> FloatArray:  # (m,)
    """Return the expected improvement in the user's units, from moments in those of the model.

    Under a warp it is the integral of P(f > t) over the told values of t above the best.
    """
    if model.warp is None:
        return np.asarray(model.deviation_as_told(1.0) * np.exp(log_ei(mean, moved, best)[0]))
    from scipy.special import ndtr

    above = best + moved[:, None] * np.linspace(0.0, _DEVIATIONS_ABOVE, _STEPS_ABOVE)
    probability = ndtr((mean[:, None] - above) / moved[:, None])
    told = model.warp.inverse(model.standard.location + model.standard.scale * above)
    return np.asarray(0.5 * np.sum((probability[:, 1:] + probability[:, :-1]) * np.diff(told), axis=1))
