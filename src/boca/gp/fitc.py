"""A GP on thousands of observations through a few hundred of them (FITC).

The posterior given all n observations is approximated through the values u of the latent function at an active set of a
of them (Snelson and Ghahramani 2006).  The variance of an observation given u counts as independent noise.

    symbol   shape    meaning
    U        (a, D)   inputs of the active observations
    lam      (n,)     variance of an observation given u, noise included
    A        (a, n)   L_u^-1 K_uf diag(lam)^-1/2, with L_u the Cholesky factor of K_uu
    Q        (a, a)   A A'
    R        (a, a)   L_u Q^-1 L_u', noise of a pseudo-observations that carry the information of all n

An exact GP on the pseudo-observations, whose covariance is K_uu + R, has the same posterior.  So the result is a `GP`.
"""

from __future__ import annotations

import numpy as np

from boca.gp import linalg
from boca.gp.converging import Converging
from boca.gp.kernels import Kernel, covariance
from boca.gp.linalg import Factor, FloatArray, IntArray
from boca.gp.model import GP

_LEAST_ETA2 = 1e-8  # of kappa0: without noise, lam is zero at the active observations
_CHUNK = 1024  # observations at a time, which bounds the memory: the whole (a, n) array is never needed
_JITTER_SHARE = 1e-2  # of eta2: the jitter of K_uu, if it needs one, stays far below the noise


def farthest_points(kernel: Kernel, h: FloatArray, X: FloatArray, first: IntArray, count: int) -> IntArray:  # (count,)
    """Return the indices `first`, then those of the rows farthest from all chosen before, in length scales."""
    parts = [r.scaled(h, X) for r in kernel.radial]
    parts += [factor.embedded(h, X) for factor in kernel.factors if isinstance(factor, Converging)]
    scaled = np.hstack(parts) if parts else np.zeros((len(X), 1))
    square = np.einsum("ij,ij->i", scaled, scaled)
    chosen = list(first[:count]) or [0]
    nearest = np.full(len(X), np.inf)
    for k in range(count):
        if k == len(chosen):
            chosen.append(int(np.argmax(nearest)))
        away = scaled @ (-2.0 * scaled[chosen[k]])
        away += square
        away += square[chosen[k]]
        np.minimum(nearest, np.maximum(away, 0.0, out=away), out=nearest)
        nearest[chosen[k]] = -1.0  # never chosen again; an equal row may be
    return np.array(chosen, dtype=np.intp)


def build_fitc(
    kernel: Kernel,
    X: FloatArray,
    y: FloatArray,
    active: IntArray,
    *,
    kappa0: float,
    h: FloatArray,
    eta2: float,
    m: float | None = None,
    noise: FloatArray | None = None,
) -> GP:
    """Return the GP on all of X and y through the observations at `active`; `m=None` estimates the mean."""
    U = X[active]
    eta2 = max(eta2, _LEAST_ETA2 * kappa0)
    known = np.zeros(len(y)) if noise is None else noise
    K_uu = covariance(kernel, kappa0, h, U, np.zeros(len(U)))
    of_u, jitter = linalg.factor(K_uu, level=_JITTER_SHARE * eta2)
    Q, a, b = _weighted_sums(kernel, kappa0, h, eta2, known, X, y, U, of_u)
    of_b, _ = linalg.factor(Q + np.eye(len(U)))
    w = of_b.whiten(a)
    if m is None:  # generalized least squares, K^-1 by the identity of Woodbury
        inner = b - w.T @ w
        m = float(inner[0, 1] / inner[0, 0])
    alpha = of_u.solve_transposed(of_b.solve(a @ np.array([[-m], [1.0]])))[:, 0]
    of_q, _ = linalg.factor(Q)
    T = of_q.whiten(np.tril(of_u.L).T)
    K_uu = np.tril(K_uu) + T.T @ T
    K_uu[np.diag_indices(len(U))] += jitter
    factor, _ = linalg.factor(K_uu)
    return GP(kernel, kappa0, h, eta2, m, U, factor, alpha)


def _weighted_sums(
    kernel: Kernel,
    kappa0: float,
    h: FloatArray,
    eta2: float,
    known: FloatArray,
    X: FloatArray,
    y: FloatArray,
    U: FloatArray,
    of_u: Factor,
) -> tuple[FloatArray, FloatArray, FloatArray]:  # Q (a, a), (a, 2), (2, 2)
    """Return A A', A v and v' v, with v (n, 2) a column of ones and y, both divided by sqrt(lam)."""
    targets = np.column_stack([np.ones_like(y), y])
    Q = np.zeros((len(U), len(U)))
    a = np.zeros((len(U), 2))
    b = np.zeros((2, 2))
    for i in range(0, len(y), _CHUNK):
        rows = slice(i, i + _CHUNK)
        A = of_u.whiten(kappa0 * kernel.value(h, U, X[rows]))
        left = np.maximum(kappa0 * kernel.diagonal(h, X[rows]) - np.einsum("ij,ij->j", A, A), 0.0)
        root = 1.0 / np.sqrt(left + eta2 + known[rows])
        A *= root
        v = targets[rows] * root[:, None]
        Q += A @ A.T
        a += A @ v
        b += v.T @ v
    return Q, a, b
