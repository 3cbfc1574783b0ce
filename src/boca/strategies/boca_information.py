"""What a query at a fidelity tells about the target, and which fidelities are worth one: the paper's equations 4 and 7.

[K17] Kandasamy, Dasarathy, Schneider, Poczos: Multi-fidelity Bayesian Optimisation with Continuous Approximations,
ICML 2017.

    symbol      meaning
    xi(z)       information gap: how little a query at z tells about f, from 0 at the target to 1
    gamma(z)    threshold: z is a candidate where the deviation tau is above c gamma(z)
    tau(z, x)   posterior deviation of g at (z, x); sigma(x) = tau(z*, x)
    q           exponent of the cost ratio in gamma
    Z_t         candidate fidelities at x_t
"""

from __future__ import annotations

import math

import numpy as np

from boca.domain.space import BoolArray, FloatArray


def information_gap(k: FloatArray, own: FloatArray, star: float) -> FloatArray:  # (m,), (m,) -> (m,)
    """Return xi(z) from k(z, z*), k(z, z) and k(z*, z*): for a radial kernel sqrt(1 - phi(z - z*)^2).  [K17, eq. 4]"""
    return np.sqrt(np.maximum(1.0 - k * k / (own * star), 0.0))


def relative_deviation(own: FloatArray, star: float) -> FloatArray:  # (m,) -> (m,)
    """Return the prior deviation at z as a share of the target's, from k(z, z) and k(z*, z*)."""
    return np.sqrt(own / star)


def fidelity_threshold(kappa0: float, xi: FloatArray, cost_ratio: FloatArray, *, q: float) -> FloatArray:  # (m,)
    """Return gamma(z) = sqrt(kappa0) xi(z) (cost(z) / cost(z*))^q.  [K17, eq. 7]"""
    return math.sqrt(kappa0) * xi * cost_ratio**q


def candidate_fidelities(
    cost: FloatArray, target_cost: float, tau: FloatArray, threshold: FloatArray, xi: FloatArray, least_gap: float
) -> BoolArray:  # all (m,) -> (m,)
    """Return which fidelities are in Z_t: cheaper than the target, uncertain enough, and not next to it.  [K17, eq. 7]

    `threshold` is c gamma(z).  `least_gap` is the largest xi over the fidelity space divided by sqrt(beta): without it,
    queries could come ever closer to the target without reaching it.
    """
    return np.asarray((cost < target_cost) & (tau > threshold) & (xi > least_gap))


def information_gain(
    covariance: FloatArray, sigma2: float, tau2: FloatArray, eta2: FloatArray | float
) -> FloatArray:  # (m,), (m,) and (m,) or a number -> (m,)
    """Return the information in nats that a noisy query at (z, x) has about f(x)."""
    explained = np.minimum(covariance**2 / (sigma2 * (tau2 + eta2)), 1.0 - 1e-15)
    return -0.5 * np.log1p(-explained)
