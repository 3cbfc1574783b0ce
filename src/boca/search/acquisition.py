"""Acquisition functions: what a point promises, from the posterior mean and deviation there.

    mu, sigma   (m,)   posterior mean and standard deviation of f
    beta               weight of exploration; the bound uses its square root
    u           (m,)   (mu - best) / sigma
    maxima      (k,)   what the maximum of f may be

Each formula returns its value with its derivatives by mu and by sigma.  As an `Acquisition` it has its numbers with it
and says whether it rises with both; bound to a model, it is what a maximiser maximises.

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
from boca.model.posterior import Model, leading_of

Slope: TypeAlias = FloatArray | float
Valued: TypeAlias = tuple[FloatArray, Slope, Slope]

_LOG_SQRT_2PI = 0.5 * math.log(2.0 * math.pi)
_CERTAIN = 30.0  # deviations above the best: the improvement is mu - best, and exp(u^2 / 2) is still a float
_HOPELESS = -1e3  # deviations below it
_NOTHING = 1e-300  # nats: the logarithm of less is no number
_QUARTILES = np.array([0.25, 0.5, 0.75])
_BISECTIONS = 25
_NEVER = 9.0  # deviations that a point would have to exceed: the probability of it is nothing beside one


def ucb(mu: FloatArray, sigma: FloatArray, beta: float) -> Valued:
    """Return the upper confidence bound mu + sqrt(beta) sigma.  [K17, eq. 6]"""
    root = math.sqrt(beta)
    return mu + root * sigma, 1.0, root


def log_ei(mu: FloatArray, sigma: FloatArray, best: FloatArray | float) -> Valued:
    """Return the logarithm of the expected improvement over `best`; it has a slope where the plain one is zero.

    EI = sigma h(u) with h = phi + u Phi, and h = phi (1 + u e) with e = Phi / phi, a scaled complementary error
    function: no difference of two tiny numbers anywhere.
    """
    from scipy.special import erfcx

    u = np.maximum((mu - best) / sigma, -1e70)  # beyond this, the square of u is no float
    v = np.minimum(u, _CERTAIN)
    e = math.sqrt(math.pi / 2.0) * erfcx(v * -math.sqrt(0.5))
    far = 1.0 / np.square(np.minimum(v, _HOPELESS))  # below, 1 + v e is rounding and the series exact
    ratio = np.where(v < _HOPELESS, far - 3.0 * far * far, 1.0 + v * e)
    improving = np.maximum(u, 1.0)
    log_h = np.where(u > _CERTAIN, np.log(improving), np.log(ratio) - 0.5 * v * v - _LOG_SQRT_2PI)
    by_mu = np.where(u > _CERTAIN, 1.0 / improving, e / ratio)
    return np.log(sigma) + log_h, by_mu / sigma, 1.0 / ratio / sigma


def log_noisy_ei(mu: FloatArray, sigma: FloatArray, best: FloatArray) -> Valued:  # mu (m, k), best (k,) -> (m,)
    """Return the logarithm of the expected improvement over draws of what f is where it was queried.  [L19]

    `mu` and `sigma` are the moments given each draw, `best` the highest value of each.  Derivatives by mu are (m, k).
    """
    value, by_mu, by_sigma = log_ei(mu, sigma[:, None], best)
    highest = np.max(value, axis=1, keepdims=True)
    share = np.exp(value - highest)
    total = np.sum(share, axis=1, keepdims=True)
    share /= total
    mean = highest[:, 0] + np.log(total[:, 0] / len(best))
    return mean, share * by_mu, np.sum(share * by_sigma, axis=1)


def log_information(mu: FloatArray, sigma: FloatArray, eta2: float, maxima: FloatArray) -> Valued:
    """Return the logarithm of the nats that a noisy query tells about the value of the maximum.  [M21]

    That f is below its maximum f* takes the share w = r (g + r) from its variance, with g = (f* - mu) / sigma and
    r = phi(g) / Phi(g), and the share rho^2 w from that of an observation, rho^2 = sigma^2 / (sigma^2 + eta2).  A mean
    above f* counts as f*: so the information never falls with sigma.
    """
    from scipy.special import erfcx

    total = sigma * sigma + eta2
    rho2 = sigma * sigma / total
    g = np.maximum((maxima[:, None] - mu) / sigma, 0.0)  # (k, m)
    r = math.sqrt(2.0 / math.pi) / erfcx(g * -math.sqrt(0.5))
    w = r * (g + r)
    left = 1.0 - rho2 * w
    information = np.maximum(np.mean(-0.5 * np.log1p(-rho2 * w), axis=0), _NOTHING)
    by_g = np.where(g > 0.0, 0.5 * rho2 / left * (r - w * (g + 2.0 * r)), 0.0)
    by_mu = np.mean(-by_g, axis=0) / sigma
    by_sigma = np.mean(w / left, axis=0) * sigma * eta2 / (total * total) - np.mean(by_g * g, axis=0) / sigma
    return np.log(information), by_mu / information, by_sigma / information


def drawn_maxima(mu: FloatArray, sigma: FloatArray, rng: np.random.Generator, count: int) -> FloatArray:  # (count,)
    """Draw values that the maximum of f may have, from moments of f at points all over its domain.

    As if these were independent, their maximum has a distribution whose quartiles a Gumbel distribution shares, and
    from that one values are drawn; none is below the highest mean.  [W17]
    """
    from scipy.special import log_ndtr

    low, high = (np.full(3, np.max(mu + steps * sigma)) for steps in (-3.0, 6.0))
    may_be_highest = low[0] - mu < _NEVER * sigma
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
    """Whether the value never falls as mu or sigma grows: then upper bounds of both give an upper bound of it."""

    def __call__(self, mu: FloatArray, sigma: FloatArray, /) -> Valued: ...


@dataclass(frozen=True)
class Mean:
    """The posterior mean: no exploration at all."""

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
class BoundAcquisition:
    """An acquisition at the posterior of a model: what a maximiser maximises."""

    model: Model
    formula: Acquisition
    given: PosteriorSlice | None = None
    """The posterior of f given more than the model knows, if it is not the model's own."""

    @property
    def _section(self) -> PosteriorSlice:
        return self.model.section if self.given is None else self.given

    def value(self, U: FloatArray) -> FloatArray:  # (m, d) -> (m,)
        mean, variance = self._section.moments(self.model.encoding.x_features(U))
        return self.formula(mean, np.sqrt(variance))[0]

    def bound(self, U: FloatArray) -> FloatArray | None:  # (m, d) -> (m,)
        """Return upper bounds of the values; None if they would cost no less, or the formula does not rise."""
        leading = leading_of(self._section)
        if leading is None or not self.formula.rises:
            return None
        mean, variance = self._section.at_most(self.model.encoding.x_features(U), leading)
        return self.formula(mean, np.sqrt(variance))[0]

    def value_and_gradient(self, U: FloatArray) -> tuple[FloatArray, FloatArray]:  # (m, d) -> (m,), (m, d)
        encoding = self.model.encoding
        mean, variance, chain = self._section.moments_and_chain(encoding.x_features(U))
        sigma = np.sqrt(variance)
        value, by_mu, by_sigma = self.formula(mean, sigma)
        gradient = np.zeros_like(U)
        gradient[:, encoding.x_numeric] = chain(by_mu, by_sigma / (2.0 * sigma))[:, : len(encoding.x_numeric)]
        return value, gradient
