"""The inequalities between the model and the theorem, each as the number on its larger side.

symbol       meaning
t, n, u      iterations
s            observations in a region, or at a point
phi_x, phi_z correlation over the largest distance in a region, in the domain and among fidelities
eta2         variance of the noise
ratio        cost of a fidelity, or of the cheapest one, as a share of the target's
q            exponent of the cost ratio in gamma, 1 / (p + d + 2)
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from boca.domain.space import FloatArray
from boca.strategies.boca import Theorem


def slope_tail(
    X: FloatArray, i: int, J: float, *, h: ArrayLike, kappa0: float, draws: int, rng: np.random.Generator
) -> float:  # (m, d)
    """Return the share of draws of a GP with SE kernel whose |df/dx_i| exceeds J at one of the points.

    The theorems need constants with which it is at most a exp(-(J/b)^2).  [K17, assumption 3]
    """
    scale = np.broadcast_to(np.asarray(h, dtype=float), (X.shape[1],))
    steps = (X[:, None, :] - X[None, :, :]) / scale
    K = kappa0 / scale[i] ** 2 * (1.0 - steps[:, :, i] ** 2) * np.exp(-0.5 * np.sum(steps**2, axis=2))
    values, vectors = np.linalg.eigh(K)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    return float(np.mean(np.max(np.abs(root @ rng.standard_normal((len(X), draws))), axis=0) > J))


def gaussian_tail_bound(epsilon: ArrayLike) -> FloatArray:
    """Return exp(-epsilon^2 / 2) / 2, at least P(Z > epsilon) of a standard normal Z.  [K17, lemma 5]"""
    return np.asarray(0.5 * np.exp(-0.5 * np.square(np.asarray(epsilon, dtype=float))))


def point_variance_bound(phi: ArrayLike, s: int, *, kappa0: float, eta2: float) -> FloatArray:
    """Return a bound of the variance at correlation phi from a point with s observations.  [K17, lemma 7]"""
    own = eta2 / s / (1.0 + eta2 / (kappa0 * s))
    return np.asarray(kappa0 * (1.0 - np.square(np.asarray(phi, dtype=float))) + own)


def least_beta(t: int, delta: float) -> float:
    """Return 2 log(pi^2 t^2 / (2 delta)), above which the bound holds at all x_t asked.  [K17, lemma 9]"""
    return 2.0 * math.log(math.pi**2 * t**2 / (2.0 * delta))


def discretization_size(t: int, d: int, constants: Theorem) -> float:
    """Return the size of the grid between whose points f moves by at most 1 / t^2.  [K17, lemma 10]"""
    delta, a, b, r = constants.delta, constants.a, constants.b, constants.r
    return float((t**2 * b * r * d * math.sqrt(6.0 * a * d / delta)) ** d)


def deviation_bound(tau: ArrayLike, xi: ArrayLike, *, kappa0: float) -> FloatArray:
    """Return tau + sqrt(kappa0) xi(z), at least the deviation of f where g at z has deviation tau.  [K17, lemma 11]"""
    return np.asarray(tau, dtype=float) + math.sqrt(kappa0) * np.asarray(xi, dtype=float)


def exceedance_bound(u: float, *, alpha: float, delta: float) -> float:
    """Return a bound of P(more than u queries in A more expensive than theta(A)).  [K17, lemma 12]"""
    return float(delta / math.pi**2 * u ** -(1.0 + 4.0 / alpha))


def region_variance_bound(phi_x: float, phi_z: float, s: int, *, kappa0: float, eta2: float) -> float:
    """Return a bound of the variance in a region with s observations.  [K17, lemma 13]"""
    return kappa0 * (1.0 - phi_z**2 * phi_x**2) + eta2 / s


def variance_sum_bound(gain: float, *, eta2: float) -> float:
    """Return 2 gamma_s(A) / log(1 + eta^-2), at least the sum of sigma^2 at s target queries in A.  [K17, lemma 14]

    The kernel is a correlation: kappa0 is 1.
    """
    return 2.0 * gain / math.log1p(1.0 / eta2)


def union_bound(u: int, n: int, term: Callable[[int], float]) -> float:
    """Return the sum of a term over the iterations u + 1 to n.  [K17, eq. 16]"""
    return math.fsum(term(t) for t in range(u + 1, n + 1))


def term_bound(t: int, d: int, *, rho_0: float, delta: float) -> float:
    """Return a bound of the probability that iteration t queries A although theta(A) settled it.  [K17, eq. 17]"""
    return float(delta / math.pi**2 * t ** (-((rho_0 - 1.0) ** 2) * (2.0 + 2.0 * d)))


def covering_diameter(h: float, *, xi_far: float, beta: float, ratio: float, q: float) -> float:
    """Return the diameter of regions in which few observations bring tau below gamma.  [K17, remark 15]

    The kernels are SE, and h is the shorter of their length scales.
    """
    return float(0.5 * h * xi_far / math.sqrt(beta) * ratio**q)


def covering_size(diameter: float, *, d: int, p: int) -> int:
    """Return how many products of cubes of this diameter cover fidelities and domain.  [K17, remark 15]"""
    return math.prod(math.ceil(math.sqrt(k) / diameter) ** k for k in (d, p) if k)


def plays_bound(volume: float, n: int, *, d: int, p: int, ratio: float, q: float) -> float:
    """Return the number of queries in a region of fidelities of this cost, up to a constant.  [K17, remark 16]

    With q = 1 / (p + d + 2), their cost is the same at every fidelity.
    """
    return float(volume * math.log(n) ** (0.5 * (d + p + 2)) * ratio ** (-q * (p + d + 2)))
