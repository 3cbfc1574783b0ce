"""The information that noisy observations at some points have about f, and how fast it can grow.

    symbol   shape    meaning
    X        (n, d)   points
    K        (n, n)   kappa0 times the kernel between them
    eta2              variance of the noise
    I        nats     1/2 log det(1 + K / eta2), the mutual information of the observations and f
    gamma_n  nats     its maximum over n points of a set

[S10] Srinivas, Krause, Kakade, Seeger: Gaussian Process Optimization in the Bandit Setting, ICML 2010.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from boca.domain.errors import InvalidInput
from boca.domain.space import FloatArray, IntArray, positive_number
from boca.gp.kernels import Profile
from boca.theory.gap import Covariance, correlation

_GREEDY_SHARE = 1.0 - 1.0 / math.e  # of the maximum, that greedy growth of a submodular function has at least


def information_gain(
    X: FloatArray, *, eta2: float, kernel: Profile | Covariance = "se", h: ArrayLike = 1.0, kappa0: float = 1.0
) -> float:  # (n, d)
    """Return I(y_A; f_A) = 1/2 log det(1 + K / eta2) for the points of A.  [K17, definition 2]"""
    K = _covariance(X, eta2, kernel, h, kappa0)
    return 0.5 * float(np.linalg.slogdet(np.eye(len(K)) + K / eta2)[1])


def information_gain_by_variances(
    X: FloatArray, *, eta2: float, kernel: Profile | Covariance = "se", h: ArrayLike = 1.0, kappa0: float = 1.0
) -> float:  # (n, d)
    """Return the same as 1/2 sum log(1 + sigma_{t-1}^2(x_t) / eta2), in the order of the points.  [K17, lemma 6]"""
    K = _covariance(X, eta2, kernel, h, kappa0)
    total = 0.0
    for t in range(len(K)):
        k = K[:t, t]
        variance = K[t, t] - (k @ np.linalg.solve(K[:t, :t] + eta2 * np.eye(t), k) if t else 0.0)
        total += 0.5 * math.log1p(max(float(variance), 0.0) / eta2)
    return total


@dataclass(frozen=True)
class GreedyGain:
    """Points of a set, each the one with the largest variance given those before."""

    chosen: IntArray  # (n,)
    """Rows of the set."""
    gains: FloatArray  # (n,)
    """The information of the first 1, 2, ..., n of them, in nats."""

    @property
    def at_most(self) -> FloatArray:  # (n,)
        """Upper bounds of gamma_1, ..., gamma_n: greedy growth has at least 1 - 1/e of the maximum [S10]."""
        return np.asarray(self.gains / _GREEDY_SHARE)


def greedy_gain(
    X: FloatArray,
    n: int,
    *,
    eta2: float,
    kernel: Profile | Covariance = "se",
    h: ArrayLike = 1.0,
    kappa0: float = 1.0,
) -> GreedyGain:  # X (m, d)
    """Grow a subset of the rows of X greedily to n points.  [K17, definition 2]

    Its gain is at most gamma_n, and at least 1 - 1/e of it: the gain is submodular.
    """
    if not 1 <= n <= len(X):
        raise InvalidInput(f"n must be from 1 to the {len(X)} points of the set; got {n!r}. Pass a smaller n.")
    K = _covariance(X, eta2, kernel, h, kappa0)
    variance = np.diagonal(K).copy()
    rows = np.empty((n, len(K)))  # of the factor of K + eta2, for the chosen points
    chosen = np.empty(n, dtype=int)
    steps = np.empty(n)
    is_free = np.ones(len(K), dtype=bool)
    for t in range(n):
        i = int(np.argmax(np.where(is_free, variance, -math.inf)))
        steps[t] = 0.5 * math.log1p(max(float(variance[i]), 0.0) / eta2)
        rows[t] = (K[i] - rows[:t, i] @ rows[:t]) / math.sqrt(max(float(variance[i]), 0.0) + eta2)
        variance -= rows[t] ** 2
        chosen[t], is_free[i] = i, False
    return GreedyGain(chosen, np.cumsum(steps))


def _covariance(
    X: FloatArray, eta2: float, kernel: Profile | Covariance, h: ArrayLike, kappa0: float
) -> FloatArray:  # (n, n)
    points = np.asarray(X, dtype=float)
    if points.ndim != 2:
        raise InvalidInput(f"X must have one row per point; got an array of shape {points.shape}. Pass X[:, None].")
    positive_number(eta2, "eta2")
    positive_number(kappa0, "kappa0")
    return kappa0 * correlation(kernel, points, points, h)
