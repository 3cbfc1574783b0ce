"""The sets of the proof, on a grid: which fidelities are queried where, and how often at most.

symbol   shape    meaning
U        (m, d)   points of the domain, in unit coordinates
short    (m,)     f* - f(x) at them
xi       (k,)     information gap of fidelities, one of which is the target with xi = 0
cost     (k,)     what they cost
beta              weight of exploration after n queries
scale             2 rho sqrt(beta kappa0)
H_n      (k, m)   cheap fidelities worth a query at x: their number is bounded by the second condition
A_n      (m,)     cells of a partition of the domain
Q_t(A)   (k,)     fidelities that tell every x of A apart from the maximum
theta_t           the cheapest of these
F_n      (k, m)   fidelities more expensive than theta_n(A), for cells A outside the dilated good set
"""

from __future__ import annotations

import math

import numpy as np

from boca.domain.errors import InvalidInput
from boca.domain.space import BoolArray, FloatArray, IntArray
from boca.theory.good_set import dilation


def informative_region(
    U: FloatArray, short: FloatArray, xi: FloatArray, *, rho: float, kappa0: float, beta: float, radius: float
) -> BoolArray:  # (m, d), (m,), (k,) -> (k, m)
    """Return H_n: f* - f < 2 rho sqrt(beta kappa0) xi(z) near x, and z not next to the target.  [K17, eq. 11]

    Its dilation is the intersection with a ball, as the text must mean: a union would be everything.
    """
    scale = 2.0 * rho * math.sqrt(beta * kappa0)
    region = np.zeros((len(xi), len(U)), dtype=bool)
    for i in np.flatnonzero(xi > np.max(xi) / math.sqrt(beta)):
        region[i] = dilation(U, short < scale * xi[i], radius)
    return region


def cells(U: FloatArray, *, n: int, alpha: float) -> IntArray:  # (m, d) -> (m,)
    """Return the cell of the partition F_n of every point: cubes, n^(alpha / 2d) per side.  [K17, eq. 14]"""
    d = U.shape[1]
    per_side = max(1, math.ceil(n ** (alpha / (2.0 * d)) - 1e-9))
    place = np.minimum((U * per_side).astype(int), per_side - 1)
    return np.asarray(np.ravel_multi_index(tuple(place.T), (per_side,) * d))


def safe_fidelities(
    short: FloatArray, xi: FloatArray, *, rho: float, kappa0: float, beta: float
) -> BoolArray:  # (m,), (k,) -> (k,)
    """Return Q_t(A): f* - f(x) >= 2 rho sqrt(beta kappa0) xi(z) for all x of A.  [K17, eq. 12]"""
    return np.asarray(np.min(short) >= 2.0 * rho * math.sqrt(beta * kappa0) * np.asarray(xi))


def theta(safe: BoolArray, cost: FloatArray) -> int:  # (k,), (k,)
    """Return theta_t(A), the index of the cheapest fidelity of Q_t(A).  [K17, eq. 13]"""
    if not safe.any():
        raise InvalidInput("Q_t(A) is empty; it always has the target, where xi is 0. Give the target too.")
    return int(np.argmin(np.where(safe, cost, math.inf)))


def expensive_outside(
    short: FloatArray,
    cell: IntArray,
    dilated: BoolArray,
    xi: FloatArray,
    cost: FloatArray,
    *,
    rho: float,
    kappa0: float,
    beta: float,
) -> BoolArray:  # (m,), (m,), (m,), (k,), (k,) -> (k, m)
    """Return F_n: the fidelities above theta_n(A) in cost, over cells A without a point of X_rho,n.  [K17, eq. 14]"""
    found = np.zeros((len(xi), len(short)), dtype=bool)
    for label in np.unique(cell):
        A = cell == label
        if dilated[A].any():
            continue
        cheapest = theta(safe_fidelities(short[A], xi, rho=rho, kappa0=kappa0, beta=beta), cost)
        found[:, A] = (cost > cost[cheapest])[:, None]
    return found
