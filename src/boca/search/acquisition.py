"""Acquisition functions: the value of a query, from the posterior mean and deviation of f there.

    mu, sigma   (m,)   posterior mean and standard deviation of f
    beta               weight of exploration; the bound uses its square root
    u           (m,)   (mu - best) / sigma
    maxima      (k,)   possible values of the maximum of f
    bound              limit of an outcome, whose mu and sigma then stand in place of those of f

A formula returns its value and its derivatives by mu and by sigma.  An `Acquisition` is a formula with its numbers, and
declares whether it rises with both.  A `BoundAcquisition` is one at the posterior of a model: a function of x.

[G14] Gardner, Kusner, Xu, Weinberger, Cunningham: Bayesian Optimization with Inequality Constraints, ICML 2014.
[L19] Letham, Karrer, Ottoni, Bakshy: Constrained Bayesian Optimization with Noisy Experiments, Bayesian Analysis 2019.
[M21] Moss, Leslie, Gonzalez, Rayson: GIBBON: General-purpose Information-Based Bayesian OptimisatioN, JMLR 2021.
[W17] Wang, Jegelka: Max-value Entropy Search for Efficient Bayesian Optimization, ICML 2017.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Protocol, TypeAlias

import numpy as np

from boca.domain.space import FloatArray
from boca.gp.model import PosteriorSlice
from boca.model.posterior import Model, leading_count
from boca.search.objective import Bounded

Slope: TypeAlias = FloatArray | float
Valued: TypeAlias = tuple[FloatArray, Slope, Slope]

_LOG_SQRT_2PI = 0.5 * math.log(2.0 * math.pi)
_CERTAIN_FROM = 30.0  # deviations above the best: EI is mu - best up to rounding, and exp(u^2 / 2) is still a float
_SERIES_BELOW = -1e3  # deviations: below, 1 + u e is rounding, and the first terms of its series are exact
_LEAST_INFORMATION = 1e-300  # nats: the logarithm of zero is not a number
_SOFTENED_OVER = 0.1  # deviations of the results: bounds that differ by less from the best count as improvements
_LINEAR_BELOW = -30.0  # log softplus(t) is t there up to rounding
_STEEPNESS = 1e6  # of the wall below the least probability: where results agree, log EI falls by thousands
_LOWEST_U = -1e70  # deviations: the square of less is not a float
_QUARTILES = np.array([0.25, 0.5, 0.75])
_BISECTIONS = 25  # halve nine deviations to fewer than a millionth of one
_RULED_OUT_DEVIATIONS = 9.0  # above a mean: a point so far below the highest lower bound has no part in the maximum


def ucb(mu: FloatArray, sigma: FloatArray, beta: float) -> Valued:
    """Return the upper confidence bound mu + sqrt(beta) sigma.  [K17, eq. 6]"""
    root = math.sqrt(beta)
    return mu + root * sigma, 1.0, root


def log_ei(mu: FloatArray, sigma: FloatArray, best: FloatArray | float) -> Valued:
    """Return the logarithm of the expected improvement over `best`, which has a slope even where EI underflows.

    EI = sigma h(u) with h = phi + u Phi = phi (1 + u e), where e = Phi / phi is a scaled complementary error function.
    So no two tiny numbers are subtracted.
    """
    from scipy.special import erfcx

    u = np.maximum((mu - best) / sigma, _LOWEST_U)
    v = np.minimum(u, _CERTAIN_FROM)
    e = math.sqrt(math.pi / 2.0) * erfcx(v * -math.sqrt(0.5))
    far = 1.0 / np.square(np.minimum(v, _SERIES_BELOW))
    ratio = np.where(v < _SERIES_BELOW, far - 3.0 * far * far, 1.0 + v * e)
    improving = np.maximum(u, 1.0)
    log_h = np.where(u > _CERTAIN_FROM, np.log(improving), np.log(ratio) - 0.5 * v * v - _LOG_SQRT_2PI)
    by_mu = np.where(u > _CERTAIN_FROM, 1.0 / improving, e / ratio)
    return np.log(sigma) + log_h, by_mu / sigma, 1.0 / ratio / sigma


def log_noisy_ei(mu: FloatArray, sigma: FloatArray, best: FloatArray) -> Valued:  # mu (m, k), best (k,) -> (m,)
    """Return the logarithm of the expected improvement, averaged over draws of f at the queried points.  [L19]

    `mu` and `sigma` are the moments given each draw, `best` is the highest value of each.  Derivatives by mu: (m, k).
    """
    value, by_mu, by_sigma = log_ei(mu, sigma[:, None], best)
    highest = np.max(value, axis=1, keepdims=True)
    share = np.exp(value - highest)
    total = np.sum(share, axis=1, keepdims=True)
    share /= total
    mean = highest[:, 0] + np.log(total[:, 0] / len(best))
    return mean, share * by_mu, np.sum(share * by_sigma, axis=1)


def log_information(mu: FloatArray, sigma: FloatArray, eta2: float, maxima: FloatArray) -> Valued:
    """Return the logarithm of the information in nats that a noisy query has about the maximum of f.  [M21]

    Knowing that f is below its maximum f* reduces its variance by the share w = r (g + r), with g = (f* - mu) / sigma
    and r = phi(g) / Phi(g), and that of an observation by rho^2 w, with rho^2 = sigma^2 / (sigma^2 + eta2).  A mean
    above f* counts as f*, so that the information never falls with sigma.
    """
    from scipy.special import erfcx

    total = sigma * sigma + eta2
    rho2 = sigma * sigma / total
    g = np.maximum((maxima[:, None] - mu) / sigma, 0.0)  # (k, m)
    r = math.sqrt(2.0 / math.pi) / erfcx(g * -math.sqrt(0.5))
    w = r * (g + r)
    left = 1.0 - rho2 * w
    information = np.maximum(np.mean(-0.5 * np.log1p(-rho2 * w), axis=0), _LEAST_INFORMATION)
    by_g = np.where(g > 0.0, 0.5 * rho2 / left * (r - w * (g + 2.0 * r)), 0.0)
    by_mu = np.mean(-by_g, axis=0) / sigma
    by_sigma = np.mean(w / left, axis=0) * sigma * eta2 / (total * total) - np.mean(by_g * g, axis=0) / sigma
    return np.log(information), by_mu / information, by_sigma / information


def log_bound_improvement(mu: FloatArray, sigma: FloatArray, beta: float, best: float) -> Valued:
    """Return the logarithm of how far the upper confidence bound is above `best`, softened where it is below.

    It is log softplus((bound - best) / s) with s = 0.1.  A bound itself may be negative, and cannot be weighed by a
    probability.
    """
    t = (ucb(mu, sigma, beta)[0] - best) / _SOFTENED_OVER
    soft = np.logaddexp(0.0, np.maximum(t, _LINEAR_BELOW))
    slope = np.where(t > _LINEAR_BELOW, np.exp(t - np.logaddexp(0.0, t)) / soft, 1.0) / _SOFTENED_OVER
    return np.where(t > _LINEAR_BELOW, np.log(soft), t), slope, slope * math.sqrt(beta)


def log_feasible(
    mu: FloatArray, sigma: FloatArray, bound: float, noise: float = 0.0, least: float = 0.0, highest: float = math.inf
) -> Valued:
    """Return the logarithm of the probability that an outcome is at least `bound`, log Phi((mu - bound) / sigma).

    `noise` is a variance that is added to that of mu.  Below the probability `least` the value falls so fast that
    no improvement makes up for it.  A mean above `highest` counts as one there.
    """
    from scipy.special import erfcx, log_ndtr

    total = np.sqrt(sigma * sigma + noise)
    u = np.maximum((np.minimum(mu, highest) - bound) / total, _LOWEST_U)
    hazard = math.sqrt(2.0 / math.pi) / erfcx(u * -math.sqrt(0.5))
    value, by_mu, by_sigma = (
        log_ndtr(u),
        np.where(mu > highest, 0.0, hazard / total),
        -u * hazard * sigma / (total * total),
    )
    if least <= 0.0:
        return value, by_mu, by_sigma
    factor = np.where(value < math.log(least), 1.0 + _STEEPNESS, 1.0)
    wall = _STEEPNESS * np.minimum(value - math.log(least), 0.0)
    return value + wall, by_mu * factor, by_sigma * factor


def drawn_maxima(mu: FloatArray, sigma: FloatArray, rng: np.random.Generator, count: int) -> FloatArray:  # (count,)
    """Draw possible values of the maximum of f, from moments of f at points all over its domain.

    f at these points is taken as independent.  The values are drawn from the Gumbel distribution with the same
    quartiles as their maximum, and are at least the highest mean.  [W17]
    """
    from scipy.special import log_ndtr

    low, high = (np.full(3, np.max(mu + steps * sigma)) for steps in (-3.0, 6.0))
    may_be_highest = low[0] - mu < _RULED_OUT_DEVIATIONS * sigma
    mu, sigma = mu[may_be_highest], sigma[may_be_highest]
    for _ in range(_BISECTIONS):
        middle = 0.5 * (low + high)
        is_low = np.sum(log_ndtr((middle[:, None] - mu) / sigma), axis=1) < np.log(_QUARTILES)
        low, high = np.where(is_low, middle, low), np.where(is_low, high, middle)
    gumbel = -np.log(-np.log(_QUARTILES))
    scale = (high[2] - high[0]) / (gumbel[2] - gumbel[0])
    location = high[1] - scale * gumbel[1]
    return np.asarray(np.maximum(location - scale * np.log(-np.log(rng.random(count))), np.max(mu)))


# What a strategy uses ---------------------------------------------------------------------------------------------


class Acquisition(Protocol):
    """A formula of mu and sigma with its numbers."""

    rises: ClassVar[bool]
    """Whether the value never falls as mu or sigma grows: only then do upper bounds of both give one of the value."""

    def __call__(self, mu: FloatArray, sigma: FloatArray, /) -> Valued: ...


@dataclass(frozen=True)
class Mean:
    """The posterior mean: no exploration."""

    rises: ClassVar[bool] = True

    def __call__(self, mu: FloatArray, sigma: FloatArray) -> Valued:
        return mu, 1.0, 0.0


@dataclass(frozen=True)
class UCB:
    """The upper confidence bound."""

    rises: ClassVar[bool] = True
    beta: float

    def __call__(self, mu: FloatArray, sigma: FloatArray) -> Valued:
        return ucb(mu, sigma, self.beta)


@dataclass(frozen=True)
class LogEI:
    """The logarithm of the expected improvement over one value."""

    rises: ClassVar[bool] = True
    best: float

    def __call__(self, mu: FloatArray, sigma: FloatArray) -> Valued:
        return log_ei(mu, sigma, self.best)


@dataclass(frozen=True)
class LogNoisyEI:
    """The logarithm of the expected improvement, averaged over draws of the best value."""

    rises: ClassVar[bool] = True
    best: FloatArray  # (k,)

    def __call__(self, mu: FloatArray, sigma: FloatArray) -> Valued:
        return log_noisy_ei(mu, sigma, self.best)


@dataclass(frozen=True)
class LogInformation:
    """The logarithm of the information about the value of the maximum."""

    rises: ClassVar[bool] = True
    eta2: float
    maxima: FloatArray  # (k,)

    def __call__(self, mu: FloatArray, sigma: FloatArray) -> Valued:
        return log_information(mu, sigma, self.eta2, self.maxima)


@dataclass(frozen=True)
class LogBoundImprovement:
    """The logarithm of how far the upper confidence bound is above one value, softened."""

    rises: ClassVar[bool] = True
    beta: float
    best: float

    def __call__(self, mu: FloatArray, sigma: FloatArray) -> Valued:
        return log_bound_improvement(mu, sigma, self.beta, self.best)


@dataclass(frozen=True)
class LogFeasible:
    """The logarithm of the probability that an outcome is within its limit."""

    rises: ClassVar[bool] = False  # far within the limit, a larger deviation makes it less likely
    bound: float
    noise: float = 0.0
    least: float = 0.0
    highest: float = math.inf

    def __call__(self, mu: FloatArray, sigma: FloatArray) -> Valued:
        return log_feasible(mu, sigma, self.bound, self.noise, self.least, self.highest)


@dataclass(frozen=True)
class BoundAcquisition:
    """An acquisition at the posterior of a model, as a maximizer needs it."""

    model: Model
    formula: Acquisition
    given: PosteriorSlice | None = None
    """A posterior of f given more than the results, such as draws; None: that of the model."""

    @property
    def _slice(self) -> PosteriorSlice:
        return self.model.target_slice if self.given is None else self.given

    def value(self, U: FloatArray) -> FloatArray:  # (m, d) -> (m,)
        mean, variance = self._slice.moments(self.model.encoding.x_features(U))
        return self.formula(mean, np.sqrt(variance))[0]

    def bound(self, U: FloatArray) -> FloatArray | None:  # (m, d) -> (m,)
        """Return upper bounds of the values; None if they would cost no less, or if the formula does not rise."""
        leading = leading_count(self._slice)
        if leading is None or not self.formula.rises:
            return None
        mean, variance = self._slice.upper_bounds(self.model.encoding.x_features(U), leading)
        return self.formula(mean, np.sqrt(variance))[0]

    def value_and_gradient(self, U: FloatArray) -> tuple[FloatArray, FloatArray]:  # (m, d) -> (m,), (m, d)
        encoding = self.model.encoding
        mean, variance, chain = self._slice.moments_and_chain(encoding.x_features(U))
        sigma = np.sqrt(variance)
        value, by_mu, by_sigma = self.formula(mean, sigma)
        return value, encoding.x_gradient(U, chain(by_mu, by_sigma / (2.0 * sigma)))


@dataclass(frozen=True)
class Weighed:
    """The logarithm of an improvement, plus those of the probabilities that outcomes are within their limits.

    That is the expected feasible improvement, if outcomes are independent of f.  Without an improvement it is the
    probability alone.  [G14]
    """

    improvement: Bounded | None
    limits: tuple[BoundAcquisition, ...]

    @property
    def _parts(self) -> tuple[Bounded, ...]:
        return self.limits if self.improvement is None else (self.improvement, *self.limits)

    def value(self, U: FloatArray) -> FloatArray:  # (m, d) -> (m,)
        return np.asarray(sum((part.value(U) for part in self._parts), np.zeros(len(U))))

    def bound(self, U: FloatArray) -> FloatArray | None:  # (m, d) -> (m,)
        """Return upper bounds of the values: a probability is at most 1, and its logarithm at most 0."""
        return None if self.improvement is None else self.improvement.bound(U)

    def value_and_gradient(self, U: FloatArray) -> tuple[FloatArray, FloatArray]:  # (m, d) -> (m,), (m, d)
        found = [part.value_and_gradient(U) for part in self._parts]
        return np.asarray(sum(value for value, _ in found)), np.asarray(sum(slope for _, slope in found))
