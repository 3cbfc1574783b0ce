"""Acquisition functions: what a point promises, from the posterior mean and deviation there.

    mu, sigma   (m,)   posterior mean and standard deviation of f
    beta               weight of exploration; the bound uses its square root
    u           (m,)   (mu - best) / sigma

Each returns its value with its derivatives by mu and by sigma, for the chain rule of whoever holds the model.
"""

from __future__ import annotations

import math
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

FloatArray: TypeAlias = NDArray[np.float64]
Valued: TypeAlias = tuple[FloatArray, FloatArray, FloatArray]

_LOG_SQRT_2PI = 0.5 * math.log(2.0 * math.pi)


def ucb(mu: FloatArray, sigma: FloatArray, beta: float) -> Valued:
    """Return the upper confidence bound mu + sqrt(beta) sigma.  [K17, eq. 6]"""
    root = math.sqrt(beta)
    return mu + root * sigma, np.ones_like(mu), np.full_like(mu, root)


def log_ei(mu: FloatArray, sigma: FloatArray, best: float) -> Valued:
    """Return the logarithm of the expected improvement over `best`; it has a slope where the plain one is zero."""
    from scipy.special import erfcx, log_ndtr

    u = (mu - best) / sigma
    log_phi = -0.5 * u * u - _LOG_SQRT_2PI
    # h(u) = phi(u) + u Phi(u); below -1 the two terms cancel, and Phi(u) = phi(u) sqrt(pi/2) erfcx(-u/sqrt 2)
    low = np.minimum(u, -1.0)
    ratio = 1.0 + low * math.sqrt(math.pi / 2.0) * erfcx(-low / math.sqrt(2.0))
    far = np.minimum(u, -1e3)  # there the series 1/u^2 - 3/u^4 is exact and the difference is rounding
    ratio = np.where(u < -1e3, 1.0 / far**2 - 3.0 / far**4, ratio)
    log_Phi = log_ndtr(u)
    high = np.maximum(u, -1.0)
    near = np.log(np.exp(-0.5 * high * high - _LOG_SQRT_2PI) + high * np.exp(log_ndtr(high)))
    log_h = np.where(u > -1.0, near, log_phi + np.log(ratio))
    by_mu = np.exp(log_Phi - log_h) / sigma
    by_sigma = np.exp(log_phi - log_h) / sigma
    return np.log(sigma) + log_h, by_mu, by_sigma
