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
Slope: TypeAlias = FloatArray | float
Valued: TypeAlias = tuple[FloatArray, Slope, Slope]

_LOG_SQRT_2PI = 0.5 * math.log(2.0 * math.pi)
_CERTAIN = 30.0  # deviations above the best: the improvement is mu - best, and exp(u^2 / 2) is still a float
_HOPELESS = -1e3  # deviations below it


def ucb(mu: FloatArray, sigma: FloatArray, beta: float) -> Valued:
    """Return the upper confidence bound mu + sqrt(beta) sigma.  [K17, eq. 6]"""
    root = math.sqrt(beta)
    return mu + root * sigma, 1.0, root


def log_ei(mu: FloatArray, sigma: FloatArray, best: float) -> Valued:
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
