"""How BOCA chooses x, by name: the aims, and the turns that take their place at the target.

To add one, enter it in `AIMS` or `TURNS`: what it maximizes, and the words that explain it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from boca.domain.space import FloatArray
from boca.model.posterior import Model
from boca.search import acquisition
from boca.search.acquisition import Acquisition, BoundAcquisition
from boca.search.maximizer import space_filling

_DRAWN_MAXIMA = 10  # values of the maximum of f, over which the information about it is averaged
_MAXIMA_DRAWN_AT = 256  # points all over the space, from whose moments these are drawn
_MAXIMA_EXACT = 64  # of these points, with the highest bounds: with many results, other deviations are bounds
_INCUMBENTS = 16  # x queried at the target, with the highest means, at which f is drawn
_INCUMBENT_DRAWS = 16  # of f at these x


@dataclass(frozen=True)
class Aim:
    """An acquisition of the shrunk model: where it is highest, a fidelity is chosen."""

    where: str
    """The place of its maximum, in words."""
    formula: Callable[[Model, float, np.random.Generator], Acquisition]
    """From the shrunk model, beta and random numbers."""


@dataclass(frozen=True)
class Turn:
    """An acquisition at the target, maximized in place of the aim's."""

    does: str
    """What the evaluation does instead, in words."""
    objective: Callable[[Model, float, np.random.Generator], BoundAcquisition]
    """From the model, beta of the shrunk one and random numbers."""
    improves: bool = True
    """Whether it exploits; the aims then alternate over the other queries if most queries are at the target."""
    is_unshrunk: bool = True
    """Whether the unshrunk model decides."""
    tests_cheap_results: bool = False
    """Whether it makes sense only if the model uses cheaper results, and has some at the target to compare with."""


def _drawn_maxima(model: Model, rng: np.random.Generator) -> FloatArray:  # (_DRAWN_MAXIMA,)
    """Draw possible values of the maximum of f, from its moments all over the domain and at the best results."""
    points = np.vstack([space_filling(model.problem.space, rng, _MAXIMA_DRAWN_AT), model.anchors()])
    return acquisition.drawn_maxima(*model.approximate_moments(points, exact=_MAXIMA_EXACT), rng, _DRAWN_MAXIMA)


def _queried_at_target(model: Model) -> FloatArray:  # (k, d)
    """Return the x that were queried at the target; all queried x, if there is none.

    Imported results from points that break a known constraint are left out, if there are others.
    """
    at_target = model.data.U[model.data.is_target]
    queried = at_target if len(at_target) else model.queried
    space = model.problem.space
    allowed = queried[space.feasible(queried)] if space.constraints else queried
    return allowed if len(allowed) else queried


def _over_best_mean(model: Model, beta: float, rng: np.random.Generator) -> BoundAcquisition:
    """Return the expected improvement over the highest mean of an x queried at the target."""
    return BoundAcquisition(model, acquisition.LogEI(float(np.max(model.means(_queried_at_target(model))))))


def _over_draws(model: Model, beta: float, rng: np.random.Generator) -> BoundAcquisition:
    """Return noisy EI: the improvement over the best of these x, averaged over posterior draws of f at them."""
    x = np.unique(_queried_at_target(model), axis=0)
    best = x[np.argsort(-model.means(x), kind="stable")[:_INCUMBENTS]]
    given, values = model.given_draws(best, rng.standard_normal((len(best), _INCUMBENT_DRAWS)))
    return BoundAcquisition(model, acquisition.LogNoisyEI(np.max(values, axis=0)), given)


def _at_target_alone(model: Model, beta: float, rng: np.random.Generator) -> BoundAcquisition:
    """Return the upper confidence bound from the results at the target alone."""
    return BoundAcquisition(model.at_target(), acquisition.UCB(beta))


AIMS: Mapping[str, Aim] = {
    "ucb": Aim("where the upper confidence bound is highest", lambda model, beta, rng: acquisition.UCB(beta)),
    "max_value": Aim(
        "where a query tells most about the maximum",
        lambda model, beta, rng: acquisition.LogInformation(model.gp.eta2, _drawn_maxima(model, rng)),
    ),
}


def _mean(model: Model, beta: float, rng: np.random.Generator) -> BoundAcquisition:
    """Return the posterior mean."""
    return BoundAcquisition(model, acquisition.Mean())


_GOES_TO_LARGEST_IMPROVEMENT = "goes to the point with the largest expected improvement"
TURNS: Mapping[str, Turn] = {
    "log_ei": Turn(_GOES_TO_LARGEST_IMPROVEMENT, _over_best_mean),
    "log_noisy_ei": Turn(_GOES_TO_LARGEST_IMPROVEMENT, _over_draws),
    "ucb_alone": Turn(
        "tests the cheaper results: it goes to the point that the results at the target alone would choose",
        _at_target_alone,
        improves=False,
        is_unshrunk=False,
        tests_cheap_results=True,
    ),
    "best_mean": Turn("goes to the point that the model expects to be best", _mean),
}
"""Beside "aim", which leaves the query to the aim."""
