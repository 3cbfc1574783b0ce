"""What a query tells about the best mean at the target, whether it begins a run or continues one.

    symbol   meaning
    mu       posterior mean of f = g(z*, .) at x
    s        how much the result of a query moves it: abs(cov(f(x), y)) / deviation of y
    best     the highest posterior mean of another x that was queried
    gain     knowledge gradient: how much higher the best mean is expected to be with the result,
             s h(-abs(mu - best) / s), with h(u) = phi(u) + u Phi(u)

[F09] Frazier, Powell, Dayanik: The Knowledge-Gradient Policy for Correlated Normal Beliefs, INFORMS J. Computing 2009.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from boca.domain.space import FloatArray, IntArray
from boca.model.posterior import Model
from boca.search.acquisition import Valued, log_ei

_LEAST_MOVE = 1e-12  # standardized: the logarithm of zero is not a number
_LEAST_SHARE = 0.05  # of the deviation of f that a query is taken to resolve: with none, all points would be alike


def log_gains(
    model: Model, U: FloatArray, of: IntArray, Z: FloatArray, curves: FloatArray, best: FloatArray
) -> FloatArray:  # (k, d), (m,), (m, p), (m,), (k,) -> (m,)
    """Return the logarithm of the gain of every query.  [F09, for one point]

    Args:
        model: the posterior.
        U: points, each once.
        of: the point of every query.
        Z: the fidelity of every query.
        curves: the curve of every query.
        best: the highest mean of another point, for every point.
    """
    encoding = model.encoding
    F = encoding.features(U[of], Z, curves)
    at_target = np.hstack([encoding.x_features(U), np.tile(encoding.target, (len(U), 1))])
    prior = model.kappa0 * encoding.fidelity_covariance(model.h, Z)[0]
    variance, covariance = model.gp.paired(F, at_target, of, prior)
    s = np.maximum(np.abs(covariance) / np.sqrt(variance + model.noise(F)), _LEAST_MOVE)
    return np.asarray(log_ei(-np.abs(model.means(U) - best)[of], s, 0.0)[0])


def best_of_others(mu: FloatArray, known: FloatArray, U: FloatArray) -> FloatArray:  # (n,), (n, d), (k, d) -> (k,)
    """Return the highest mean of a known point other than the given one, for each; its own if there is no other."""
    order = np.argsort(-mu, kind="stable")[:2]
    is_first = (known[order[0]] == U).all(axis=1)
    return np.asarray(np.where(is_first, mu[order[-1]], mu[order[0]]))


@dataclass(frozen=True)
class ImprovementBelow:
    """The logarithm of the improvement that a query below the target is expected to show.

    It is expected improvement with the share of sigma that the fidelity is correlated with the target: close to the
    gain, and as cheap as an acquisition at the target.
    """

    rises: ClassVar[bool] = True
    best: float
    correlation: float

    def __call__(self, mu: FloatArray, sigma: FloatArray) -> Valued:
        share = max(self.correlation, _LEAST_SHARE)
        value, by_mu, by_sigma = log_ei(mu, share * sigma, self.best)
        return value, by_mu, share * by_sigma
