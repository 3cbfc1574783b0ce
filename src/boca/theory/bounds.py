"""Regret, and what the theorems say it is at most.

    symbol       meaning
    n            queries; in the theorem of BOCA, floor(capital / cost(z*))
    S, R         simple regret, and regret summed over the target queries
    beta         weight of exploration, at 2 n in the theorem of BOCA
    gamma_n(A)   maximum information gain of n points of A, in nats
    C_1          8 / log(1 + eta^-2)
    rho_0        least width of the good set for an alpha

The bounds hold for functions drawn from the GP, with probability 1 - delta.  They are far above the regret of real
runs: their use is how they fall with n, and what the gain of the good set saves.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from boca.domain.errors import InvalidInput
from boca.domain.space import BoolArray, FloatArray, positive_number
from boca.strategies.boca import Theorem

_ROUNDING = 1e-9  # relative: sums of costs may miss a capital by so much


def target_queries(capital: float, target_cost: float) -> int:
    """Return n = floor(capital / cost(z*)), the target queries that a capital pays for.  [K17, theorem 8]"""
    return math.floor(capital / target_cost * (1.0 + _ROUNDING))


def simple_regret(
    short: FloatArray, at_target: BoolArray, cost: FloatArray, capital: float
) -> float:  # (n,), (n,), (n,)
    """Return S(capital): the least f* - f(x) of the affordable queries at the target; infinity without.

    [K17, sec. 2.2]
    """
    affordable = np.cumsum(cost) <= capital * (1.0 + _ROUNDING)
    counted = np.asarray(short)[np.asarray(at_target) & affordable]
    return float(np.min(counted)) if len(counted) else math.inf


def cumulative_regret(short: FloatArray, at_target: BoolArray) -> FloatArray:  # (n,), (n,) -> (n,)
    """Return R_1, ..., R_n, the sums of f* - f(x) over the queries at the target.  [K17, eq. 15]"""
    return np.cumsum(np.where(at_target, short, 0.0))


def c_1(eta2: float) -> float:
    """Return C_1 = 8 / log(1 + eta^-2), for both theorems.  [K17, theorem 4]"""
    return 8.0 / math.log1p(1.0 / positive_number(eta2, "eta2"))


def rho_0(alpha: float, d: int) -> float:
    """Return max(2, 1 + sqrt((1 + 2 / alpha) / (1 + d))), above which the theorem needs rho.  [K17, theorem 8]"""
    if not 0.0 < alpha < 1.0:
        raise InvalidInput(f"alpha must be between 0 and 1; got {alpha!r}. Try alpha=0.5.")
    return max(2.0, 1.0 + math.sqrt((1.0 + 2.0 / alpha) / (1.0 + d)))


def gp_ucb_beta(t: int, d: int, constants: Theorem) -> float:
    """Return the beta_t for which GP-UCB has its bound.  [K17, theorem 4]"""
    delta, a, b, r = constants.delta, constants.a, constants.b, constants.r
    covering = t**2 * b * d * r * math.sqrt(4.0 * a * d / delta)
    return 2.0 * math.log(2.0 * math.pi**2 * t**2 / (3.0 * delta)) + 2.0 * d * math.log(covering)


def gp_ucb_rate(n: ArrayLike, gain: ArrayLike) -> FloatArray:  # (m,), (m,) -> (m,)
    """Return sqrt(gamma_n(X) / n), the regret of GP-UCB without constants and logarithms.  [K17, eq. 8]"""
    return np.asarray(np.sqrt(np.asarray(gain, dtype=float) / np.asarray(n, dtype=float)))


def gp_ucb_bound(n: ArrayLike, beta: ArrayLike, gain: ArrayLike, *, eta2: float) -> FloatArray:  # (m,) -> (m,)
    """Return sqrt(C_1 beta_n gamma_n(X) / n) + pi^2 / 6, the bound of GP-UCB.  [K17, theorem 4]

    The last term is as printed; divided by n, as in the theorem of BOCA, the bound would still hold.
    """
    first = c_1(eta2) * np.asarray(beta, dtype=float) * np.asarray(gain, dtype=float)
    return np.asarray(np.sqrt(first / np.asarray(n, dtype=float)) + math.pi**2 / 6.0)


def boca_rate(n: ArrayLike, gain_good: ArrayLike, gain_all: ArrayLike, *, alpha: float) -> FloatArray:  # (m,) -> (m,)
    """Return sqrt(gamma_n(X_rho) / n) + sqrt(gamma_n^alpha(X) / n^(2 - alpha)), without constants.  [K17, theorem 1]"""
    count, good, every = (np.asarray(given, dtype=float) for given in (n, gain_good, gain_all))
    return np.asarray(np.sqrt(good / count) + np.sqrt(every / count ** (2.0 - alpha)))


def boca_bound(
    n: ArrayLike, beta: ArrayLike, gain_good: ArrayLike, gain_all: ArrayLike, *, alpha: float, eta2: float
) -> FloatArray:  # (m,) -> (m,)
    """Return the bound of S(capital) of BOCA, n being floor(capital / cost(z*)).  [K17, theorem 8]

    Args:
        n: target queries that the capital pays for.
        beta: beta at 2 n.
        gain_good: gamma of 2 n points of the dilated good set.
        gain_all: gamma of 2 n^alpha points of the domain.
        alpha: between 0 and 1.
        eta2: variance of the noise.
    """
    count, weight, good, every = (np.asarray(given, dtype=float) for given in (n, beta, gain_good, gain_all))
    twice = 2.0 * c_1(eta2) * weight
    inside, outside = np.sqrt(twice * good / count), np.sqrt(twice * every / count ** (2.0 - alpha))
    return np.asarray(inside + outside + math.pi**2 / (6.0 * count))
